"""The frames of HTTP/2 and the header fields in them, as far as unary gRPC calls need them (RFC 9113, RFC 7541).

Everything here is a function of bytes, also the reading of an answer that is made of ordinary frames; what a connection
remembers is in `http2`.
"""

DATA, HEADERS, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = 0, 1, 3, 4, 5, 6, 7, 8, 9
ACK, END_STREAM, END_HEADERS, PADDED, PRIORITY = 1, 1, 4, 8, 0x20
INITIAL_WINDOW = b"\x00\x04"
REFUSED_STREAM = 7
FRAME_HEADER = 9
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


# After so many seconds without a word the peer's SETTINGS and PINGs are acknowledged.
IDLE = 1.0
# An ordinary answer is shorter than that.
_LONG = 1 << 17


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


def origin(authority: bytes, tls: bool) -> bytes:
    """Return the header fields that all requests of a connection begin with: method POST, scheme, authority."""
    return (b"\x83\x87\x01" if tls else b"\x83\x86\x01") + text_field(authority)


def header_block(start: bytes, path: bytes, metadata: bytes, seconds: float) -> bytes:
    """Return a request's header fields: the `origin`, the method, further fields, when the server may give it up."""
    timeout = text_field(b"%dm" % max(1, seconds * 1000))
    return b"%b\x04%b%b\x00\x0cgrpc-timeout%b%b" % (start, text_field(path), FIXED_HEADERS, timeout, metadata)


def envelope(body: bytes) -> bytes:
    """Return a message as gRPC carries it: not compressed, its length, its bytes."""
    return b"\0" + len(body).to_bytes(4, "big") + body


def short_request(stream: int, start: bytes, path: bytes, body: bytes, metadata: bytes, seconds: float) -> bytes:
    """Return the frames of a request that fits into one of each kind, see `header_block`."""
    headers = frame(HEADERS, END_HEADERS, stream, header_block(start, path, metadata, seconds))
    return headers + frame(DATA, END_STREAM, stream, envelope(body))


def ordinary_answer(data: bytes, stream: int) -> "tuple[bytes, bytes, bytes] | None":
    """Read the answer to a request as etcd gives it when all is well.

    Args:
        data: all that has come for it, from the beginning of a frame; for stream 1 from the peer's first byte.
        stream: the request's.

    Returns:
        The answer's message, what has to be sent to acknowledge, the begun frame at the end. None: more has to come.

    Raises:
        ValueError: there is something that etcd does not send when all is well, or so much that it is read better as
            it comes.
    """
    at, size = 0, len(data)
    acks = content = b""
    headed = ended = False
    if stream == 1:
        holds_hello(data)
    if size > _LONG:
        raise ValueError
    while size - at >= FRAME_HEADER:
        begin = at + FRAME_HEADER
        end = begin + int.from_bytes(data[at : at + 3], "big")
        if end - begin > FRAME_SIZE:
            raise ValueError
        if end > size:
            break
        kind, flags = data[at + 3], data[at + 4]
        ours = int.from_bytes(data[at + 5 : begin], "big") & LARGEST_WINDOW == stream
        if kind == HEADERS and flags | END_STREAM == END_STREAM | END_HEADERS:
            if ours and not headed and data[begin:end][:1] != STATUS_200:
                raise ValueError
            headed = headed or ours
            ended = ended or (ours and flags & END_STREAM != 0)
        elif kind == DATA and headed and ours and not flags:
            content += data[begin:end]
        elif kind == SETTINGS and (flags & ACK or INITIAL_WINDOW[1] not in data[begin + 1 : end : 6]):
            acks += b"" if flags & ACK else SETTINGS_ACK
        elif kind == PING:
            acks += b"" if flags & ACK else frame(PING, ACK, 0, data[begin:end])
        elif kind != WINDOW_UPDATE:
            raise ValueError
        at = end
    length = int.from_bytes(content[1:5], "big")
    missing = length + 5 - len(content)
    if length > _LONG or missing < 0 or content[:1] > b"\0" or (ended and (missing or len(content) < 5)):
        raise ValueError
    return None if missing else (content[5:], acks, data[at:])


def holds_hello(data: bytes) -> bool:
    """Return whether a peer has said all of its first frame, SETTINGS. Raises ValueError when it begins otherwise."""
    if (len(data) > 3 and data[3] != SETTINGS) or (len(data) > 4 and data[4] & ACK):
        raise ValueError
    return len(data) >= FRAME_HEADER + int.from_bytes(data[:3], "big")


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
