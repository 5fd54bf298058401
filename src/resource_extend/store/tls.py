"""TLS over a connected socket (protocol, 6.4).

`_ssl` is used directly, because importing `ssl` costs more than the whole call; where `_ssl` has changed, `ssl` it is.
The peer's certificate and its host name are always checked.
"""

from _socket import socket
from posix import O_CLOEXEC, O_NONBLOCK, O_RDONLY, close, read
from posix import open as open_file
from select import POLLIN, POLLOUT

from resource_extend.errors import SettingsError
from resource_extend.store.failures import Unanswered

try:
    import _ssl as library
    from _ssl import SSLEOFError, SSLError, SSLWantReadError, SSLWantWriteError, SSLZeroReturnError
except ImportError:
    import ssl as library  # type: ignore[no-redef]
    from ssl import SSLEOFError, SSLError, SSLWantReadError, SSLWantWriteError, SSLZeroReturnError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ssl import SSLContext
    from typing import Any

    from resource_extend.settings import Settings

LONGEST_FILE = 1 << 20
CERT_REQUIRED = 2


def open_context(settings: "Settings", native: bool = True) -> "SSLContext":
    """Return what all TLS connections of a call share: authorities, our certificate, HTTP/2.

    Args:
        settings: names the files; without `ca` the system's authorities count.
        native: try `_ssl` before `ssl`.

    Raises:
        SettingsError: a file cannot be used.
    """
    try:
        context = _native_context() if native else _standard_context()
    except (AttributeError, TypeError):
        context = _standard_context()
    context.check_hostname = True
    context.verify_mode = CERT_REQUIRED  # type: ignore[assignment]
    if settings.ca:
        _check(settings.ca, "etcd.ca", b"CERTIFICATE-----")
        try:
            context.load_verify_locations(settings.ca)
        except SSLError as failure:
            raise SettingsError(f"{settings.ca}: unusable as etcd.ca: {_words(failure)}") from None
    else:
        context.set_default_verify_paths()
    if settings.cert or settings.key:
        _load_pair(context, settings.cert, settings.key)
    return context


def _native_context() -> "SSLContext":
    """Return a context of the C library's module. Raises AttributeError or TypeError if it has changed."""
    context: Any = library._SSLContext(library.PROTOCOL_TLS_CLIENT)
    context._set_alpn_protocols(b"\x02h2")
    return context  # type: ignore[no-any-return]


def _standard_context() -> "SSLContext":
    """Return a context of the standard library."""
    import ssl

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.set_alpn_protocols(["h2"])
    return context


def _load_pair(context: "SSLContext", cert: str, key: str) -> None:
    """Use a client certificate and its key. Without a callback OpenSSL would ask for the pass phrase on our stdin."""
    _check(cert, "etcd.cert", b"CERTIFICATE-----")
    _check(key, "etcd.key", b"PRIVATE KEY-----")

    def refuse() -> str:
        raise SettingsError(f"{key}: the key is encrypted (etcd.key must be one without a pass phrase)")

    try:
        context.load_cert_chain(cert, key, refuse)
    except SSLError as failure:
        raise SettingsError(f"{cert}, {key}: unusable as etcd.cert and etcd.key: {_words(failure)}") from None


def _check(path: str, name: str, marker: bytes) -> None:
    """Raise SettingsError, which names the file and its key, unless it can be read and holds what it should."""
    try:
        descriptor = open_file(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC)
        try:
            content = read(descriptor, LONGEST_FILE)
        finally:
            close(descriptor)
    except OSError as failure:
        raise SettingsError(f"open {path}: {_words(failure)} ({name})") from None
    if marker not in content:
        raise SettingsError(f"{path}: no PEM {marker.decode().strip('-').lower()} in it ({name})")


class WeakSocket(socket):
    """A socket that can be referred to weakly, as TLS wants to."""


class TlsChannel:
    """A stream of bytes through TLS: what `endpoints.Channel` describes.

    With a time limit of 0 an operation that would have to wait raises BlockingIOError, as a socket's does.
    """

    def __init__(self, context: "Any", sock: socket, host: str):
        self._socket: Any
        self._tls: Any
        seconds = sock.gettimeout()
        host = host.partition("%")[0]
        if hasattr(context, "wrap_socket"):
            import socket as standard

            plain = standard.socket(fileno=sock.detach())
            self._tls = self._socket = context.wrap_socket(plain, False, False, server_hostname=host)
        else:
            self._socket = WeakSocket(sock.family, sock.type, sock.proto, sock.detach())
            self._tls = context._wrap_socket(self._socket, False, host)
        self._socket.settimeout(seconds)

    def handshake(self) -> int:
        """Go on with the handshake and return what to poll the socket for, 0 when it is complete."""
        try:
            self._tls.do_handshake()
        except SSLWantReadError:
            return POLLIN
        except SSLWantWriteError:
            return POLLOUT
        except (SSLZeroReturnError, SSLEOFError, ConnectionError):
            raise Unanswered("closed the connection in the TLS handshake (if it is plain, write http://)") from None
        except SSLError as failure:
            raise Unanswered(_words(failure)) from None
        if self._tls.selected_alpn_protocol() != "h2":
            raise Unanswered("does not speak HTTP/2 over TLS, is no etcd client port")
        return 0

    def recv(self, limit: int) -> bytes:
        """Return what has arrived, nothing at the end."""
        try:
            return self._tls.read(limit)  # type: ignore[no-any-return]
        except (SSLWantReadError, SSLWantWriteError):
            raise BlockingIOError from None
        except (SSLZeroReturnError, SSLEOFError):
            return b""
        except SSLError as failure:
            raise Unanswered(_words(failure)) from None

    def send(self, data: bytes) -> int:
        """Send a part and return its length."""
        try:
            return self._tls.write(data)  # type: ignore[no-any-return]
        except (SSLWantReadError, SSLWantWriteError):
            raise BlockingIOError from None
        except SSLError as failure:
            raise Unanswered(_words(failure)) from None

    def sendall(self, data: bytes) -> None:
        """Send everything."""
        while data:
            data = data[self.send(data) :]

    def settimeout(self, seconds: float | None) -> None:
        """Limit the next operations; 0 is non-blocking."""
        self._socket.settimeout(seconds)

    def fileno(self) -> int:
        """Return the descriptor to poll."""
        return self._socket.fileno()  # type: ignore[no-any-return]

    def close(self) -> None:
        """Close the stream, without a word to the peer."""
        self._socket.close()


def _words(failure: OSError) -> str:
    """Return what TLS complains about, without OpenSSL's decoration."""
    verify = getattr(failure, "verify_message", "")
    if verify:
        return f"its certificate is not accepted: {verify}"
    reason = getattr(failure, "reason", "") or failure.strerror or str(failure)
    words = reason.replace("_", " ").lower()
    if words == "wrong version number":
        return "does not speak TLS (if it is plain, write http://)"
    return f"TLS: {words}" if isinstance(failure, SSLError) else words
