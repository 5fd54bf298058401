"""Calls of etcd's API on whichever endpoint answers, within the time of the whole plugin call (protocol, 7.3).

Here is the straight road: the first endpoint takes the connection at once, and answers as etcd does when all is well.
Whatever else can happen is decided in `detour`, `race` (connecting) and `failover` (after a failure), which are loaded
then; they are told all that was sent and received here.
"""

from time import monotonic

from resource_extend.store.endpoints import authority, family_of, open_socket, parse_endpoint
from resource_extend.store.failures import Unanswered
from resource_extend.store.frames import IDLE, OPENING, holds_hello, ordinary_answer, origin, short_request

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _socket import socket
    from collections.abc import Callable, Mapping
    from ssl import SSLContext

    from resource_extend.settings import Settings
    from resource_extend.store.http2 import Connection, Receiver

# Up to this many bytes a request fits into any socket buffer, and so many of them into the windows that HTTP/2 begins
# with.
SHORT = 8192
SHORT_CALLS = 7
# Of the time left a write may take this part, so that there is time to read what became of it.
WRITE_SHARE = 0.75
# With fewer seconds left none is sent: its reply would hardly come in time, and its outcome be unknown.
SHORTEST_WRITE = 0.1

# How long to wait, in seconds: for the endpoint that was tried last, before the next one is tried too; for a TCP
# connection; for the answer to a request.
Limits = tuple[float, float, float]
LIMITS: Limits = (0.25, 2.0, 5.0)


