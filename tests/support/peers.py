"""Peers that misbehave on purpose: scripted servers on loopback, also of gRPC, and a proxy that loses replies."""

import contextlib
import selectors
import socket
import struct
import threading
from collections.abc import Callable, Iterable, Iterator

from hpack import Decoder, Encoder

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = 0, 1, 3, 4, 6, 7, 8, 9
END_STREAM, END_HEADERS = 1, 4

Fields = list[tuple[str, str]]


class Peer:
    """A server on loopback whose connections are served one after the other or side by side by a function."""

    def __init__(self, serve: Callable[[socket.socket], None], host: str = "127.0.0.1"):
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._listener = socket.create_server((host, 0), family=family)
        self._serve = serve
        self._sockets: list[socket.socket] = []
        self.port = self._listener.getsockname()[1]
        self.endpoint = f"[{host}]:{self.port}" if ":" in host else f"{host}:{self.port}"
        self.connections = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                sock, _ = self._listener.accept()
                self.connections += 1
                self._sockets.append(sock)
                threading.Thread(target=self._run, args=(sock,), daemon=True).start()

    def _run(self, sock: socket.socket) -> None:
        # When the test is over the sockets are closed under our hands.
        with contextlib.suppress(OSError, ValueError), sock:
            self._serve(sock)

    def stop_listening(self) -> None:
        """Refuse further connections."""
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def close(self) -> None:
        """End everything."""
        self.stop_listening()
        for sock in self._sockets:
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
            sock.close()


@contextlib.contextmanager
def peer(serve: Callable[[socket.socket], None], host: str = "127.0.0.1") -> Iterator[Peer]:
    """Run a scripted server."""
    server = Peer(serve, host)
    try:
        yield server
    finally:
        server.close()


def silent(sock: socket.socket) -> None:
    """Take what comes and say nothing."""
    while sock.recv(65536):
        pass


def frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    """Return an HTTP/2 frame."""
    return struct.pack(">I", len(payload))[1:] + bytes((kind, flags)) + struct.pack(">I", stream) + payload


class Call:
    """A request as it arrived: its stream, its header fields in order, its message."""

    def __init__(self, stream: int, fields: Fields):
        self.stream = stream
        self.fields = fields
        self.body = b""

    @property
    def path(self) -> str:
        """The method."""
        return dict(self.fields)[":path"]

    @property
    def message(self) -> bytes:
        """The request's protobuf message."""
        return self.body[5:]


class Conversation:
    """The server's side of one HTTP/2 connection, with another HPACK than ours."""

    def __init__(self, sock: socket.socket, settings: bytes = b"", hello: bool = True):
        self.sock = sock
        self.acknowledged: list[bytes] = []
        self.unread = 0
        self._buffer = b""
        self._decoder = Decoder()
        self._encoder = Encoder()
        if not self._read(len(PREFACE)) == PREFACE:
            raise OSError("no HTTP/2")
        if hello:
            self.send(frame(SETTINGS, 0, 0, settings))

    def send(self, data: bytes) -> None:
        """Send bytes."""
        self.sock.sendall(data)

    def _read(self, size: int) -> bytes:
        while len(self._buffer) < size:
            data = self.sock.recv(65536)
            if not data:
                raise OSError("closed")
            self._buffer += data
        data, self._buffer = self._buffer[:size], self._buffer[size:]
        return data

    def next_frame(self) -> tuple[int, int, int, bytes]:
        """Return kind, flags, stream and payload of the next frame."""
        head = self._read(9)
        length = int.from_bytes(head[:3], "big")
        return head[3], head[4], int.from_bytes(head[5:], "big"), self._read(length)

    def next_call(self) -> Call:
        """Return the next request, whole."""
        call = None
        while True:
            kind, flags, stream, payload = self.next_frame()
            if kind in (SETTINGS, PING) and flags & 1:
                self.acknowledged.append(payload)
            if kind == HEADERS:
                call = Call(stream, [(str(name), str(value)) for name, value in self._decoder.decode(payload)])
            if kind == DATA and call is not None:
                call.body += payload
                self.unread += len(payload)
                if flags & END_STREAM:
                    return call

    def headers(self, stream: int, fields: Fields, flags: int = END_HEADERS) -> bytes:
        """Return a HEADERS frame."""
        return frame(HEADERS, flags, stream, self._encoder.encode(fields))

    def answer(self, call: Call, message: bytes) -> bytes:
        """Return the frames of an answer."""
        return self.begin(call) + self.data(call, message) + self.trailers(call, 0, "")

    def begin(self, call: Call) -> bytes:
        """Return the first header block of an answer."""
        return self.headers(call.stream, [(":status", "200"), ("content-type", "application/grpc")])

    def data(self, call: Call, message: bytes) -> bytes:
        """Return the message of an answer, in frames of 16384 bytes."""
        whole = b"\0" + struct.pack(">I", len(message)) + message
        parts = [whole[at : at + 16384] for at in range(0, len(whole), 16384)]
        return b"".join([frame(DATA, 0, call.stream, part) for part in parts])

    def trailers(self, call: Call, code: int, text: str) -> bytes:
        """Return the last header block of an answer."""
        fields = [("grpc-status", str(code)), ("grpc-message", text)]
        return self.headers(call.stream, fields, END_HEADERS | END_STREAM)

    def error(self, call: Call, code: int, text: str) -> bytes:
        """Return an answer that is an error: one header block that is first and last, as etcd sends it."""
        fields = [(":status", "200"), ("content-type", "application/grpc")]
        fields += [("grpc-status", str(code)), ("grpc-message", text)]
        return self.headers(call.stream, fields, END_HEADERS | END_STREAM)


