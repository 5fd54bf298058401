"""Calls of etcd's API on whichever endpoint answers, within the time of the whole plugin call (protocol, 7.3).

Here is the straight road: the first endpoint takes the connection at once and answers. Whatever else can happen is
decided in `race` (connecting) and `failover` (after a failure), which are loaded then.
"""

from time import monotonic

from resource_extend.store.endpoints import authority, family_of, open_socket, parse_endpoint
from resource_extend.store.http2 import Connection, Refusal, Unanswered

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from ssl import SSLContext

    from resource_extend.settings import Settings
    from resource_extend.store.http2 import Receiver

# Up to this many bytes a request is sent together with the opening of its connection: they fit into any socket buffer.
SHORT = 8192
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
    """

    def __init__(
        self,
        settings: "Settings",
        directory: str,
        deadline: float,
        limits: Limits,
        environ: "Mapping[bytes, bytes]",
    ):
        self.directory = directory
        self.environ = environ
        self.settings = settings
        self.deadline = deadline
        self.stagger, self.connect_limit, self.answer_limit = limits
        self.endpoints = [parse_endpoint(text) for text in settings.machines]
        self.endpoint = self.endpoints[0]
        self.connection: Connection | None = None
        self.context: SSLContext | None = None
        self.reasons: dict[str, str] = {}
        self.strikes: dict[str, int] = {}
        self.renewed = False
        self.metadata: bytes | None = b""
        if settings.username:
            from resource_extend.store.login import cached_login

            self.metadata = cached_login(self)

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
        failure: Exception | None = None
        try:
            connection = self.begin(path, body)
        except (OSError, Unanswered, Refusal) as error:
            failure = error
        if prepare is not None:
            prepare()
        message = b""
        if failure is None:
            try:
                connection.receiver = receiver
                message = connection.answer(self.until())
            except (OSError, Unanswered, Refusal) as error:
                failure = error
        if failure is not None:
            from resource_extend.store.failover import read_again

            message = read_again(self, path, body, failure)
        if receiver is not None and (message or failure is not None):
            receiver(message, True)
        return message

    def write(self, path: bytes, body: bytes) -> bytes:
        """Return the answer to a request that is sent only once, on the connection of the read before it.

        Raises:
            Unanswered: it may have happened or, if not `processed`, has not.
            StoreError: etcd refused; it has not happened.
        """
        if self.connection is None or self.connection.closing:
            raise Unanswered("not sent", processed=False)
        if not self.has_time():
            from resource_extend.store.failover import out_of_time

            raise out_of_time(self)
        try:
            return self.begin(path, body, WRITE_SHARE).answer(self.until(WRITE_SHARE))
        except (OSError, Unanswered, Refusal) as failure:
            from resource_extend.store.failover import unwritten

            raise unwritten(self, failure) from None

    def has_time(self) -> bool:
        """Return whether there is time for a write, and to know what became of it."""
        return self.deadline - monotonic() >= SHORTEST_WRITE

    def until(self, share: float = 1.0) -> float:
        """Return when to stop waiting for an answer, within a share of the time that is left."""
        now = monotonic()
        return now + min(self.answer_limit, (self.deadline - now) * share)

    def begin(self, path: bytes, body: bytes, share: float = 1.0) -> Connection:
        """Send a request and return the connection on which its answer will come. The share is that of `until`."""
        connection = self.connection
        if connection is None or connection.closing:
            self.connection = connection = self._connect(path, body)
        else:
            connection.send(path, body, self.metadata or b"", self.until(share))
        return connection

    def _connect(self, path: bytes, body: bytes) -> Connection:
        """Return a new connection with the request under way on it."""
        self.endpoint = self.endpoints[0]
        host, port, tls, _ = self.endpoint
        family = family_of(host)
        started = monotonic()
        if not family or self.metadata is None or len(body) > SHORT or self.uses_tls(tls):
            from resource_extend.store.race import race

            return race(self, path, body)
        alone = len(self.endpoints) == 1
        patience = min(started + (self.connect_limit if alone else self.stagger), self.deadline)
        connection = None
        sock = open_socket(family)
        try:
            sock.settimeout(max(patience - started, 0.001))
            sock.connect((host, port))
            connection = Connection(sock, authority(host, port), tls=False)
            connection.send(path, body, self.metadata, self.until())
            while not (alone or connection.greeted):
                connection.receive(patience)
        except (OSError, Unanswered) as failure:
            from resource_extend.store.race import resume

            return resume(self, (path, body), started, sock, connection, failure)
        return connection

    def uses_tls(self, tls: bool | None) -> bool:
        """Return whether an endpoint is spoken to by TLS; without a scheme it is when all three files are given."""
        if tls is not None:
            return tls
        return bool(self.settings.ca and self.settings.cert and self.settings.key)
