"""calculate-realloc (specification, storage 9 and 13.9)."""

from typing import Any

import pytest

from storage.verbs import GIB, TIB, Cluster, default_node, disk, resource
from storage.workloads import (
    EMPTY_ENGINE,
    EMPTY_WORKLOAD,
    GIB100,
    QUOTA_ROW,
    QUOTA_VOLUME,
    SHORTAGE,
    book,
    deploy,
    quota_node,
)

ORIGIN_TEXTS = [
    "AUTO:/dir0:rw:107374182400:0:0:0:0",
    "AUTO:/dir1:mrw:107374182400:0:0:0:0",
    "AUTO:/dir2:rw:0:0:0:0:0",
]
ORIGIN_PLAN = dict(zip(ORIGIN_TEXTS, [{"/data0": GIB100}, {"/data2": TIB}, {"/data0": 0}], strict=True))
ORIGIN: dict[str, Any] = {
    **EMPTY_WORKLOAD,
    "volumes_request": ORIGIN_TEXTS,
    "volumes_limit": ORIGIN_TEXTS,
    "volume_plan_request": ORIGIN_PLAN,
    "volume_plan_limit": ORIGIN_PLAN,
}


def booked_node() -> Cluster:
    """Return a cluster whose default node holds the origin."""
    cluster = default_node()
    book(cluster, [ORIGIN])
    return cluster


def realloc(cluster: Cluster, request: Any, origin: Any = ORIGIN, node: str = "n") -> Any:
    """Calculate a realloc."""
    keys = {"nodename": node, "workload_resource": origin, "workload_resource_request": request}
    return cluster.call("calculate-realloc", keys)


def realloc_refusal(cluster: Cluster, request: Any, origin: Any = ORIGIN, node: str = "n") -> str:
    """Return the text of a realloc that fails."""
    keys = {"nodename": node, "workload_resource": origin, "workload_resource_request": request}
    return cluster.refusal("calculate-realloc", keys)


@pytest.mark.parametrize(
    ("request_of_workload", "error"),
    [
        (
            {"volume-request": ORIGIN_TEXTS, "storage-request": -1, "storage-limit": -1},
            "storage limit or request less than 0: invalid storage",
        ),
        (
            {"volumes": ["AUTO:/dir0:rw:-100G"], "storage-request": -1, "storage-limit": -1},
            "storage limit or request less than 0: invalid storage",
        ),
        ({"volumes": ["AUTO:/dir1:rwm:100GiB"], "storage": "4T"}, SHORTAGE),
        ({"volumes": ["AUTO:/dir1:rwm:1TiB"]}, SHORTAGE),
        ({"volumes": ["AUTO:/dir0:ro:1G"]}, "duplicate destination /dir0: invalid volume"),
        (
            {"volumes": ["AUTO:/dir1:rwm:-100G"]},
            "monopoly volume requires a positive size: AUTO:/dir1:mrw:0:0:0:0:0: invalid volume",
        ),
        (
            {"volumes": ["AUTO:/dir0:rw:0:-1"]},
            "invalid io parameters: AUTO:/dir0:rw:107374182400:-1:0:0:0: invalid volume",
        ),
        ({"volumes-request": ["AUTO:/new:rw:1"]}, "different length of request and limit: invalid volume"),
    ],
)
def test_reallocs_refused(request_of_workload: Any, error: str) -> None:
    """The merged request is validated; any shortage has the one text."""
    assert error == realloc_refusal(booked_node(), request_of_workload)


