"""What the far end of a connection may do: frames of any size, errors, other protocols (protocol, 7.2 and 7.3)."""

import re
import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable

import pytest

from resource_extend.errors import OutcomeUnknown, StoreError
from resource_extend.store.protobuf import field, varint
from support.certificates import Certificates
from support.etcd import Etcd
from support.peers import (
    CONTINUATION,
    DATA,
    END_HEADERS,
    END_STREAM,
    GOAWAY,
    HEADERS,
    PING,
    RST_STREAM,
    SETTINGS,
    WINDOW_UPDATE,
    Call,
    Conversation,
    frame,
    peer,
)
from support.stores import store_at

PADDED, PRIORITY = 8, 0x20


def range_response(value: bytes, revision: int = 7) -> bytes:
    """Return RangeResponse with one record, as etcd writes it."""
    header = field(1, b"\x08\x01\x10\x02\x18\x03\x20\x04")
    pair = field(1, b"key") + b"\x10\x05\x18" + varint(revision) + b"\x20\x01" + field(5, value)
    return header + field(2, pair) + b"\x20\x01"


TXN_DONE = field(1, b"\x18\x08") + b"\x10\x01" + field(3, field(2, b""))


def serving(serve: Callable[[Conversation], None]) -> Callable[[socket.socket], None]:
    """Return a server whose connections are conversations."""
    return lambda sock: serve(Conversation(sock))


def read_from(serve: Callable[[Conversation], None], seconds: float = 20.0) -> bytes | None:
    """Return what a read of a node gives at a scripted server."""
    with peer(serving(serve)) as server:
        return store_at(server.endpoint, seconds=seconds).get("n")


def failure_from(serve: Callable[[socket.socket], None], seconds: float = 20.0) -> str:
    """Return the error of a read at a scripted server, with `peer` for its address."""
    with peer(serve) as server, pytest.raises(StoreError) as caught:
        store_at(server.endpoint, seconds=seconds).get("n")
    return str(caught.value).replace(server.endpoint, "peer")


def test_request() -> None:
    """A request is gRPC: pseudo-headers first, POST, te, content type, a time limit, and `hasleader` for etcd."""
    calls: list[Call] = []

    def serve(talk: Conversation) -> None:
        calls.append(call := talk.next_call())
        talk.send(talk.answer(call, range_response(b"value")))
        talk.next_call()

    with peer(serving(serve)) as server:
        assert b"value" == store_at(server.endpoint).get("näme")

    timeout = calls[0].fields.pop()

    assert [
        (":method", "POST"),
        (":scheme", "http"),
        (":authority", server.endpoint),
        (":path", "/etcdserverpb.KV/Range"),
        ("te", "trailers"),
        ("content-type", "application/grpc"),
        ("hasleader", "true"),
    ] == calls[0].fields
    assert "grpc-timeout" == timeout[0]
    # 5 seconds for the answer, less 50 milliseconds.
    assert re.fullmatch(r"49[0-4]\dm|4950m", timeout[1])
    assert field(1, "/eru/resource/gpu/näme".encode()) == calls[0].message


def test_answer_byte_by_byte() -> None:
    """Frames may arrive in pieces of any size."""

    def serve(talk: Conversation) -> None:
        for byte in talk.answer(talk.next_call(), range_response(b"value" * 50)):
            talk.send(bytes((byte,)))

    assert b"value" * 50 == read_from(serve)


