"""The scheduler's worked examples and named cases (specification, storage 7 and 13.7)."""

import pytest

from resource_extend.storage.binding import parse_binding
from resource_extend.storage.disk import Disk
from resource_extend.storage.resource import Record, Resource
from resource_extend.storage.schedule import place, state_of
from storage.comparison import compare, counted, enumerated, placed
from storage.enumeration import State
from storage.verbs import GIB, TIB

H = 1 << 50


def fixture_a() -> State:
    """Four volumes of 1 TiB, two of them partly used, two disks."""
    return state_of(
        Record(
            Resource(
                {f"/data{i}": TIB for i in range(4)},
                [
                    Disk("vda", ["/", "/data"], 1000, 1000, GIB, GIB),
                    Disk("vdb", ["/data1"], 0, 0, GIB, GIB),
                ],
            ),
            Resource({"/data0": 200 * GIB, "/data1": 300 * GIB}),
        )
    )


def slots(state: State, texts: list[str], most: int) -> list[dict[str, str]]:
    """Place bindings; return each slot as destination -> device, with the bytes where they are not the binding's."""
    bindings = [parse_binding(text) for text in texts]
    compare(state, bindings, most)
    result = []
    for plan, _ in placed(state, bindings, most):
        shown = {}
        for binding, devices in plan.items():
            ((device, size),) = devices.items()
            shown[binding.destination] = device if size == binding.size else f"{device} {size}"
        result.append(shown)
    return result


def test_one_normal_binding_fills_device_after_device() -> None:
    """The device with least free bytes that fits is filled first; unused ones are opened when no used one fits."""
    devices = ["/data1", "/data0", "/data2", "/data2", "/data3", "/data3"]
    for most in (1, 2, 3, 4, 5, 6, 1000):
        assert [{"/dir1": device} for device in devices[:most]] == slots(fixture_a(), ["AUTO:/dir1:rw:500GiB"], most)


def test_two_normal_bindings() -> None:
    """Bindings of one workload lie on different devices when one cannot hold both."""
    assert [
        {"/dir1": "/data1", "/dir2": "/data0"},
        {"/dir1": "/data2", "/dir2": "/data2"},
        {"/dir1": "/data3", "/dir2": "/data3"},
    ] == slots(fixture_a(), ["AUTO:/dir1:rw:500GiB", "AUTO:/dir2:rw:500GiB"], 1000)


def test_monopoly_beside_normal() -> None:
    """A monopoly binding takes a whole unused device."""
    assert [
        {"/dir1": "/data1", "/dir2": f"/data2 {TIB}"},
        {"/dir1": "/data1", "/dir2": f"/data3 {TIB}"},
    ] == slots(fixture_a(), ["AUTO:/dir1:rw:1GiB", "AUTO:/dir2:rwm:1GiB"], 1000)


MONOPOLY_THREE = ["AUTO:/dir3:rwm:100GiB", "AUTO:/dir4:rwm:100GiB", "AUTO:/dir5:rwm:100GiB"]


def test_monopoly_bindings_share_one_device() -> None:
    """What rounding leaves over goes to the first; /data2 was opened for the normal bindings."""
    split = {"/dir3": "/data3 366503875926", "/dir4": "/data3 366503875925", "/dir5": "/data3 366503875925"}
    texts = ["AUTO:/dir1:rw:500GiB", "AUTO:/dir2:rw:500GiB", *MONOPOLY_THREE]
    assert [{"/dir1": "/data1", "/dir2": "/data0", **split}] == slots(fixture_a(), texts, 1000)


def test_unlimited_beside_monopoly() -> None:
    """An unlimited binding goes to the device with most left after all slots."""
    found = slots(fixture_a(), ["AUTO:/dir1:rw:500GiB", "AUTO:/dir2:rw:0", *MONOPOLY_THREE], 1000)
    assert ["/data1", "/data0"] == [slot["/dir1"] for slot in found]
    assert ["/data0", "/data0"] == [slot["/dir2"] for slot in found]
    assert ["/data2 366503875926", "/data3 366503875926"] == [slot["/dir3"] for slot in found]


def test_the_unlimited_device_depends_on_the_count() -> None:
    """The device with most left differs between deploys of one and of six."""
    texts = ["AUTO:/dir1:rw:500GiB", "AUTO:/dir2:rw"]
    assert {"/data2"} == {slot["/dir2"] for slot in slots(fixture_a(), texts, 1)}
    assert {"/data0"} == {slot["/dir2"] for slot in slots(fixture_a(), texts, 6)}


def test_unlimited_alone() -> None:
    """Unlimited bindings fit any number of times, all on one device."""
    found = slots(fixture_a(), ["AUTO:/dir1:rw:0", ":/dir2:rw"], 1000)
    assert [{"/dir1": "/data2", "/dir2": "/data2"}] * 1000 == found