def test_monopoly_and_storage_grow() -> None:
    """A monopoly binding keeps its device whatever its size; storages grow by both."""
    answer = realloc(booked_node(), {"volumes": ["AUTO:/dir1:rwm:100GiB"], "storage": "1GiB"})
    assert {
        "volumes": ["/data0:/dir0:rw:107374182400", "/data2:/dir1:rw:1099511627776", "/data0:/dir2:rw:0"],
        "volume_changed": False,
        "storage": 108447924224,
        "iops_options": {},
    } == answer["engine_params"]
    assert {
        "AUTO:/dir0:rw:107374182400:0:0:0:0": {"/data0": GIB100},
        "AUTO:/dir1:mrw:214748364800:0:0:0:0": {"/data2": TIB},
        "AUTO:/dir2:rw:0:0:0:0:0": {"/data0": 0},
    } == answer["workload_resource"]["volume_plan_request"]
    assert {
        **EMPTY_WORKLOAD,
        "volume_plan_request": {"fake-source:fake-destination:fake-flags:0:0:0:0:0": {"/data0": 0, "/data2": 0}},
        "storage_request": 108447924224,
    } == answer["delta_resource"]


@pytest.mark.parametrize("node", ["n", "unknown"])
def test_storage_alone_leaves_plans(node: str) -> None:
    """Without scheduled bindings in the request the plan stays, whatever became of its devices (15, 15)."""
    cluster = booked_node()
    if node == "unknown":
        cluster.plant({"capacity": resource(storage=TIB), "usage": resource()}, node)
    answer = realloc(cluster, {"storage": "1GiB"}, node=node)
    assert answer["engine_params"]["volume_changed"] is False
    assert ORIGIN_PLAN == answer["workload_resource"]["volume_plan_request"]
    assert (GIB, GIB) == (answer["workload_resource"]["storage_request"], answer["workload_resource"]["storage_limit"])
    delta = answer["delta_resource"]["volume_plan_request"]
    assert [{"/data0": 0, "/data2": 0}] == list(delta.values())


def test_realloc_on_an_unknown_node() -> None:
    """An unknown node has no storage to give; nothing can be asked of it all the same."""
    assert SHORTAGE == realloc_refusal(Cluster(), {"storage": "1G"}, {"storage_request": 5, "storage_limit": 5})
    answer = realloc(Cluster(), None, None)
    assert {
        "engine_params": EMPTY_ENGINE,
        "delta_resource": EMPTY_WORKLOAD,
        "workload_resource": EMPTY_WORKLOAD,
    } == answer


def booked_quota_node() -> tuple[Cluster, Any]:
    """Return the node and the workload of the last row of 13.6, booked."""
    cluster = quota_node()
    answer = deploy(cluster, {"volumes": [QUOTA_VOLUME]})
    book(cluster, answer["workloads_resource"])
    return cluster, answer["workloads_resource"][0]


def test_rows_stay_when_only_storage_grows() -> None:
    """Disk rows are untouched; their difference is zeros, with the mounts."""
    cluster, origin = booked_quota_node()
    answer = realloc(cluster, {"storage": "1GiB"}, origin)
    assert (108447924224, 108447924224) == (
        answer["workload_resource"]["storage_request"],
        answer["workload_resource"]["storage_limit"],
    )
    assert [QUOTA_ROW] == answer["workload_resource"]["disks_request"]
    assert [disk("/dev/vda", ["/data0"])] == answer["delta_resource"]["disks_request"]


def test_quotas_grow() -> None:
    """A quota more is on every row, and the difference is only that."""
    cluster, origin = booked_quota_node()
    answer = realloc(cluster, {"volumes": ["AUTO:/dir0:rw:0:50:0:0:0"]}, origin)
    row = disk("/dev/vda", ["/data0"], 150, 100, 1048576, 1048576)
    assert [row] == answer["workload_resource"]["disks_request"] == answer["workload_resource"]["disks_limit"]
    assert {"/dev/vda": "150:100:1048576:1048576"} == answer["engine_params"]["iops_options"]
    assert [disk("/dev/vda", ["/data0"], 50)] == answer["delta_resource"]["disks_request"]
    assert [{"/data0": 0}] == list(answer["delta_resource"]["volume_plan_request"].values())