def test_header_blocks_in_parts() -> None:
    """A header block may be continued, padded, prioritized, and begin with a change of the table's size."""

    def serve(talk: Conversation) -> None:
        call = talk.next_call()
        block = b"\x20" + talk.begin(call)[9:]
        padded = b"\x03\x80\x00\x00\x00\x10" + block[:2] + b"\0\0\0"
        talk.send(frame(HEADERS, PADDED | PRIORITY, call.stream, padded))
        talk.send(frame(CONTINUATION, 0, call.stream, block[2:5]))
        talk.send(frame(CONTINUATION, END_HEADERS, call.stream, block[5:]))
        whole = b"\0" + struct.pack(">I", len(range_response(b"value"))) + range_response(b"value")
        talk.send(frame(DATA, PADDED, call.stream, b"\x02" + whole[:3] + b"\0\0"))
        talk.send(frame(DATA, 0, call.stream, b""))
        talk.send(frame(DATA, PADDED, call.stream, b"\x00" + whole[3:]))
        talk.send(talk.trailers(call, 0, ""))

    assert b"value" == read_from(serve)


def test_frames_in_between() -> None:
    """Pings, settings, priorities, frames of unknown kinds and of other streams do not disturb an answer."""

    def serve(talk: Conversation) -> None:
        call = talk.next_call()
        noise = (
            frame(PING, 0, 0, b"12345678")
            + frame(SETTINGS, 1, 0, b"")
            + frame(SETTINGS, 0, 0, b"\0\x05\0\0\x40\0")
            + frame(2, 0, 5, b"\0\0\0\0\x10")
            + frame(0xBE, 0xFF, call.stream, b"unknown")
            + frame(WINDOW_UPDATE, 0, 0, b"\0\0\0\x10")
            + frame(RST_STREAM, 0, 99, b"\0\0\0\x02")
            + frame(DATA, END_STREAM, 99, b"not ours")
        )
        talk.send(noise + talk.begin(call) + noise + talk.data(call, range_response(b"value")) + noise)

    assert b"value" == read_from(serve)


def test_acknowledgements() -> None:
    """Settings and pings are acknowledged with the next request."""
    acknowledged = []

    def serve(talk: Conversation) -> None:
        talk.send(frame(PING, 0, 0, b"00000000"))
        talk.send(talk.answer(talk.next_call(), range_response(b"value")))
        call = talk.next_call()
        acknowledged.extend(talk.acknowledged)
        talk.send(talk.answer(call, range_response(b"value")))

    with peer(serving(serve)) as server:
        store = store_at(server.endpoint)
        store.get("n")
        store.get("n")

    assert [b"", b"00000000"] == acknowledged


def test_acknowledgements_while_waiting() -> None:
    """A peer that makes us wait gets its acknowledgements meanwhile."""

    def serve(talk: Conversation) -> None:
        call = talk.next_call()
        talk.send(frame(PING, 0, 0, b"waiting!"))
        while talk.next_frame()[3] != b"waiting!":
            pass
        talk.send(talk.answer(call, range_response(b"value")))

    with peer(serving(serve)) as server:
        assert b"value" == store_at(server.endpoint).get("n")


@pytest.mark.parametrize("window", [1, 10, 1000])
def test_windows_of_the_peer(window: int) -> None:
    """A long request is sent as the windows of the stream and of the connection allow, not faster."""
    received: list[bytes] = []
    names = [f"node-{number}-{'x' * 600}" for number in range(125)]

    def serve(sock: socket.socket) -> None:
        talk = Conversation(sock, b"\0\x04" + struct.pack(">I", window))
        call, body, granted = None, b"", 65535
        while True:
            kind, flags, stream, payload = talk.next_frame()
            if kind == HEADERS:
                call = Call(stream, [])
            if kind == DATA:
                body += payload
                assert len(body) <= granted
                if flags & END_STREAM:
                    break
                if len(body) == granted:
                    more = frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", 5000))
                    # What was sent before our settings arrived counts, so the stream's window is below zero.
                    owed = 65535 - window if granted == 65535 else 0
                    talk.send(more + frame(WINDOW_UPDATE, 0, stream, struct.pack(">I", 5000 + owed)))
                    granted += 5000
        received.append(body[5:])
        if call is not None:
            talk.send(talk.answer(call, field(1, b"") + b"\x10\x01"))

    with peer(serve) as server:
        assert {} == store_at(server.endpoint).get_many(names)

    assert 1 == len(received)
    assert len(received[0]) > 65535
    assert all(f"/eru/resource/gpu/{name}".encode() in received[0] for name in names)


