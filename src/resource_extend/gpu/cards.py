"""Counts of cards by product: arithmetic, validation, capacity (specification, gpu 2 to 6).

A map is `{product: cards}`; cards are int64. Everything here is a pure function; arguments are never changed.
"""

from resource_extend.codec import INT64_MAX, INT64_MIN
from resource_extend.errors import ResourceError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    Cards = Mapping[str, int]

DEPLOY_MAX = 1_000_000
"""What a node can take of workloads that ask for no cards."""

# White space by the Unicode property, which Python's own str.strip() extends by U+001C to U+001F.
_WHITE_SPACE = (
    "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000"
)


def validate(cards: "Cards") -> None:
    """Refuse counts of 0 or less and blank products; the first fault in product order counts (gpu 2)."""
    for product in sorted(cards):
        if cards[product] <= 0:
            raise ResourceError(
                f"count is less than or equal to zero: <product: {product}, count: {cards[product]}>: invalid gpu map"
            )
        _validate_product(product)


def validate_products(cards: "Cards") -> None:
    """Refuse blank products only."""
    for product in sorted(cards):
        _validate_product(product)


def _validate_product(product: str) -> None:
    if not product.strip(_WHITE_SPACE):
        raise ResourceError("product is empty: invalid gpu product")


def add(a: "Cards", b: "Cards", sign: int = 1) -> dict[str, int]:
    """Return a + b, or a - b with sign -1, product by product; exact zeros are dropped, negatives kept (gpu 3)."""
    result = dict(a)
    for product, count in b.items():
        result[product] = _in_range(result.get(product, 0) + sign * count)
    return {product: count for product, count in result.items() if count}


def subtract(a: "Cards", b: "Cards") -> dict[str, int]:
    """Return a - b, see `add`."""
    return add(a, b, -1)


def total(cards: "Cards") -> int:
    """Return the number of all cards."""
    return _in_range(sum(cards.values()))


def _in_range(count: int) -> int:
    if not INT64_MIN <= count <= INT64_MAX:
        raise ResourceError(f"card count {count} is out of range: invalid gpu map")
    return count


def capacity(available: "Cards", request: "Cards") -> int:
    """Return how many workloads with a validated request fit into the available cards (gpu 4)."""
    fitting = DEPLOY_MAX
    for product, count in request.items():
        left = available.get(product, 0)
        # Truncated toward zero, where // would floor.
        fitting = min(fitting, left // count if left >= 0 else -(-left // count))
    return fitting


def allocate(available: "Cards", request: "Cards", workloads: int) -> None:
    """Check that so many workloads with one request fit into the available cards, else raise (gpu 5)."""
    for product, count in request.items():
        if workloads * count > available.get(product, 0):
            raise ResourceError("cannot alloc a plan, not enough resource")


def reallocate(held: "Cards", request: "Cards") -> tuple[dict[str, int], dict[str, int]]:
    """Return what a workload holds after a change, and the difference to what it held (gpu 5).

    The request may hold negative counts; a product that falls to 0 or below is gone.
    """
    validate_products(request)
    validate(held)
    merged = {product: count for product, count in add(request, held).items() if count > 0}
    return merged, subtract(merged, held)


def differences(usage: "Cards", workloads: "Sequence[Cards]") -> tuple[list[str], dict[str, int]]:
    """Return how the usage differs from the workloads' sum, as texts, and that sum (gpu 6)."""
    summed: dict[str, int] = {}
    for cards in workloads:
        summed = add(summed, cards)
    diffs = []
    if total(summed) != total(usage):
        diffs.append(f"node.usage != sum(workload.request): {total(usage)} != {total(summed)}")
    for product in sorted(summed):
        if product not in usage:
            diffs.append(f"{product} not in usage")
        elif usage[product] != summed[product]:
            diffs.append(f"{product}: actual({summed[product]}) != usage({usage[product]})")
    return diffs, summed
