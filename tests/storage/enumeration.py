"""The scheduler as plain enumeration, to be read beside the specification, storage 7: the yardstick of the fast one.

Every pass is made, every monopoly device is tried, every promotion evaluates from scratch. Nothing is shared with the
shipped scheduler but the shapes of bindings, disks and the node's state.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from resource_extend.storage.binding import Binding
from resource_extend.storage.disk import Disk

Quota = tuple[int, int, int, int]
State = tuple[list[str], list[str], dict[str, int], list[Disk], list[Sequence[int]]]
Plan = dict[Binding, dict[str, int]]
NONE = (0, 0, 0, 0)


@dataclasses.dataclass
class Node:
    """7.1: fresh copies of devices and disks."""

    used: list[str]
    unused: list[str]
    free: dict[str, int]
    disks: list[Disk]
    left: list[list[int]]

    @classmethod
    def of(cls, state: State) -> Node:
        """Copy a state."""
        used, unused, free, disks, left = state
        return cls(list(used), list(unused), dict(free), disks, [list(numbers) for numbers in left])

    def covering(self, path: str) -> int | None:
        """3.4: the greatest depth wins, the later one among equals."""
        path = path.removesuffix("/")
        found: list[tuple[int, int, int]] = []
        for index, disk in enumerate(self.disks):
            for mount in disk.mounts:
                base = mount.removesuffix("/")
                if path == base or path.startswith(base + "/"):
                    found.append((base.count("/") + 1, len(found), index))
        return max(found)[2] if found else None

    def fits(self, path: str, quota: Quota) -> bool:
        """7.1: no covering disk is a disk of zeros."""
        index = self.covering(path)
        left = NONE if index is None else self.left[index]
        return all(have >= want for have, want in zip(left, quota, strict=True))

    def take(self, path: str, quota: Quota) -> None:
        """Subtract a quota that fits."""
        index = self.covering(path)
        if index is not None:
            self.left[index] = [have - want for have, want in zip(self.left[index], quota, strict=True)]

    def entry(self, path: str, quota: Quota) -> tuple[Disk, Quota]:
        """7.3, 3: the disk's device and mounts, the binding's quotas."""
        index = self.covering(path)
        assert index is not None
        return self.disks[index], quota


@dataclasses.dataclass
class Slot:
    """7.8: one slot's plan and disk entries."""

    plan: Plan
    entries: list[tuple[Disk, Quota]]

    def rows(self) -> list[Disk]:
        """Entries on the same disk are summed into the first."""
        rows: list[Disk] = []
        for disk, quota in self.entries:
            for row in rows:
                if row.device == disk.device:
                    row.read_iops += quota[0]
                    row.write_iops += quota[1]
                    row.read_bps += quota[2]
                    row.write_bps += quota[3]
                    break
            else:
                rows.append(Disk(disk.device, list(disk.mounts), *quota))
        return rows


def has_iops(binding: Binding) -> bool:
    """2.2."""
    return any(number > 0 for number in binding.quota)


def scheduled(binding: Binding) -> bool:
    """2.2."""
    return binding.source == "" or binding.source.endswith("AUTO")


def classified(bindings: list[Binding]) -> tuple[list[Binding], list[Binding], list[Binding], list[Binding]]:
    """7.2: normal, monopoly, unlimited, mount."""
    normal, monopoly, unlimited, mount = [], [], [], []
    for binding in bindings:
        if scheduled(binding) and "m" in binding.flags:
            monopoly.append(binding)
        elif scheduled(binding) and binding.size == 0 and binding.quota == NONE:
            unlimited.append(binding)
        elif scheduled(binding):
            normal.append(binding)
        else:
            mount.append(binding)
    return sorted(normal, key=lambda b: b.size), sorted(monopoly, key=lambda b: b.size), unlimited, mount