@pytest.mark.parametrize("nodes", [300, 0])
@pytest.mark.parametrize("broken", ["never connected", "before the answer", "in the answer", "by an error"])
def test_many_nodes_after_a_broken_answer(broken: str, nodes: int) -> None:
    """What came of a broken answer counts for nothing, and what there is to prepare is done once."""
    old, new = (
        [field(1, b"/eru/resource/gpu/n%d" % number) + field(5, value) for number in range(300)]
        for value in (b"old" * 99, b"new" * 99)
    )
    prepared: list[str] = []
    looked: list[bytes] = []

    def failing(talk: Conversation) -> None:
        call = talk.next_call()
        data = talk.data(call, b"".join([field(2, pair) for pair in [*old, field(1, b"/eru/resource/gpu/gone")]]))
        if broken == "in the answer":
            talk.send(talk.begin(call) + data[: len(data) // 2])
        elif broken == "by an error":
            talk.send(talk.begin(call) + data[: 16393 * 2] + talk.trailers(call, 14, "etcdserver: request timed out"))

    def serve(talk: Conversation) -> None:
        call = talk.next_call()
        talk.send(talk.answer(call, b"".join([field(2, pair) for pair in new[:nodes]])))

    def prepare() -> Callable[[list[bytes]], object]:
        prepared.append("once")
        return looked.extend

    names = [f"n{number}" for number in range(300)]
    with peer(serving(failing)) as first, peer(serving(serve)) as second:
        if broken == "never connected":
            first.close()
        values = store_at(first.endpoint, second.endpoint).get_many([*names, "gone"], prepare)

    assert dict.fromkeys(names[:nodes], b"new" * 99) == values
    assert ["once"] == prepared
    assert set(looked) <= {b"old" * 99, b"new" * 99}


def test_error_that_refers_to_the_table() -> None:
    """An error is understood when its header block refers to the table that earlier answers built up."""
    sizes = []

    def serve(talk: Conversation) -> None:
        call = talk.next_call()
        sizes.append(len(first := talk.begin(call)))
        talk.send(first + talk.data(call, range_response(b"value")) + talk.trailers(call, 0, ""))
        call = talk.next_call()
        sizes.append(len(first := talk.begin(call)))
        talk.send(first + talk.trailers(call, 7, "etcdserver: permission denied"))

    with peer(serving(serve)) as server:
        store = store_at(server.endpoint)
        store.get("n")
        with pytest.raises(StoreError) as caught:
            store.get("n")

    assert str(caught.value).startswith("etcd: etcdserver: permission denied (")
    assert sizes[1] < sizes[0]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("etcdserver: something new", "etcd: etcdserver: something new"),
        ("100%25 caf%C3%A9 %zz %", "etcd: 100% café %zz %"),
        ("two%0Alines%1B[31m", "etcd: two\\nlines\\x1b[31m"),
        ("%FF", "etcd: \ufffd"),
        ("", "etcd: gRPC code 3"),
        (
            "etcdserver: mvcc: database space exceeded",
            "etcd: etcdserver: mvcc: database space exceeded (compact and defragment etcd, then disarm its alarm)",
        ),
    ],
)
def test_error_text(text: str, shown: str) -> None:
    """A server's error is reported at once, on one line, with what to do where that is known."""

    def serve(talk: Conversation) -> None:
        call = talk.next_call()
        talk.send(talk.error(call, 3, text))

    assert shown == failure_from(serving(serve))


@pytest.mark.parametrize("code", [2, 4, 14])
def test_unavailable_server(code: int) -> None:
    """A server that cannot answer now is asked again."""
    calls = []

    def serve(talk: Conversation) -> None:
        calls.append(call := talk.next_call())
        if len(calls) < 3:
            talk.send(talk.error(call, code, "etcdserver: request timed out"))
        else:
            talk.send(talk.answer(call, range_response(b"value")))

    assert b"value" == read_from(serve)
    assert 3 == len(calls)


