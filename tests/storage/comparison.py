"""One case: the shipped scheduler against plain enumeration, for the property tests and for scripts/fuzz-schedule."""

import random

from resource_extend.storage.affinity import Unplaceable, replan
from resource_extend.storage.binding import Binding, needs_scheduling
from resource_extend.storage.counting import counter
from resource_extend.storage.demand import UNBOUNDED, Demand, Layout
from resource_extend.storage.disk import Disk
from resource_extend.storage.merge import merge
from resource_extend.storage.passes import make_passes
from resource_extend.storage.resource import Record, Resource
from resource_extend.storage.schedule import place, state_of
from resource_extend.storage.sums import changed
from resource_extend.storage.validation import validated
from storage import cases
from storage.affinity_enumeration import NoRoom, enumerate_affinity
from storage.enumeration import Node, Plan, State, bound_of, classified, enumerate_slots, has_iops, normal_slots

Placed = list[tuple[Plan, list[Disk]]]


def enumerated(state: State, bindings: list[Binding], most: int) -> Placed:
    """Return plans and rows by enumeration."""
    return [(slot.plan, slot.rows()) for slot in enumerate_slots(state, bindings, most)]


def placed(state: State, bindings: list[Binding], most: int) -> Placed:
    """Return plans and rows of the shipped scheduler."""
    return [(plan, rows) for count, plan, rows in place(state, bindings, most) for _ in range(count)]


def counted(state: State, bindings: list[Binding], most: int) -> int:
    """Return the slots that the capacity query counts."""
    demand = Demand(bindings)
    used, _, free, disks, quotas_left = state
    layout = Layout(free, disks, demand)
    taken = dict.fromkeys(used, 1)
    devices = layout.devices({device: size + taken.get(device, 0) for device, size in free.items()})
    left = [*map(demand.packed_left, quotas_left), demand.guard]
    return counter(demand)(layout, devices, taken, left, most)


def caps(state: State, bindings: list[Binding], wanted: int) -> list[int]:
    """Return caps on slots below, at and beyond what fits."""
    fitting = len(enumerate_slots(state, bindings, 40))
    return sorted({1, 2, 3, 6, max(fitting, 1), fitting + 1, wanted})


def compare(state: State, bindings: list[Binding], most: int) -> None:
    """Hold the two schedulers equal: number of slots, plans, disk rows, in order."""
    expected = enumerated(state, bindings, most)
    assert expected == placed(state, bindings, most)
    assert len(expected) == counted(state, bindings, most)


def compare_quotas_left(state: State, bindings: list[Binding], most: int) -> None:
    """Hold equal what normal passes, the failing one included, leave of quotas: the state that monopoly meets."""
    normal, monopoly, _, mount = classified(bindings)
    if not normal and not any(map(has_iops, mount)):
        return
    used, unused, free, disks, quotas_left = state
    bound = bound_of(unused, normal, monopoly, mount, most)
    node = Node.of(state)
    slots = normal_slots(node, normal, mount, bound, most)
    demand = Demand(bindings)
    layout = Layout(free, disks, demand)
    keys = sorted(layout.keys(used, free))
    left = [*map(demand.packed_left, quotas_left), demand.guard]
    assert len(slots) == make_passes(layout, keys, left, UNBOUNDED if bound is None else bound)
    assert [*map(demand.packed_left, node.left), demand.guard] == left


def affinity_case(source: random.Random) -> tuple[Record, list[Binding], list[Binding], Plan] | None:
    """Make a workload placed and booked on a node, and the merged list after a change: (node, merged, origin, plan)."""
    record = cases.node(source)
    origin = sorted(cases.bindings(source, record, cases.CLASSES["any"], 4), key=Binding.full)
    slots = place(state_of(record), origin, 1) if needs_scheduling(origin) else []
    if not slots:
        return None
    _, plan, rows = slots[0]
    volumes: dict[str, int] = {}
    for devices in plan.values():
        for device, size in devices.items():
            volumes[device] = volumes.get(device, 0) + size
    booked = changed(record.usage, [Resource(volumes, rows, 0)], 1)
    usage = booked if source.random() < 0.9 else record.usage
    record = validated(Record(record.capacity, usage))
    kept = [binding for binding in origin if source.random() < 0.7]
    change = [_resized(source, binding) for binding in kept]
    change += [
        cases.binding(source, record, source.choice("nNmMut"), f"/new{index}", 8)
        for index in range(source.randint(0, 2))
    ]
    merged = merge(change, origin)
    if any(min(binding.quota) < 0 or (binding.monopoly() and not binding.size) for binding in merged):
        return None
    return record, merged, origin, plan


def _resized(source: random.Random, binding: Binding) -> Binding:
    size = source.choice([0, 1, source.randint(0, 12), -source.randint(0, binding.size), -binding.size - 1])
    quota = binding.quota if source.random() < 0.2 else (source.choice([0, 0, 1]), 0, 0, 0)
    return Binding(binding.source, binding.destination, binding.flags, size, quota)


def compare_affinity(record: Record, merged: list[Binding], origin: list[Binding], plan: Plan) -> bool:
    """Hold a realloc's plan and rows equal to those made step by step; tell whether there was room."""
    expected: tuple[Plan, list[Disk]] | None
    found: tuple[Plan, list[Disk]] | None
    try:
        expected = enumerate_affinity(state_of(record), merged, origin, plan)
    except NoRoom:
        expected = None
    try:
        found = replan(record, merged, origin, plan)
    except Unplaceable:
        found = None
    assert expected == found
    return found is not None
