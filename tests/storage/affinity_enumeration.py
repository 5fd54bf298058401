"""Placing a changed workload step by step, to be read beside the specification, storage 9.2 to 9.4."""

from __future__ import annotations

from resource_extend.storage.binding import Binding
from resource_extend.storage.disk import Disk
from storage.enumeration import Node, Plan, Quota, Slot, State, classified, enumerate_slots, has_iops, scheduled


class NoRoom(Exception):
    """Any failure of 9.2 to 9.4."""


def give(node: Node, path: str, quota: Quota) -> None:
    """9.2: back to the covering disk; none, fail."""
    index = node.covering(path)
    if index is None:
        raise NoRoom
    node.left[index] = [have + more for have, more in zip(node.left[index], quota, strict=True)]


def take(node: Node, path: str, quota: Quota) -> None:
    """The quota fits, or fail."""
    if not node.fits(path, quota):
        raise NoRoom
    node.take(path, quota)


def enumerate_affinity(  # noqa: PLR0912 - one story, as the specification tells it
    state: State, merged: list[Binding], origin: list[Binding], origin_plan: Plan
) -> tuple[Plan, list[Disk]]:
    """Return plan and rows, sorted by device."""
    if not any(scheduled(binding) or has_iops(binding) for binding in merged):
        return {}, []
    node = Node.of(state)
    for binding in origin:
        if has_iops(binding) and not scheduled(binding):
            give(node, binding.source, binding.quota)
    homes: dict[tuple[str, str, str], str] = {}
    monopoly_bytes = 0
    for binding, devices in origin_plan.items():
        ((device, size),) = devices.items()
        if device not in node.free:
            raise NoRoom
        node.free[device] += size
        if has_iops(binding):
            give(node, device, binding.quota)
        homes[(binding.source, binding.destination, binding.flags)] = device
        monopoly_bytes += size if "m" in binding.flags else 0

    def home(binding: Binding) -> str | None:
        return homes.get((binding.source, binding.destination, binding.flags))

    normal, monopoly, unlimited, mount = classified(merged)
    slot = Slot({}, [])
    aside: list[Binding] = []
    for binding in mount:
        if has_iops(binding):
            take(node, binding.source, binding.quota)
            slot.entries.append(node.entry(binding.source, binding.quota))
    for binding in normal:
        stay(node, slot, binding, home(binding), aside)
    if not any(home(binding) for binding in monopoly):
        aside += monopoly
    elif monopoly:
        device = next(device for device in map(home, monopoly) if device)
        share(node, slot, monopoly, device, monopoly_bytes)
    for binding in unlimited:
        stay(node, slot, binding, home(binding), aside)
    if aside:
        slots = enumerate_slots((node.used, node.unused, node.free, node.disks, [*node.left]), aside, 1)
        if not slots:
            raise NoRoom
        slot = Slot({**slot.plan, **slots[0].plan}, slot.entries + slots[0].entries)
    return slot.plan, sorted(slot.rows(), key=lambda row: row.device)


def stay(node: Node, slot: Slot, binding: Binding, device: str | None, aside: list[Binding]) -> None:
    """9.3, 2 and 4."""
    if device is None:
        aside.append(binding)
        return
    if binding.size > node.free[device]:
        raise NoRoom
    node.free[device] -= binding.size
    take(node, device, binding.quota)
    slot.plan[binding] = {device: binding.size}
    if has_iops(binding):
        slot.entries.append(node.entry(device, binding.quota))


def share(node: Node, slot: Slot, monopoly: list[Binding], device: str, held: int) -> None:
    """9.3, 3."""
    size = sum(binding.size for binding in monopoly)
    quota: Quota = tuple(sum(binding.quota[i] for binding in monopoly) for i in range(4))  # type: ignore[assignment]
    free = node.free[device]
    if held < size or free < size:
        raise NoRoom
    take(node, device, quota)
    shares = [int(float(binding.size) / float(size) * float(free)) for binding in monopoly]
    shares[0] += free - sum(shares)
    node.free[device] = 0
    slot.plan.update({binding: {device: part} for binding, part in zip(monopoly, shares, strict=True)})
    if any(quota):
        slot.entries.append(node.entry(device, quota))
