"""What the scheduler is asked for, alone and on the devices of one node (specification, storage 7.2).

All quotas of a binding, and all that is left of a disk, are kept in one integer with a lane for each dimension, and in
each lane a guard bit above the number. What is left has its guard bits set; subtracting a quota keeps them set exactly
when the quota fits in every lane. Dimensions that are asked for in fixed proportions need one lane only (14.4, form 3):
with demands `unit x weight` a disk holds as many weights as the smallest of its `left // unit`.

A device is one integer, `free << shift | rank`, rank being its place in the order of names: comparing two compares
(free, name), and comparing with `size << shift` tests whether a size fits (14.4, form 7).
"""

from resource_extend.storage.binding import total_quota, total_size
from resource_extend.storage.disk import covering

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from resource_extend.storage.binding import Binding
    from resource_extend.storage.disk import Disk

    Numbers = Sequence[int]

# Sums of billions of int64 fit below the guard bit.
LANE = 96
_NUMBER = (1 << LANE - 1) - 1
_SHIFT = 16
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


class Layout:
    """A demand on the devices and mounts of a node, without what depends on free bytes and quotas.

    Attributes:
        demand: the demand.
        names: device names in order; a device's rank is its index.
        ranks: the same the other way round.
        shift: bits below the free bytes of a device's integer.
        mask: those bits.
        disk_of: the covering disk's index by rank. Where there is none, that of an imaginary last one without anything.
        normals: (size << shift, quota) of the normal bindings, in order.
        pass_size: the sum of those sizes.
        pass_quota: the sum of those quotas.
        smallest: the smallest of those sizes.
        mounts: (disk, quota) of the mount bindings that ask for one, in order.
        mount_totals: the sum of those quotas by disk.
        monopoly_size: size << shift of all monopoly bindings together.
        monopoly_quota: their quota.
    """

    # No __slots__: each name there costs a start as much as all its uses.
    def __init__(self, devices: "Iterable[str]", disks: "Sequence[Disk]", demand: Demand) -> None:
        self.demand = demand
        self.names = names = sorted(devices)
        self.ranks = dict(zip(names, range(len(names)), strict=True))
        self.shift = shift = max(_SHIFT, len(names).bit_length())
        self.mask = (1 << shift) - 1
        nowhere = len(disks)
        self.disk_of = [covering(disks, name) % (nowhere + 1) for name in names]
        self.normals: list[tuple[int, int]] = []
        self.pass_size = self.pass_quota = 0
        for binding in demand.normals:
            size, quota = binding.size << shift, demand.quotas[binding]
            self.normals.append((size, quota))
            self.pass_size += size
            self.pass_quota += quota
        self.smallest = self.normals[0][0] if self.normals else 0
        self.mounts: list[tuple[int, int]] = []
        self.mount_totals: dict[int, int] = {}
        for binding in demand.mounts:
            disk, quota = covering(disks, binding.source) % (nowhere + 1), demand.quotas[binding]
            self.mounts.append((disk, quota))
            self.mount_totals[disk] = self.mount_totals.get(disk, 0) + quota
        self.monopoly_size = demand.monopoly_size << shift
        self.monopoly_quota = demand.monopoly_quota

    def keys(self, names: "Iterable[str]", free: dict[str, int]) -> list[int]:
        """Return the integers of devices with that many bytes free, in the order of their names."""
        return [free[name] << self.shift | self.ranks[name] for name in names]

    def devices(self, sizes: dict[str, int]) -> list[tuple[int, str]]:
        """Return (integer, name) of devices with that many bytes, ascending."""
        return sorted([(size << self.shift | self.ranks[name], name) for name, size in sizes.items()])


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
