"""Arithmetic of cards: pure functions over maps (specification, gpu 2 to 6)."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resource_extend.codec import INT64_MAX, INT64_MIN
from resource_extend.errors import ResourceError
from resource_extend.gpu import cards

Cards = dict[str, int]

FAULTY = "count is less than or equal to zero: <product: %s, count: %d>: invalid gpu map"

products = st.one_of(st.sampled_from(["a", "b", "nvidia-3070", "卡"]), st.text(max_size=3))
counts = st.one_of(st.integers(-9, 9), st.integers(-(10**12), 10**12))
maps = st.dictionaries(products, counts, max_size=5)
valid_counts = st.one_of(st.integers(1, 9), st.integers(1, 10**12))
valid = st.dictionaries(st.text(min_size=1, max_size=3).filter(lambda text: text.strip()), valid_counts, max_size=5)

WHITE_SPACE = [
    0x9,
    0xA,
    0xB,
    0xC,
    0xD,
    0x20,
    0x85,
    0xA0,
    0x1680,
    *range(0x2000, 0x200B),
    0x2028,
    0x2029,
    0x202F,
    0x205F,
]
WHITE_SPACE.append(0x3000)


def refusal(call: Callable[[], object]) -> str:
    """Return the text of a call that a rule refuses."""
    with pytest.raises(ResourceError) as caught:
        call()
    return str(caught.value)


def zeroless(a: Cards) -> Cards:
    """Leave out zeros."""
    return {product: count for product, count in a.items() if count}


# --- validation (gpu 2)


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"a": 0}, FAULTY % ("a", 0)),
        ({"a": -1}, FAULTY % ("a", -1)),
        ({"": 1}, "product is empty: invalid gpu product"),
        ({" ": 0}, FAULTY % (" ", 0)),
        ({"b": 0, "a": -1}, FAULTY % ("a", -1)),
        ({"b": 0, " ": 1}, "product is empty: invalid gpu product"),
        ({"\U0001f600": 0, "\uffee": -5}, FAULTY % ("\uffee", -5)),
    ],
)
def test_full_validation(given: Cards, text: str) -> None:
    """A count of zero or less, else a blank product; the first fault in the order of products counts."""
    assert text == refusal(lambda: cards.validate(given))


@pytest.mark.parametrize("code", WHITE_SPACE, ids=hex)
def test_white_space(code: int) -> None:
    """A product of white space only is blank; with anything else in it, it is not."""
    blank = chr(code)

    assert "product is empty: invalid gpu product" == refusal(lambda: cards.validate({blank + blank: 1}))
    assert "product is empty: invalid gpu product" == refusal(lambda: cards.validate_products({blank: -1}))
    cards.validate({f"{blank}x{blank}": 1})


@pytest.mark.parametrize("code", [0x1C, 0x1D, 0x1E, 0x1F, 0x200B, 0xFEFF, 0x0, 0x180E, 0x7F], ids=hex)
def test_no_white_space(code: int) -> None:
    """Characters that only look like white space, or only to Python, make a product."""
    cards.validate({chr(code): 1})
    cards.validate_products({chr(code): 1})


@given(maps)
def test_validation_takes_positive_counts_only(given: Cards) -> None:
    """A map is valid exactly when all its counts are positive and no product is blank."""
    blank = any(all(ord(character) in WHITE_SPACE for character in product) for product in given)
    if blank or any(count <= 0 for count in given.values()):
        refusal(lambda: cards.validate(given))
    else:
        cards.validate(given)
    if blank:
        assert "product is empty: invalid gpu product" == refusal(lambda: cards.validate_products(given))
    else:
        cards.validate_products(given)


# --- arithmetic (gpu 3)


@given(maps, maps)
def test_add_and_subtract(a: Cards, b: Cards) -> None:
    """Sums and differences go product by product, without zeros; the arguments stay as they are."""
    before = (dict(a), dict(b))
    everything = set(a) | set(b)

    assert zeroless({product: a.get(product, 0) + b.get(product, 0) for product in everything}) == cards.add(a, b)
    assert zeroless({product: a.get(product, 0) - b.get(product, 0) for product in everything}) == cards.subtract(a, b)
    assert before == (a, b)


@given(maps, maps, maps)
def test_laws_of_addition(a: Cards, b: Cards, c: Cards) -> None:
    """The order of additions does not matter, and subtraction undoes addition."""
    assert cards.add(a, b) == cards.add(b, a)
    assert cards.add(cards.add(a, b), c) == cards.add(a, cards.add(b, c))
    assert zeroless(a) == cards.subtract(cards.add(a, b), b)
    assert zeroless(a) == cards.add(a, {})
    assert {} == cards.subtract(a, a)
    assert cards.total(a) + cards.total(b) == cards.total(cards.add(a, b))


def test_beyond_int64() -> None:
    """A result that leaves int64, of an addition, subtraction or total, is an error; its ends are fine."""
    text = "card count {} is out of range: invalid gpu map"

    assert text.format(INT64_MAX + 1) == refusal(lambda: cards.add({"a": INT64_MAX}, {"a": 1}))
    assert text.format(INT64_MIN - 1) == refusal(lambda: cards.subtract({"a": INT64_MIN}, {"a": 1}))
    assert text.format(INT64_MAX + 1) == refusal(lambda: cards.subtract({}, {"a": INT64_MIN}))
    assert text.format(INT64_MAX + 1) == refusal(lambda: cards.total({"a": INT64_MAX, "b": 1}))
    assert text.format(INT64_MAX + 1) == refusal(lambda: cards.differences({"a": INT64_MAX, "b": 1}, []))
    assert {"a": INT64_MAX} == cards.add({"a": INT64_MAX - 1}, {"a": 1})
    assert {"a": INT64_MIN} == cards.subtract({"a": -1}, {"a": INT64_MAX})
    assert -1 == cards.total({"a": INT64_MAX, "b": INT64_MIN})


# --- capacity and allocation (gpu 4 and 5)


def place(available: Cards, request: Cards, workloads: int) -> bool:
    """Allocate one workload after the other, as the specification words it."""
    left = dict(available)
    for _ in range(workloads):
        for product, count in request.items():
            if product not in left or left[product] < count:
                return False
            left[product] -= count
    return True


small = st.dictionaries(st.sampled_from("abc"), st.integers(-5, 20), max_size=3)
asked = st.dictionaries(st.sampled_from("abc"), st.integers(1, 6), max_size=3)


@given(small, asked, st.integers(1, 12))
def test_allocation_is_that_of_a_loop(available: Cards, request: Cards, workloads: int) -> None:
    """Workloads fit exactly when placing them one by one succeeds."""
    if place(available, request, workloads):
        cards.allocate(available, request, workloads)
    else:
        text = refusal(lambda: cards.allocate(available, request, workloads))
        assert "cannot alloc a plan, not enough resource" == text


@given(small, asked)
def test_capacity_is_what_can_be_allocated(available: Cards, request: Cards) -> None:
    """A node takes as many workloads as its capacity says, and not one more."""
    fitting = cards.capacity(available, request)
    if not request:
        assert 1_000_000 == fitting
        return
    if fitting > 0:
        cards.allocate(available, request, fitting)
        refusal(lambda: cards.allocate(available, request, fitting + 1))
    else:
        refusal(lambda: cards.allocate(available, request, 1))


@pytest.mark.parametrize(
    ("left", "count", "fitting"),
    [(0, 1, 0), (5, 2, 2), (-1, 2, 0), (-5, 2, -2), (2**62, 1, 1_000_000), (INT64_MIN, 1, INT64_MIN), (-6, 3, -2)],
)
def test_capacity_truncates_toward_zero(left: int, count: int, fitting: int) -> None:
    """The division is cut toward zero, and 1000000 is the most."""
    assert fitting == cards.capacity({"a": left}, {"a": count})


# --- realloc (gpu 5)


def test_realloc() -> None:
    """Products that fall to zero or below are gone, and the difference is that of what is then held."""
    merged, delta = cards.reallocate({"a": 1, "b": 2}, {"a": -5, "b": 1, "c": 1, "d": -1, "e": 0})

    assert {"b": 3, "c": 1} == merged
    assert {"a": -1, "b": 1, "c": 1} == delta


def test_realloc_validation() -> None:
    """The request's products are looked at first, its counts never; what is held is validated whole."""
    assert "product is empty: invalid gpu product" == refusal(lambda: cards.reallocate({"a": 0}, {" ": -1}))
    assert refusal(lambda: cards.reallocate({"a": 0}, {"b": 0})).startswith("count is less than or equal to zero: <pro")


