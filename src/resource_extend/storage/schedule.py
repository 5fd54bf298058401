"""Placing bindings on a node: which slots there are, with their plans and disk rows (specification, storage 7).

The result is that of plain enumeration, found in runs of equal slots (14.2). Counting for a capacity query, which needs
no plans, has further short cuts in `counting`.
"""

from resource_extend.storage.demand import UNBOUNDED, Demand
from resource_extend.storage.disk import summed
from resource_extend.storage.layout import Layout
from resource_extend.storage.passes import make_passes, monopoly_devices

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from resource_extend.storage.binding import Binding
    from resource_extend.storage.disk import Disk, Quota
    from resource_extend.storage.passes import Run
    from resource_extend.storage.state import State
    from resource_extend.storage.workload_resource import Plan

    # A number of equal slots, where each binding lies in them, and what is taken of the disks for each slot.
    Slots = tuple[int, Plan, list[Disk]]
    # All slots of one evaluation: runs of normal passes and their number, then the devices of the monopoly slots (None
    # when nothing asks for a device of its own), then used and unused devices in the order in which unlimited bindings
    # look at them. Devices are integers as in `layout`.
    Evaluation = tuple[list[Run], int, list[int] | None, list[int], list[int]]


def place(state: "State", bindings: "Sequence[Binding]", most: int) -> "list[Slots]":
    """Place as many slots as fit, at most `most`, in order. The state stays as it is."""
    demand = Demand(bindings)
    if demand.needs_device and not state.free:
        return []
    layout = Layout(state.free, state.disks, demand)
    evaluation = evaluate(layout, state, most)
    _, slots, devices, _, _ = evaluation
    slots = min(slots, most)
    if devices is not None:
        slots = min(slots, len(devices))
    if not slots:
        return []
    unlimited: Plan = {}
    if demand.unlimited:
        device = _emptiest(layout, evaluation)
        unlimited = {binding: {device: 0} for binding in demand.unlimited}
    return _slots(layout, state.disks, evaluation, unlimited, slots)


def evaluate(layout: Layout, state: "State", most: int) -> "Evaluation":
    """Make normal passes and monopoly slots, opening unused devices one by one while that helps (7.3 to 7.6)."""
    demand = layout.demand
    used = [state.free[device] << layout.shift | layout.ranks[device] for device in state.used]
    unused = [state.free[device] << layout.shift | layout.ranks[device] for device in state.unused]
    start = [*[demand.packed_left(left) for left in state.left], demand.guard]
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


def _emptiest(layout: Layout, evaluation: "Evaluation") -> str:
    """Return the device with most left after all slots of the evaluation, the first among equals (7.7)."""
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
    return layout.names[best]


def _slots(
    layout: Layout, disks: "list[Disk]", evaluation: "Evaluation", unlimited: "Plan", wanted: int
) -> "list[Slots]":
    """Write the plans of the first slots, equal ones once."""
    result: list[Slots] = []
    runs, _, monopoly, _, _ = evaluation
    devices = iter(monopoly or ())
    for choices, repeated in runs:
        count = min(repeated, wanted)
        if not count:
            break
        wanted -= count
        plan, asked = _normal_plan(layout, choices)
        if monopoly is None:
            result.append((count, {**plan, **unlimited}, _rows(disks, asked)))
            continue
        for _ in range(count):
            key = next(devices)
            device, disk = layout.names[key & layout.mask], layout.disk_of[key & layout.mask]
            exclusive = shares(layout.demand.monopoly, device, key >> layout.shift)
            total = monopoly_total(layout.demand.monopoly)
            more = [(disk, total)] if any(total) else []
            result.append((1, {**plan, **exclusive, **unlimited}, _rows(disks, asked + more)))
    return result


def _normal_plan(layout: Layout, choices: tuple[int, ...]) -> "tuple[Plan, list[tuple[int, Quota]]]":
    plan: Plan = {}
    asked = []
    for binding, rank in zip(layout.demand.normals, choices, strict=True):
        plan[binding] = {layout.names[rank]: binding.size}
        if binding.has_iops():
            asked.append((layout.disk_of[rank], binding.quota))
    for binding, (disk, _) in zip(layout.demand.mounts, layout.mounts, strict=True):
        asked.append((disk, binding.quota))
    return plan, asked


def _rows(disks: "list[Disk]", asked: "list[tuple[int, Quota]]") -> "list[Disk]":
    return summed([(disks[disk], quota) for disk, quota in asked])


def shares(bindings: "Sequence[Binding]", device: str, free: int) -> "Plan":
    """Share all of a device among monopoly bindings in proportion to their sizes (7.4).

    In doubles, dividing first; what rounding leaves over, or takes too much, goes to the first binding.
    """
    total = float(sum([binding.size for binding in bindings]))
    sizes = [int(float(binding.size) / total * float(free)) for binding in bindings]
    sizes[0] += free - sum(sizes)
    return {binding: {device: size} for binding, size in zip(bindings, sizes, strict=True)}


def monopoly_total(bindings: "Sequence[Binding]") -> "Quota":
    """Return the quotas of all monopoly bindings together."""
    quotas = [binding.quota for binding in bindings]
    return (
        sum([quota[0] for quota in quotas]),
        sum([quota[1] for quota in quotas]),
        sum([quota[2] for quota in quotas]),
        sum([quota[3] for quota in quotas]),
    )
