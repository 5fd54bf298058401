"""Size texts: `1.5T` to bytes, as the Eru scheduler reads them (specification, storage 1).

All units are powers of 1024, `KB` and `MB` too. Plain integers are exact; a number with a fraction, an exponent or a
unit goes through a double. The same parser reads the counts inside binding and disk texts.
"""

from resource_extend.codec import INT64_MAX, INT64_MIN
from resource_extend.errors import InputError

_FACTORS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40, "p": 1 << 50}
_ENDINGS = ("", "b", "ib")


def in_int64(number: int) -> bool:
    """Tell whether a number fits what records and answers hold (specification, storage 1.3)."""
    return INT64_MIN <= number <= INT64_MAX


def is_digits(text: str) -> bool:
    """Tell whether a text is one or more ASCII digits."""
    return text.isdigit() and text.isascii()


def plain_integer(text: str) -> int | None:
    """Return the value of a signed decimal integer without unit; None when it is none or lies outside int64."""
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not is_digits(digits):
        return None
    # Longer than any int64: not converted, because Python refuses to read thousands of digits.
    significant = digits.lstrip("0")
    if len(significant) > 19:
        return None
    number = int(significant or "0")
    if text[0] == "-":
        number = -number
    return number if in_int64(number) else None


def parse_size(text: str) -> int:
    """Return the bytes (or the plain count) that a size text means; the empty text is 0.

    Raises:
        InputError: `invalid size: '…'` or `invalid suffix: '…'` (specification, storage 1.2).
    """
    if not text:
        return 0
    # As nearly all texts are: with digits few enough for a double. The rest is code that hardly any call reads.
    digits = text.rstrip("bikmgtpBIKMGTP")
    unit = text[len(digits) :].lower()
    if len(digits) <= 15 and is_digits(digits) and unit[:1] in _FACTORS and unit[1:] in _ENDINGS:
        size = int(digits) * _FACTORS[unit[:1]]
        if size <= INT64_MAX:
            return size
    return _parse_any_form(text)


def size_of(value: int | str | None) -> int:
    """Return a size that a request gives as an integer, as a text, or as null."""
    if value is None:
        return 0
    return parse_size(value) if isinstance(value, str) else value


def truncated(number: int, divisor: int) -> int:
    """Return number / divisor rounded toward zero; the divisor is positive."""
    return number // divisor if number >= 0 else -(-number // divisor)


def _parse_any_form(text: str) -> int:
    """Return what `parse_size` does, for a text that may have a sign, a fraction, an exponent or a space."""
    if is_digits(text[1:] if text[0] in "+-" else text):
        number = plain_integer(text)
        if number is None:
            raise InputError(f"invalid size: '{text}'")
        return number
    rest = text[1:] if text[0] == "-" else text
    last = len(rest) - 1
    while last >= 0 and rest[last] not in "0123456789. ":
        last -= 1
    mantissa = rest[:last] if rest[last : last + 1] == " " else rest[: last + 1]
    if not _is_number(mantissa):
        raise InputError(f"invalid size: '{text}'")
    unit = rest[last + 1 :]
    if len(unit.encode()) > 3:
        raise InputError(f"invalid suffix: '{unit}'")
    unit = unit.lower()
    letter = "" if unit == "b" else unit[:1]
    if letter not in _FACTORS or unit[1:] not in _ENDINGS:
        raise InputError(f"invalid suffix: '{unit}'")
    product = float(mantissa) * _FACTORS[letter]
    # The comparison also stops infinity before it is converted.
    if product > 2.0**63 or not in_int64(size := int(-product if rest is not text else product)):
        raise InputError(f"invalid size: '{text}'")
    return size


def _is_number(text: str) -> bool:
    """Tell whether a text has the one form of a number that is read: `float` itself would take more."""
    mantissa, exponent_mark, exponent = text.removeprefix("+").replace("E", "e").partition("e")
    if exponent_mark and not is_digits(exponent[1:] if exponent[:1] in ("+", "-") else exponent):
        return False
    whole, _, fraction = mantissa.partition(".")
    return is_digits(whole + fraction)
