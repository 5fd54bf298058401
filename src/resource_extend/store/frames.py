"""The frames of HTTP/2 and the header fields in them, as far as unary gRPC calls need them (RFC 9113, RFC 7541)."""

DATA, HEADERS, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = 0, 1, 3, 4, 5, 6, 7, 8, 9
ACK, END_STREAM, END_HEADERS, PADDED, PRIORITY = 1, 1, 4, 8, 0x20
INITIAL_WINDOW = b"\x00\x04"
REFUSED_STREAM = 7
FRAME_SIZE = 16384
LARGEST_WINDOW = 0x7FFFFFFF

# No pushes, and windows as large as they can be, for the connection too, so that no answer ever waits for an update.
OPENING = (
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
    b"\x00\x00\x0c\x04\x00\x00\x00\x00\x00\x00\x02\x00\x00\x00\x00\x00\x04\x7f\xff\xff\xff"
    b"\x00\x00\x04\x08\x00\x00\x00\x00\x00\x7f\xff\x00\x00"
)
SETTINGS_ACK = b"\x00\x00\x00\x04\x01\x00\x00\x00\x00"
# te: trailers; content-type: application/grpc; hasleader: true (a member without a leader then says so at once)
FIXED_HEADERS = b"\x00\x02te\x08trailers\x0f\x10\x10application/grpc\x00\x09hasleader\x04true"
STATUS_200 = b"\x88"


def text_field(text: bytes) -> bytes:
    """Return a text as HPACK writes it, not compressed."""
    length = len(text)
    if length < 127:
        return bytes((length,)) + text
    length -= 127
    encoded = b"\x7f"
    while length > 127:
        encoded += bytes((length & 127 | 128,))
        length >>= 7
    return encoded + bytes((length,)) + text


def frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    """Return a frame."""
    return len(payload).to_bytes(3, "big") + bytes((kind, flags)) + stream.to_bytes(4, "big") + payload


def unpadded(flags: int, payload: bytes) -> bytes:
    """Return the content of a DATA or HEADERS frame without padding and priority."""
    end = len(payload)
    start = 0
    if flags & PADDED:
        end -= payload[0] if payload else 0
        start = 1
    if flags & PRIORITY:
        start += 5
    return payload[start:end]
