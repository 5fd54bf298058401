"""The straight road of a call: what it takes for an ordinary answer, a connection would have taken for the same."""

import contextlib
import socket
import struct
import time
from collections.abc import Callable

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from resource_extend.errors import StoreError
from resource_extend.settings import Settings
from resource_extend.store import frames
from resource_extend.store.client import LIMITS, SHORT, Client
from resource_extend.store.failures import Refusal, Unanswered
from resource_extend.store.http2 import Connection
from resource_extend.store.protobuf import RANGE, range_request
from support.etcd import Etcd
from support.peers import Conversation, peer, silent
from support.stores import store_at

HELLO = frames.frame(frames.SETTINGS, 0, 0, b"")
HEADERS = frames.frame(frames.HEADERS, frames.END_HEADERS, 1, b"\x88")
TRAILERS = frames.frame(frames.HEADERS, frames.END_HEADERS | frames.END_STREAM, 1, b"\x40\x01a\x01b")


class Wire:
    """A channel that gives bytes in pieces, then nothing more."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    def settimeout(self, seconds: float | None) -> None:
        """Never wait."""

    def recv(self, limit: int) -> bytes:
        """Return everything at once, then fail as a channel without data does."""
        if not self.data:
            raise BlockingIOError
        data, self.data = self.data, b""
        return data

    def send(self, data: bytes) -> int:
        """Take everything."""
        return len(data)

    def sendall(self, data: bytes) -> None:
        """Take everything."""

    def fileno(self) -> int:
        """Be no descriptor."""
        return -1

    def close(self) -> None:
        """Be closed."""


def by_connection(data: bytes) -> "bytes | None | type[Exception]":
    """Return the message that a connection finds in an answer's bytes, None without one, or how it fails."""
    connection = Connection(Wire(data), b"here:1", tls=False)
    connection.request(b"/a/b", b"", b"", 1.0)
    try:
        connection.digest(data)
        return connection.outcome()
    except (Unanswered, Refusal) as failure:
        return type(failure)


payloads = st.one_of(
    st.binary(max_size=12),
    st.sampled_from(
        [b"\x88", b"\x88\xbf", b"\0\x04\0\0\xff\xff", b"\0\x04\0\0\0\x10", b"\0\x05\0\0\x40\0", b"12345678"]
    ),
)
odd_frames = st.builds(
    frames.frame,
    st.integers(0, 10),
    st.sampled_from([0, 1, 4, 5, 8, 0x20]),
    st.sampled_from([0, 1, 1, 3, 2**31 + 1]),
    payloads,
)


@st.composite
def answers(draw: st.DrawFn) -> bytes:
    """Bytes of an answer: hello, headers, the message in parts, trailers, and odd frames among them; perhaps cut."""
    message = frames.envelope(draw(st.binary(max_size=40)))
    middle = draw(st.integers(0, len(message)))
    parts = [part for part in (message[:middle], message[middle:]) if part]
    ordinary = [HELLO, HEADERS, *(frames.frame(frames.DATA, 0, 1, part) for part in parts), TRAILERS]
    for _ in range(draw(st.integers(0, 3))):
        ordinary.insert(draw(st.integers(0, len(ordinary))), draw(odd_frames))
    data = b"".join(ordinary)
    return data[: draw(st.integers(0, len(data)))] if draw(st.booleans()) else data


@settings(max_examples=2000)
@example(data=frames.SETTINGS_ACK + HELLO + HEADERS + frames.frame(frames.DATA, 0, 1, bytes(5)))
@example(data=HELLO + HEADERS + frames.frame(frames.DATA, 0, 1, b"\0\0\0\x40\x01" + bytes(0x4001)))
@example(data=HELLO + HEADERS + frames.frame(frames.DATA, 0, 1, b"\0\x80\0\0\0"))
@given(data=answers())
def test_ordinary_answer(data: bytes) -> None:
    """An ordinary answer is the message that a connection finds, with the same acknowledgements and begun frame."""
    try:
        taken = frames.ordinary_answer(data, 1)
    except ValueError:
        return
    expected = by_connection(data)
    if taken is None:
        assert expected is None
        return
    message, acks, rest = taken
    connection = Connection(Wire(data), b"here:1", tls=False)
    connection.request(b"/a/b", b"", b"", 1.0)
    connection.digest(data)
    assert (expected, connection._acks, connection._buffer, True) == (message, acks, rest, connection.greeted)


