"""The recorded scenarios of storage, core's own requests, and records of the existing Go plugin."""

import json
from pathlib import Path
from typing import Any

import pytest

from resource_extend.storage.plugin import StoragePlugin
from resource_extend.verbs import REQUESTS
from resource_extend.wire import decode_nodes_of_pods, decode_request
from storage.verbs import Cluster
from support.scenarios import VECTORS, SqliteCluster, first_difference, scenarios

CORE_REQUESTS: list[dict[str, Any]] = json.loads((VECTORS / "core-requests.json").read_text())
GO_RECORDS: list[dict[str, Any]] = json.loads((VECTORS / "go-records.json").read_text())


@pytest.mark.parametrize("scenario", scenarios("storage"), ids=lambda scenario: scenario["name"])
def test_scenario(scenario: dict[str, Any], tmp_path: Path) -> None:
    """Every step answers, fails and stores what was recorded."""
    cluster = SqliteCluster(tmp_path, "storage", scenario.get("max_deploy_count"))
    assert None is first_difference(scenario, cluster)


@pytest.mark.parametrize(
    "request_of_core",
    [each for each in CORE_REQUESTS if each["plugin"] == "resource-storage"],
    ids=lambda each: str(each["verb"]),
)
def test_core_requests_decode(request_of_core: dict[str, Any]) -> None:
    """What a real core writes to the plugin's stdin decodes, byte for byte."""
    data = request_of_core["stdin"].encode()
    if request_of_core["verb"] == "get-metrics":
        assert [] != decode_nodes_of_pods(data)
    else:
        rows = REQUESTS[request_of_core["verb"]]
        assert {argument for _, _, argument in rows} == set(decode_request(data, rows, StoragePlugin))


@pytest.mark.parametrize(
    "entry",
    [each for each in GO_RECORDS if each.get("key", "").startswith("/eru/resource/storage/")],
    ids=lambda each: str(each["after"]),
)
def test_go_records(entry: dict[str, Any]) -> None:
    """A Go plugin's record reads, is written back without nulls, and a workload of it can be taken off again."""
    cluster = Cluster()
    cluster.store.values["n"] = entry["value"].encode()
    stored = json.loads(entry["value"])
    for half in stored.values():
        half["volumes"] = half["volumes"] or {}
        half["disks"] = half["disks"] or []
    info = cluster.call("get-node-resource-info", nodename="n")
    assert stored == {"capacity": info["capacity"], "usage": info["usage"]}
    cluster.call("set-node-resource-usage", nodename="n", resource={"storage": 1}, delta=True, incr=True)
    assert b"null" not in cluster.store.values["n"]
    cluster.call("set-node-resource-usage", nodename="n", resource={"storage": 1}, delta=True, incr=False)
    assert stored == cluster.record()
    if "workload" in entry:
        workloads = [entry["workload"]]
        assert [] == cluster.call("get-node-resource-info", nodename="n", workloads_resource=workloads)["diffs"]
        cluster.call("set-node-resource-usage", nodename="n", workloads_resource=workloads, delta=True, incr=False)
        assert 0 == cluster.record()["usage"]["storage"]


def test_go_answers_are_accepted_back() -> None:
    """A delta and a workload that the Go plugin answered, nulls included, can be booked and reallocated."""
    (answer,) = [each["answer"] for each in GO_RECORDS if each["after"] == "storage calculate-realloc"]
    (record,) = [each["value"] for each in GO_RECORDS if each["after"] == "storage set-node-resource-usage"]
    cluster = Cluster()
    cluster.store.values["n"] = record.encode()
    before = cluster.record()["usage"]["storage"]
    deltas = [answer["delta_resource"]]
    cluster.call("set-node-resource-usage", nodename="n", workloads_resource=deltas, delta=True, incr=True)
    assert before + answer["delta_resource"]["storage_request"] == cluster.record()["usage"]["storage"]
    keys = {"nodename": "n", "workload_resource": answer["workload_resource"], "workload_resource_request": None}
    again = cluster.call("calculate-realloc", keys)
    assert answer["workload_resource"]["volume_plan_request"] == again["workload_resource"]["volume_plan_request"]
