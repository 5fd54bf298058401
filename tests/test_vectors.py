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


@pytest.mark.parametrize("scenario", scenarios("gpu"), ids=lambda scenario: scenario["name"])
def test_gpu_scenario(scenario: dict[str, Any], tmp_path: Path) -> None:
    """Every step answers, fails and stores what was recorded."""
    assert None is first_difference(scenario, SqliteCluster(tmp_path, "gpu"))


@pytest.mark.parametrize(
    "request_of_core",
    [each for each in CORE_REQUESTS if each["plugin"] == "resource-gpu"],
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
