"""The other verbs of storage, and records with nulls (specification, storage 5.2, 5.9, 10 and 11)."""

import pytest

from storage.verbs import TIB, Cluster, default_node, disk, resource, set_usage


def test_most_idle_node_is_the_first() -> None:
    """Storage has no opinion and reads nothing."""
    assert {"nodename": "b", "priority": 1} == Cluster().call("get-most-idle-node", nodenames=["b", "a"])


def test_remove_node() -> None:
    """A node goes; an unknown one is fine."""
    cluster = default_node()
    assert {} == cluster.call("remove-node", nodename="n") == cluster.call("remove-node", nodename="n")
    assert {} == cluster.store.values


@pytest.mark.parametrize("nodes", [[], ["n"], ["a.b", "n", "a.b"]])
def test_metrics(nodes: list[str]) -> None:
    """Two rows a node, with as many labels as described; dots in names become `_` in keys only."""
    cluster = default_node()
    set_usage(cluster, resource=resource(storage=7))
    described = cluster.call("get-metrics-description")
    assert [
        {"name": "storage_used", "help": "node used storage.", "type": "gauge", "labels": ["podname", "nodename"]},
        {
            "name": "storage_capacity",
            "help": "node available storage.",
            "type": "gauge",
            "labels": ["podname", "nodename"],
        },
    ] == described
    rows = cluster.call("get-metrics", nodes=[{"podname": "p", "nodename": node} for node in nodes])
    values = {"n": ("7", str(4 * TIB)), "a.b": ("0", "0")}
    expected = []
    for node in nodes:
        key = f"core.node.{node.replace('.', '_')}.storage"
        used, whole = values[node]
        expected += [
            {"name": "storage_used", "labels": ["p", node], "key": f"{key}.used", "value": used},
            {"name": "storage_capacity", "labels": ["p", node], "key": f"{key}.capacity", "value": whole},
        ]
    assert expected == rows


def test_nulls_of_the_go_plugins() -> None:
    """Records with nulls read, and what is written in their place has none."""
    cluster = Cluster()
    cluster.store.values["n"] = b'{"capacity":{"volumes":null,"disks":null,"storage":5},"usage":null}'
    info = cluster.call("get-node-resource-info", nodename="n")
    assert {"capacity": resource(storage=5), "usage": resource(), "diffs": []} == info
    cluster.store.values["n"] = (
        b'{"capacity":{"volumes":null,"disks":[{"device":"v","mounts":null,"read_IOPS":1}],"storage":null},"x":0}'
    )
    set_usage(cluster, resource={"volumes": None, "disks": None, "storage": 1})
    assert b"null" not in cluster.store.values["n"]
    assert [disk("v", [], 1)] == cluster.record()["capacity"]["disks"]
