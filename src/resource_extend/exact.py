"""The slow, exact way to decode JSON: takes what is right though unusual, and words the error for what is wrong.

Loaded only when msgspec has refused a text, or when a number in it is long enough to leave int64 (specification,
protocol 4.3).
"""

from msgspec import UNSET, DecodeError, Struct
from msgspec.json import Decoder

from resource_extend.codec import DIGITS_TO_ZERO, INT64_MAX, INT64_MIN
from resource_extend.errors import Undecodable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeVar

    Shape = TypeVar("Shape")

_UNION = type(int | str)
_NONE = type(None)
_DIGITS_TOO_MANY = b"0" * 1000


class _Fraction:
    """A JSON number with a fraction, or an integral one far outside int64."""

    __slots__ = ("integral",)

    def __init__(self, integral: bool) -> None:
        self.integral = integral


def decode_exactly(data: bytes, shape: "type[Shape]") -> "Shape":
    """Decode UTF-8 JSON into a Struct type. See `codec.decode`."""
    if _DIGITS_TOO_MANY in data.translate(DIGITS_TO_ZERO):
        data = _with_short_integers(data)
    try:
        value = Decoder(float_hook=_integral).decode(data)
        result: Shape = _shaped({} if value is None else value, shape, "$")
    except DecodeError as error:
        raise Undecodable(str(error)) from None
    except RecursionError:
        raise Undecodable("nested too deeply") from None
    return result


def _with_short_integers(data: bytes) -> bytes:
    """Write integers of very many digits as another number beyond int64: msgspec refuses them, even where ignored."""
    import re

    def shorter(token: "re.Match[bytes]") -> bytes:
        digits = token[0].removeprefix(b"-")
        return b"1e99" if len(digits) > 99 and digits.isdigit() and digits[0] != ord("0") else token[0]

    return re.sub(rb'"[^"\\]*(?:\\.[^"\\]*)*"?|[-+.0-9Ee]+', shorter, data, flags=re.DOTALL)


def _integral(literal: str) -> "int | _Fraction":
    """Return the value of a number literal with a fraction or an exponent, as an int if it is a whole one."""
    mantissa, _, exponent = literal.replace("E", "e").partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = whole + fraction
    significant = digits.strip("-0")
    if not significant:
        return 0
    # Without its trailing zeros the number is significant x 10^scale.
    power = exponent.lstrip("+-").lstrip("0")
    if len(power) > 18:  # beyond the length of any text; Python refuses to read thousands of digits
        return _Fraction(integral=not exponent.startswith("-"))
    scale = (-1 if exponent.startswith("-") else 1) * int(power or "0")
    scale += len(digits) - len(digits.rstrip("0")) - len(fraction)
    if scale < 0:
        return _Fraction(integral=False)
    if scale + len(significant) > 19:  # 10^19 is beyond int64: no need to compute it
        return _Fraction(integral=True)
    value: int = int(significant) * 10**scale
    return -value if whole.startswith("-") else value


def _shaped(value: "Any", shape: "Any", path: str) -> "Any":
    """Return `value` as an instance of `shape`, or say where it is not one."""
    kinds = _kinds(shape)
    if value is None:
        if _NONE in kinds:
            return None
        return _zero(kinds[0])
    for kind in kinds:
        origin = getattr(kind, "__origin__", kind)
        if origin is dict and isinstance(value, dict):
            return {key: _shaped(item, kind.__args__[1], f"{path}.{key}") for key, item in value.items()}
        if origin is list and isinstance(value, list):
            return [_element(item, kind.__args__[0], f"{path}[{index}]") for index, item in enumerate(value)]
        if kind is int and _is_integer(value):
            return _in_range(value, path)
        if (kind is str and isinstance(value, str)) or (kind is bool and isinstance(value, bool)):
            return value
        if isinstance(kind, type) and issubclass(kind, Struct) and isinstance(value, dict):
            return _struct(value, kind, path)
    raise Undecodable(f"expected {_kind_name(shape)}, got {_value_name(value)} at {path}")


def _kinds(shape: "Any") -> "tuple[Any, ...]":
    """Return the members of a union, or the one type."""
    members: tuple[Any, ...] = getattr(shape, "__args__", ()) if type(shape) is _UNION else (shape,)
    return members


def _struct(value: "dict[str, Any]", shape: "Any", path: str) -> "Any":
    known = {}
    annotations = {key: kind for base in reversed(shape.__mro__) for key, kind in _annotations(base).items()}
    for field, key in zip(shape.__struct_fields__, shape.__struct_encode_fields__, strict=True):
        item = value.get(key, UNSET)
        if item is not UNSET:
            known[field] = _shaped(item, annotations[field], f"{path}.{key}")
    return shape(**known)


def _annotations(base: type) -> "dict[str, Any]":
    """Return the annotations that a class itself defines; newer interpreters keep them behind a function."""
    own = base.__dict__.get("__annotations__")
    if own is not None:
        return dict(own)
    return dict(getattr(base, "__annotations__", {})) if "__annotate_func__" in base.__dict__ else {}


def _element(value: "Any", shape: "Any", path: str) -> "Any":
    """Decode an element of an array, where null is a wrong type unless the shape names it."""
    if value is None and _NONE not in _kinds(shape):
        raise Undecodable(f"expected {_kind_name(shape)}, got null at {path}")
    return _shaped(value, shape, path)


def _is_integer(value: "Any") -> bool:
    return type(value) is int or (isinstance(value, _Fraction) and value.integral)


def _in_range(value: "Any", path: str) -> int:
    if isinstance(value, _Fraction) or not INT64_MIN <= value <= INT64_MAX:
        raise Undecodable(f"integer out of range at {path}")
    return int(value)


def _zero(kind: "Any") -> "Any":
    """Return what null stands for: 0, "", false, an empty list, map or struct."""
    return getattr(kind, "__origin__", kind)()


def _kind_name(shape: "Any") -> str:
    first = _kinds(shape)[0]
    origin = getattr(first, "__origin__", first)
    return {int: "int", str: "str", bool: "bool", list: "array"}.get(origin, "object")


def _value_name(value: "Any") -> str:
    if value is None:
        return "null"
    return {bool: "bool", int: "int", str: "str", list: "array", dict: "object"}.get(type(value), "float")
