"""The shipped scheduler is plain enumeration, only faster: random nodes and requests (specification, storage 14.6)."""

import random

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from resource_extend.storage.binding import Binding
from resource_extend.storage.counting import (
    count_beside_monopoly,
    count_monopoly,
    count_mounts,
    count_normals,
    count_one_normal,
    count_unlimited,
    counter,
)
from resource_extend.storage.demand import Demand, times
from resource_extend.storage.disk import Disk
from resource_extend.storage.schedule import state_of
from resource_extend.storage.workload_resource import plan_texts
from storage import cases
from storage.comparison import (
    affinity_case,
    caps,
    compare,
    compare_affinity,
    compare_quotas_left,
    counted,
)
from storage.enumeration import Node, enumerate_slots

# Together well above 2,000 cases in each run.
EACH = settings(max_examples=max(220, settings().max_examples))
SOURCES = st.randoms(use_true_random=False)


@pytest.mark.parametrize("kinds", cases.CLASSES)
@EACH
@given(source=SOURCES)
def test_equal_to_enumeration(kinds: str, source: random.Random) -> None:
    """Slots, plans, disk rows and counts are those of enumeration, for caps below, at and beyond what fits."""
    record = cases.node(source)
    bindings = cases.bindings(source, record, cases.CLASSES[kinds])
    state = state_of(record)
    for most in caps(state, bindings, cases.cap(source)):
        compare(state, bindings, most)
        compare_quotas_left(state, bindings, most)


@EACH
@given(source=SOURCES)
def test_affinity_equal_to_steps(source: random.Random) -> None:
    """A changed workload keeps and gets the devices, and the disk rows, that placing it step by step gives."""
    case = affinity_case(source)
    assume(case is not None)
    assert case is not None
    compare_affinity(*case)


# --- each exact form of 14.4, and those of 14.3, by the classes that it is for


FORMS = {
    count_one_normal: ["n", "N"],
    count_monopoly: ["mMui"],
    count_normals: ["nN", "Nt", "nNtu"],
    count_beside_monopoly: ["mn", "MN", "MNt", "mMnNtui"],
    count_mounts: ["tui"],
    count_unlimited: ["ui"],
}


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.__name__)
@EACH
@given(source=SOURCES)
def test_counting_form(form: object, source: random.Random) -> None:
    """A short cut counts what enumeration counts, for the demands that it is for."""
    record = cases.node(source)
    kinds = source.choice(FORMS[form])  # type: ignore[index]
    bindings = cases.bindings(source, record, kinds, 1 if form is count_one_normal else 4)
    assume(counter(Demand(bindings)) is form)
    most = cases.cap(source)
    state = state_of(record)
    assert len(enumerate_slots(state, bindings, most)) == counted(state, bindings, most)


NUMBERS = st.integers(0, 40)
QUOTAS = st.tuples(NUMBERS, NUMBERS, NUMBERS, NUMBERS)


