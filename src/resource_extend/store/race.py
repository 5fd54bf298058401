"""Connecting to the endpoint that is ready first (protocol, 7.3).

Every endpoint gets an attempt, in order: the next begins a moment after the last one, or at once when that one failed.
No attempt ever waits, so all of them are under way side by side. The winner is the first whose peer has said hello in
HTTP/2 and, where a login is needed, has accepted it.
"""

from select import poll
from time import monotonic

from resource_extend.store.attempt import Attempt
from resource_extend.store.failover import OUT, OUT_OF_TIME, is_late, reason, unreachable
from resource_extend.store.failures import Unanswered

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _socket import socket

    from resource_extend.store.client import Client
    from resource_extend.store.http2 import Connection

# How often a name that is being looked up is asked for, in seconds, while there are sockets to wait for too.
LOOKUP_INTERVAL = 0.005


def race(client: "Client", path: bytes, body: bytes) -> "Connection":
    """Return a connection to the endpoint that is ready first, with the request under way on it.

    Args:
        client: whose endpoints, login and limits count; its `endpoint` becomes the winner.
        path: the method of the request.
        body: its message.

    Raises:
        StoreError: no endpoint became ready, or one refused the login.
        SettingsError: a TLS file cannot be used.
        OSError: the winner's connection broke.
    """
    return Race(client, (path, body)).run()


def resume(
    client: "Client",
    request: tuple[bytes, bytes],
    started: float,
    sock: "socket",
    connection: "Connection | None",
    failure: Exception,
) -> "Connection":
    """Return what `race` does, after the straight road's attempt at the first endpoint, begun at `started`, has failed.

    It goes on when there is another endpoint and the failure is only that it takes its time.
    """
    run = Race(client, request)
    first = run.waiting.pop(0)
    first.resume(started, sock, connection)
    if is_late(failure) and run.waiting:
        run.running.append(first)
    else:
        run.failed(first, failure)
    return run.run()


class Race:
    """The attempts at all endpoints: those that have not begun, in order, and those that are under way."""

    __slots__ = ("_client", "_next", "_request", "running", "waiting")

    def __init__(self, client: "Client", request: tuple[bytes, bytes]):
        self._client = client
        self._request = request
        self._next = 0.0
        self.waiting = [Attempt(client, endpoint, request) for endpoint in client.endpoints]
        self.running: list[Attempt] = []

    def run(self) -> "Connection":
        """Return the connection of the first attempt that is ready."""
        winner = None
        try:
            while winner is None:
                self._begin()
                if not self.running:
                    raise unreachable(self._client)
                winner = self._advance(self._wait())
            return winner.finish()
        finally:
            for attempt in self.running:
                if attempt is not winner:
                    attempt.close()

    def failed(self, attempt: Attempt, failure: Exception) -> None:
        """Note why an attempt has failed; the next one may begin at once."""
        client = self._client
        _, _, _, text = attempt.endpoint
        if not is_late(failure):
            client.reasons[text] = reason(failure)
        elif monotonic() < client.deadline:
            client.reasons[text] = attempt.too_late
        client.strikes[text] = OUT
        self._next = 0.0
        attempt.close()

    def _begin(self) -> None:
        """Begin the attempts that are due."""
        while self.waiting and (not self.running or monotonic() >= self._next):
            attempt = self.waiting.pop(0)
            self._next = monotonic() + self._client.stagger
            try:
                attempt.begin()
            except OSError as failure:
                self.failed(attempt, failure)
            else:
                self.running.append(attempt)

    def _wait(self) -> set[int]:
        """Wait until an attempt can go on, is over its time, or the next one is due; return the sockets that can."""
        until = min(attempt.expires for attempt in self.running)
        if self.waiting:
            until = min(until, self._next)
        seconds = max(min(until, self._client.deadline) - monotonic(), 0.0)
        lookups = [attempt.lookup for attempt in self.running if attempt.lookup is not None]
        if len(lookups) == len(self.running):
            lookups[0].done(seconds if len(lookups) == 1 else min(seconds, LOOKUP_INTERVAL))
            return set()
        sockets = poll()
        for attempt in self.running:
            if attempt.sock is not None:
                sockets.register(attempt.sock, attempt.wants)
        # Rounded up, or the last millisecond would be spent without sleeping.
        events = sockets.poll((min(seconds, LOOKUP_INTERVAL) if lookups else seconds) * 1000 + 1)
        return {descriptor for descriptor, _ in events}

    def _advance(self, awake: set[int]) -> Attempt | None:
        """Let every attempt that can go on do so, and return the first that is ready."""
        for attempt in list(self.running):
            try:
                if (attempt.sock is None or attempt.sock.fileno() in awake) and attempt.advance():
                    return attempt
                if monotonic() >= attempt.expires:
                    raise TimeoutError
            except (OSError, Unanswered) as failure:
                self.running.remove(attempt)
                self.failed(attempt, failure)
            if attempt.others:
                endpoint, request = attempt.endpoint, self._request
                self.waiting[:0] = [Attempt(self._client, endpoint, request, other) for other in attempt.others]
                attempt.others = []
        if monotonic() >= self._client.deadline:
            for attempt in self.running:
                _, _, _, text = attempt.endpoint
                self._client.reasons[text] = OUT_OF_TIME
            raise unreachable(self._client)
        return None
