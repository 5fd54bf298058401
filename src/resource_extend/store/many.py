"""Reading many nodes with one request: the messages, and the values out of an answer of thousands of records."""

from resource_extend.store.protobuf import KEY, KEY_VALUE, VALUE, field, fields, record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    # How the bytes between key and value look: their number, a mask, and what they are under the mask.
    Middle = tuple[int, int, int]

# How a record of 128 to 16383 bytes begins, with a key of less than 128: tag and size, the key's tag and size.
_FRONT_MASK = 0xFF8080FF80
_FRONT = KEY_VALUE << 32 | 0x80 << 24 | KEY << 8
# No bytes are like this.
_UNKNOWN = (0, 0, 1)
# The tags behind a key in the order in which etcd writes them: create revision, mod revision, version, value.
_FIELDS = bytes((0x10, 0x18, 0x20, VALUE))


def read_request(keys: "Iterable[bytes]") -> bytes:
    """Return TxnRequest that reads the keys at one revision."""
    return b"".join([_read_operation(key) for key in keys])


def _read_operation(key: bytes) -> bytes:
    """Return the field of TxnRequest that reads a key. Written out, for it is needed 125 times in a call."""
    size = len(key)
    if size < 124:
        return bytes((0x12, size + 4, 0x0A, size + 2, 0x0A, size)) + key
    return field(2, field(1, field(1, key)))


class Records:
    """The values of nodes in a RangeResponse, which are taken out of its parts while further ones arrive.

    Attributes:
        wanted: keys of the nodes asked for; others are passed over.
        look: called with the values that have just arrived, if anybody cares.
        values: those found so far, by node.
    """

    __slots__ = ("_middle", "_rest", "look", "values", "wanted")

    def __init__(self) -> None:
        self.wanted: dict[bytes, str] = {}
        self.look: Callable[[list[bytes]], object] | None = None
        self.values: dict[str, bytes] = {}
        self._rest = b""
        self._middle: Middle = _UNKNOWN

    def part(self, data: bytes, whole: bool) -> None:
        """Take the records in the next part, as far as they are complete; the rest waits for the part after it.

        Args:
            data: the bytes of the part.
            whole: it is all of an answer; what came before was of another one, and counts for nothing.
        """
        if whole:
            self.values.clear()
            self._rest = b""
        data = self._rest + data
        self._rest = data[self.take(data, 0, len(data)) :]

    def finish(self) -> None:
        """See to it that nothing is left of the answer. ValueError if it was no RangeResponse."""
        if self._rest:
            raise ValueError("cut")

    def all_of_transaction(self, message: bytes) -> None:
        """Take all values of the answer to `read_request`. ValueError or IndexError if it is none."""
        for tag, at, stop in fields(message, 0, len(message)):
            if tag == 0x1A:
                for inner, begin, end in fields(message, at, stop):
                    if inner == 0x0A and self.take(message, begin, end) != end:
                        raise ValueError("cut")

    def take(self, data: bytes, at: int, end: int) -> int:
        """Take the records between two places, up to the first field that is cut or wrong; return its place.

        Most records of a prefix look alike between key and value: the same fields, with numbers of the same lengths.
        One comparison tells, and then no field has to be looked at. What looks otherwise is read field by field.
        """
        wanted, values = self.wanted, self.values
        arrived = []
        size, mask, pattern = self._middle
        number = int.from_bytes
        try:
            while at < end:
                if number(data[at : at + 5], "big") & _FRONT_MASK == _FRONT:
                    stop = at + 3 + data[at + 1] - 128 + (data[at + 2] << 7)
                    if stop > end:
                        break
                    key_end = at + 5 + data[at + 4]
                    start = key_end + size
                    if number(data[key_end:start], "big") & mask == pattern:
                        length = data[start - 1]
                        if data[start - 2] != VALUE:
                            length = (length << 7) + data[start - 2] - 128
                        if start + length == stop:
                            key = data[at + 5 : key_end]
                            if key in wanted:
                                values[wanted[key]] = value = data[start:stop]
                                arrived.append(value)
                            at = stop
                            continue
                tag, begin, stop = next(fields(data, at, end))
                if tag == KEY_VALUE:
                    key, _, value = record(data, begin, stop)
                    if key in wanted:
                        values[wanted[key]] = value
                        arrived.append(value)
                    size, mask, pattern = _middle(data, begin, stop)
                at = stop
        except (ValueError, IndexError):
            pass
        self._middle = size, mask, pattern
        if self.look is not None and arrived:
            self.look(arrived)
        return at


def _middle(data: bytes, begin: int, stop: int) -> "Middle":
    """Return how a record looks between key and value, `_UNKNOWN` when it is no usual one."""
    if stop - begin < 2 or data[begin] != KEY or data[begin + 1] > 127:
        return _UNKNOWN
    start = at = first = begin + 2 + data[begin + 1]
    bits = b""
    for tag in _FIELDS:
        if at >= stop or data[at] != tag:
            return _UNKNOWN
        first = at = at + 1
        while data[at] > 127:
            at += 1
        at += 1
        bits += b"\xff" + b"\x80" * (at - first)
    if at - first > 2:  # a value of 16 KiB or more
        return _UNKNOWN
    mask = int.from_bytes(bits, "big")
    return at - start, mask, int.from_bytes(data[start:at], "big") & mask