@EACH
@given(vectors=st.lists(QUOTAS | st.integers(0, 6).map(lambda n: (n, n, 3 * n, 2 * n)), max_size=4), left=QUOTAS)
def test_proportional_dimensions_merge(vectors: list[tuple[int, int, int, int]], left: tuple[int, ...]) -> None:
    """Quotas in one integer fit, and fit repeatedly, exactly when they do in four dimensions (form 3)."""
    bindings = [Binding(f"/m{i}", f"/d{i}", "rw", 0, vector) for i, vector in enumerate(vectors)]
    demand = Demand(bindings)
    rest, packed = list(left), demand.packed_left(left)
    for binding in bindings:
        if binding not in demand.quotas:
            continue
        quota = demand.quotas[binding]
        fits = all(have >= want for have, want in zip(rest, binding.quota, strict=True))
        repeats = min(have // want for have, want in zip(rest, binding.quota, strict=True) if want)
        assert fits is ((packed - quota) & demand.guard == demand.guard)
        assert repeats == times(packed, quota, demand.guard)
        if fits:
            rest = [have - want for have, want in zip(rest, binding.quota, strict=True)]
            packed -= quota
    assert len(demand.lanes) <= sum(any(vector[dimension] for vector in vectors) for dimension in range(4))


@pytest.mark.parametrize("quotas", [(10, 10, 20, 20), (100, 0, 0, 0), (0, 0, 7, 7)])
def test_usual_requests_need_one_lane(quotas: tuple[int, int, int, int]) -> None:
    """Requests whose bindings ask in equal proportions are scalar."""
    twice = tuple(2 * number for number in quotas)
    bindings = [Binding("AUTO", "/a", "rw", 1, quotas), Binding("AUTO", "/b", "mrw", 1, twice)]  # type: ignore[arg-type]
    assert 1 == len(Demand(bindings).lanes)


@given(left=st.tuples(*[st.integers(-3, 3)] * 4))
def test_an_overbooked_disk_fits_nothing(left: tuple[int, ...]) -> None:
    """A disk with less than nothing left in one dimension refuses even a quota of 0."""
    for bindings in ([], [Binding("AUTO", "/a", "rw", 1, (1, 0, 0, 1))]):
        demand = Demand(bindings)
        packed = demand.packed_left(left)
        assert (min(left) >= 0) is (packed & demand.guard == demand.guard)
        if min(left) < 0:
            assert 0 == times(packed, 0, demand.guard)


# --- what both schedulers promise


@EACH
@given(source=SOURCES)
def test_no_device_and_no_disk_gives_more_than_it_has(source: random.Random) -> None:
    """The bytes of all slots on a device and the rows on a disk stay within what was free."""
    record = cases.node(source)
    bindings = cases.bindings(source, record, cases.CLASSES["any"])
    state = state_of(record)
    node = Node.of(state)
    free = node.free
    left = {disk.device: numbers for disk, numbers in zip(node.disks, node.left, strict=True)}
    monopolized = []
    for slot in enumerate_slots(state, bindings, cases.cap(source)):
        for binding, devices in slot.plan.items():
            for device, size in devices.items():
                free[device] -= size
                if binding.monopoly():
                    monopolized.append((device, tuple(plan_texts(slot.plan))))
        for row in slot.rows():
            left[row.device] = [have - want for have, want in zip(left[row.device], row.quota(), strict=True)]
    assert all(size >= 0 for size in free.values())
    assert all(min(numbers) >= 0 for numbers in left.values())
    assert all(device in node.unused for device, _ in monopolized)


# --- cases found by shrinking, and ones that reasoning is afraid of


NAMED = {
    "two lanes, the second runs out first": (
        {"/d0": 64},
        {"/d0": 1},
        [Disk("v", ["/"], 30, 4, 0, 0)],
        ["AUTO:/a:rw:1:3:1", "AUTO:/b:rw:2:1:0"],
    ),
    "a device behind is overtaken": (
        {"/d0": 40, "/d1": 50},
        {"/d0": 1, "/d1": 1},
        [Disk("v", ["/d0"], 2), Disk("w", ["/d1"], 1000)],
        ["AUTO:/a:rw:3", "AUTO:/b:rw:5:1"],
    ),
    "equal devices, the name decides again and again": (
        {"/d0": 33, "/d1": 33, "/d2": 33},
        {"/d0": 1, "/d1": 1, "/d2": 1},
        [],
        ["AUTO:/a:rw:7", "AUTO:/b:rw:11"],
    ),
    "quotas alone, no bytes": (
        {"/d0": 4, "/d1": 4},
        {"/d0": 4},
        [Disk("v", ["/d0"], 5), Disk("w", ["/d1"], 9)],
        ["AUTO:/a:rw:0:2", "/d1/x:/t:rw:0:1"],
    ),
    "monopoly on what a failed pass left": (
        {"/d0": 9, "/d1": 9, "/d2": 9},
        {"/d0": 1},
        [Disk("v", ["/"], 20)],
        ["AUTO:/a:rw:1:3", "AUTO:/b:rw:4:1", "AUTO:/c:mrw:2:4"],
    ),
}


@pytest.mark.parametrize("name", NAMED)
@pytest.mark.parametrize("most", [1, 2, 3, 5, 50])
def test_named_case(name: str, most: int) -> None:
    """A case that a scheduler in runs can get wrong is that of enumeration."""
    from resource_extend.storage.binding import parse_binding
    from resource_extend.storage.resource import Record, Resource

    volumes, taken, disks, texts = NAMED[name]
    state = state_of(Record(Resource(volumes, disks), Resource(taken)))
    bindings = [parse_binding(text) for text in texts]
    compare(state, bindings, most)
    compare_quotas_left(state, bindings, most)