@pytest.mark.parametrize("size", [0, 1, 127, 5000, 70_000])
def test_answers_of_all_sizes_are_ordinary(size: int) -> None:
    """What etcd sends when all is well is taken, however it is cut: nothing before its end, the message at its end."""
    message = bytes(size)
    content = frames.envelope(message)
    parts = [content[at : at + 16384] for at in range(0, len(content), 16384)]
    data = HELLO + HEADERS + b"".join(frames.frame(frames.DATA, 0, 1, part) for part in parts)

    assert (message, frames.SETTINGS_ACK, b"") == frames.ordinary_answer(data, 1)
    assert (message, frames.SETTINGS_ACK, TRAILERS[:3]) == frames.ordinary_answer(data + TRAILERS[:3], 1)
    for cut in {*range(0, len(data), max(1, len(data) // 50)), len(data) - 1}:
        assert frames.ordinary_answer(data[:cut], 1) is None


def client_of(port: int, seconds: float = 10.0) -> Client:
    """Return a client of one endpoint."""
    return Client(Settings([f"127.0.0.1:{port}"]), "/eru/", time.monotonic() + seconds, LIMITS, {})


@pytest.mark.parametrize("odd", [0, 1, 2, 8, None])
def test_connection_takes_over_in_the_middle(odd: int | None) -> None:
    """A call that turns out to be unusual half way goes on, on the same connection, with nothing lost or repeated."""
    seen: list[tuple[int, bytes]] = []
    acknowledged: list[bytes] = []

    def serve(sock: socket.socket) -> None:
        talk = Conversation(sock)
        for number in range(10):
            call = talk.next_call()
            seen.append((call.stream, call.message))
            whole = talk.answer(call, b"answer to " + call.message)
            if number == odd:
                whole = frames.frame(0x42, 0, 0, b"unknown") + whole
            middle = len(whole) // 2
            talk.send(frames.frame(frames.PING, 0, 0, b"%08d" % number) + whole[:middle])
            time.sleep(0.02)
            talk.send(whole[middle:])
        acknowledged.extend(talk.acknowledged)
        talk.next_call()

    with peer(serve) as server:
        client = client_of(server.port)
        messages = [client.read(b"/a/b", b"%d" % number) for number in range(10)]
        del client

    assert [b"answer to %d" % number for number in range(10)] == messages
    assert [(2 * number + 1, b"%d" % number) for number in range(10)] == seen
    assert [b"", *(b"%08d" % number for number in range(9))] == acknowledged


@pytest.mark.parametrize("size", [SHORT - 200, SHORT + 1, 200_000])
def test_writes_of_all_sizes(size: int, etcd: Etcd) -> None:
    """A record is stored whole after a read on the straight road, whether its write fits on that road or not."""
    store = store_at(etcd.endpoint, prefix=f"/straight-{size}")
    for value in (b"a" * size, b"b" * size):
        store.update("n", lambda _, value=value: value)  # type: ignore[misc]
        assert value == store.get("n")


def close(sock: socket.socket) -> None:
    """Close at once."""


def reset(sock: socket.socket) -> None:
    """Read, then break the connection."""
    sock.recv(10)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def half_a_hello(sock: socket.socket) -> None:
    """Begin a first frame and close."""
    sock.sendall(b"\0\0\6\4")
    sock.recv(65536)


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize(
    ("serve", "reason"),
    [
        (close, "connection closed at once (if it wants TLS, write https://)"),
        (reset, "connection closed at once (if it wants TLS, write https://)"),
        (half_a_hello, "answered something else than gRPC, is no etcd"),
        (
            lambda sock: sock.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n"),
            "answered with HTTP/1, is no etcd client port",
        ),
    ],
)
def test_first_words(serve: Callable[[socket.socket], None], reason: str, count: int) -> None:
    """What is wrong with a peer's first words is said of every endpoint, be it one of several or alone."""
    with contextlib.ExitStack() as stack:
        servers = [stack.enter_context(peer(serve)) for _ in range(count)]
        with pytest.raises(StoreError) as caught:
            store_at(*(server.endpoint for server in servers)).get("n")

    assert "etcd unreachable: " + "; ".join(f"{server.endpoint}: {reason}" for server in servers) == str(caught.value)


def test_slow_hello(etcd: Etcd) -> None:
    """A first endpoint that stops within its first frame does not keep the next one waiting for a second."""

    def begin(sock: socket.socket) -> None:
        sock.sendall(b"\0\0\6\4\0\0\0\0\0")
        silent(sock)

    with peer(begin) as server:
        client = Client(
            Settings([server.endpoint, etcd.endpoint]), "/eru/", time.monotonic() + 20, (0.1, 20.0, 20.0), {}
        )
        assert client.read(RANGE, range_request(b"/eru/nothing"))
        assert etcd.endpoint == client.endpoint[3]


def test_etcd_is_ordinary(etcd: Etcd) -> None:
    """What this machine's etcd answers to reads, writes and conflicts is ordinary: the road is not left."""
    store, other = store_at(etcd.endpoint, prefix="/ordinary"), store_at(etcd.endpoint, prefix="/ordinary")

    def change(value: bytes | None) -> bytes:
        if value == b"1":
            other.update("n", lambda _: b"2")
        return (value or b"") + b"1"

    assert store.get("n") is None
    store.update("n", lambda _: b"1")
    store.update("n", change)
    assert b"21" == other.get("n")
    for each in (store, other):
        assert each._client.connection is None
