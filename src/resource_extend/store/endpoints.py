"""The texts of `etcd.machines`, parsed: `http://host:port`, `https://host:port` or `host:port` (protocol, 7.3)."""

from resource_extend.errors import SettingsError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _socket import socket
    from typing import Protocol

    class Channel(Protocol):
        """A connected stream of bytes: a `_socket.socket`, or TLS over one."""

        def settimeout(self, seconds: float | None, /) -> None:
            """Limit the next operations; 0 is non-blocking."""

        def recv(self, limit: int, /) -> bytes:
            """Return what has arrived, nothing at the end."""

        def send(self, data: bytes, /) -> int:
            """Send a part and return its length."""

        def sendall(self, data: bytes, /) -> None:
            """Send everything."""

        def fileno(self) -> int:
            """Return the descriptor to poll."""

        def close(self) -> None:
            """Close the stream."""

    # Where one etcd member listens: (host, port, tls, text). The host is a name or an address without brackets, `tls`
    # is None when the text names no scheme, and the text is how people know the endpoint: what they wrote, without user
    # name, password and trailing slash. A tuple, because a class costs each call as much as the request itself.
    Endpoint = tuple[str, int, bool | None, str]

# As Linux numbers them everywhere. They are in _socket too, which calls that only check their settings do not load.
AF_INET, AF_INET6 = 2, 10


def authority(endpoint: "Endpoint") -> bytes:
    """Return `host:port` as HTTP writes it, an IPv6 address in brackets."""
    host, port, _, _ = endpoint
    return (f"[{host}]:{port}" if ":" in host else f"{host}:{port}").encode()


def family_of(host: str) -> int:
    """Return the address family of a host that is an address, 0 for a name."""
    if ":" in host:
        return AF_INET6
    return AF_INET if host.replace(".", "").isdigit() else 0


def open_socket(family: int) -> "socket":
    """Return a TCP socket that is none of the standard streams, even if those are closed."""
    from _socket import IPPROTO_TCP, SOCK_STREAM, TCP_NODELAY, socket

    sock = socket(family, SOCK_STREAM)
    if sock.fileno() < 3:
        return _open_another(sock, family)
    # Without it a second request often waits 40 ms for the acknowledgement of the first.
    sock.setsockopt(IPPROTO_TCP, TCP_NODELAY, 1)
    return sock


def _open_another(sock: "socket", family: int) -> "socket":
    try:
        return open_socket(family)
    finally:
        sock.close()


def parse_endpoint(text: str) -> "Endpoint":
    """Return the endpoint that a text names.

    User name and password are left out: etcd does not take them from here, and they must not be seen in a message.

    Raises:
        SettingsError: `config invalid: etcd.machines: <endpoint> has no port`, or what else is wrong.
    """
    scheme, separator, place = text.partition("://") if "://" in text else ("", "", text)
    place = place.rpartition("@")[2].removesuffix("/")
    shown = scheme + separator + place if scheme.isalnum() else place
    scheme = scheme.lower()
    host, _, port = place.rpartition(":")
    is_number = port.isascii() and port.isdigit() and len(port) < 6
    if (separator and scheme not in ("http", "https")) or not host or not is_number or not 0 < int(port) < 65536:
        raise _fault(scheme, separator, place, shown)
    in_brackets = host[0] == "[" and host[-1] == "]" and ":" in host
    letters = host[1:-1].replace(":", "") if in_brackets else host
    if not letters.isascii() or not letters.replace(".", "").replace("-", "").isalnum():
        host = _host(host, shown)
    elif in_brackets:
        host = host[1:-1]
    return host, int(port), scheme == "https" if separator else None, shown


def _fault(scheme: str, separator: str, place: str, shown: str) -> SettingsError:
    """Return what is wrong with an endpoint, its host left aside."""
    host, _, port = place.rpartition(":")
    if separator and scheme not in ("http", "https"):
        return _invalid(shown, "must begin with http:// or https://")
    if not port or ":" not in place or place.endswith("]"):
        return _invalid(shown, "has no port")
    if not host:
        return _invalid(shown, "has no host")
    return _invalid(shown, "must end with its port, a number from 1 to 65535")


def _host(text: str, shown: str) -> str:
    """Return the name or address in a text, without brackets and in ASCII."""
    if text.startswith("[") and text.endswith("]") and ":" in text:
        text = text[1:-1]
    elif ":" in text or "[" in text:
        raise _invalid(shown, "needs brackets around its IPv6 address, as in [::1]:2379")
    if not text.isprintable() or " " in text or "/" in text:
        raise _invalid(shown, "is no host:port")
    if text.isascii():
        return text
    try:
        return text.encode("idna").decode()
    except UnicodeError:
        raise _invalid(shown, "is no host:port") from None


def _invalid(shown: str, fault: str) -> SettingsError:
    """Return the error that names an endpoint and its fault."""
    name = shown if shown and shown.isprintable() else ascii(shown)
    return SettingsError(f"config invalid: etcd.machines: {name} {fault}")
