"""What the scheduler is asked for: bindings by class, their quotas as one integer each (specification, storage 7.2).

All quotas of a binding, and all that is left of a disk, are kept in one integer with a lane for each dimension, and in
each lane a guard bit above the number. What is left has its guard bits set; subtracting a quota keeps them set exactly
when the quota fits in every lane. Dimensions that are asked for in fixed proportions need one lane only (14.4, form 3):
with demands `unit x weight` a disk holds as many weights as the smallest of its `left // unit`.
"""

from resource_extend.storage.binding import total_quota, total_size

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from resource_extend.storage.binding import Binding

    Numbers = Sequence[int]

# Sums of billions of int64 fit below the guard bit.
LANE = 96
_NUMBER = (1 << LANE - 1) - 1
UNBOUNDED = 1 << 200
"""More passes than any node can hold."""


class Demand:
    """A list of bindings to place: each class in the order in which the scheduler takes it (7.2).

    Attributes:
        normals: the normal bindings.
        monopoly: the monopoly bindings.
        unlimited: the unlimited bindings.
        mounts: the mount bindings that ask for a quota; the others ask for nothing of a node.
        coupled: imaginary normal workloads and monopoly ones eat the same quotas (7.5).
        monopoly_size: bytes of all monopoly bindings together.
        monopoly_total: their quotas together.
        monopoly_quota: the same as one integer.
        quotas: that of each normal and mount binding.
        lanes: for each lane the dimensions that share it, with their units.
        guard: the guard bits.
        overbooked: what is left of an overbooked disk: not even a quota of 0 fits (7.1).
    """

    # No __slots__: each name there costs a start as much as all its uses.
    def __init__(self, bindings: "Iterable[Binding]") -> None:
        self.normals: list[Binding] = []
        self.monopoly: list[Binding] = []
        self.unlimited: list[Binding] = []
        self.mounts: list[Binding] = []
        for binding in bindings:
            if not binding.scheduled():
                if binding.has_iops():
                    self.mounts.append(binding)
            elif "m" in binding.flags:
                self.monopoly.append(binding)
            elif binding.unlimited():
                self.unlimited.append(binding)
            else:
                self.normals.append(binding)
        self.normals.sort(key=_size)
        self.monopoly.sort(key=_size)
        self.monopoly_size = total_size(self.monopoly)
        self.monopoly_total = total = total_quota(self.monopoly)
        asking = self.normals + self.mounts
        vectors = [binding.quota for binding in asking]
        self.coupled = any(total) and any(map(any, vectors))
        self.lanes, packed = _packed([*vectors, total])
        self.monopoly_quota = packed.pop()
        self.quotas = dict(zip(asking, packed, strict=True))
        self.guard = 0
        for lane in range(len(self.lanes) or 1):
            self.guard += 1 << LANE * lane + LANE - 1
        self.overbooked = self.guard - (self.guard >> LANE - 1)

    def packed_left(self, left: "Numbers") -> int:
        """Return what is left of a disk."""
        if min(left) < 0:
            return self.overbooked
        packed = self.guard
        shift = 0
        for members in self.lanes:
            least = _NUMBER
            for dimension, unit in members:
                share = left[dimension] // unit
                if share < least:  # noqa: PLR1730 - min() is a call, for each disk of each node
                    least = share
            packed += least << shift
            shift += LANE
        return packed


def _size(binding: "Binding") -> int:
    return binding.size


def _packed(vectors: "list[Numbers]") -> "tuple[list[list[tuple[int, int]]], list[int]]":
    """Return the lanes that the vectors need, and each vector in one integer."""
    if not any(map(any, vectors)):
        return [], [0] * len(vectors)
    members: dict[tuple[int, ...], list[tuple[int, int]]] = {}
    for dimension in range(4):
        column = [vector[dimension] for vector in vectors]
        unit = 0
        for number in column:
            unit = _common_divisor(unit, number)
        if unit:
            members.setdefault(tuple([number // unit for number in column]), []).append((dimension, unit))
    packed = [0] * len(vectors)
    for lane, weights in enumerate(members):
        for index, weight in enumerate(weights):
            packed[index] += weight << LANE * lane
    return list(members.values()), packed


def _common_divisor(one: int, other: int) -> int:
    while other:
        one, other = other, one % other
    return one


def times(left: int, need: int, guard: int) -> int:
    """Return how often a need can be taken from what is left of a disk; never from an overbooked one."""
    rest = left - guard
    if rest < 0:
        return 0
    if need <= _NUMBER:
        return (rest & _NUMBER) // need if need else UNBOUNDED
    count = UNBOUNDED
    while need:
        if asked := need & _NUMBER:
            count = min(count, (rest & _NUMBER) // asked)
        need >>= LANE
        rest >>= LANE
    return count
