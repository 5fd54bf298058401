"""Where a changed workload lies: the worked examples (specification, storage 9.2 to 9.4 and 13.8)."""

import pytest

from resource_extend.storage.affinity import Unplaceable, replan
from resource_extend.storage.binding import parse_binding
from resource_extend.storage.disk import Disk
from resource_extend.storage.merge import merge
from resource_extend.storage.resource import Record, Resource
from storage.comparison import compare_affinity
from storage.verbs import GIB, TIB

GIB100 = 100 * GIB
MIB100 = 100 << 20

PLAN = {
    parse_binding("AUTO:/dir0:rw:100GiB:100:100:100M:100M"): {"/data0": GIB100},
    parse_binding("AUTO:/dir1:mrw:100GiB"): {"/data2": TIB},
    parse_binding("AUTO:/dir2:rw:0"): {"/data0": 0},
}


def node(data3_used: int = 0) -> Record:
    """Fixture A with the origin booked."""
    usage = {"/data0": 300 * GIB, "/data1": 300 * GIB, "/data2": TIB, "/data3": data3_used}
    return Record(
        Resource(
            {f"/data{i}": TIB for i in range(4)},
            [Disk("vda", ["/", "/data"], 1000, 1000, GIB, GIB), Disk("vdb", ["/data1"], 0, 0, GIB, GIB)],
        ),
        Resource(usage, [Disk("vda", ["/", "/data"], 100, 100, MIB100, MIB100)]),
    )


def replanned(record: Record, texts: list[str]) -> dict[str, tuple[int, str, int]]:
    """Change the origin; return destination -> (size, device, bytes), and see that the disk row is the origin's."""
    origin = list(PLAN)
    merged = merge([parse_binding(text) for text in texts], origin)
    compare_affinity(record, merged, origin, PLAN)
    plan, rows = replan(record, merged, origin, PLAN)
    assert [Disk("vda", ["/", "/data"], 100, 100, MIB100, MIB100)] == rows
    return {binding.destination: (binding.size, *next(iter(devices.items()))) for binding, devices in plan.items()}


UNCHANGED = {
    "/dir0": (GIB100, "/data0", GIB100),
    "/dir1": (GIB100, "/data2", TIB),
    "/dir2": (0, "/data0", 0),
}


@pytest.mark.parametrize(
    ("texts", "changes"),
    [
        ([], {}),
        (["AUTO:/dir0:rw:1GiB"], {"/dir0": (108447924224, "/data0", 108447924224)}),
        (["AUTO:/dir3:rw:1GiB"], {"/dir3": (GIB, "/data0", GIB)}),
        (["AUTO:/dir1:rwm:1GiB"], {"/dir1": (108447924224, "/data2", TIB)}),
        (
            ["AUTO:/dir1:rwm:1GiB", "AUTO:/dir3:rwm:1GiB"],
            {"/dir1": (108447924224, "/data2", 1088732102013), "/dir3": (GIB, "/data2", 10779525763)},
        ),
        (
            ["AUTO:/dir1:rwm:-1TiB", "AUTO:/dir3:rwm:100GiB", "AUTO:/dir4:rwm:100GiB"],
            {
                "/dir1": None,
                "/dir3": (GIB100, "/data3", 549755813888),
                "/dir4": (GIB100, "/data3", 549755813888),
            },
        ),
        (["AUTO:/dir0:rw:-100GiB"], {"/dir0": (0, "/data0", 0)}),
        (
            ["AUTO:/dir0:rw:-100GiB", "AUTO:/dir2:rw:100GiB", "AUTO:/dir3:rwm:100GiB"],
            {
                "/dir0": (0, "/data0", 0),
                "/dir1": (GIB100, "/data2", 549755813888),
                "/dir2": (GIB100, "/data0", GIB100),
                "/dir3": (GIB100, "/data2", 549755813888),
            },
        ),
    ],
)
def test_what_a_workload_keeps_stays(texts: list[str], changes: dict[str, tuple[int, str, int] | None]) -> None:
    """Bindings keep their devices, new ones get theirs by the scheduler, freed devices are not fresh ones."""
    expected = {key: value for key, value in {**UNCHANGED, **changes}.items() if value is not None}
    assert expected == replanned(node(), texts)


@pytest.mark.parametrize(
    ("data3_used", "texts"),
    [
        (0, ["AUTO:/dir0:rw:1TiB"]),
        (0, ["AUTO:/dir1:rwm:1TiB"]),
        (0, ["AUTO:/dir3:rw:1TiB", "AUTO:/dir4:rw:1TiB"]),
        (TIB, ["AUTO:/dir0:rw:800GiB"]),
        (TIB, ["AUTO:/dir10:rw:800GiB"]),
    ],
)
def test_no_room(data3_used: int, texts: list[str]) -> None:
    """What does not fit where it must lie, or nowhere else, fails."""
    record, origin = node(data3_used), list(PLAN)
    merged = merge([parse_binding(text) for text in texts], origin)
    assert False is compare_affinity(record, merged, origin, PLAN)
    with pytest.raises(Unplaceable):
        replan(record, merged, origin, PLAN)


def test_a_device_that_is_gone() -> None:
    """A workload on a device that the node no longer has cannot be placed anew."""
    record = node()
    del record.capacity.volumes["/data2"]
    with pytest.raises(Unplaceable):
        replan(record, list(PLAN), list(PLAN), PLAN)


def test_a_mount_without_a_disk() -> None:
    """A quota that no disk can take back fails; one that no disk can give fails."""
    mount = parse_binding("relative:/m:rw:0:5")
    for origin, merged in (([mount], [*PLAN]), ([], [*PLAN, mount])):
        with pytest.raises(Unplaceable):
            replan(node(), merged, origin, {})


def test_nothing_left_to_place() -> None:
    """A list that needs no scheduling has no plan and no rows, whatever the origin had."""
    assert ({}, []) == replan(node(), [parse_binding("/a:/b")], list(PLAN), PLAN)