@given(valid, maps)
def test_realloc_books_what_changes(held: Cards, request: Cards) -> None:
    """Held and difference make up what is held afterwards, which is valid."""
    request = {product: count for product, count in request.items() if product.strip()}
    merged, delta = cards.reallocate(held, request)

    assert merged == cards.add(held, delta)
    assert all(count > 0 for count in merged.values())
    assert all(count != 0 for count in delta.values())
    for product in {*held, *request}:
        assert max(held.get(product, 0) + request.get(product, 0), 0) == merged.get(product, 0)


# --- differences (gpu 6)


@pytest.mark.parametrize(
    ("usage", "workloads", "diffs"),
    [
        ({}, [], []),
        ({"a": 1}, [{"a": 1}], []),
        ({"a": 2}, [{"a": 1}, {"a": 1}], []),
        ({"a": 2}, [], ["node.usage != sum(workload.request): 2 != 0"]),
        ({}, [{"b": 1, "a": 1}], ["node.usage != sum(workload.request): 0 != 2", "a not in usage", "b not in usage"]),
        ({"a": 2}, [{"a": 1}, {"b": 1}], ["a: actual(1) != usage(2)", "b not in usage"]),
        ({"a": 1, "b": 1}, [{"a": 2}], ["a: actual(2) != usage(1)"]),
        ({"a": 0}, [{"a": 1}, {"a": -1}], []),
        ({"b": 1, "a": 1}, [{"a": 3}], ["node.usage != sum(workload.request): 2 != 3", "a: actual(3) != usage(1)"]),
    ],
)
def test_differences(usage: Cards, workloads: list[Cards], diffs: list[str]) -> None:
    """First the totals, then the products of the workloads' sum; one that is only in use shows through the totals."""
    assert diffs == cards.differences(usage, workloads)[0]


@given(maps, st.lists(maps, max_size=4))
def test_usage_of_the_sum_differs_in_nothing(usage: Cards, workloads: list[Cards]) -> None:
    """The sum that comes with the differences is the usage that has none."""
    summed = cards.differences(usage, workloads)[1]

    assert ([], summed) == cards.differences(summed, workloads)
