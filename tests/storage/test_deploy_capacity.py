"""get-nodes-deploy-capacity, also over records in odd forms (specification, storage 5.3 and 13.5)."""

from typing import Any

import pytest

from storage.verbs import DEFAULT_NODE, Cluster, default_node, resource
from storage.workloads import (
    capacity,
)

TEN = [f"n{i}" for i in range(10)]


def ten_nodes() -> Cluster:
    """Return a cluster of ten default nodes."""
    cluster = Cluster()
    for node in TEN:
        cluster.call("add-node", nodename=node, resource=DEFAULT_NODE)
    return cluster


@pytest.mark.parametrize(
    ("request_of_workload", "total", "each"),
    [
        ({"storage": "1099511627776"}, 40, {"capacity": 4, "usage": 0, "rate": 0.25, "weight": 1}),
        ({"storage": "1G"}, 1000, {"capacity": 100, "usage": 0, "rate": 0.000244140625, "weight": 1}),
        ({"volumes": ["AUTO:/dir0:rwm:1G"]}, 40, {"capacity": 4, "usage": 0, "rate": 0.000244140625, "weight": 1}),
        (
            {"volumes": ["AUTO:/dir0:rwm:1G"], "storage": "1T"},
            30,
            {"capacity": 3, "usage": 0, "rate": 0.000244140625, "weight": 1},
        ),
        ({}, 1000, {"capacity": 100, "usage": 0, "rate": 0, "weight": 1}),
    ],
)
def test_capacity(request_of_workload: Any, total: int, each: dict[str, Any]) -> None:
    """Ten equal nodes give ten equal answers."""
    expected = {"nodes_deploy_capacity_map": dict.fromkeys(TEN, each), "total": total}
    assert expected == capacity(ten_nodes(), request_of_workload, TEN)


@pytest.mark.parametrize("request_of_workload", [{"storage": "1"}, {"volumes": ["AUTO:/d:rw"]}])
def test_capacity_of_an_unknown_node(request_of_workload: Any) -> None:
    """A node without storage takes nothing that asks for some, and is left out."""
    expected = {"nodes_deploy_capacity_map": {}, "total": 0}
    assert expected == capacity(Cluster(), request_of_workload, ["unknown"])


@pytest.mark.parametrize("request_of_workload", [None, {"volumes": ["/a:/d"]}])
def test_capacity_of_an_unknown_node_for_nothing(request_of_workload: Any) -> None:
    """A node without storage takes any number of workloads that ask for none; ratios of nothing are 0."""
    answer = capacity(default_node(), request_of_workload, ["unknown", "n", "unknown"])
    assert {"capacity": 100, "usage": 0, "rate": 0, "weight": 1} == answer["nodes_deploy_capacity_map"]["unknown"]
    assert 200 == answer["total"]


def test_capacity_of_an_overbooked_node() -> None:
    """What is available is rounded toward zero; a node with less than nothing is left out."""
    cluster = Cluster()
    for used, left_out in ((10, True), (14, True), (6, False)):
        cluster.plant({"capacity": resource(storage=9), "usage": resource(storage=used)})
        assert left_out is (capacity(cluster, {"storage": 3})["total"] == 0)


def test_ratios_are_of_doubles() -> None:
    """Both numbers become doubles before they are divided."""
    cluster = Cluster()
    whole = 9007199254740993
    cluster.plant({"capacity": resource(storage=whole), "usage": resource(storage=whole - 2)})
    answer = capacity(cluster, {"storage": 1})["nodes_deploy_capacity_map"]["n"]
    assert float(whole - 2) / float(whole) == answer["usage"]


