"""JSON <-> structs: strict, exact, the same for requests and stored records (specification, protocol 4 and 5).

`decode` is fast where the text is as everybody writes it and exact everywhere: msgspec does the work, and what msgspec
alone would refuse or let through wrongly (`2.0` and `1e3` as integers, null as a zero value, integers beyond 64 bits,
bad text inside what is ignored) is decided by the slow walk in `exact`.
"""

from msgspec import DecodeError, ValidationError
from msgspec.json import Encoder
from msgspec.json import decode as decode_json

from resource_extend.errors import Undecodable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeVar

    Shape = TypeVar("Shape")

INT64_MIN = -(2**63)
INT64_MAX = 2**63 - 1

# Every digit becomes 0, so that a run of 19 digits - the shortest integer that can leave int64 - shows as 19 zeros.
DIGITS_TO_ZERO = bytes.maketrans(b"123456789", b"000000000")
_INT64_DIGITS = b"0" * 19

# Keys that come from data are sorted, so that equal values are equal texts (specification, protocol 5).
encode = Encoder(order="deterministic").encode


def decode(data: bytes, shape: "type[Shape]") -> "Shape":
    """Decode one JSON value into `shape`, a Struct type.

    Top-level null is the same as an empty object. Unknown keys are ignored. Integers are exact and within int64.

    Raises:
        Undecodable: the text is not JSON, not UTF-8, or not of the shape; the text names the JSON path.
    """
    try:
        if is_text(data) and not holds_long_number(data):
            return decode_json(data, type=shape)
    except ValidationError:
        pass
    except UnicodeDecodeError as error:
        raise Undecodable(f"invalid UTF-8 at byte {error.start}") from None
    except DecodeError as error:
        raise Undecodable(str(error) if data.strip() else "the text is empty") from None
    except RecursionError:
        raise Undecodable("nested too deeply") from None
    from resource_extend.exact import decode_exactly

    return decode_exactly(data, shape)


def decode_at_once(data: bytes, shape: "type[Shape]") -> "Shape | None":
    """Decode what `decode` does not have to look at closely; None for any other text, be it right or wrong."""
    try:
        if is_text(data) and not holds_long_number(data):
            return decode_json(data, type=shape)
    except (DecodeError, UnicodeDecodeError, RecursionError):
        pass
    return None


def holds_long_number(data: bytes) -> bool:
    """Tell whether a text holds so many digits in a row that they may be an integer beyond int64."""
    # Not `in`, which makes and drops an exception before it looks for bytes.
    return data.translate(DIGITS_TO_ZERO).find(_INT64_DIGITS) >= 0


def is_text(data: bytes) -> bool:
    """Tell whether a text holds no lone surrogate, as far as can be told without parsing: then it is looked at closely.

    msgspec does not see the bytes of what it skips.

    Raises:
        UnicodeDecodeError: the text is not UTF-8.
    """
    if not data.isascii():
        str(data, "utf-8")
    return data.find(b"\\") < 0 or (b"\\ud" not in data and b"\\uD" not in data)