def test_unavailable_until_the_deadline() -> None:
    """A server that cannot answer at all ends in an error with its reason at the deadline."""

    def serve(talk: Conversation) -> None:
        talk.send(talk.error(talk.next_call(), 14, "etcdserver: no leader"))

    begin = time.monotonic()

    assert "etcd unreachable: peer: etcdserver: no leader" == failure_from(serving(serve), seconds=0.5)
    assert 0.4 < time.monotonic() - begin < 3


def goaway(last: int) -> bytes:
    """Return GOAWAY without an error."""
    return frame(GOAWAY, 0, 0, struct.pack(">II", last, 0))


def test_shutdown_before_the_answer() -> None:
    """A server that goes away without looking at a read is asked again by a new connection."""
    calls = []

    def serve(talk: Conversation) -> None:
        calls.append(call := talk.next_call())
        talk.send(goaway(0) if len(calls) == 1 else talk.answer(call, range_response(b"value")))

    assert b"value" == read_from(serve)


def test_shutdown_with_the_answer() -> None:
    """A server that goes away after its answer has answered; the next request uses a new connection."""

    def serve(talk: Conversation) -> None:
        call = talk.next_call()
        talk.send(goaway(0x7FFFFFFF) + talk.answer(call, range_response(b"value")))
        talk.next_call()

    with peer(serving(serve)) as server:
        store = store_at(server.endpoint)

        assert [b"value", b"value"] == [store.get("n"), store.get("n")]
        assert 2 == server.connections


def writes_at(react: Callable[[Conversation, Call, int], None]) -> tuple[int, int, str]:
    """Update at a scripted server whose transactions get the reaction; return computations, transactions and error."""
    computed = 0
    transactions = 0

    def serve(talk: Conversation) -> None:
        nonlocal transactions
        while True:
            call = talk.next_call()
            if call.path.endswith("Range"):
                talk.send(talk.answer(call, range_response(b"value")))
            else:
                transactions += 1
                react(talk, call, transactions)

    def change(_: bytes | None) -> bytes:
        nonlocal computed
        computed += 1
        return b"new"

    error = ""
    with peer(serving(serve)) as server:
        try:
            store_at(server.endpoint, seconds=5.0).update("n", change)
        except StoreError as failure:
            error = type(failure).__name__ + ": " + str(failure)
    return computed, transactions, error


@pytest.mark.parametrize("how", ["goaway", "refused stream", "no leader", "closing before"])
def test_write_that_surely_did_not_happen(how: str) -> None:
    """A write that the server surely did not look at is computed anew and sent again, as after a conflict."""

    def react(talk: Conversation, call: Call, number: int) -> None:
        if number > 1:
            talk.send(talk.answer(call, TXN_DONE))
        elif how == "goaway":
            talk.send(goaway(call.stream - 2))
        elif how == "refused stream":
            talk.send(frame(RST_STREAM, 0, call.stream, b"\0\0\0\x07"))
        elif how == "no leader":
            talk.send(talk.error(call, 14, "etcdserver: no leader"))
        else:
            talk.send(goaway(call.stream - 1))

    assert (2, 2, "") == writes_at(react)


