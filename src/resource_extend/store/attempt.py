"""One attempt to reach one endpoint, step by step and never waiting: name, TCP, TLS, HTTP/2, login."""

from _socket import SO_ERROR, SOL_SOCKET
from errno import EINPROGRESS
from posix import strerror
from select import POLLIN, POLLOUT
from time import monotonic

from resource_extend.store.endpoints import authority, family_of, open_socket
from resource_extend.store.http2 import Connection

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _socket import socket
    from collections.abc import Callable

    from resource_extend.store.client import Client
    from resource_extend.store.endpoints import Channel, Endpoint
    from resource_extend.store.resolve import Address, Lookup


class Attempt:
    """The way to one endpoint. A step raises OSError or Unanswered when the attempt has failed.

    `expires`: when its present step has taken too long, and `too_late`: what to say then. `wants`: what to poll `sock`
    for. `lookup`: the name that is being looked up; there is no socket then. `others`: further addresses of the name.
    """

    __slots__ = (
        "_address", "_channel", "_client", "_connection", "_outgoing", "_request", "_requested", "_step", "endpoint",
        "expires", "lookup", "others", "sock", "too_late", "wants",
    )  # fmt: skip

    def __init__(
        self, client: "Client", endpoint: "Endpoint", request: tuple[bytes, bytes], address: "Address | None" = None
    ):
        self._client = client
        self._request = request
        self._address = address
        self._step: Callable[[], bool]
        self._outgoing = b""
        self._requested = False
        self._channel: Channel
        self._connection: Connection
        self.endpoint = endpoint
        self.wants = POLLOUT
        self.expires = 0.0
        self.too_late = ""
        self.lookup: Lookup | None = None
        self.others: list[Address] = []
        self.sock: Channel | None = None

    def begin(self) -> None:
        """Start to connect, or to look the name up."""
        self._limit("no connection", self._client.connect_limit)
        host, port, _, _ = self.endpoint
        family = family_of(host)
        if self._address is not None:
            self._connect(self._address)
        elif family:
            self._connect((family, (host, port)))
        else:
            from resource_extend.store.resolve import Lookup

            self.lookup = Lookup(host, port)
            self._step = self._looked_up

    def resume(self, started: float, sock: "socket", connection: Connection | None) -> None:
        """Take over what the straight road has begun: a socket that is connecting, or a peer that has said nothing."""
        sock.settimeout(0)
        self.sock = sock
        if connection is None:
            self._limit("no connection", self._client.connect_limit, started)
            self._step = lambda: self._connected(sock)
        else:
            self._limit("no answer", self._client.answer_limit, started)
            self._channel, self._connection, self._requested = sock, connection, True
            self._step, self.wants = self._greeted, POLLIN

    def advance(self) -> bool:
        """Go on as far as possible without waiting, and return whether the connection is ready."""
        return self._step()

    def finish(self) -> Connection:
        """Return the ready connection, with the request sent on it."""
        client, connection = self._client, self._connection
        client.endpoint = self.endpoint
        self._step = _over
        if not self._requested:
            connection.send(*self._request, client.metadata or b"", client.until())
        elif self._outgoing:
            connection.channel.settimeout(max(client.until() - monotonic(), 0.001))
            connection.channel.sendall(self._outgoing)
        return connection

    def close(self) -> None:
        """Give the attempt up."""
        self._step = _over
        if self.sock is not None:
            self.sock.close()

    def _limit(self, what: str, seconds: float, since: float = 0.0) -> None:
        """Set when the present step is to be given up, and what is said then."""
        self.expires = (since or monotonic()) + seconds
        self.too_late = f"{what} within {seconds:g} s"

    def _looked_up(self) -> bool:
        """Take the addresses of the name, when they are known."""
        if self.lookup is not None and self.lookup.done():
            addresses = self.lookup.addresses()
            self.lookup = None
            self.others = addresses[1:]
            self._connect(addresses[0])
        return False

    def _connect(self, address: "Address") -> None:
        """Start the TCP connection."""
        self.sock = sock = open_socket(address[0])
        self._step = lambda: self._connected(sock)
        sock.settimeout(0)
        error = sock.connect_ex(address[1])
        if error not in (0, EINPROGRESS):
            raise OSError(error, strerror(error))

    def _connected(self, sock: "socket") -> bool:
        """Begin with TLS, or with HTTP/2."""
        error = sock.getsockopt(SOL_SOCKET, SO_ERROR)
        if error:
            raise OSError(error, strerror(error))
        client = self._client
        host, _, tls, _ = self.endpoint
        self._limit("no answer", client.answer_limit)
        if not client.uses_tls(tls):
            self._channel = sock
            return self._greet()
        from resource_extend.store.tls import TlsChannel, open_context

        if client.context is None:
            client.context = open_context(client.settings)
        self.sock = channel = TlsChannel(client.context, sock, host)

        def shaken() -> bool:
            self.wants = channel.handshake()
            return False if self.wants else self._greet()

        self._channel = channel
        self._step = shaken
        return shaken()

    def _greet(self) -> bool:
        """Say hello in HTTP/2, together with the login or the request."""
        client = self._client
        _, _, tls, _ = self.endpoint
        self._connection = Connection(self._channel, authority(self.endpoint), client.uses_tls(tls))
        self._requested = client.metadata is not None
        path, body = self._request
        if not self._requested:
            from resource_extend.store.login import login_request

            path, body = login_request(client.settings)
        seconds = client.until() - monotonic()
        self._outgoing = self._connection.request(path, body, client.metadata or b"", seconds)
        self._step = self._greeted
        return self._greeted()

    def _greeted(self) -> bool:
        """Send what is left to send, take in what has come, and return whether the peer is ready."""
        try:
            while self._outgoing:
                self._outgoing = self._outgoing[self._channel.send(self._outgoing) :]
            while not self._ready():
                self._connection.take_in()
        except BlockingIOError:
            self.wants = POLLIN | POLLOUT if self._outgoing else POLLIN
            return False
        return True

    def _ready(self) -> bool:
        """Return whether the peer has said hello and, if there was a login, accepted it."""
        if self._requested:
            return self._connection.greeted
        from resource_extend.store.login import logged_in

        return logged_in(self._client, self._connection)


def _over() -> bool:
    """Be the step of an attempt that is over, which must not refer to itself: it would hold the connection open."""
    return False
