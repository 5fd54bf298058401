"""A demand as it stands on the devices and mounts of one node, in the integers that the passes work with.

A device is one integer, `free << shift | rank`, rank being its place in the order of names: comparing two compares
(free, name), and comparing with `size << shift` tests whether a size fits (specification, storage 14.4, form 7).
"""

from resource_extend.storage.disk import covering

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from resource_extend.storage.demand import Demand
    from resource_extend.storage.disk import Disk

_SHIFT = 16


class Layout:
    """What of a node and a demand does not depend on free bytes and quotas.

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
    def __init__(self, devices: "Iterable[str]", disks: "Sequence[Disk]", demand: "Demand") -> None:
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