@pytest.mark.parametrize(
    "how", ["closed", "goaway", "cancelled stream", "timed out", "leader changed", "deadline", "garbage", "no protobuf"]
)
def test_write_that_may_have_happened(how: str) -> None:
    """After anything else the record is read again; unmoved, the same write is sent again, not computed anew."""

    def react(talk: Conversation, call: Call, number: int) -> None:
        if number > 1:
            talk.send(talk.answer(call, TXN_DONE))
        elif how == "closed":
            talk.sock.shutdown(socket.SHUT_RDWR)
        elif how == "goaway":
            talk.send(goaway(0x7FFFFFFF))
            talk.sock.shutdown(socket.SHUT_RDWR)
        elif how == "cancelled stream":
            talk.send(frame(RST_STREAM, 0, call.stream, b"\0\0\0\x08"))
        elif how == "no protobuf":
            talk.send(talk.answer(call, b"\xff" * 20))
        elif how == "garbage":
            talk.send(b"\xff" * 100)
        else:
            code, text = {
                "timed out": (14, "etcdserver: request timed out"),
                "leader changed": (14, "etcdserver: leader changed"),
                "deadline": (4, "context deadline exceeded"),
            }[how]
            talk.send(talk.error(call, code, text))

    assert (1, 2, "") == writes_at(react)


@pytest.mark.parametrize(
    ("code", "text"),
    [
        (3, "etcdserver: request is too large"),
        (7, "etcdserver: permission denied"),
        (8, "etcdserver: mvcc: database space exceeded"),
    ],
)
def test_write_that_is_refused(code: int, text: str) -> None:
    """A refusal is an error at once; the write has not happened and is not tried again."""

    def react(talk: Conversation, call: Call, number: int) -> None:
        talk.send(talk.error(call, code, text))

    computed, transactions, error = writes_at(react)

    assert (1, 1) == (computed, transactions)
    assert error.startswith(f"StoreError: etcd: {text}")


def test_write_that_is_refused_when_it_is_repeated() -> None:
    """A refusal of the repetition does not tell what became of the first write."""

    def react(talk: Conversation, call: Call, number: int) -> None:
        if number == 1:
            talk.sock.shutdown(socket.SHUT_RDWR)
        else:
            talk.send(talk.error(call, 8, "etcdserver: mvcc: database space exceeded"))

    computed, transactions, error = writes_at(react)

    assert (1, 2, "OutcomeUnknown: write outcome unknown: /eru/resource/gpu/n") == (computed, transactions, error)


def http_page(sock: socket.socket) -> None:
    """Answer as a web server of HTTP/1.1."""
    sock.recv(65536)
    sock.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\n400 Bad Request")


def http2_page(sock: socket.socket) -> None:
    """Answer as a web server of HTTP/2."""
    talk = Conversation(sock)
    call = talk.next_call()
    talk.send(talk.headers(call.stream, [(":status", "404"), ("content-type", "text/html")]))
    talk.send(frame(DATA, END_STREAM, call.stream, b"<html>no</html>"))


def http2_success(sock: socket.socket) -> None:
    """Answer as a web server of HTTP/2 that has a page for everything."""
    talk = Conversation(sock)
    call = talk.next_call()
    talk.send(talk.headers(call.stream, [(":status", "200"), ("content-type", "text/html")]))
    talk.send(frame(DATA, END_STREAM, call.stream, b"<html>yes</html>"))


def http2_nothing(sock: socket.socket) -> None:
    """Answer with a page without anything in it."""
    talk = Conversation(sock)
    call = talk.next_call()
    talk.send(talk.headers(call.stream, [(":status", "200")], END_HEADERS | END_STREAM))


def tls_alert(sock: socket.socket) -> None:
    """Answer as a TLS server that does not understand."""
    sock.recv(65536)
    sock.sendall(b"\x15\x03\x01\x00\x02\x02\x46")


def banner(sock: socket.socket) -> None:
    """Greet as a server of another protocol."""
    sock.sendall(b"220 mail.example ESMTP\r\n")
    sock.recv(65536)


def immediate_end(sock: socket.socket) -> None:
    """Close without a word."""
    sock.recv(65536)


