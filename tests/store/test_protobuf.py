"""The protobuf messages against descriptions of them in another library's terms: what is written reads back."""

import contextlib
import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resource_extend.errors import StoreError
from resource_extend.settings import Settings
from resource_extend.store import login, many, protobuf
from resource_extend.store.frames import frame, text_field, unpadded

NUMBERS = st.integers(0, 2**63 - 1)
RECORDS = st.tuples(st.binary(max_size=300), NUMBERS, st.binary(max_size=300))


def key_value(record: protobuf.Record, create: int, version: int, lease: int) -> bytes:
    """Return KeyValue as etcd writes it: fields in order, zeros left out."""
    key, revision, value = record
    numbers = [(2, create), (3, revision), (4, version)]
    middle = b"".join([protobuf.varint(number << 3) + protobuf.varint(each) for number, each in numbers if each])
    last = b"\x30" + protobuf.varint(lease) if lease else b""
    return (protobuf.field(1, key) if key else b"") + middle + (protobuf.field(5, value) if value else b"") + last


class All(dict[bytes, str]):
    """Every key is wanted."""

    def __contains__(self, key: object) -> bool:
        return True

    def __missing__(self, key: bytes) -> str:
        return key.decode("latin-1")


def all_wanted() -> many.Records:
    """Return what takes the value of any key."""
    records = many.Records()
    records.wanted = All()
    return records


def range_values(message: bytes) -> dict[bytes, bytes]:
    """Return the values by key of a RangeResponse that comes as a whole."""
    records = all_wanted()
    records.part(message, whole=True)
    records.finish()
    return by_key(records)


def transaction_values(message: bytes) -> dict[bytes, bytes]:
    """Return the values by key of the answer to a transaction of reads."""
    records = all_wanted()
    records.all_of_transaction(message)
    return by_key(records)


def by_key(records: many.Records) -> dict[bytes, bytes]:
    """Return what has been taken by key."""
    return {node.encode("latin-1"): value for node, value in records.values.items()}


def header(number: int) -> bytes:
    """Return ResponseHeader as a field."""
    return protobuf.field(1, b"\x08" + protobuf.varint(number))


def range_response(rows: list[tuple[protobuf.Record, int, int, int]], number: int) -> bytes:
    """Return RangeResponse of records with create revision, version and lease."""
    pairs = b"".join([protobuf.field(2, key_value(*row)) for row in rows])
    return header(number) + pairs + b"\x18\x01\x20" + protobuf.varint(number)


@given(st.lists(st.tuples(RECORDS, NUMBERS, NUMBERS, NUMBERS), max_size=5), NUMBERS)
def test_records(rows: list[tuple[protobuf.Record, int, int, int]], number: int) -> None:
    """Records of any bytes and numbers are read from a range and from a transaction, whatever stands around them."""
    answer = range_response(rows, number)
    records = [row[0] for row in rows]
    values = {key: value for key, _, value in records}

    assert records == protobuf.range_answer(answer)
    assert values == range_values(answer)

    transaction = header(number) + b"\x10\x01" + protobuf.field(3, protobuf.field(1, answer)) * 2

    assert values == transaction_values(transaction)
    assert protobuf.write_answer(transaction)
    assert not protobuf.write_answer(header(number))


# What a key or a value may hold that looks like the fields between them.
LOOKALIKES = st.lists(
    st.sampled_from([b"\x0a\x01k", b"\x10\x01\x18\x01\x20\x01", b"\x2a\x80\x01", b"\x2a\x01", b"x" * 60])
)
ALIKE = st.tuples(
    st.tuples(LOOKALIKES.map(b"".join), st.sampled_from([1, 127, 128, 300]), LOOKALIKES.map(b"".join)),
    st.sampled_from([0, 1, 200]),
    st.sampled_from([1, 130]),
    st.sampled_from([0, 7]),
)


@given(st.lists(ALIKE, max_size=12))
def test_many_records(rows: list[tuple[protobuf.Record, int, int, int]]) -> None:
    """Values are read exactly where records look alike, where one differs, and where its bytes mislead."""
    values = {key: value for (key, _, value), *_ in rows}

    assert values == range_values(range_response(rows, 5))


@given(st.lists(ALIKE, max_size=5), st.lists(st.integers(0, 400), max_size=8))
def test_parts(rows: list[tuple[protobuf.Record, int, int, int]], cuts: list[int]) -> None:
    """However an answer is cut into parts, its values are the same; without its last byte it is an error."""
    answer = range_response(rows, 5)
    places = [0, *sorted(min(cut, len(answer)) for cut in cuts), len(answer)]
    looked: list[bytes] = []
    records, short = all_wanted(), all_wanted()
    records.look = looked.extend
    for begin, end in itertools.pairwise(places):
        records.part(answer[begin:end], whole=False)
        short.part(answer[begin : min(end, len(answer) - 1)], whole=False)

    records.finish()
    assert range_values(answer) == by_key(records)
    assert [value for (_, _, value), *_ in rows] == looked
    with pytest.raises(StoreError):
        protobuf.parsed(lambda _: short.finish(), b"")


