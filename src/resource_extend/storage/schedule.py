"""Placing bindings on a node: which slots there are, with their plans and disk rows (specification, storage 7).

The result is that of plain enumeration, found in runs of equal slots (14.2). Counting for a capacity query, which needs
no plans, has further short cuts in `counting`.
"""

from msgspec import Struct

from resource_extend.storage.binding import Binding
from resource_extend.storage.demand import UNBOUNDED, Demand, demand_of
from resource_extend.storage.disk import Disk, summed
from resource_extend.storage.layout import Layout
from resource_extend.storage.passes import make_passes, monopoly_devices
from resource_extend.storage.state import State

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from resource_extend.storage.disk import Quota
    from resource_extend.storage.passes import Run
    from resource_extend.storage.workload_resource import Plan


class Slots(Struct):
    """A number of equal slots: where each binding lies, and what is taken of the disks for it."""

    count: int
    plan: "Plan"
    rows: list[Disk]


class Evaluation(Struct):
    """All slots of one evaluation: runs of normal passes, and the devices of the monopoly slots.

    `monopoly` is None when nothing asks for a device of its own; devices are integers as in `layout`. The used and
    unused devices stand in the order that unlimited bindings look at them.
    """

    runs: "list[Run]"
    normal_slots: int
    monopoly: list[int] | None
    used: list[int]
    unused: list[int]


def place(state: State, bindings: "Sequence[Binding]", most: int) -> list[Slots]:
    """Place as many slots as fit, at most `most`, in order. The state stays as it is."""
    demand = demand_of(bindings)
    if demand.needs_device and not state.free:
        return []
    layout = Layout(state.free, state.disks, demand)
    evaluation = evaluate(layout, state, most)
    slots = min(evaluation.normal_slots, most)
    if evaluation.monopoly is not None:
        slots = min(slots, len(evaluation.monopoly))
    if not slots:
        return []
    unlimited: Plan = {}
    if demand.unlimited:
        device = _emptiest(layout, evaluation)
        unlimited = {binding: {device: 0} for binding in demand.unlimited}
    return _slots(layout, state.disks, evaluation, unlimited, slots)


def evaluate(layout: Layout, state: State, most: int) -> Evaluation:
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
            return Evaluation(runs, normal, devices, used, unused)
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


def _emptiest(layout: Layout, evaluation: Evaluation) -> str:
    """Return the device with most left after all slots of the evaluation, the first among equals (7.7)."""
    shift, mask = layout.shift, layout.mask
    rest = {key & mask: key >> shift for key in [*evaluation.used, *evaluation.unused]}
    for choices, count in evaluation.runs:
        for rank, (size, _) in zip(choices, layout.normals, strict=True):
            rest[rank] -= count * (size >> shift)
    for key in evaluation.monopoly or ():
        rest[key & mask] = 0
    best = None
    for rank, free in rest.items():
        if best is None or free > rest[best]:
            best = rank
    assert best is not None
    return layout.names[best]


def _slots(layout: Layout, disks: list[Disk], evaluation: Evaluation, unlimited: "Plan", wanted: int) -> list[Slots]:
    """Write the plans of the first slots, equal ones once."""
    result = []
    devices = iter(evaluation.monopoly or ())
    for choices, repeated in evaluation.runs:
        count = min(repeated, wanted)
        if not count:
            break
        wanted -= count
        plan, asked = _normal_plan(layout, choices)
        if evaluation.monopoly is None:
            result.append(Slots(count, {**plan, **unlimited}, _rows(disks, asked)))
            continue
        for _ in range(count):
            key = next(devices)
            device, disk = layout.names[key & layout.mask], layout.disk_of[key & layout.mask]
            exclusive = shares(layout.demand.monopoly, device, key >> layout.shift)
            total = monopoly_total(layout.demand.monopoly)
            more = [(disk, total)] if any(total) else []
            result.append(Slots(1, {**plan, **exclusive, **unlimited}, _rows(disks, asked + more)))
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


def _rows(disks: list[Disk], asked: "list[tuple[int, Quota]]") -> list[Disk]:
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