def one_pass(node: Node, normal: list[Binding], mount: list[Binding]) -> Slot | None:
    """7.3: what a failing pass has subtracted stays subtracted."""
    slot = Slot({}, [])
    for binding in normal:
        for device in sorted(node.used, key=lambda name: (node.free[name], name)):
            if node.free[device] >= binding.size and node.fits(device, binding.quota):
                break
        else:
            return None
        node.free[device] -= binding.size
        node.take(device, binding.quota)
        slot.plan[binding] = {device: binding.size}
        if has_iops(binding):
            slot.entries.append(node.entry(device, binding.quota))
    for binding in mount:
        if has_iops(binding):
            if not node.fits(binding.source, binding.quota):
                return None
            node.take(binding.source, binding.quota)
            slot.entries.append(node.entry(binding.source, binding.quota))
    return slot


def normal_slots(node: Node, normal: list[Binding], mount: list[Binding], bound: int | None, most: int) -> list[Slot]:
    """7.3."""
    if not normal and not any(has_iops(binding) for binding in mount):
        return [Slot({}, []) for _ in range(most)]
    slots: list[Slot] = []
    while bound is None or len(slots) < bound:
        slot = one_pass(node, normal, mount)
        if slot is None:
            break
        slots.append(slot)
    return slots


def monopoly_slots(node: Node, monopoly: list[Binding], most: int) -> list[Slot]:
    """7.4: all unused devices are tried, whatever the cap."""
    if not monopoly:
        return [Slot({}, []) for _ in range(most)]
    size = sum(binding.size for binding in monopoly)
    quota: Quota = tuple(sum(binding.quota[i] for binding in monopoly) for i in range(4))  # type: ignore[assignment]
    slots = []
    for device in node.unused:
        if node.free[device] < size or not node.fits(device, quota):
            continue
        shares = [int(float(b.size) / float(size) * float(node.free[device])) for b in monopoly]
        shares[0] += node.free[device] - sum(shares)
        slot = Slot({binding: {device: share} for binding, share in zip(monopoly, shares, strict=True)}, [])
        if any(quota):
            slot.entries.append(node.entry(device, quota))
        node.take(device, quota)
        slots.append(slot)
    return slots


def bound_of(
    unused: list[str], normal: list[Binding], monopoly: list[Binding], mount: list[Binding], most: int
) -> int | None:
    """7.5."""
    if not monopoly:
        return most
    others_ask = any(has_iops(binding) for binding in [*normal, *mount])
    if not any(has_iops(binding) for binding in monopoly) or not others_ask:
        return max(most, len(unused) + 1)
    return None


def enumerate_slots(state: State, bindings: list[Binding], most: int) -> list[Slot]:
    """7: at most `most` slots, in order."""
    normal, monopoly, unlimited, mount = classified(bindings)
    whole = Node.of(state)
    if (normal or monopoly or unlimited) and not whole.free:
        return []
    bound = bound_of(whole.unused, normal, monopoly, mount, most)
    used, unused = list(whole.used), list(whole.unused)
    while True:  # 7.6
        node = Node.of(state)
        node.used, node.unused = list(used), list(unused)
        passes = normal_slots(node, normal, mount, bound, most)
        devices = monopoly_slots(node, monopoly, most)
        if not (len(devices) > len(passes) and len(passes) < most):
            break
        opened = next((d for d in unused if normal and whole.free[d] >= normal[0].size), None)
        if opened is None:
            break
        unused.remove(opened)
        used.append(opened)
    count = min(len(passes), len(devices), most)
    everywhere: Plan = {}
    if unlimited and count:  # 7.7
        rest = {device: whole.free[device] for device in used + unused}
        for slot in passes + devices:
            for taken in slot.plan.values():
                for device, size in taken.items():
                    rest[device] -= size
        chosen = max(rest, key=lambda device: rest[device])
        everywhere = {binding: {chosen: 0} for binding in unlimited}
    return [
        Slot({**one.plan, **other.plan, **everywhere}, one.entries + other.entries)
        for one, other in zip(passes[:count], devices, strict=False)
    ]