@pytest.mark.parametrize("rows", [[((b"k", 2, b"w"), 1, 2, 0)], []])
def test_whole_answer_after_parts(rows: list[tuple[protobuf.Record, int, int, int]]) -> None:
    """Parts of an answer that broke off count for nothing once another one is there, even one without records."""
    records = all_wanted()
    records.part(range_response([((b"old", 1, b"v"), 1, 1, 0), ((b"k", 1, b"v"), 1, 1, 0)], 5)[:-8], whole=False)
    records.part(range_response(rows, 6) if rows else b"", whole=True)
    records.finish()

    assert {key: value for (key, _, value), *_ in rows} == by_key(records)


def test_only_wanted_nodes() -> None:
    """Of a prefix only the nodes asked for are taken and looked at."""
    records, looked = many.Records(), list[bytes]()
    records.wanted = {b"p/a": "a", b"p/c": "c"}
    records.look = looked.extend
    rows = [((b"p/%b" % name, 1, name * 9), 1, 1, 0) for name in (b"a", b"b", b"c")]
    records.part(range_response(rows, 3), whole=True)

    assert {"a": b"a" * 9, "c": b"c" * 9} == records.values
    assert [b"a" * 9, b"c" * 9] == looked


@pytest.mark.parametrize("size", [0, 1, 127, 128, 300, 16383, 16384, 70_000])
def test_long_values(size: int) -> None:
    """Values of any length are read, several of one length and one of another behind them."""
    rows = [((b"%d" % index, 9, b"v" * length), 9, 1, 0) for index, length in enumerate([size, size, size, size + 1])]

    assert [(b"%d" % key, size + key // 3) for key in range(4)] == [
        (key, len(value)) for key, value in range_values(range_response(rows, 4)).items()
    ]


def test_unknown_fields() -> None:
    """Fields that a later etcd may add are passed over, of whatever kind they are."""
    extra = b"\x39" + b"12345678" + b"\x3d" + b"1234" + b"\x42\x01x" + b"\x80\x01\x05" + b"\x8a\x01\x02xy"
    answer = extra + protobuf.field(2, key_value((b"k", 3, b"v"), 1, 1, 0)) + extra

    assert [(b"k", 3, b"v")] == protobuf.range_answer(answer)
    assert [(b"k", 0, b"v")] == protobuf.range_answer(
        protobuf.field(2, protobuf.field(1, b"k") + b"\x80\x01\x05" + b"\x8a\x01\x02xy" + protobuf.field(5, b"v"))
    )


@given(st.binary(max_size=60))
def test_any_bytes(message: bytes) -> None:
    """Bytes that are no message are an error of the store, or an answer; nothing else, and never more than there is."""
    for parse in (
        range_values,
        transaction_values,
        protobuf.range_answer,
        protobuf.write_answer,
        login.authenticate_answer,
    ):
        with contextlib.suppress(StoreError):
            protobuf.parsed(parse, message)


def test_cut_answers() -> None:
    """An answer that is cut anywhere inside a record is an error, not a shorter value."""
    whole = protobuf.field(2, key_value((b"key", 3, b"value"), 1, 1, 0))
    for size in range(1, len(whole)):
        for parse in (protobuf.range_answer, range_values):
            with pytest.raises(StoreError):
                protobuf.parsed(parse, whole[:size])
            with pytest.raises(StoreError):
                protobuf.parsed(parse, whole + whole[:size])


def test_requests() -> None:
    """Requests have etcd's field numbers."""
    assert b"\x0a\x01k" == protobuf.range_request(b"k")
    assert b"\x0a\x01k\x12\x01l" == protobuf.range_request(b"k", b"l")
    assert b"\x12\x05\x0a\x03\x0a\x01a\x12\x05\x0a\x03\x0a\x01b" == many.read_request([b"a", b"b"])
    compare = b"\x0a\x08\x10\x02\x1a\x01k\x30\xac\x02"

    assert compare + b"\x12\x08\x12\x06\x0a\x01k\x12\x01v" == protobuf.write_request(b"k", 300, b"v")

    compare = b"\x0a\x07\x10\x02\x1a\x01k\x30\x00"

    assert compare + b"\x12\x05\x1a\x03\x0a\x01k" == protobuf.write_request(b"k", 0, None)

    settings = Settings(machines=[], username="u", password="ü")

    assert (b"/etcdserverpb.Auth/Authenticate", b"\x0a\x01u\x12\x02\xc3\xbc") == login.login_request(settings)


@given(st.binary(max_size=200_000) | st.integers(0, 70_000).map(lambda size: b"x" * size))
def test_text_field(text: bytes) -> None:
    """A header field's text of any length is read back by another HPACK."""
    from hpack import Decoder

    block = b"\x00\x01n" + text_field(text)

    assert [(b"n", text)] == Decoder(max_header_list_size=1 << 20).decode(block, raw=True)


@given(st.binary(max_size=40), st.binary(max_size=40), st.booleans(), st.booleans())
def test_padding(content: bytes, padding: bytes, padded: bool, priority: bool) -> None:
    """Padding and priority are taken off a frame's content."""
    payload = (b"\0\0\0\0\x10" if priority else b"") + content
    if padded:
        payload = bytes((len(padding),)) + payload + padding

    assert content == unpadded(8 * padded | 0x20 * priority, payload)


def test_frame() -> None:
    """A frame is length, kind, flags, stream and payload."""
    assert b"\x00\x01\x02\x00\x01\x00\x00\x00\x03" + b"x" * 258 == frame(0, 1, 3, b"x" * 258)
