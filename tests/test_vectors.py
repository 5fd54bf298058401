"""The recorded scenarios and core's own requests, in process over SQLite."""

import json
from pathlib import Path
from typing import Any

import pytest

from resource_extend.verbs import REQUESTS
from resource_extend.wire import decode_nodes_of_pods, decode_request
from support.calls import plugin_class
from support.scenarios import VECTORS, SqliteCluster, first_difference, scenarios

CORE_REQUESTS: list[dict[str, Any]] = json.loads((VECTORS / "core-requests.json").read_text())


GO_RECORDS: list[dict[str, Any]] = json.loads((VECTORS / "go-records.json").read_text())
KINDS = ("gpu", "storage")


@pytest.mark.parametrize(
    "scenario", [scenario for kind in KINDS for scenario in scenarios(kind)], ids=lambda scenario: scenario["name"]
)
def test_scenario(scenario: dict[str, Any], tmp_path: Path) -> None:
    """Every step answers, fails and stores what was recorded."""
    cluster = SqliteCluster(tmp_path, scenario["kind"], scenario.get("max_deploy_count"))

    assert None is first_difference(scenario, cluster)


@pytest.mark.parametrize(
    "request_of_core",
    CORE_REQUESTS,
    ids=lambda each: f"{each['plugin']}-{each['verb']}",
)
def test_core_requests_decode(request_of_core: dict[str, Any]) -> None:
    """What a real core writes to a plugin's stdin decodes, byte for byte."""
    plugin = plugin_class(request_of_core["plugin"].removeprefix("resource-"))
    data = request_of_core["stdin"].encode()
    if request_of_core["verb"] == "get-metrics":
        assert [] != decode_nodes_of_pods(data)
    else:
        rows = REQUESTS[request_of_core["verb"]]
        assert {argument for _, _, argument in rows} == set(decode_request(data, rows, plugin))


def without_nulls(value: Any) -> Any:
    """Write what the Go plugins leave null as the empty list or map that it stands for."""
    empty: dict[str, Any] = {"prod_count_map": {}, "volumes": {}, "disks": []}
    if isinstance(value, dict):
        return {key: empty[key] if item is None else without_nulls(item) for key, item in value.items()}
    return value


@pytest.mark.parametrize(
    "record", [each for each in GO_RECORDS if "value" in each], ids=lambda each: f"{each['after']} {each['key'][-2:]}"
)
def test_records_of_the_go_plugins(record: dict[str, Any], tmp_path: Path) -> None:
    """A record that a Go plugin wrote reads, and what we write in its place is that record without nulls."""
    _, _, _, kind, node = record["key"].split("/")
    cluster = SqliteCluster(tmp_path, kind)
    cluster.plant(f"resource/{kind}/{node}", record["value"])
    expected = without_nulls(json.loads(record["value"]))

    def answer(verb: str, **request: Any) -> Any:
        outcome = cluster.call(verb, json.dumps({"nodename": node, **request}).encode())
        assert 0 == outcome.status, outcome.stderr
        return json.loads(outcome.stdout)

    def stored() -> Any:
        return json.loads(cluster.records()[f"resource/{kind}/{node}"])

    workloads = [record["workload"]] if "workload" in record else []
    info = answer("get-node-resource-info", workloads_resource=workloads)
    assert expected == {"capacity": info["capacity"], "usage": info["usage"]}
    if workloads:
        assert [] == info["diffs"]
    # Each way of writing it back: with nothing added, as a replayed snapshot, as core's undone removal.
    answer("set-node-resource-usage", delta=True, incr=True)
    assert expected == stored()
    answer("set-node-resource-usage", resource=info["usage"], delta=False, incr=False)
    answer("set-node-resource-capacity", resource_request=info["capacity"], delta=False, incr=False)
    assert expected == stored()
    answer("remove-node")
    answer("set-node-resource-info", capacity=info["capacity"], usage=info["usage"])
    assert expected == stored()
    # What a workload books is given back.
    answer("set-node-resource-usage", workloads_resource=workloads, delta=True, incr=False)
    answer("set-node-resource-usage", workloads_resource=workloads, delta=True, incr=True)
    assert expected == stored()


def test_workloads_of_the_go_plugins(tmp_path: Path) -> None:
    """The answer of a Go realloc is booked like one of ours: afterwards the usage is what the workload holds."""
    record = next(each for each in GO_RECORDS if "workload" in each)
    realloc = next(each["answer"] for each in GO_RECORDS if "answer" in each)
    cluster = SqliteCluster(tmp_path, "storage")
    cluster.plant("resource/storage/s1", record["value"])
    book = {"nodename": "s1", "workloads_resource": [realloc["delta_resource"]], "delta": True, "incr": True}
    assert 0 == cluster.call("set-node-resource-usage", json.dumps(book).encode()).status
    check = {"nodename": "s1", "workloads_resource": [realloc["workload_resource"]]}
    outcome = cluster.call("get-node-resource-info", json.dumps(check).encode())

    assert [] == json.loads(outcome.stdout)["diffs"]
