"""Size texts (specification, storage 1)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resource_extend.codec import INT64_MAX, INT64_MIN
from resource_extend.errors import InputError
from resource_extend.units import parse_size, plain_integer, size_of, truncated

GIB = 1 << 30


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", 0),
        ("1024", 1024),
        ("-1", -1),
        ("+5", 5),
        ("1G", GIB),
        ("1g", GIB),
        ("1GB", GIB),
        ("1GiB", GIB),
        ("1 GiB", GIB),
        ("1.5G", 1610612736),
        (".5G", 536870912),
        ("5.", 5),
        ("100GiB", 107374182400),
        ("1T", 1 << 40),
        ("-1T", -(1 << 40)),
        ("1b", 1),
        ("1e3", 1000),
        ("1e3K", 1024000),
        ("9007199254740993", 9007199254740993),
        ("9007199254740993b", 9007199254740992),
        ("1TiB", 1 << 40),
        ("1t", 1 << 40),
        ("1 T", 1 << 40),
        ("1K", 1024),
        ("1kb", 1024),
        ("1KB", 1024),
        ("10B", 10),
        ("1p", 1 << 50),
        ("0.1K", 102),
        ("1.001kB", 1025),
        ("1.G", GIB),
        ("-0", 0),
        ("-10G", -10 * GIB),
        ("-+1G", -GIB),
        ("-1.9", -1),
        ("1E2", 100),
        ("1e-1K", 102),
        ("0000000000000000000000000000001", 1),
        ("9223372036854775807", INT64_MAX),
        ("-9223372036854775808", INT64_MIN),
        ("-8192P", INT64_MIN),
        ("-9223372036854775808b", INT64_MIN),
    ],
)
def test_size(text: str, expected: int) -> None:
    """A size text means these bytes; all units are powers of 1024."""
    assert expected == parse_size(text)


@pytest.mark.parametrize(
    "text",
    [
        "hhhh",
        "-",
        "+",
        " ",
        "1G ",
        "1  G",
        "--1G",
        "- 1G",
        "1,5G",
        "1_000",
        "1_000K",
        "0x10",
        "0x10b",
        "9000000P",
        "8192P",
        "9223372036854775808",
        "-9223372036854775809",
        "9223372036854775807b",
        "1" * 5000,
        "1e999",
        "1e999K",
        "-1e999K",
        "inf",
        "nan",
        "1.2.3",
        ".",
        ".e1",
        "1e1.5K",
        "\u0661",  # a digit, but not an ASCII one
        "K",
    ],
)
def test_no_size(text: str) -> None:
    """What has no number, another form of number, or leaves int64 is refused with the whole text."""
    with pytest.raises(InputError) as caught:
        parse_size(text)
    assert f"invalid size: '{text}'" == str(caught.value)


@pytest.mark.parametrize(
    ("text", "suffix"),
    [
        ("1x", "x"),
        ("1E", "e"),
        ("1Ti", "ti"),
        ("1Gx", "gx"),
        ("1GiBB", "GiBB"),
        ("30MK", "mk"),
        ("1Z", "z"),
        ("1 GIGA", "GIGA"),
        ("1é", "é"),
        ("1ÉÉ", "ÉÉ"),
        ("1\nG", "\ng"),
        ("1e+", "e+"),
        ("1٣G", "٣g"),
    ],
)
def test_no_unit(text: str, suffix: str) -> None:
    """An unknown unit is named in lower case, one of more than 3 bytes as it is written."""
    with pytest.raises(InputError) as caught:
        parse_size(text)
    assert f"invalid suffix: '{suffix}'" == str(caught.value)


@given(st.integers(INT64_MIN, INT64_MAX))
def test_plain_integers_are_exact(number: int) -> None:
    """Every int64 written as a plain integer reads as itself, with a plus sign too."""
    assert number == parse_size(str(number)) == plain_integer(f"{number:+d}")


@given(st.integers(0, 2**53), st.sampled_from(["", "b", "k", "m", "g", "t", "p"]))
def test_units_multiply_exactly(number: int, unit: str) -> None:
    """A number below 2^53 with a unit is the exact product, or out of range."""
    product = number << 10 * ["", "k", "m", "g", "t", "p"].index(unit.replace("b", ""))
    if product <= INT64_MAX:
        assert product == parse_size(f"{number} {unit.upper()}".rstrip(" ") if unit else str(number))
    else:
        with pytest.raises(InputError, match="invalid size"):
            parse_size(f"{number}{unit}")


@given(st.text(st.sampled_from("0123456789.+-eE kKmMgGtTpPbBiIx_,"), max_size=8))
def test_any_text_is_a_size_or_a_named_fault(text: str) -> None:
    """Whatever the text, there is an int64 or one of the two errors, never anything else."""
    fault = ""
    size = 0
    try:
        size = parse_size(text)
    except InputError as error:
        fault = str(error)
    assert fault == "" or fault.startswith(("invalid size: '", "invalid suffix: '"))
    assert INT64_MIN <= size <= INT64_MAX


@pytest.mark.parametrize(("value", "expected"), [(None, 0), (5, 5), (-5, -5), ("5", 5), ("1K", 1024), ("", 0)])
def test_sizes_of_requests(value: int | str | None, expected: int) -> None:
    """A request gives a size as an integer, a text or null."""
    assert expected == size_of(value)


@pytest.mark.parametrize(("number", "divisor", "expected"), [(7, 2, 3), (-7, 2, -3), (-8, 2, -4), (0, 5, 0)])
def test_truncated(number: int, divisor: int, expected: int) -> None:
    """Quotients are rounded toward zero, also negative ones."""
    assert expected == truncated(number, divisor)
