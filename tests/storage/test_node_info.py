"""Reading, comparing, repairing and replacing a record (specification, storage 4.4, 5.5 to 5.7, 5.10 and 13.4)."""

from typing import Any

import pytest

from storage.verbs import GIB, TIB, WORKLOADS, Cluster, default_node, disk, resource


def test_info_of_an_unknown_node() -> None:
    """The answer is null, and so one of a node whose name only begins alike."""
    assert None is default_node().call("get-node-resource-info", nodename="nn")


def test_differences() -> None:
    """Usage and workloads are compared: storage, then stored devices, then new ones, then stored disks."""
    cluster = Cluster()
    usage = resource({"/b": 5, "/a": 1, "/z": 0}, [disk("w", ["/w"], 1, 2, 3, 4), disk("v", ["/v"])], 7)
    cluster.plant({"capacity": resource(), "usage": usage})
    workload = {
        "volume_plan_request": {"AUTO:/x:rw:3": {"/b": 3, "/q": 2}, "AUTO:/y:rw:1K": {"/c": 1, "/b": 2, "/k": 0}},
        "storage_request": 8,
        "disks_request": [disk("v", ["/other"], 5), disk("new", [], 1)],
    }
    info = cluster.call("get-node-resource-info", nodename="n", workloads_resource=[workload, {}])
    assert [
        "node.Storage != sum(workload.Storage): 7 != 8",
        "node.Volumes[/a] != sum(workload.Volumes[/a]): 1 != 0",
        "node.Volumes[/c] != sum(workload.Volumes[/c]): 0 != 1",
        "node.Volumes[/q] != sum(workload.Volumes[/q]): 0 != 2",
        "node.Disks[w] != sum(workload.Disks[w]): w:/w:1:2:3:4 != w:/w:0:0:0:0",
        "node.Disks[v] != sum(workload.Disks[v]): v:/v:0:0:0:0 != v:/v:5:0:0:0",
    ] == info["diffs"]
    assert usage == info["usage"]


def test_fix() -> None:
    """Usage becomes the workloads' sum; the answer has the differences found before."""
    cluster = default_node()
    expected = ["node.Storage != sum(workload.Storage): 0 != 1"]
    assert expected == cluster.call("get-node-resource-info", nodename="n", workloads_resource=WORKLOADS)["diffs"]
    fixed = cluster.call("fix-node-resource", nodename="n", workloads_resource=WORKLOADS)
    assert expected == fixed["diffs"]
    assert 1 == fixed["usage"]["storage"] == cluster.record()["usage"]["storage"]
    writes = cluster.store.writes
    assert [] == cluster.call("fix-node-resource", nodename="n", workloads_resource=WORKLOADS)["diffs"]
    assert writes == cluster.store.writes


def test_fix_drops_zeros() -> None:
    """Only what workloads mention is left of the usage."""
    cluster = Cluster()
    cluster.plant({"capacity": resource({"/a": 1}), "usage": resource({"/a": 0}, [], 3)})
    assert resource() == cluster.call("fix-node-resource", nodename="n")["usage"]


def test_fix_refused() -> None:
    """An unknown node, and a sum that no record may hold, are errors."""
    cluster = default_node()
    assert "key: other: node not exists" == cluster.refusal("fix-node-resource", nodename="other")
    workloads = [{"storage_request": 1, "disks_request": [disk("v", [], 1)]}]
    error = cluster.refusal("fix-node-resource", nodename="n", workloads_resource=workloads)
    assert "disk v not found in capacity: invalid disk" == error
    huge = [{"storage_request": 2**63 - 1}, {"storage_request": 1}]
    for verb in ("fix-node-resource", "get-node-resource-info"):
        error = cluster.refusal(verb, nodename="n", workloads_resource=huge)
        assert "storage is out of range: invalid storage" == error
    negative = [{"storage_request": -1}]
    assert "storage usage can't be negative: invalid storage" == cluster.refusal(
        "fix-node-resource", nodename="n", workloads_resource=negative
    )


def test_nodes_info() -> None:
    """Unknown nodes are listed with the empty record; names that only begin alike are others."""
    nodes = default_node().call("get-nodes-resource-info", nodenames=["n", "n1", "n"])["node_resource_info_map"]
    assert {"n", "n1"} == set(nodes)
    assert {"capacity": resource(), "usage": resource()} == nodes["n1"]
    assert 4 * TIB == nodes["n"]["capacity"]["storage"]


def set_info(cluster: Cluster, capacity: Any, usage: Any) -> Any:
    """Call the verb."""
    return cluster.call("set-node-resource-info", nodename="n", capacity=capacity, usage=usage)


def test_set_info_is_exact() -> None:
    """Both are stored as given; usage above capacity in storage, and of unknown devices, is legal."""
    cluster = default_node()
    assert {} == set_info(cluster, resource({"/data4": TIB}, [], TIB), resource({"/data3": TIB}, [], 4 * TIB))
    assert TIB == cluster.record()["capacity"]["storage"]
    assert resource({"/data3": TIB}, [], 4 * TIB) == cluster.record()["usage"]
    set_info(cluster, None, None)
    assert {"capacity": resource(), "usage": resource()} == cluster.record()


GOOD = resource({"/data0": GIB}, [disk("v", ["/"], 100)])


@pytest.mark.parametrize(
    ("usage", "error"),
    [
        (resource({"/data0": 2 * GIB}), "invalid size in usage: invalid volume"),
        (resource({"/data0": -1}), "invalid size in usage: invalid volume"),
        (resource(storage=-1), "storage usage can't be negative: invalid storage"),
        (
            resource(disks=[disk("v", [], 200)]),
            "disk IOPS / BPS usage can't be greater than capacity: invalid disk",
        ),
        (resource(disks=[disk("v", [], -1)]), "disk IOPS / BPS can't be negative: invalid disk"),
        (resource(disks=[disk("w", [], 0, 0, 0, 1)]), "disk w not found in capacity: invalid disk"),
        (
            resource({"/data0": 2 * GIB}, [], -1),
            "invalid size in usage: invalid volume; storage usage can't be negative: invalid storage",
        ),
        (
            resource({"/data0": 2 * GIB}, [disk("w", [], 1)], -1),
            "; ".join(
                [
                    "invalid size in usage: invalid volume",
                    "storage usage can't be negative: invalid storage",
                    "disk w not found in capacity: invalid disk",
                ]
            ),
        ),
    ],
)
def test_usage_refused(usage: Any, error: str) -> None:
    """All three checks run; their first faults are joined."""
    assert error == Cluster().refusal("set-node-resource-info", nodename="n", capacity=GOOD, usage=usage)


@pytest.mark.parametrize(
    ("capacity", "error"),
    [
        (resource({"/a": -1}), "volume size should not be less than 0: invalid volume"),
        (resource(storage=-1), "storage capacity can't be negative: invalid storage"),
        (resource(disks=[disk("v", [], 0, 0, -1)]), "disk IOPS / BPS can't be negative: invalid disk"),
    ],
)
def test_capacity_refused(capacity: Any, error: str) -> None:
    """A capacity below nothing is refused."""
    assert error == Cluster().refusal("set-node-resource-info", nodename="n", capacity=capacity)


def test_usage_disks_are_fitted() -> None:
    """Usage's disks get the capacity's mounts and order; unused ones that the capacity lacks are removed."""
    cluster = Cluster()
    usage = resource(disks=[disk("z", ["/z"]), disk("v", ["/old"], 5)])
    set_info(cluster, GOOD, usage)
    assert [disk("v", ["/"], 5)] == cluster.record()["usage"]["disks"]
