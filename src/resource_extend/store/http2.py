"""One HTTP/2 connection that carries unary gRPC calls one after the other (RFC 9113, gRPC over HTTP/2).

Header blocks are kept as they came. Only an error's trailers have to be understood, and then `diagnosis` decodes all of
them in order, because later blocks refer to earlier ones.
"""

from time import monotonic

from resource_extend.store.failures import Refusal, Unanswered
from resource_extend.store.frames import (
    ACK,
    CONTINUATION,
    DATA,
    END_HEADERS,
    END_STREAM,
    FRAME_HEADER,
    FRAME_SIZE,
    GOAWAY,
    HEADERS,
    IDLE,
    INITIAL_WINDOW,
    LARGEST_WINDOW,
    OPENING,
    PADDED,
    PING,
    PRIORITY,
    PUSH_PROMISE,
    REFUSED_STREAM,
    RST_STREAM,
    SETTINGS,
    SETTINGS_ACK,
    STATUS_200,
    WINDOW_UPDATE,
    envelope,
    frame,
    header_block,
    origin,
    unpadded,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from resource_extend.store.endpoints import Channel

    Receiver = Callable[[bytes, bool], object]


class Connection:
    """A connection and the one call that is under way on it.

    `greeted`: the peer has sent its SETTINGS. `closing`: it takes no further call. `receiver`: takes the message of the
    call under way in parts as they arrive; what `answer` returns is then empty, unless all was there before.
    """

    __slots__ = (
        "_acks", "_block", "_blocks", "_buffer", "_chunks", "_ended", "_failure", "_headed", "_initial_window",
        "_length", "_message", "_origin", "_size", "_stream", "_stream_window", "_unsent", "_window", "channel",
        "closing", "greeted", "receiver",
    )  # fmt: skip

    def __init__(self, channel: "Channel", authority: bytes, tls: bool):
        self.channel = channel
        self.greeted = self.closing = False
        self._message: bytes | None = None
        self.receiver: Receiver | None = None
        self._origin = origin(authority, tls)
        self._buffer = self._acks = self._unsent = b""
        self._block: bytes | None = None
        self._blocks: list[bytes] = []
        self._chunks: list[bytes] = []
        self._failure: Exception | None = None
        self._headed = self._ended = False
        self._stream = self._length = -1
        self._size = 0
        self._window = self._stream_window = self._initial_window = 65535

    def __del__(self) -> None:
        self.channel.close()

    def request(self, path: bytes, body: bytes, metadata: bytes, seconds: float) -> bytes:
        """Begin a call and return what has to be sent for it; what the peer's windows do not allow yet is kept back.

        Args:
            path: the method, `/package.Service/Method`.
            body: the request message.
            metadata: further header fields, HPACK encoded.
            seconds: the time after which the server may stop working on it.
        """
        self._stream += 2
        self._stream_window = self._initial_window
        self._headed = self._ended = False
        self._failure = self._message = self.receiver = None
        self._chunks = []
        self._size = 0
        self._length = -1
        self._unsent = envelope(body)
        block = header_block(self._origin, path, metadata, seconds)
        opening = OPENING if self._stream == 1 else self._acks
        self._acks = b""
        return opening + frame(HEADERS, END_HEADERS, self._stream, block) + self._allowed_data()

    def _allowed_data(self) -> bytes:
        """Return DATA frames of what is unsent, as much as the peer's windows allow."""
        frames = b""
        while self._unsent:
            size = min(len(self._unsent), self._window, self._stream_window, FRAME_SIZE)
            if size <= 0:
                break
            part = self._unsent[:size]
            self._unsent = self._unsent[size:]
            self._window -= size
            self._stream_window -= size
            frames += frame(DATA, 0 if self._unsent else END_STREAM, self._stream, part)
        return frames

    def send(self, path: bytes, body: bytes, metadata: bytes, until: float) -> None:
        """Begin a call whose answer is awaited until that time (`time.monotonic()` seconds)."""
        left = max(until - monotonic(), 0.001)
        self.channel.settimeout(left)
        # The server is to stop a little before we do, then it is the server that says so.
        self.channel.sendall(self.request(path, body, metadata, left - 0.05))

    def answer(self, until: float) -> bytes:
        """Return the answer's message.

        Raises:
            TimeoutError: none came until that time.
            Unanswered: none will come.
            Refusal: it is an error of the server.
            OSError: the connection broke.
        """
        while (message := self.outcome()) is None:
            self.receive(until)
        return message

    def outcome(self) -> bytes | None:
        """Return the answer's message if it is there; raise Unanswered and Refusal as `answer` does."""
        if self._message is None:
            if self._failure is not None:
                raise self._failure
            if self._ended and self._block is None:
                from resource_extend.store.diagnosis import grpc_status

                code, text = grpc_status(self._blocks)
                raise Refusal(code, text) if code else Unanswered(text)
        return self._message

    def receive(self, until: float) -> None:
        """Take in what arrives next. Raises TimeoutError, Unanswered and OSError as `answer` does."""
        left = until - monotonic()
        if left <= 0:
            raise TimeoutError
        # The peer's SETTINGS and PINGs are acknowledged with our next request, or when there is time for it.
        self.channel.settimeout(min(left, IDLE))
        if self._unsent and (frames := self._allowed_data()):
            self.channel.sendall(frames)
        try:
            self.take_in()
        except TimeoutError:
            self.acknowledge()

    def acknowledge(self) -> None:
        """Answer the peer's questions now."""
        if self._acks:
            acks, self._acks = self._acks, b""
            self.channel.sendall(acks)

    def take_in(self) -> None:
        """Read once and take in what came. Raises Unanswered, and what the channel raises when nothing came in time."""
        try:
            data = self.channel.recv(65536)
        except ConnectionError:
            data = b""
        if not data:
            self._break(self._buffer, "connection closed")
        self.digest(data)

    def digest(self, data: bytes) -> None:
        """Take in what came. Raises Unanswered."""
        buffer = self._buffer + data
        if not self.greeted and len(buffer) > 3 and buffer[3] != SETTINGS:
            self._break(buffer, "")
        at = 0
        while len(buffer) - at >= FRAME_HEADER:
            end = at + FRAME_HEADER + int.from_bytes(buffer[at : at + 3], "big")
            if end - at > FRAME_SIZE + FRAME_HEADER:
                self._break(buffer, "broken HTTP/2 (a frame that is too long)")
            if end > len(buffer):
                break
            stream = int.from_bytes(buffer[at + 5 : at + 9], "big") & LARGEST_WINDOW
            self._take(buffer[at + 3], buffer[at + 4], stream, buffer[at + 9 : end])
            at = end
        self._buffer = buffer[at:]

    def _break(self, buffer: bytes, reason: str) -> None:
        """Raise Unanswered: the peer has closed the connection, or does not speak HTTP/2."""
        if self.greeted:
            raise Unanswered(reason)
        from resource_extend.store.diagnosis import stranger

        raise Unanswered(stranger(buffer))

    def _take(self, kind: int, flags: int, stream: int, payload: bytes) -> None:
        """Take in one frame. Frames unknown to us are of no concern."""
        ours = stream == self._stream
        if kind in (DATA, HEADERS):
            if flags & PADDED or (flags & PRIORITY and kind == HEADERS):
                payload = unpadded(flags, payload)
            if ours:
                self._ended = flags & END_STREAM != 0
                if kind == DATA:
                    self._take_data(payload)
            if kind == HEADERS:
                self._take_block(payload, flags, ours)
        elif kind == CONTINUATION:
            self._take_block(payload, flags, ours)
        elif kind == WINDOW_UPDATE:
            if ours:
                self._stream_window += int.from_bytes(payload, "big")
            elif stream == 0:
                self._window += int.from_bytes(payload, "big")
        elif kind in (SETTINGS, PING):
            if not flags & ACK:
                self._take_question(kind, payload)
        else:
            self._take_end(kind, stream, payload)

    def _take_block(self, block: bytes, flags: int, ours: bool) -> None:
        """Take in a header block or a part of one, and look for `:status 200` in the first of an answer."""
        if self._block is not None:
            block = self._block + block
        if not flags & END_HEADERS:
            self._block = block
            return
        self._block = None
        self._blocks.append(block)
        if not ours or self._headed:
            return
        self._headed = True
        # Most begin with it.
        if block[:1] != STATUS_200:
            from resource_extend.store.diagnosis import http_status

            status = http_status(self._blocks)
            if status != "200":
                self._failure = Unanswered(f"answered with HTTP status {status}, is no etcd")

    def _take_data(self, payload: bytes) -> None:
        """Take in a part of the answer: a zero byte, four bytes of length, and the message."""
        if self._failure is not None or self._message is not None:
            return
        self._chunks.append(payload)
        self._size += len(payload)
        if self._length < 0:
            if self._size < 5:
                return
            start = b"".join(self._chunks)
            self._length = int.from_bytes(start[1:5], "big")
            if start[0] or self._length > LARGEST_WINDOW:
                self._failure = Unanswered("answered something else than gRPC, is no etcd")
                return
            self._chunks = [start[5:]]
        surplus = self._size - 5 - self._length
        if surplus >= 0 or self.receiver is not None:
            part = b"".join(self._chunks)
            if surplus > 0:
                part = part[:-surplus]
            self._chunks = []
            if self.receiver is not None:
                self.receiver(part, False)
                part = b""
            if surplus >= 0:
                self._message = part

    def _take_question(self, kind: int, payload: bytes) -> None:
        """Take in a frame to be acknowledged: PING, or SETTINGS, of which only a stream's window concerns us."""
        if kind == PING:
            self._acks += frame(PING, ACK, 0, payload)
            return
        self.greeted = True
        self._acks += SETTINGS_ACK
        for at in range(0, len(payload) - 5, 6):
            if payload[at : at + 2] == INITIAL_WINDOW:
                window = int.from_bytes(payload[at + 2 : at + 6], "big")
                self._stream_window += window - self._initial_window
                self._initial_window = window

    def _take_end(self, kind: int, stream: int, payload: bytes) -> None:
        """Take in a frame by which the peer ends the call or the connection."""
        if kind == GOAWAY:
            self.closing = True
        if self._message is not None or self._ended or self._failure is not None:
            return
        if kind == GOAWAY and self._stream > int.from_bytes(payload[:4], "big") & LARGEST_WINDOW:
            self._failure = Unanswered("is shutting down", processed=False)
        elif kind == RST_STREAM and stream == self._stream:
            code = int.from_bytes(payload, "big")
            self._failure = Unanswered(f"gave the request up (HTTP/2 code {code})", code != REFUSED_STREAM)
        elif kind == PUSH_PROMISE:
            self._failure = Unanswered("broken HTTP/2 (a push)")