QUOTA_PAIR = [":/dir2:rw:500GiB:100:100:100M:100M", "AUTO:/dir1:rw:500GiB:500:100:100M:100M"]


def test_quotas_of_one_disk_are_one_row() -> None:
    """Two bindings on devices of one disk share a row; the disk without IOPS is passed over."""
    assert [{"/dir2": "/data0", "/dir1": "/data2"}] == slots(fixture_a(), QUOTA_PAIR, 1000)
    ((count, _, rows),) = place(fixture_a(), [parse_binding(text) for text in QUOTA_PAIR], 1000)
    assert (1, [Disk("vda", ["/", "/data"], 600, 200, 209715200, 209715200)]) == (count, rows)


def test_a_mount_without_quotas_asks_for_nothing() -> None:
    """There are no disk entries without quotas."""
    texts = ["AUTO:/dir1:rw:100GiB", "AUTO:/dir2:rwm:1GiB", "/mnt/data:/dir3:rw"]
    bindings = [parse_binding(text) for text in texts]
    assert [[], []] == [rows for _, rows in placed(fixture_a(), bindings, 1000)]
    compare(fixture_a(), bindings, 1000)


@pytest.mark.parametrize(
    "texts",
    [
        ["AUTO:/d:rw:2TiB"],
        [f"AUTO:/d{i}:rw:800GiB" for i in range(7)],
        [f"AUTO:/d{i}:rwm:500GiB" for i in range(3)],
        [*[f"AUTO:/d{i}:rw:800GiB" for i in range(4)], *[f"AUTO:/m{i}:rwm:500GiB" for i in range(2)]],
        [QUOTA_PAIR[0], "AUTO:/dir1:rw:500GiB:500:100:100M:10000M"],
    ],
)
def test_what_does_not_fit(texts: list[str]) -> None:
    """Too large, too many, or too much quota: no slot."""
    assert [] == slots(fixture_a(), texts, 1000)


@pytest.mark.parametrize("text", ["AUTO:/d:rw:1", "AUTO:/d:rwm:1", "AUTO:/d:rw", "AUTO:/d:rw:0:1"])
def test_a_node_without_volumes(text: str) -> None:
    """Without devices nothing that needs one fits."""
    assert [] == slots(state_of(Record()), [text], 1000)


def test_fixture_b() -> None:
    """Quotas shared between promotions: every step takes what the last one left."""
    state = state_of(
        Record(
            Resource(
                {
                    "/dataA": 40 * GIB,
                    "/v1": 11 * GIB,
                    "/v2": 12 * GIB,
                    "/v3": 100 * GIB,
                    "/v4": 100 * GIB,
                    "/v5": 100 * GIB,
                },
                [
                    Disk("a", ["/dataA"], H, H, H, H),
                    Disk("b", ["/mnt/shared", "/v2"], 100, H, H, H),
                    Disk("c", ["/v1", "/v3", "/v4", "/v5"], H, H, H, H),
                ],
            ),
            Resource({"/dataA": 10 * GIB}),
        )
    )
    texts = ["AUTO:/n:rw:10GiB:85:0:0:0", "AUTO:/o:rwm:10GiB", "/mnt/shared/x:/mm:rw:0:10:0:0:0"]
    found = slots(state, texts, 1000)
    assert [("/v1", "/v2"), ("/dataA", "/v3"), ("/dataA", "/v4"), ("/dataA", "/v5")] == [
        (slot["/n"], slot["/o"].split()[0]) for slot in found
    ]
    rows = [
        [(row.device, row.read_iops) for row in rows]
        for _, rows in placed(state, [parse_binding(text) for text in texts], 1000)
    ]
    assert [[("c", 85), ("b", 10)], *[[("a", 85), ("b", 10)]] * 3] == rows
    assert [1, 2, 3, 4, 4] == [len(slots(state, texts, most)) for most in (1, 2, 3, 4, 5)]
    for most in (1, 2, 3):
        assert {"/n": "/dataA", "/o": "/v1 11811160064"} == slots(state, texts, most)[0]


def large_node(volumes: int) -> State:
    """Fixtures C and D: a disk for each volume; of every (second) volume some GiB are used."""
    quota = (1000000, 1000000, 1000 * GIB, 1000 * GIB)
    used = {f"/data{i}": i * GIB for i in range(volumes) if volumes == 8 or i % 2}
    return state_of(
        Record(
            Resource(
                {f"/data{i}": TIB for i in range(volumes)},
                [Disk(f"disk{i:02}", [f"/data{i}"], *quota) for i in range(volumes)],
            ),
            Resource({device: size for device, size in used.items() if size}),
        )
    )


