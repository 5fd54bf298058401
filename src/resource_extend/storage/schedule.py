"""Placing bindings on a node: which slots there are, with their plans and disk rows (specification, storage 7).

The result is that of plain enumeration, found in runs of equal slots (14.2). Counting for a capacity query, which needs
no plans, has further short cuts in `counting`.
"""

from resource_extend.storage.binding import total_size
from resource_extend.storage.demand import UNBOUNDED, Demand, Layout
from resource_extend.storage.disk import Disk, combined, summed
from resource_extend.storage.passes import make_passes, monopoly_devices

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from resource_extend.storage.binding import Binding
    from resource_extend.storage.disk import Quota
    from resource_extend.storage.passes import Run
    from resource_extend.storage.resource import Record
    from resource_extend.storage.workload_resource import Plan

    # The node as the scheduler sees it (7.1): used and unused devices, each in ascending order of (free, name); free
    # bytes by device; disks, with the mounts of the node, and the four numbers that are left of each.
    State = tuple[list[str], list[str], dict[str, int], list[Disk], list[Sequence[int]]]
    # A number of equal slots, where each binding lies in them, and what is taken of the disks for each slot.
    Slots = tuple[int, Plan, list[Disk]]
    # All slots of one evaluation: runs of normal passes and their number, then the devices of the monopoly slots (None
    # when nothing asks for a device of its own), then used and unused devices in the order in which unlimited bindings
    # look at them. Devices are integers as in `demand`.
    Evaluation = tuple[list[Run], int, list[int] | None, list[int], list[int]]


def state_of(record: "Record") -> "State":
    """Return the state of a node. Usage of devices that the capacity lacks is ignored."""
    taken = record.usage.volumes
    devices = []
    for device, size in record.capacity.volumes.items():
        devices.append((size - taken.get(device, 0), device))
    devices.sort()
    free = {}
    used: list[str] = []
    unused: list[str] = []
    for size, device in devices:
        free[device] = size
        (used if taken.get(device) else unused).append(device)
    disks = combined(record.capacity.disks, record.usage.disks, -1)
    return used, unused, free, disks, list(map(Disk.quota, disks))


def place(state: "State", bindings: "Sequence[Binding]", most: int) -> "list[Slots]":
    """Place as many slots as fit, at most `most`, in order. The state stays as it is."""
    _, _, free, disks, _ = state
    demand = Demand(bindings)
    if not free and (demand.normals or demand.monopoly or demand.unlimited):
        return []
    layout = Layout(free, disks, demand)
    evaluation = evaluate(layout, state, most)
    _, slots, devices, _, _ = evaluation
    slots = min(slots, most)
    if devices is not None:
        slots = min(slots, len(devices))
    if not slots:
        return []
    unlimited = _unlimited_plan(layout, evaluation) if demand.unlimited else {}
    return _slots(layout, disks, evaluation, unlimited, slots)


def evaluate(layout: Layout, state: "State", most: int) -> "Evaluation":
    """Make normal passes and monopoly slots, opening unused devices one by one while that helps (7.3 to 7.6)."""
    demand = layout.demand
    used_names, unused_names, free, _, quotas_left = state
    used, unused = layout.keys(used_names, free), layout.keys(unused_names, free)
    start = [*map(demand.packed_left, quotas_left), demand.guard]
    bound = bound_of(demand, most, len(unused))
    while True:
        runs: list[Run] = []
        left = list(start)
        if demand.normals or demand.mounts:
            normal = make_passes(layout, sorted(used), left, bound, runs)
        else:
            normal = most
            runs.append(((), most))
        devices = monopoly_devices(layout, unused, left) if demand.monopoly else None
        opened = None
        if normal < most and (devices is None or len(devices) > normal):
            opened = promotable(layout, unused)
        if opened is None:
            return runs, normal, devices, used, unused
        unused.remove(opened)
        used.append(opened)


def bound_of(demand: Demand, most: int, unused: int) -> int:
    """Return how many passes an evaluation makes at most (7.5)."""
    if not demand.monopoly:
        return most
    return UNBOUNDED if demand.coupled else max(most, unused + 1)


def promotable(layout: Layout, unused: list[int]) -> int | None:
    """Return the first unused device that could hold the smallest normal binding (7.6)."""
    if layout.normals:
        for key in unused:
            if key >= layout.smallest:
                return key
    return None


def _unlimited_plan(layout: Layout, evaluation: "Evaluation") -> "Plan":
    """Put unlimited bindings on the device with most left after all slots, the first among equals (7.7)."""
    shift, mask = layout.shift, layout.mask
    runs, _, devices, used, unused = evaluation
    rest = {key & mask: key >> shift for key in [*used, *unused]}
    for choices, count in runs:
        for rank, (size, _) in zip(choices, layout.normals, strict=True):
            rest[rank] -= count * (size >> shift)
    for key in devices or ():
        rest[key & mask] = 0
    best = None
    for rank, free in rest.items():
        if best is None or free > rest[best]:
            best = rank
    assert best is not None
    return {binding: {layout.names[best]: 0} for binding in layout.demand.unlimited}


def _slots(
    layout: Layout, disks: "list[Disk]", evaluation: "Evaluation", unlimited: "Plan", wanted: int
) -> "list[Slots]":
    """Write the plans of the first slots, equal ones once."""
    result: list[Slots] = []
    runs, _, monopoly, _, _ = evaluation
    devices = iter(monopoly or ())
    demand = layout.demand
    for choices, repeated in runs:
        count = min(repeated, wanted)
        if not count:
            break
        wanted -= count
        plan, asked = _normal_plan(layout, disks, choices)
        if monopoly is None:
            result.append((count, {**plan, **unlimited}, summed(asked)))
            continue
        for _ in range(count):
            key = next(devices)
            rank = key & layout.mask
            exclusive = shares(demand.monopoly, layout.names[rank], key >> layout.shift)
            more = [(disks[layout.disk_of[rank]], demand.monopoly_total)] if any(demand.monopoly_total) else []
            result.append((1, {**plan, **exclusive, **unlimited}, summed(asked + more)))
    return result


def _normal_plan(
    layout: Layout, disks: "list[Disk]", choices: tuple[int, ...]
) -> "tuple[Plan, list[tuple[Disk, Quota]]]":
    """Return where a pass puts the normal bindings, and what of which disk they and the mounts ask for."""
    plan: Plan = {}
    asked = []
    for binding, rank in zip(layout.demand.normals, choices, strict=True):
        plan[binding] = {layout.names[rank]: binding.size}
        if binding.has_iops():
            asked.append((disks[layout.disk_of[rank]], binding.quota))
    for binding, (disk, _) in zip(layout.demand.mounts, layout.mounts, strict=True):
        asked.append((disks[disk], binding.quota))
    return plan, asked


def shares(bindings: "Sequence[Binding]", device: str, free: int) -> "Plan":
    """Share all of a device among monopoly bindings in proportion to their sizes (7.4).

    In doubles, dividing first; what rounding leaves over, or takes too much, goes to the first binding.
    """
    total = float(total_size(bindings))
    plan = {}
    rest = free
    for binding in bindings:
        size = int(float(binding.size) / total * float(free))
        plan[binding] = {device: size}
        rest -= size
    plan[bindings[0]][device] += rest
    return plan