@pytest.mark.parametrize(
    ("serve", "reason"),
    [
        (http_page, "answered with HTTP/1, is no etcd client port"),
        (http2_page, "answered with HTTP status 404, is no etcd"),
        (http2_success, "answered something else than gRPC, is no etcd"),
        (http2_nothing, "answered something else than gRPC, is no etcd"),
        (tls_alert, "answered with TLS (write https://)"),
        (banner, "answered something else than gRPC, is no etcd"),
        (immediate_end, "connection closed at once (if it wants TLS, write https://)"),
    ],
)
def test_no_etcd(serve: Callable[[socket.socket], None], reason: str, etcd: Etcd) -> None:
    """A peer that is no etcd is named with what it answered, and passed over when there is another endpoint."""
    assert f"etcd unreachable: peer: {reason}" == failure_from(serve)
    with peer(serve) as server:
        assert store_at(server.endpoint, etcd.endpoint).get("nobody") is None


def test_metrics_port(etcd: Etcd) -> None:
    """Etcd's own metrics port is told from its client port."""
    with pytest.raises(StoreError, match="answered with HTTP/1, is no etcd client port"):
        store_at(f"127.0.0.1:{etcd.metrics_port}").get("n")


def test_plain_text_to_tls(certificates: Certificates) -> None:
    """Plain text to a port that wants TLS is an error that says so."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificates.server_cert, certificates.server_key)

    def serve(sock: socket.socket) -> None:
        context.wrap_socket(sock, server_side=True)

    assert "write https://)" in failure_from(serve)


def flipped(name: str) -> Callable[[Conversation], None]:
    """Return a server whose answer is not what it should be."""

    def serve(talk: Conversation) -> None:
        call = talk.next_call()
        message = range_response(b"value")
        if name == "compressed":
            talk.send(talk.begin(call) + frame(DATA, 0, call.stream, b"\x01\0\0\0\x01x"))
        elif name == "endless length":
            talk.send(talk.begin(call) + frame(DATA, 0, call.stream, b"\0\xff\xff\xff\xffx"))
        elif name == "cut message":
            talk.send(talk.begin(call) + talk.data(call, message)[:-3])
            talk.sock.shutdown(socket.SHUT_WR)
        elif name == "no protobuf":
            talk.send(talk.answer(call, b"\xff" * 40))
        elif name == "cut protobuf":
            talk.send(talk.answer(call, message[:-10]))
        elif name == "broken trailers":
            talk.send(frame(HEADERS, END_HEADERS | END_STREAM, call.stream, b"\x88\xff\xff\xff\xff\xff"))
        elif name == "ended early":
            talk.send(talk.begin(call) + talk.trailers(call, 0, ""))
        else:
            talk.send(b"\xff" * 9)

    return serve


@pytest.mark.parametrize(
    "name",
    [
        "compressed",
        "endless length",
        "cut message",
        "no protobuf",
        "cut protobuf",
        "broken trailers",
        "ended early",
        "frame of 16 MB",
    ],
)
def test_broken_answers(name: str) -> None:
    """A broken answer is an error of the store, never a wrong value."""
    message = failure_from(serving(flipped(name)))

    assert message.startswith("etcd")
    assert "\n" not in message


def test_no_secrets(etcd: Etcd) -> None:
    """Neither the password nor an endpoint's user information is in any error."""
    servers: list[Callable[[socket.socket], None]] = [http_page, http2_page, tls_alert, banner, immediate_end]
    for serve in servers:
        with peer(serve) as server:
            store = store_at(f"http://user:s3cret@{server.endpoint}", username="user", password="s3cret")
            with pytest.raises(StoreError) as caught:
                store.get("n")

        assert "s3cret" not in str(caught.value)


def test_outcome_is_unknown_without_any_answer() -> None:
    """A server that accepts reads and goes silent at the write leaves the outcome unknown."""
    stop = threading.Event()

    def serve(talk: Conversation) -> None:
        if stop.is_set():
            talk.next_call()
            time.sleep(1)
        talk.send(talk.answer(talk.next_call(), range_response(b"value")))
        talk.next_call()
        stop.set()
        time.sleep(1)

    with peer(serving(serve)) as server, pytest.raises(OutcomeUnknown):
        store_at(server.endpoint, seconds=0.6).update("n", lambda _: b"new")
