"""Placing a changed workload: what it keeps stays where it is (specification, storage 9.2 to 9.4).

Every failure here is a shortage to the caller, whatever its cause.
"""

from resource_extend.storage.binding import Binding, needs_scheduling
from resource_extend.storage.demand import Demand
from resource_extend.storage.deploy import only_device
from resource_extend.storage.disk import Disk, covering, summed
from resource_extend.storage.schedule import place, shares, state_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from resource_extend.storage.disk import Quota
    from resource_extend.storage.resource import Record
    from resource_extend.storage.workload_resource import Plan


class Unplaceable(Exception):  # noqa: N818 - says what is the matter
    """The node cannot hold the changed workload."""


def replan(
    record: "Record", merged: list[Binding], origin: list[Binding], origin_plan: "Plan"
) -> "tuple[Plan, list[Disk]]":
    """Return where the bindings of a changed workload lie, and its disk rows by device.

    Args:
        record: the node, which the origin is booked on.
        merged: the request list after the change, sorted and validated.
        origin: the request list before it.
        origin_plan: the plan before it.

    Raises:
        Unplaceable: there is no room.
        ResourceError: an entry of the origin's plan has no device, or several.
    """
    if not needs_scheduling(merged):
        return {}, []
    placing = _Placing(record, origin_plan)
    placing.give_back(origin)
    aside = placing.place_affine(Demand(merged))
    if aside:
        slots = place(placing.state, aside, 1)
        if not slots:
            raise Unplaceable
        _, plan, more = slots[0]
        placing.plan.update(plan)
        rows = [*placing.entries, *[(row, row.quota()) for row in more]]
    else:
        rows = placing.entries
    return placing.plan, sorted(summed(rows), key=_device)


def _device(disk: Disk) -> str:
    return disk.device


class _Placing:
    """A node's state while one workload is given back and placed anew."""

    def __init__(self, record: "Record", origin_plan: "Plan") -> None:
        self.state = state_of(record)
        _, _, self.free, self.disks, self.left = self.state
        self.old = {binding: only_device(devices) for binding, devices in origin_plan.items()}
        self.plan: Plan = {}
        self.entries: list[tuple[Disk, Quota]] = []

    def give_back(self, origin: list[Binding]) -> None:
        """Return the origin's bytes and quotas to the node (9.2). Used devices stay used, whatever they have left."""
        for binding in origin:
            if binding.has_iops() and not binding.scheduled():
                self._give(binding.source, binding.quota)
        for binding, (device, size) in self.old.items():
            if device not in self.free:
                raise Unplaceable
            self.free[device] += size
            if binding.has_iops():
                self._give(device, binding.quota)

    def place_affine(self, demand: Demand) -> list[Binding]:
        """Place what has a device already; return the bindings that have none yet (9.3)."""
        homes = {binding.identity(): device for binding, (device, _) in self.old.items()}
        for binding in demand.mounts:
            self._take(binding.source, binding.quota)
        aside = [binding for binding in demand.normals if not self._stays(binding, homes)]
        aside += self._monopoly_aside(demand, homes)
        return aside + [binding for binding in demand.unlimited if not self._stays(binding, homes)]

    def _stays(self, binding: Binding, homes: dict[tuple[str, str, str], str]) -> bool:
        """Place a binding on the device it has; False if it has none."""
        device = homes.get(binding.identity())
        if device is None:
            return False
        if self.free[device] < binding.size:
            raise Unplaceable
        self.free[device] -= binding.size
        self._take(device, binding.quota)
        self.plan[binding] = {device: binding.size}
        return True

    def _monopoly_aside(self, demand: Demand, homes: dict[tuple[str, str, str], str]) -> list[Binding]:
        """Place all monopoly bindings on the device of the first that has one; return them all if none has."""
        bindings, size = demand.monopoly, demand.monopoly_size
        affine = [homes[binding.identity()] for binding in bindings if binding.identity() in homes]
        if not affine:
            return bindings
        device = affine[0]
        held = sum([size for binding, (_, size) in self.old.items() if binding.monopoly()])
        free = self.free[device]
        if held < size or free < size:
            raise Unplaceable
        self._take(device, demand.monopoly_total)
        self.plan.update(shares(bindings, device, free))
        self.free[device] = 0
        return []

    def _give(self, path: str, quota: "Quota") -> None:
        disk = covering(self.disks, path)
        if disk < 0:
            raise Unplaceable
        self.left[disk] = [one + other for one, other in zip(self.left[disk], quota, strict=True)]

    def _take(self, path: str, quota: "Quota") -> None:
        """Take a quota, which must fit; without a disk that covers the path only an empty one does."""
        disk = covering(self.disks, path)
        left = [0, 0, 0, 0] if disk < 0 else self.left[disk]
        rest = [one - other for one, other in zip(left, quota, strict=True)]
        if min(rest) < 0:
            raise Unplaceable
        if disk >= 0:
            self.left[disk] = rest
        if any(quota):
            self.entries.append((self.disks[disk], quota))
