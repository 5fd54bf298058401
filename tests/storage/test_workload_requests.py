"""Requests of workloads: spellings, limits, faults (specification, storage 6 and 13.1)."""

from typing import Any

import pytest

from storage.verbs import GIB, Cluster
from storage.workloads import (
    deploy,
    deploy_refusal,
    held,
)


def roomy_node() -> Cluster:
    """Return a cluster with a node that holds more than any request here asks for."""
    cluster = Cluster()
    cluster.call(
        "add-node",
        nodename="n",
        resource={"volumes": ["/data0:1P", "/data1:1P"], "disks": ["/dev/vda:/:1000000:1000000:1T:1T"]},
    )
    return cluster


def storages(request: Any) -> tuple[int, int]:
    """Return the storage request and limit that a deploy books."""
    workload = deploy(roomy_node(), request)["workloads_resource"][0]
    return workload["storage_request"], workload["storage_limit"]


@pytest.mark.parametrize(
    ("request_of_workload", "expected"),
    [
        ({"storage": "2G"}, (2 * GIB, 2 * GIB)),
        ({"storage": 2147483648}, (2 * GIB, 2 * GIB)),
        ({"storage": None, "storage-request": "1G"}, (0, 0)),
        ({"storage": 1, "storage-request": "1G", "storage-limit": "2G"}, (1, 1)),
        ({"storage-request": "1G"}, (GIB, 0)),
        ({"storage-limit": "1G"}, (GIB, GIB)),
        ({"storage-request": "2G", "storage-limit": "1G"}, (2 * GIB, 2 * GIB)),
        ({"volumes": ["AUTO:/dir:rw:1G"], "storage-request": "1G"}, (2 * GIB, GIB)),
        ({"volume-limit": ["AUTO:/d:rw:100G"], "storage-limit": "150G"}, (250 * GIB, 250 * GIB)),
        ({"volume-limit": ["AUTO:/d:rw:100G"], "storage-request": "10G"}, (110 * GIB, 100 * GIB)),
        ({"cpu": 1, "memory": "1G", "storage": 1}, (1, 1)),
        (None, (0, 0)),
    ],
)
def test_storages(request_of_workload: Any, expected: tuple[int, int]) -> None:
    """Request and limit fill each other and have the volumes folded in, once."""
    assert expected == storages(request_of_workload)


@pytest.mark.parametrize(
    ("keys", "request_list", "limit_list"),
    [
        ({"volumes": ["/a:/a"]}, ["/a:/a"], ["/a:/a"]),
        ({"volume": ["/a:/a"], "volume-limit": ["/b:/b"]}, ["/a:/a"], ["/a:/a"]),
        ({"volumes": [], "volume": None, "volume-limit": ["/b:/b"]}, ["/b:/b"], ["/b:/b"]),
        ({"volumes-limit": ["/b:/b"]}, ["/b:/b"], ["/b:/b"]),
        ({"volumes": ["/a:/a"], "volume": ["/b:/b"], "volume-limit": ["/c:/c"]}, ["/a:/a"], ["/a:/a"]),
        ({"volumes-request": ["/a:/a"], "volume-request": ["/b:/b"], "volumes": ["/a:/a"]}, ["/a:/a"], ["/a:/a"]),
        ({"volumes-request": [], "volume-request": ["/a:/a"], "volumes": ["/a:/a:rw:5"]}, ["/a:/a"], ["/a:/a"]),
    ],
)
def test_spellings(keys: Any, request_list: list[str], limit_list: list[str]) -> None:
    """The first key that holds a non-empty list counts; without a request list the limit is the request."""
    workload = held(keys)
    assert request_list == [text.split(":rw")[0] for text in workload["volumes_request"]]
    assert limit_list == [text.split(":rw")[0] for text in workload["volumes_limit"]]


