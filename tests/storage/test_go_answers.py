"""Workloads and answers of the existing Go plugin, taken over while they run."""

import json
from typing import Any

from storage.verbs import Cluster
from support.scenarios import VECTORS

GO_RECORDS: list[dict[str, Any]] = json.loads((VECTORS / "go-records.json").read_text())


def entry_after(verb: str) -> dict[str, Any]:
    """Return what was recorded after a verb, of the entries with most members."""
    return max([each for each in GO_RECORDS if each["after"] == f"storage {verb}"], key=len)


def cluster_with_workload() -> tuple[Cluster, Any]:
    """Return a cluster whose node is as the Go plugin left it, and the workload that it holds."""
    entry = entry_after("set-node-resource-usage")
    cluster = Cluster()
    cluster.store.values["n"] = entry["value"].encode()
    return cluster, entry["workload"]


def test_a_workload_can_be_taken_off() -> None:
    """A workload that the Go plugin placed is what its usage says, and leaves nothing behind."""
    cluster, workload = cluster_with_workload()
    info = cluster.call("get-node-resource-info", nodename="n", workloads_resource=[workload])
    assert [] == info["diffs"]
    cluster.call("set-node-resource-usage", nodename="n", workloads_resource=[workload], delta=True, incr=False)
    usage = cluster.record()["usage"]
    assert 0 == usage["storage"] == sum(usage["volumes"].values())
    assert all(disk["read_IOPS"] == disk["write_bps"] == 0 for disk in usage["disks"])


def test_answers_are_accepted_back() -> None:
    """A difference and a workload that the Go plugin answered, nulls included, can be booked and changed again."""
    cluster, _ = cluster_with_workload()
    answer = entry_after("calculate-realloc")["answer"]
    before = cluster.record()["usage"]["storage"]
    deltas = [answer["delta_resource"]]
    cluster.call("set-node-resource-usage", nodename="n", workloads_resource=deltas, delta=True, incr=True)
    assert before + answer["delta_resource"]["storage_request"] == cluster.record()["usage"]["storage"]
    keys = {"nodename": "n", "workload_resource": answer["workload_resource"], "workload_resource_request": None}
    again = cluster.call("calculate-realloc", keys)
    assert answer["workload_resource"]["volume_plan_request"] == again["workload_resource"]["volume_plan_request"]
    assert answer["engine_params"] == again["engine_params"]