def test_shrunk_below_nothing() -> None:
    """Storage that would be negative is refused even where the volume disappears."""
    cluster, origin = booked_quota_node()
    error = realloc_refusal(cluster, {"volumes": ["AUTO:/dir0:rw:-200G"]}, origin)
    assert "storage limit or request less than 0: invalid storage" == error


@pytest.mark.parametrize("devices", [{}, None, {"/data0": 1, "/data1": 2}])
@pytest.mark.parametrize("member", ["volume_plan_request", "volume_plan_limit"])
def test_malformed_origins(member: str, devices: Any) -> None:
    """A workload's plan has exactly one device in each entry."""
    error = realloc_refusal(booked_node(), {"storage": 1}, {**ORIGIN, member: {ORIGIN_TEXTS[0]: devices}})
    assert "a volume plan entry needs exactly one device: invalid volume" == error


@pytest.mark.parametrize(
    ("origin", "request_of_workload", "error"),
    [
        (
            {"storage_request": 2**63 - 1, "storage_limit": 2**63 - 1},
            {"storage": 1},
            "storage is out of range: invalid storage",
        ),
        (
            {"volumes_request": ["AUTO:/a:rw:8191P"], "volumes_limit": ["AUTO:/a:rw:8191P"]},
            {"volumes": ["AUTO:/a:rw:8191P"]},
            "volume size is out of range: invalid volume",
        ),
        (
            {"volumes_request": ["/a:/a:rw:0:8191P"], "volumes_limit": ["/a:/a:rw:0:8191P"]},
            {"volumes": ["/a:/a:rw:0:8191P"]},
            "disk IOPS / BPS is out of range: invalid disk",
        ),
    ],
)
def test_reallocs_beyond_int64(origin: Any, request_of_workload: Any, error: str) -> None:
    """Sums that no answer can hold fail."""
    assert error == realloc_refusal(booked_node(), request_of_workload, origin)


def test_a_volume_keeps_its_disk() -> None:
    """A larger volume is refused when its disk is full, though another is free (fault 45)."""
    cluster = Cluster()
    cluster.call("add-node", nodename="n", resource={"volumes": ["/data0:10", "/data1:100"]})
    answer = deploy(cluster, {"volumes": ["AUTO:/a:rw:10"]})
    book(cluster, answer["workloads_resource"])
    assert {"/data0": 10} == cluster.record()["usage"]["volumes"]
    assert SHORTAGE == realloc_refusal(cluster, {"volumes": ["AUTO:/a:rw:1"]}, answer["workloads_resource"][0])


def test_limits_follow_in_a_realloc() -> None:
    """Unlike in a deploy, planned limits have limit - request added (15, 9)."""
    cluster = quota_node()
    workload = deploy(cluster, {"volumes": ["AUTO:/a:rw:5"]})["workloads_resource"][0]
    book(cluster, [workload])
    request = {"volume-request": ["AUTO:/a:rw:1"], "volume-limit": ["AUTO:/a:rw:10"]}
    changed = realloc(cluster, request, workload)["workload_resource"]
    assert {"AUTO:/a:rw:6:0:0:0:0": {"/data0": 6}} == changed["volume_plan_request"]
    assert {"AUTO:/a:rw:15:0:0:0:0": {"/data0": 15}} == changed["volume_plan_limit"]


def test_volume_changed() -> None:
    """A new binding, one less, or another device is a change for the engine; a size is none."""
    cluster = quota_node()
    workload = deploy(cluster, {"volumes": ["AUTO:/a:rw:5", "/mnt:/b:ro"]})["workloads_resource"][0]
    book(cluster, [workload])
    for request, changed in (
        ({"volumes": ["AUTO:/a:rw:7"]}, False),
        ({"volumes": ["AUTO:/c:rw:7"]}, True),
        ({"volumes": ["AUTO:/a:rw:-6"], "storage": 1}, True),
        ({"volumes": ["/mnt:/c:ro"]}, True),
        ({"storage": 1}, False),
    ):
        assert changed is realloc(cluster, request, workload)["engine_params"]["volume_changed"]
