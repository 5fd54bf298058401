"""The messages of etcd's API that the store sends and reads, as plain protobuf.

Only what most calls need: Range and Txn on one key. The rest is in `many` and `login`. Field numbers are those of
etcd's `rpc.proto` and `kv.proto`; they have not changed since etcd 3.0. A record is `(key, mod revision, value)`.
"""

from resource_extend.errors import StoreError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import TypeVar

    Answer = TypeVar("Answer")

RANGE = b"/etcdserverpb.KV/Range"
TXN = b"/etcdserverpb.KV/Txn"

# Tags: of a record in RangeResponse, and of a record's key, mod revision and value.
KEY_VALUE = 0x12
KEY, REVISION, VALUE = 0x0A, 0x18, 0x2A

Record = tuple[bytes, int, bytes]


def varint(number: int) -> bytes:
    """Return a number of 0 or more in base 128, low bits first."""
    if number < 128:
        return bytes((number,))
    encoded = bytearray()
    while number > 127:
        encoded.append(number & 127 | 128)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)


def field(number: int, content: bytes) -> bytes:
    """Return a field of length-delimited content: bytes, text or a message."""
    return varint(number << 3 | 2) + varint(len(content)) + content


def range_request(key: bytes, end: bytes = b"") -> bytes:
    """Return RangeRequest for one key, or for all keys from `key` up to but without `end`."""
    return field(1, key) + field(2, end) if end else field(1, key)


def write_request(key: bytes, revision: int, value: bytes | None) -> bytes:
    """Return TxnRequest: store the value, None to delete, if the key's mod revision is still `revision`."""
    compare = b"\x10\x02" + field(3, key) + b"\x30" + varint(revision)
    write = field(3, field(1, key)) if value is None else field(2, field(1, key) + field(2, value))
    return field(1, compare) + field(2, write)


def parsed(parse: "Callable[[bytes], Answer]", message: bytes) -> "Answer":
    """Return what a message says, read by one of the functions below. Raises StoreError when it is not etcd's."""
    try:
        return parse(message)
    except (ValueError, IndexError):
        raise StoreError("etcd: the answer is not one of etcd's API v3") from None


def state(records: list[Record]) -> tuple[int, bytes | None]:
    """Return the mod revision and the value of the one key that was read; revision 0 when it does not exist."""
    return records[0][1:] if records else (0, None)


def range_answer(message: bytes) -> list[Record]:
    """Return the records of RangeResponse. ValueError or IndexError if it is none."""
    return [record(message, at, stop) for tag, at, stop in fields(message, 0, len(message)) if tag == KEY_VALUE]


def write_answer(message: bytes) -> bool:
    """Return whether the value was stored. ValueError or IndexError if it is none."""
    succeeded = False
    for tag, number, _ in fields(message, 0, len(message)):
        if tag == 0x10:
            succeeded = number != 0
    return succeeded


def record(data: bytes, at: int, end: int) -> Record:
    """Return the record of the KeyValue between two places."""
    key = value = b""
    revision = 0
    for tag, begin, stop in fields(data, at, end):
        if tag == KEY:
            key = data[begin:stop]
        elif tag == VALUE:
            value = data[begin:stop]
        elif tag == REVISION:
            revision = begin
    return key, revision, value


def fields(data: bytes, at: int, end: int) -> "Iterator[tuple[int, int, int]]":
    """Yield each field: its tag, the place of its content or its number, and the place behind it."""
    while at < end:
        tag = data[at]
        number = data[at + 1]
        at += 2
        if tag > 127:
            tag, at = _number(data, at - 2)
            number = data[at]
            at += 1
        kind = tag & 7
        if number > 127 and kind in (0, 2):
            number, at = _number(data, at - 1)
        if kind == 0:
            yield tag, number, at
            continue
        if kind == 1:
            number, at = 8, at - 1
        elif kind == 5:
            number, at = 4, at - 1
        elif kind != 2:
            raise ValueError("no protobuf")
        stop = at + number
        if stop > end:
            raise ValueError("cut")
        yield tag, at, stop
        at = stop


def _number(data: bytes, at: int) -> tuple[int, int]:
    """Return the varint at a place and the place behind it."""
    number = data[at]
    at += 1
    if number < 128:
        return number, at
    number &= 127
    shift = 7
    while True:
        byte = data[at]
        at += 1
        number |= (byte & 127) << shift
        if byte < 128:
            return number, at
        shift += 7
        if shift > 63:
            raise ValueError("number too long")
