"""The capacity query's quick ways through many records against plain enumeration of each (storage 5.3, 14.4)."""

import json
import random

from hypothesis import given, settings
from hypothesis import strategies as st

from resource_extend.codec import decode, encode
from resource_extend.storage.binding import Binding, needs_scheduling
from resource_extend.storage.capacity import CapacityQuery
from resource_extend.storage.disk import Disk
from resource_extend.storage.resource import Record, Resource
from resource_extend.storage.schedule import state_of
from resource_extend.storage.workload import folded
from storage import cases
from storage.enumeration import enumerate_slots

MOST = 12


def odd(source: random.Random, record: Record) -> Record:
    """Make a record that no validated write leaves: too much used, disks that do not match, negative numbers."""
    disks = list(record.capacity.disks)
    used = list(record.usage.disks)
    taken = dict(record.usage.volumes)
    for _ in range(source.randint(0, 2)):
        kind = source.randrange(6)
        if kind == 0:
            taken[source.choice(["/d0", "/d1", "/gone"])] = source.randint(-3, 70)
        elif kind == 1:
            used.append(source.choice([*used, Disk(source.choice(["/dev/v0", "/dev/new"]), ["/"], 1, 1, 1, 1)]))
        elif kind == 2:
            source.shuffle(used)
        elif kind == 3 and disks:
            disks.append(source.choice(disks))
        elif kind == 4 and used:
            mounts = source.choice([used[0].mounts, used[0].mounts, ["/d1"]])
            used[0] = Disk(used[0].device, mounts, *[source.choice([0, -1, 9, 5000]) for _ in "1234"])
        elif kind == 5 and disks:
            disks[0] = Disk(disks[0].device, disks[0].mounts, -1, 5, 5, 5)
    storage = record.usage.storage + source.choice([0, 0, -5, 100])
    capacity = Resource(record.capacity.volumes, disks, record.capacity.storage)
    return Record(capacity, Resource(taken, used, storage))


def text(source: random.Random, record: Record) -> bytes:
    """Write a record as we do, or as somebody by hand might."""
    value = encode(record)
    return value if source.random() < 0.8 else json.dumps(json.loads(value), indent=1).encode()


def expected(record: Record, bindings: list[Binding], storage: int) -> int:
    """Return the capacity by enumeration."""
    count = len(enumerate_slots(state_of(record), bindings, MOST)) if needs_scheduling(bindings) else MOST
    if storage > 0:
        available = record.capacity.storage - record.usage.storage
        count = min(count, available // storage if available >= 0 else -(-available // storage))
    return max(count, 0)


@settings(max_examples=max(1000, settings().max_examples))
@given(seed=st.integers(0, 2**64))
def test_capacity_of_any_records(seed: int) -> None:
    """Whatever records stand beside each other, each node has the capacity that enumeration gives for its own."""
    source = random.Random(seed)
    first = cases.node(source)
    records = {}
    for number in range(source.randint(1, 6)):
        other = cases.node(source)
        # Often several usages of one capacity, as in clusters.
        record = Record(first.capacity, other.usage) if source.random() < 0.3 else source.choice([first, other])
        records[f"n{number}"] = odd(source, record) if source.random() < 0.6 else record
    values = {node: text(source, record) for node, record in records.items()}
    bindings = cases.bindings(source, first, cases.CLASSES[source.choice(list(cases.CLASSES))], 3)
    workload = folded((bindings, bindings, source.choice([0, 0, 1, 30]), 0))
    _, _, storage, _ = workload
    query = CapacityQuery(workload, MOST)
    query.look(source.sample(list(values.values()), source.randint(0, len(values))))
    answers = query.answers(["unknown", *records], values, lambda _, value: decode(value, Record))

    wanted = {node: expected(record, bindings, storage) for node, record in records.items()}
    assert {node: count for node, count in wanted.items() if count} == {
        node: answer.capacity for node, answer in answers.items() if node != "unknown"
    }
    for node, answer in answers.items():
        if node in records:
            volumes = records[node].capacity.volumes
            part, whole = sum(records[node].usage.volumes.values()), sum(volumes.values())
            assert (float(part) / float(whole) if whole else 0) == answer.usage