NORMAL_C = ["AUTO:/dir0:rw:10GiB", "AUTO:/dir1:rw:20GiB:100:100:1M:1M", "/data0:/mnt:rw:0:100:100:1M:1M"]
MONOPOLY_C = ["AUTO:/dir2:rwm:100GiB", "AUTO:/dir3:rwm:200GiB"]


def test_fixture_c() -> None:
    """Twelve volumes: normal bindings, monopoly ones, both."""
    state = large_node(12)
    assert 406 == len(slots(state, NORMAL_C, 10000))
    found = slots(state, MONOPOLY_C, 10000)
    assert ["/data0", "/data10", "/data2", "/data4", "/data6", "/data8"] == [s["/dir2"].split()[0] for s in found]
    assert {"/dir2": "/data0 366503875926", "/dir3": "/data0 733007751850"} == found[0]
    assert 6 == len(slots(state, NORMAL_C + MONOPOLY_C, 10000))


def test_fixture_d() -> None:
    """Eight volumes, all but one used: one monopoly slot."""
    assert 271 == len(slots(large_node(8), NORMAL_C, 1000))
    assert 1 == len(slots(large_node(8), [*NORMAL_C, "AUTO:/dir2:mrw:100GiB"], 1000))


@pytest.mark.parametrize(("size", "expected"), [(1000, 0), (51, 1)])
def test_shared_quotas_can_make_the_capacity_zero(size: int, expected: int) -> None:
    """Normal workloads that nobody deploys eat the quota before monopoly is looked at (7.5)."""
    state = state_of(
        Record(
            Resource({"/data0": size * GIB, "/data1": 100 * GIB}, [Disk("v", ["/"], 1000)]),
            Resource({"/data0": GIB}),
        )
    )
    assert expected == len(slots(state, ["AUTO:/a:rw:1GiB:10:0:0:0", "AUTO:/b:mrw:1GiB:10:0:0:0"], 10000))


def test_a_failed_pass_keeps_what_it_subtracted() -> None:
    """The last pass takes quota for its first binding before its second one fails; monopoly then lacks it (7.3)."""
    state = state_of(
        Record(
            Resource({"/d0": 10, "/d1": 5}, [Disk("v", ["/"], 10)]),
            Resource({"/d0": 1}),
        )
    )
    bindings = [parse_binding(text) for text in ("AUTO:/a:rw:1:4", "AUTO:/b:rw:6", "AUTO:/c:mrw:1:3")]
    compare(state, bindings, 100)
    assert [] == placed(state, bindings, 100)


def test_cost_does_not_depend_on_how_many_fit() -> None:
    """A quota of 2^50 and a demand of 1 end at once, with and without monopoly beside."""
    state = state_of(
        Record(
            Resource({"/d0": TIB, "/d1": TIB}, [Disk("v", ["/"], H, H, H, H)]),
            Resource({"/d0": 1}),
        )
    )
    assert 10**12 == counted(state, [parse_binding("AUTO:/a:rw:0:1")], 10**12)
    # Without bytes only the shared quota ends the passes, and then nothing is left of it for monopoly.
    coupled = [parse_binding(text) for text in ("AUTO:/a:rw:0:1", "AUTO:/b:mrw:1:1")]
    assert [] == placed(state, coupled, 10)
    assert 0 == counted(state, coupled, 10)
    two = [parse_binding(text) for text in ("AUTO:/a:rw:3:1", "AUTO:/b:rw:5:0:2")]
    assert 10**9 == counted(state, two, 10**9) == sum(count for count, _, _ in place(state, two, 10**9))
    assert 4 > len(place(state, two, 10**9))


def test_an_overbooked_disk_holds_nothing() -> None:
    """Where a disk is overbooked in one dimension not even a quota of 0 fits (7.1)."""
    state = state_of(
        Record(
            Resource({"/d0": 10, "/d1": 10}, [Disk("v", ["/d0"], 5, 5, 5, 5)]),
            Resource({"/d0": 1, "/d1": 1}, [Disk("v", ["/d0"], 6, 0, 0, 0)]),
        )
    )
    for text in ("AUTO:/a:rw:4", "AUTO:/a:rw:4:0:1", "/d0:/a:rw:0:0:1", "AUTO:/a:rw"):
        compare(state, [parse_binding(text)], 9)
    assert [{"/a": "/d1"}] * 2 == slots(state, ["AUTO:/a:rw:4"], 9)


def test_the_plans_of_a_run_are_one_object() -> None:
    """A thousand equal slots cost one plan."""
    runs = place(fixture_a(), [parse_binding("AUTO:/a:rw:1G")], 1000)
    assert ["/data1", "/data0"] == [next(iter(plan[parse_binding("AUTO:/a:rw:1G")])) for _, plan, _ in runs]
    assert [724, 276] == [count for count, _, _ in runs]
    assert 1000 == len(enumerated(fixture_a(), [parse_binding("AUTO:/a:rw:1G")], 1000))
