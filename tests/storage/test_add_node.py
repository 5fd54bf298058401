"""Adding a node, and what operators type for one (specification, storage 4.3, 5.1 and 13.4)."""

from typing import Any

import pytest

from storage.verbs import GIB, TIB, VDA, Cluster, disk, resource


def test_volumes_are_the_storage_when_none_is_given() -> None:
    """Storage is the sum of the volumes, not 80 % of the report; the answer has the capacity only."""
    cluster = Cluster()
    answer = cluster.call("add-node", nodename="n", resource={"volumes": ["/data0:1T"]}, info={"StorageTotal": 10**12})
    assert {"capacity": resource({"/data0": TIB}, [], TIB)} == answer
    assert {"capacity": resource({"/data0": TIB}, [], TIB), "usage": resource()} == cluster.record()
    assert "node already exists" == cluster.refusal("add-node", nodename="n", resource={"volumes": ["/data0:1T"]})


@pytest.mark.parametrize(
    ("info", "storage"),
    [
        ({"StorageTotal": 10**12}, 800000000000),
        ({"StorageTotal": 10**12, "Type": 5, "Resources": {"storage": "eyJzdG9yYWdlIjoxMH0="}}, 800000000000),
        ({"storage_total": 19}, 15),
        ({"StorageTotal": None, "storage_total": 10}, 0),
        ({"StorageTotal": 5, "storage_total": 10}, 4),
        ({"Resources": {"storage": "eyJzdG9yYWdlIjoxMH0="}}, 0),
        ({}, 0),
        (None, 0),
    ],
)
def test_storage_from_the_engines_report(info: dict[str, Any] | None, storage: int) -> None:
    """Without storage and volumes a node gets 80 % of the engine's total; nothing else of the report is looked at."""
    answer = Cluster().call("add-node", nodename="n", resource=None, info=info)
    assert {"capacity": resource(storage=storage)} == answer


def test_a_report_of_a_wrong_type() -> None:
    """The one member that is looked at must be an integer."""
    text = Cluster().refusal("add-node", nodename="n", info={"StorageTotal": "1T"})
    assert "decode plugin input: expected int, got str at $.info.StorageTotal" == text


@pytest.mark.parametrize(
    ("request_of_node", "expected"),
    [
        ({"volumes": ["/data0:1T", "/data1:1G"], "storage": "1G", "rm-disks": "/dev/vdb,/dev/vdc"}, TIB + 2 * GIB),
        ({"volumes": ["/data0:1G"], "storage": "100G"}, 101 * GIB),
        ({"volumes": ["/data0:1G"], "storage": 107374182400}, 101 * GIB),
        ({"volumes": ["/data0:1G", "/data0:2G"]}, 2 * GIB),
        ({"volumes": ["/data0:"], "storage": "+5"}, 5),
        ({"storage": 1.073741824e10}, 10 * GIB),
        ({"storage": "10737418240"}, 10 * GIB),
        ({"volumes": None, "storage": None, "disks": None, "rm-disks": None}, 0),
        ({"cpu": 3, "memory": "5G", "storage": "1"}, 1),
    ],
)
def test_node_requests(request_of_node: dict[str, Any], expected: int) -> None:
    """A node request's storage includes its volumes, whatever its spelling; other plugins' keys are ignored."""
    assert expected == Cluster().call("add-node", nodename="n", resource=request_of_node)["capacity"]["storage"]


@pytest.mark.parametrize(
    ("request_of_node", "error"),
    [
        ({"volumes": ["/data0"]}, "volume should have 2 parts: invalid volume"),
        ({"volumes": ["/data0:1:2"]}, "volume should have 2 parts: invalid volume"),
        ({"volumes": ["/data0:xx"]}, "invalid size: 'xx'"),
        ({"storage": "1x"}, "invalid suffix: 'x'"),
        ({"disks": ["x"]}, "wrong disk format: x, expected 6 parts, got 1: invalid disk"),
        ({"disks": [VDA, VDA]}, "duplicate disk /dev/vda: invalid disk"),
        ({"volumes": ["/data0:-1"], "storage": 1}, "volume size should not be less than 0: invalid volume"),
        ({"storage": -5}, "storage capacity can't be negative: invalid storage"),
        ({"disks": ["v:/:-1:0:0:0"]}, "disk IOPS / BPS can't be negative: invalid disk"),
        ({"volumes": ["/a:8191P", "/b:8191P"]}, "storage is out of range: invalid storage"),
        ({"volumes": {"/data0": 5}}, "decode plugin input: expected array, got object at $.resource.volumes"),
        ({"disks": [{"device": "v"}]}, "decode plugin input: expected str, got object at $.resource.disks[0]"),
        ({"storage": 1.5}, "decode plugin input: expected int, got float at $.resource.storage"),
        ({"storage": True}, "decode plugin input: expected int, got bool at $.resource.storage"),
        ({"storage": []}, "decode plugin input: expected int, got array at $.resource.storage"),
        ({"rm-disks": 5}, "decode plugin input: expected str, got int at $.resource.rm-disks"),
        ({"volumes": [None]}, "decode plugin input: expected str, got null at $.resource.volumes[0]"),
    ],
)
def test_node_requests_refused(request_of_node: dict[str, Any], error: str) -> None:
    """A fault names the item; nothing is written."""
    assert error == Cluster().refusal("add-node", nodename="n", resource=request_of_node)


def test_disks_are_stored_sorted() -> None:
    """Disks are written in the order of their devices."""
    texts = ["/dev/vdb:/b:1:2:3:4", "/dev/vda:/a:5:6:7:8"]
    answer = Cluster().call("add-node", nodename="n", resource={"disks": texts})
    assert [disk("/dev/vda", ["/a"], 5, 6, 7, 8), disk("/dev/vdb", ["/b"], 1, 2, 3, 4)] == answer["capacity"]["disks"]
