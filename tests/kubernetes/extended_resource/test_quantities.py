"""Counts as people write them, quantities as the server stores them."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubernetes.extended_resource.fake_objects import canonical
from resource_extend.errors import InputError, ResourceError
from resource_extend.kubernetes.extended_resource.quantities import COUNT_LIMIT, parse_count, read_quantity, whole


@pytest.mark.parametrize(("text", "count"), [("0", 0), ("2", 2), ("007", 7), (str(2**63 - 1), 2**63 - 1)])
def test_whole_numbers_are_counts(text: str, count: int) -> None:
    """Digits are a count, leading zeros or not, up to what 64 bits hold."""
    assert count == parse_count(text)


@pytest.mark.parametrize("text", ["", "-1", "+1", "1.5", "1.0", "1k", "1Ki", "1e3", " 1", "1 ", "0x1", "²", "٣", "one"])
def test_anything_else_is_no_count(text: str) -> None:
    """The refusal quotes the text and states the rule."""
    with pytest.raises(InputError, match="whole number") as caught:
        parse_count(text)

    assert repr(text) in str(caught.value)


@pytest.mark.parametrize("text", [str(2**63), "9" * 5000])
def test_a_count_has_a_limit(text: str) -> None:
    """More than 64 bits hold is refused, however long the text is."""
    with pytest.raises(InputError, match=str(COUNT_LIMIT)):
        parse_count(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2", Fraction(2)),
        ("1k", Fraction(1000)),
        ("1Ki", Fraction(1024)),
        ("1.5", Fraction(3, 2)),
        (".5", Fraction(1, 2)),
        ("2.", Fraction(2)),
        ("500m", Fraction(1, 2)),
        ("1e3", Fraction(1000)),
        ("1E3", Fraction(1000)),
        ("1E", Fraction(10**18)),
        ("1Ei", Fraction(2**60)),
        ("1n", Fraction(1, 10**9)),
        ("-2u", Fraction(-2, 10**6)),
        ("1e-1", Fraction(1, 10)),
    ],
)
def test_quantities_are_read_exactly(text: str, value: Fraction) -> None:
    """Every notation of Kubernetes has its exact value."""
    assert value == read_quantity(text)


@pytest.mark.parametrize("text", ["", "abc", "1kk", "1K", "1e", "e3", "1e999999999", "--1", "1 k", "1\n"])
def test_what_is_no_quantity_is_refused(text: str) -> None:
    """A text that Kubernetes would not store is an error, also one that would take all memory to compute."""
    with pytest.raises(ResourceError, match="not a Kubernetes quantity"):
        read_quantity(text)


@pytest.mark.parametrize(("text", "count"), [(None, 0), ("0", 0), ("1500m", 2), ("1k", 1000)])
def test_whole_things_round_up(text: str | None, count: int) -> None:
    """The scheduler counts a part of a thing as a whole one, and what is not there as nothing."""
    assert count == whole(text)


@given(st.integers(0, COUNT_LIMIT))
def test_a_count_is_read_back_from_the_servers_notation(count: int) -> None:
    """1000 is stored as 1k; the value is the same."""
    assert count == whole(canonical(str(count))) == parse_count(str(count))