def test_limits_are_raised_to_requests() -> None:
    """Sizes and quotas of a limit are at least those of its request; a limit size of 0 stays 0."""
    workload = deploy(
        roomy_node(),
        {
            "volume-request": ["AUTO:/dir:rw:2G:100:100:0:0", "AUTO:/e:rw:5"],
            "volume-limit": ["AUTO:/e:rw:0", "AUTO:/dir:rw:1G:50:50:0:0"],
            "storage-request": "2G",
            "storage-limit": "1G",
        },
    )["workloads_resource"][0]
    assert ["AUTO:/dir:rw:2147483648:100:100:0:0", "AUTO:/e:rw:0:0:0:0:0"] == workload["volumes_limit"]
    assert (4 * GIB + 5, 4 * GIB) == (workload["storage_request"], workload["storage_limit"])


@pytest.mark.parametrize(
    ("request_of_workload", "error"),
    [
        (
            {"volumes": ["AUTO:/dir:mrw"]},
            "monopoly volume requires a positive size: AUTO:/dir:mrw:0:0:0:0:0: invalid volume",
        ),
        (
            {"volumes": ["AUTO:/dir:mrw:0:100:100:1M:1M"]},
            "monopoly volume requires a positive size: AUTO:/dir:mrw:0:100:100:1048576:1048576: invalid volume",
        ),
        (
            {"volumes": ["AUTO:/dir:mrw:-1G"]},
            "monopoly volume requires a positive size: AUTO:/dir:mrw:-1073741824:0:0:0:0: invalid volume",
        ),
        ({"volumes": ["AUTO:/d:rw:-1G"]}, "negative size: AUTO:/d:rw:-1073741824:0:0:0:0: invalid volume"),
        ({"volumes": ["/s:/d:rw:-1G"]}, "negative size: /s:/d:rw:-1073741824:0:0:0:0: invalid volume"),
        (
            {"volumes": ["AUTO:/dir:rw:1G:-1"]},
            "invalid io parameters: AUTO:/dir:rw:1073741824:-1:0:0:0: invalid volume",
        ),
        ({"volumes": ["AUTO:/d:rw:10G:-1"]}, "invalid io parameters: AUTO:/d:rw:10737418240:-1:0:0:0: invalid volume"),
        ({"volumes": ["AUTO:/d:rw:1G", "/x:/d"]}, "duplicate destination /d: invalid volume"),
        (
            {"volume-request": ["AUTO:/a:rw:1", "AUTO:/b:rw:1"], "volume-limit": ["AUTO:/a:rw:1"]},
            "different length of request and limit: invalid volume",
        ),
        ({"volumes-request": ["AUTO:/a:rw:1"]}, "different length of request and limit: invalid volume"),
        (
            {"volumes-request": ["AUTO:/dir1:rw:1G"], "volumes": ["AUTO:/other:rw:1G"]},
            "request and limit not match: invalid volume",
        ),
        ({"storage": "-1"}, "storage limit or request less than 0: invalid storage"),
        ({"storage-request": 1, "storage-limit": -1}, "storage limit or request less than 0: invalid storage"),
        ({"storage": "-1", "volumes": ["AUTO:/d:rw:-1"]}, "negative size: AUTO:/d:rw:-1:0:0:0:0: invalid volume"),
        ({"volumes": ["/a"]}, "/a: invalid volume"),
        ({"volumes": ["a:b:c:d:e:f:g:h:i"]}, "a:b:c:d:e:f:g:h:i: invalid volume"),
        ({"volumes": ["AUTO:/d:rw:1x"]}, "invalid suffix: 'x'"),
        ({"storage": "lots"}, "invalid size: 'lots'"),
        ({"volumes": ["AUTO:/a:rw:8191P", "AUTO:/b:rw:8191P"]}, "storage is out of range: invalid storage"),
        ({"volume": "AUTO:/a"}, "decode plugin input: expected array, got str at $.workload_resource_request.volume"),
        ({"storage": {}}, "decode plugin input: expected int, got object at $.workload_resource_request.storage"),
    ],
)
def test_requests_refused(request_of_workload: Any, error: str) -> None:
    """A fault names the item, before any record is read, in a deploy and in a capacity query."""
    assert error == deploy_refusal(Cluster(), request_of_workload)
    text = Cluster().refusal("get-nodes-deploy-capacity", nodenames=["n"], workload_resource=request_of_workload)
    assert error == text.replace("workload_resource.", "workload_resource_request.")