class Client:
    """One plugin call's way to etcd: at most one connection at a time, kept until it fails.

    `endpoints` are in the order in which they will be tried, `reasons` says by endpoint text how each failed last.
    `metadata` is the header field of the login, None while one is needed; `renewed` says that this is the second one.
    `strikes` counts by endpoint text what speaks against trying it again.

    `sock` is the connection on the straight road, begun at `started`, and `step` how far that has come. `calls` are its
    requests (method, message, all that came before the next one), `acks` what has to be acknowledged, `rest` the begun
    frame that came last, `limit` when to stop waiting. Off the road there is a `connection` instead.
    """

    def __init__(
        self,
        settings: "Settings",
        directory: str,
        deadline: float,
        limits: Limits,
        environ: "Mapping[bytes, bytes]",
    ):
        self.sock: socket | None = None
        self.directory = directory
        self.environ = environ
        self.settings = settings
        self.deadline = deadline
        self.stagger, self.connect_limit, self.answer_limit = limits
        self.endpoints = [parse_endpoint(text) for text in settings.machines]
        self.endpoint = self.endpoints[0]
        self.calls: list[tuple[bytes, bytes, bytes]] = []
        self.acks = self.rest = b""
        self.connection: Connection | None = None
        self.context: SSLContext | None = None
        self.reasons: dict[str, str] = {}
        self.strikes: dict[str, int] = {}
        self.renewed = False
        self.metadata: bytes | None = b""
        if settings.username:
            from resource_extend.store.login import cached_login

            self.metadata = cached_login(self)

    def __del__(self) -> None:
        if self.sock is not None:
            self.sock.close()

    def read(
        self,
        path: bytes,
        body: bytes,
        prepare: "Callable[[], object] | None" = None,
        receiver: "Receiver | None" = None,
    ) -> bytes:
        """Return the answer to a request that may be repeated.

        Args:
            path: the method.
            body: the message.
            prepare: called once, when the request is on its way.
            receiver: takes the answer: (its next part, False) as it arrives, (all of it, True) if it came otherwise,
                also after parts of one that broke off.

        Raises:
            StoreError: no endpoint answered in time, or etcd refused.
        """
        if receiver is not None or not self.is_straight(body):
            from resource_extend.store.detour import read

            return read(self, path, body, prepare, receiver)
        try:
            self._send(path, body, self.until())
        except (OSError, ValueError) as failure:
            from resource_extend.store.detour import read_on

            return read_on(self, failure, prepare)
        if prepare is not None:
            prepare()
        try:
            return self._answer()
        except (OSError, ValueError) as failure:
            from resource_extend.store.detour import read_on

            return read_on(self, failure, None)

    def write(self, path: bytes, body: bytes) -> bytes:
        """Return the answer to a request that is sent only once, on the connection of the read before it.

        Raises:
            Unanswered: it may have happened or, if not `processed`, has not.
            StoreError: etcd refused; it has not happened.
        """
        if self.sock is None and (self.connection is None or self.connection.closing):
            raise Unanswered("not sent", processed=False)
        if not self.has_time():
            from resource_extend.store.failover import out_of_time

            raise out_of_time(self)
        if not self.is_straight(body):
            from resource_extend.store.detour import write

            return write(self, path, body, WRITE_SHARE)
        try:
            self._send(path, body, self.until(WRITE_SHARE))
            return self._answer()
        except (OSError, ValueError) as failure:
            from resource_extend.store.detour import write_on

            return write_on(self, failure)

    def has_time(self) -> bool:
        """Return whether there is time for a write, and to know what became of it."""
        return self.deadline - monotonic() >= SHORTEST_WRITE

    def until(self, share: float = 1.0) -> float:
        """Return when to stop waiting for an answer, within a share of the time that is left."""
        now = monotonic()
        return now + min(self.answer_limit, (self.deadline - now) * share)

    def uses_tls(self, tls: bool | None) -> bool:
        """Return whether an endpoint is spoken to by TLS; without a scheme it is when all three files are given."""
        if tls is not None:
            return tls
        return bool(self.settings.ca and self.settings.cert and self.settings.key)

    def is_straight(self, body: bytes) -> bool:
        """Return whether a request can take the straight road."""
        if self.connection is not None or len(body) > SHORT:
            return False
        if self.sock is not None:
            return len(self.calls) < SHORT_CALLS
        host, _, tls, _ = self.endpoints[0]
        return family_of(host) != 0 and self.metadata is not None and not self.uses_tls(tls)

    def patience(self) -> float:
        """Return when to try the next endpoint too or, if there is none, to give up connecting to this one."""
        alone = len(self.endpoints) == 1
        return min(self.started + (self.connect_limit if alone else self.stagger), self.deadline)

    def connect(self) -> "socket":
        """Return `sock`, connected to the first endpoint, which has an address of numbers. Raises OSError."""
        self.endpoint = self.endpoints[0]
        host, port, _, _ = self.endpoint
        self.started = monotonic()
        self.step = "connecting"
        self.sock = sock = open_socket(family_of(host))
        sock.settimeout(max(self.patience() - self.started, 0.001))
        sock.connect((host, port))
        self.step = "sending"
        return sock

    def _send(self, path: bytes, body: bytes, limit: float) -> None:
        """Send a request on the straight road, to be answered until that time. Errors are those of `_answer`."""
        self.limit = limit
        opening, self.acks = self.acks, b""
        if self.sock is None:
            self.calls = []
            opening, self.rest = OPENING, b""
        self.calls.append((path, body, b""))
        sock = self.sock or self.connect()
        left = max(limit - monotonic(), 0.001)
        sock.settimeout(left)
        # The server is to stop a little before we do, then it is the server that says so.
        start = origin(authority(self.endpoint), tls=False)
        stream = len(self.calls) * 2 - 1
        sock.sendall(opening + short_request(stream, start, path, body, self.metadata or b"", left - 0.05))
        while self.step == "sending" and len(self.endpoints) > 1:
            self._receive(self.patience())
        self.step = "answering"

    def _answer(self) -> bytes:
        """Return the answer to the request that was sent last.

        Raises:
            OSError: the connection broke, or there was nothing for too long.
            ValueError: the peer says something unusual, or nothing any more.
        """
        while True:
            taken = ordinary_answer(self.rest + self.calls[-1][2], len(self.calls) * 2 - 1)
            if taken is not None:
                message, self.acks, self.rest = taken
                return message
            self._receive(self.limit)

    def _receive(self, until: float) -> None:
        """Receive what comes next. Errors are those of `_answer`."""
        left = until - monotonic()
        if left <= 0 or self.sock is None:
            raise TimeoutError
        self.sock.settimeout(min(left, IDLE))
        data = self.sock.recv(65536)
        if not data:
            raise ValueError
        path, body, received = self.calls[-1]
        self.calls[-1] = path, body, received + data
        if self.step == "sending" and holds_hello(received + data):
            self.step = "answering"