class Reaction:
    """What the proxy does with one transaction.

    `forward`: pass it on to etcd. `before` and `after`: called with the proxy before and after that. `reply`: pass
    etcd's reply back; else nothing is said, or the connection closed if `close`.
    """

    def __init__(
        self,
        forward: bool = True,
        reply: bool = False,
        close: bool = True,
        before: Callable[["Proxy"], object] | None = None,
        after: Callable[["Proxy"], object] | None = None,
    ):
        self.forward = forward
        self.reply = reply
        self.close = close
        self.before = before
        self.after = after


class Proxy(Peer):
    """A way to etcd that treats the first transactions as told, and passes on everything else.

    `logins` counts the requests to log in.
    """

    def __init__(self, port: int, reactions: Iterable[Reaction] = (), host: str = "127.0.0.1"):
        self._port = port
        self._reactions = list(reactions)
        self.logins = 0
        self.held: list[tuple[socket.socket, bytes]] = []
        super().__init__(self._relay, host)

    def release(self) -> None:
        """Pass on to etcd what was held back, and wait until it has been executed."""
        while self.held:
            upstream, data = self.held.pop()
            with upstream:
                upstream.sendall(data)
                _await_reply(upstream)

    def close(self) -> None:
        """End everything."""
        super().close()
        for upstream, _ in self.held:
            upstream.close()

    def _relay(self, sock: socket.socket) -> None:
        upstream = socket.create_connection(("127.0.0.1", self._port))
        try:
            self._pass_on(sock, upstream)
        finally:
            if not any(held is upstream for held, _ in self.held):
                upstream.close()

    def _pass_on(self, sock: socket.socket, upstream: socket.socket) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(sock, selectors.EVENT_READ)
            selector.register(upstream, selectors.EVENT_READ)
            while True:
                for key, _ in selector.select():
                    if key.fileobj is upstream:
                        data = upstream.recv(65536)
                        sock.sendall(data)
                    else:
                        data = sock.recv(65536)
                        self.logins += data.count(b"/etcdserverpb.Auth/Authenticate")
                        if b"/etcdserverpb.KV/Txn" in data and self._reactions:
                            if not self._react(self._reactions.pop(0), sock, upstream, data):
                                return
                        else:
                            upstream.sendall(data)
                    if not data:
                        return

    def _react(self, reaction: Reaction, sock: socket.socket, upstream: socket.socket, data: bytes) -> bool:
        """Treat a transaction as told, and return whether to go on."""
        if reaction.before:
            reaction.before(self)
        reply = b""
        if reaction.forward:
            upstream.sendall(data)
            reply = _await_reply(upstream)
        else:
            self.held.append((upstream, data))
        if reaction.after:
            reaction.after(self)
        if reaction.reply:
            sock.sendall(reply)
            return True
        if not reaction.close:
            silent(sock)
        return False


def _await_reply(upstream: socket.socket) -> bytes:
    """Return what etcd says until it has answered: the end of a stream."""
    reply = b""
    upstream.settimeout(5)
    while not _has_trailers(reply):
        data = upstream.recv(65536)
        if not data:
            break
        reply += data
    upstream.settimeout(None)
    return reply


def _has_trailers(data: bytes) -> bool:
    """Return whether frames hold the end of a stream."""
    at = 0
    while len(data) - at >= 9:
        length = int.from_bytes(data[at : at + 3], "big")
        if data[at + 3] == HEADERS and data[at + 4] & END_STREAM and len(data) >= at + 9 + length:
            return True
        at += 9 + length
    return False


@contextlib.contextmanager
def proxy(port: int, *reactions: Reaction) -> Iterator[Proxy]:
    """Run a proxy to the etcd on a port of loopback."""
    server = Proxy(port, reactions)
    try:
        yield server
    finally:
        server.close()
