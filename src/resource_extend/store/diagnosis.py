"""What unexpected bytes of a peer mean: an error in trailers, a page of a web server, another protocol."""

from hpack import Decoder, HPACKError

NO_GRPC = "answered something else than gRPC, is no etcd"


def grpc_status(blocks: list[bytes]) -> tuple[int, str]:
    """Return the error that the last header block of a connection states: its gRPC code and text, code 0 if none."""
    try:
        fields = decoded(blocks)
        code = int(fields.get("grpc-status", ""))
    except (HPACKError, ValueError):
        return 0, NO_GRPC
    if code == 0:
        return 0, "answered with nothing"
    return code, one_line(percent_decoded(fields.get("grpc-message", ""))) or f"gRPC code {code}"


def http_status(blocks: list[bytes]) -> str:
    """Return the HTTP status in the last header block of a connection, as text for people."""
    try:
        return one_line(decoded(blocks).get(":status", "missing"))
    except HPACKError:
        return "unreadable"


def decoded(blocks: list[bytes]) -> dict[str, str]:
    """Return the fields of the last block. All are decoded, for a block may refer to fields of those before it."""
    decoder = Decoder()
    fields = [decoder.decode(block, raw=True) for block in blocks][-1]
    return {bytes(name).decode("latin-1"): bytes(value).decode("latin-1") for name, value in fields}


def percent_decoded(text: str) -> str:
    """Return a gRPC message: UTF-8 with everything unusual as %XX."""
    first, *rest = text.encode("latin-1").split(b"%")
    for part in rest:
        try:
            first += bytes((int(part[:2], 16),)) + part[2:]
        except ValueError:
            first += b"%" + part
    return first.decode("utf-8", "replace")


def one_line(text: str) -> str:
    """Return a text with everything that is not printable as escapes."""
    return "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in text)


def stranger(start: bytes) -> str:
    """Return what a peer is that does not begin as HTTP/2, from its first bytes (nothing if it closed at once)."""
    if not start:
        return "connection closed at once (if it wants TLS, write https://)"
    if start.startswith(b"HTTP/"):
        return "answered with HTTP/1, is no etcd client port"
    if start.startswith(b"\x15\x03"):
        return "answered with TLS (write https://)"
    return NO_GRPC