ODD = {
    "spaces": b' {"capacity": {"storage": 9}, "usage": {"storage": 0}}',
    "order": b'{"usage":{"storage":0},"capacity":{"storage":9}}',
    "doubled": b'{"capacity":{"storage":1},"usage":{"storage":0},"capacity":{"storage":9}}',
    "more": b'{"capacity":{"storage":9},"usage":{"storage":0},"extra":1}',
    "usage twice": b'{"capacity":{"storage":9},"usage":{"storage":9},"usage":{"storage":0}}',
    "inside": b'{"capacity":{"storage":9,"x":{"capacity":{},"usage":{"storage":5}}},"usage":{"storage":0}}',
    "in a text": b'{"capacity":{"storage":9,"x":",\\"usage\\":"},"usage":{"storage":0}}',
    "floats": b'{"capacity":{"storage":9.0},"usage":{"storage":0e1}}',
    "nulls": b'{"capacity":{"storage":9,"volumes":null,"disks":null},"usage":null}',
    "no usage": b'{"capacity":{"storage":9}}',
    "newline": b'{"capacity":{"storage":9},"usage":{"storage":0}}\n',
    "letters": '{"capacity":{"storage":9},"usage":{"storage":0,"x":"naïve 节点"}}'.encode(),
    "escapes": b'{"capacity":{"storage":9},"usage":{"storage":0,"x":"\\\\ud \\ud83d\\ude00"}}',
    "long numbers": b'{"capacity":{"storage":9},"usage":{"storage":0,"x":%s}}' % (b"9" * 50),
    "usual": b'{"capacity":{"storage":9},"usage":{"storage":0}}',
}


def test_records_in_odd_forms() -> None:
    """However a record is written, its node's answer is the same, whatever records stand beside it."""
    cluster = Cluster()
    cluster.store.values = {**ODD, "usual again": ODD["usual"]}
    nodes = list(cluster.store.values)
    for asked in (nodes, nodes[::-1], ["usual", *nodes]):
        answer = capacity(cluster, {"storage": 2}, asked)
        assert dict.fromkeys(nodes, 4) == {
            node: each["capacity"] for node, each in answer["nodes_deploy_capacity_map"].items()
        }


def test_records_that_end_alike() -> None:
    """Records that differ only where they begin are told apart, in whichever order they come."""
    cluster = Cluster()
    usage = resource(volumes={f"/data{number}": 1 for number in range(20)}, storage=20)
    for node, size in (("a", 8), ("b", 6), ("c", 8)):
        cluster.plant({"capacity": resource(volumes={"/data0": size}, storage=999), "usage": usage}, node)
    for nodes in (["a", "b", "c"], ["b", "a", "c"]):
        answers = capacity(cluster, {"volumes": ["AUTO:/d:rw:1"]}, nodes)["nodes_deploy_capacity_map"]
        assert {"a": 7, "b": 5, "c": 7} == {node: answer["capacity"] for node, answer in answers.items()}


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"{",
        b"[]",
        b'{"capacity":{"storage":9},"usage":{"storage":0}',
        b'{"capacity":{"storage":9},"usage":{"storage":0}}}',
        b'{"capacity":{"storage":9},"usage":{"storage":"0"}}',
        b'{"capacity":{"storage":9]},"usage":{"storage":0}}',
        b'{"capacity":{"storage":9223372036854775808},"usage":{"storage":0}}',
        b'{"capacity":{"storage":9,"x":"\xff"},"usage":{"storage":0}}',
        b'{"capacity":{"storage":9,"volumes":{"a":1.5}},"usage":{"storage":0}}',
        b'{"capacity":{"storage":9},"usage":{"disks":[null]}}',
        b'{"capacity":{"storage":9},"usage":{"storage":9223372036854775808}}',
        b'{"capacity":{"storage":9},"usage":{"volumes":{"/gone":9223372036854775808}}}',
        b'{"capacity":{"storage":9},"usage":{"disks":[{"device":"v","read_bps":-9223372036854775809}]}}',
        b'{"capacity":{"storage":9},"usage":{"storage":0,"x":"\xff"}}',
        b'{"capacity":{"storage":9},"usage":{"storage":0,"x":"\\ud800"}}',
    ],
)
def test_corrupt_records(value: bytes) -> None:
    """A value that is no record fails the query with its key, if and only if its node is asked for."""
    cluster = Cluster()
    cluster.store.values = {"good": ODD["usual"], "bad": value}
    for request in ({"storage": 2}, {"volumes": ["AUTO:/a:rw:1"]}):
        keys = {"nodenames": ["good", "bad"], "workload_resource": request}
        assert cluster.refusal("get-nodes-deploy-capacity", keys).startswith("corrupt record memory/bad: ")
    assert 4 == capacity(cluster, {"storage": 2}, ["good"])["total"]
