"""calculate-deploy (specification, storage 8 and 13.6)."""

from typing import Any

import pytest

from storage.verbs import GIB, TIB, Cluster, default_node, disk, resource
from storage.workloads import (
    EMPTY_ENGINE,
    EMPTY_WORKLOAD,
    QUOTA_ROW,
    QUOTA_VOLUME,
    SHORTAGE,
    book,
    capacity,
    deploy,
    deploy_refusal,
    quota_node,
)


@pytest.mark.parametrize(
    ("request_of_workload", "count", "error"),
    [
        ({"storage": "-1"}, 10, "storage limit or request less than 0: invalid storage"),
        (
            {"volumes": ["AUTO:/dir0:rwm:10T"]},
            10,
            f"not enough storage, request: 10995116277760, available: 0: {SHORTAGE}",
        ),
        (
            {"volumes": ["AUTO:/dir0:rwm:1T"]},
            10,
            f"not enough storage, request: 1099511627776, available: 4: {SHORTAGE}",
        ),
        ({"volumes": ["AUTO:/dir0:rwm:1G"]}, 10, f"not enough volume plan, need 10, available 4: {SHORTAGE}"),
    ],
)
def test_deploys_refused(request_of_workload: Any, count: int, error: str) -> None:
    """All or nothing; the text says what is short."""
    assert error == deploy_refusal(default_node(), request_of_workload, count)


def test_deploy_of_a_whole_device() -> None:
    """A monopoly binding gets a device, and its size is the device's."""
    key = "AUTO:/dir0:mrw:1099511627776:0:0:0:0"
    plan = {key: {"/data0": TIB}}
    assert {
        "engines_params": [
            {
                "volumes": ["/data0:/dir0:rw:1099511627776"],
                "volume_changed": False,
                "storage": TIB,
                "iops_options": {},
            }
        ],
        "workloads_resource": [
            {
                **EMPTY_WORKLOAD,
                "volumes_request": [key],
                "volumes_limit": [key],
                "volume_plan_request": plan,
                "volume_plan_limit": plan,
                "storage_request": TIB,
                "storage_limit": TIB,
            }
        ],
    } == deploy(default_node(), {"volumes": ["AUTO:/dir0:rwm:1T"]})


def test_deploy_of_storage_alone() -> None:
    """Ten equal workloads get ten equal answers."""
    assert [{**EMPTY_ENGINE, "storage": GIB}] * 10 == deploy(default_node(), {"storage": "1073741824"}, 10)[
        "engines_params"
    ]


@pytest.mark.parametrize("count", [0, -1])
def test_deploy_of_none(count: int) -> None:
    """A count of 0 or less gives two empty lists, on any node."""
    nothing: dict[str, Any] = {"engines_params": [], "workloads_resource": []}
    assert nothing == deploy(default_node(), {"storage": "1G"}, count)
    assert nothing == deploy(Cluster(), {"volumes": ["AUTO:/a:rw:1"]}, count, "unknown")


def test_deploy_on_an_unknown_node() -> None:
    """An unknown node holds what asks for nothing, and nothing else."""
    error = f"not enough storage, request: 1073741824, available: 0: {SHORTAGE}"
    assert error == deploy_refusal(Cluster(), {"storage": "1G"}, node="unknown")
    answer = deploy(Cluster(), None, 2, "unknown")
    assert {"engines_params": [EMPTY_ENGINE] * 2, "workloads_resource": [EMPTY_WORKLOAD] * 2} == answer


def test_deploy_with_quotas() -> None:
    """Quotas show in the engine's volumes and options and in both rows."""
    answer = deploy(quota_node(), {"volumes": [QUOTA_VOLUME]})
    assert {
        "volumes": ["/data0:/dir0:rw:107374182400:100:100:1048576:1048576"],
        "volume_changed": False,
        "storage": 107374182400,
        "iops_options": {"/dev/vda": "100:100:1048576:1048576"},
    } == answer["engines_params"][0]
    workload = answer["workloads_resource"][0]
    assert [QUOTA_ROW] == workload["disks_request"] == workload["disks_limit"]


def test_limits_have_their_own_rows() -> None:
    """Limit rows sum the limits' quotas, mounts first; the planned bytes do not follow the limit in a deploy."""
    workload = deploy(
        quota_node(),
        {
            "volume-request": ["AUTO:/a:rw:1G:1:0:0:0", "/data0/x:/b:rw", "/elsewhere:/c:rw"],
            "volume-limit": ["AUTO:/a:rw:5G:7:0:0:0", "/data0/x:/b:rw:0:0:9:0:0", "/elsewhere:/c:rw:0:5:0:0:0"],
        },
    )["workloads_resource"][0]
    assert [disk("/dev/vda", ["/data0"], 1)] == workload["disks_request"]
    assert [disk("/dev/vda", ["/data0"], 7, 9)] == workload["disks_limit"]
    assert {"AUTO:/a:rw:5368709120:7:0:0:0": {"/data0": GIB}} == workload["volume_plan_limit"]


def test_limit_rows_beyond_int64() -> None:
    """Limits whose sum no answer can hold fail."""
    error = deploy_refusal(
        quota_node(),
        {
            "volume-request": ["AUTO:/a:rw:1:1", "AUTO:/b:rw:1:1"],
            "volume-limit": ["AUTO:/a:rw:1:9223372036854775807", "AUTO:/b:rw:1:1"],
        },
    )
    assert "disk IOPS / BPS is out of range: invalid disk" == error


def test_max_deploy_count_does_not_bound_a_deploy() -> None:
    """The cap is the capacity query's alone (15, 6)."""
    cluster = default_node(max_deploy_count=2)
    assert 2 == capacity(cluster, {"storage": "1G"})["total"]
    assert 3 == len(deploy(cluster, {"storage": "1G"}, 3)["engines_params"])


def test_two_workloads_are_not_put_on_one_full_volume() -> None:
    """Each placed request lowers what is left before the next is placed, within a call and across calls (fault 40)."""
    cluster = Cluster()
    size, used = 943819063296, 721554505728
    devices = {f"/mnt/{i}": size for i in range(7)}
    usage = resource(dict.fromkeys(devices, used), [], 7 * used)
    cluster.plant({"capacity": resource(devices, [], 7 * size), "usage": usage})
    request = {"volumes": ["AUTO:/data:rw:200G"]}
    both = [each["volumes"] for each in deploy(cluster, request, 2)["engines_params"]]
    assert [["/mnt/0:/data:rw:214748364800"], ["/mnt/1:/data:rw:214748364800"]] == both
    for expected in both:
        answer = deploy(cluster, request)
        assert expected == answer["engines_params"][0]["volumes"]
        book(cluster, answer["workloads_resource"])
    assert all(taken <= size for taken in cluster.record()["usage"]["volumes"].values())
