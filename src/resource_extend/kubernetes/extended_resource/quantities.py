"""Counts as people write them and quantities as the API server stores them."""

import re
from fractions import Fraction
from math import ceil

from resource_extend.errors import InputError, ResourceError

COUNT_LIMIT = 2**63 - 1
EXPONENT_LIMIT = 100

_COUNT = re.compile(r"[0-9]+")
_QUANTITY = re.compile(
    r"(?P<sign>[+-]?)(?P<number>[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE](?P<exponent>[+-]?[0-9]+)|(?P<suffix>[numkMGTPE]|[KMGTPE]i)?)"
)
_SUFFIXES = {
    "": Fraction(1),
    **{letter: Fraction(1, 1000**power) for power, letter in enumerate("mun", 1)},
    **{letter: Fraction(1000**power) for power, letter in enumerate("kMGTPE", 1)},
    **{f"{letter}i": Fraction(1024**power) for power, letter in enumerate("KMGTPE", 1)},
}


def parse_count(text: str) -> int:
    """Read a count that a person wrote: a whole number of things, 0 or more.

    Raises:
        InputError: anything else, with the rule in its text. The API server would take `1.5` or `2k`; a pod can only
            ask for whole things, and a suffix on a count of things is more often a slip than a wish.
    """
    if not _COUNT.fullmatch(text):
        raise InputError(f"{text!r} is not a count: an extended resource is a whole number, 0 or more, digits only")
    digits = text.lstrip("0") or "0"
    if len(digits) > len(str(COUNT_LIMIT)) or int(digits) > COUNT_LIMIT:
        raise InputError(f"{text!r} is too large for a count: the largest is {COUNT_LIMIT}")
    return int(digits)


def read_quantity(text: str) -> Fraction:
    """Read a quantity as stored by the API server (`2`, `1k`, `500m`, `16Gi`, `1e3`), exactly.

    Raises:
        ResourceError: the text is no quantity.
    """
    match = _QUANTITY.fullmatch(text)
    if not match or abs(int(match["exponent"] or 0)) > EXPONENT_LIMIT:
        raise ResourceError(f"{text!r} is not a Kubernetes quantity")
    scale = Fraction(10) ** int(match["exponent"]) if match["exponent"] else _SUFFIXES[match["suffix"] or ""]
    value = Fraction(match["number"]) * scale
    return -value if match["sign"] == "-" else value


def whole(quantity: str | None) -> int:
    """The whole things in a stored quantity, as the scheduler counts them: rounded up, absent is 0.

    Raises:
        ResourceError: the text is no quantity.
    """
    return 0 if quantity is None else ceil(read_quantity(quantity))
