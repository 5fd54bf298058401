"""scripts/demo: the main job of both plugins, as core would see it."""

import json
import os
import pty
import re
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

import pytest

REPOSITORY = Path(__file__).parents[1]
ESCAPE = "\033["


class Exchange(NamedTuple):
    """One call that was shown: what was executed, and what went over its streams."""

    plugin: str
    verb: str
    request: Any
    answer: Any
    error: str


def exchanges(output: str) -> list[Exchange]:
    """Read the calls that the demo shows."""
    found = []
    for part in output.split("\n  $ ")[1:]:
        command, _, rest = part.partition("\n")
        streams: dict[str, str] = {}
        name = ""
        for label, line in re.findall(
            r"^  (stdin |stdout|stderr|      ) (.*)$", rest.partition("\n\n")[0], re.MULTILINE
        ):
            name = label.strip() or name
            streams[name] = streams.get(name, "") + line
        plugin, verb = command.split()
        answer = json.loads(streams["stdout"]) if "stdout" in streams else None
        found.append(Exchange(plugin, verb, json.loads(streams["stdin"]), answer, streams.get("stderr", "")))
    return found


@pytest.fixture(scope="module")
def output() -> str:
    """What the demo prints, run from elsewhere and not on a terminal."""
    done = subprocess.run(
        [REPOSITORY / "scripts/demo"], cwd="/", stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )

    assert (0, "") == (done.returncode, done.stderr)
    return done.stdout


def of_plugin(output: str, plugin: str) -> dict[str, list[Exchange]]:
    """Return a plugin's calls by verb, in order."""
    found: dict[str, list[Exchange]] = {}
    for exchange in exchanges(output):
        if exchange.plugin == plugin:
            found.setdefault(exchange.verb, []).append(exchange)
    return found


def test_the_gpu_story(output: str) -> None:
    """Two nodes with cards are added; capacity, plan, usage, the record and the metrics fit together."""
    calls = of_plugin(output, "resource-gpu")

    assert [
        "add-node",
        "get-nodes-deploy-capacity",
        "calculate-deploy",
        "set-node-resource-usage",
        "get-node-resource-info",
        "get-metrics",
    ] == list(calls)
    cards = {
        call.request["nodename"]: call.request["resource"]["prod_count_map"]["nvidia-3090"]
        for call in calls["add-node"]
    }
    (capacity,) = calls["get-nodes-deploy-capacity"]
    nodes = capacity.answer["nodes_deploy_capacity_map"]
    assert cards == {node: entry["capacity"] for node, entry in nodes.items()}
    plan, refused = calls["calculate-deploy"]
    (usage,) = calls["set-node-resource-usage"]
    (info,) = calls["get-node-resource-info"]
    assert plan.answer["workloads_resource"] == usage.request["workloads_resource"]
    assert {"prod_count_map": {"nvidia-3090": 2}} == usage.answer["after"] == info.answer["usage"]
    assert [] == info.answer["diffs"]
    assert (None, "cannot alloc a plan, not enough resource  (exit status 128)") == (refused.answer, refused.error)
    (metrics,) = calls["get-metrics"]
    rows = {row["key"]: row["value"] for row in metrics.answer if "nvidia-3090" in row["labels"]}
    assert ("4", "2") == (rows["core.node.node-1.gpu.capacity"], rows["core.node.node-1.gpu.used"])


def test_the_storage_story(output: str) -> None:
    """A volume with quotas is placed on a device, booked and read back without differences."""
    calls = of_plugin(output, "resource-storage")
    (plan,) = calls["calculate-deploy"]
    (usage,) = calls["set-node-resource-usage"]
    (info,) = calls["get-node-resource-info"]

    assert plan.answer["workloads_resource"] == usage.request["workloads_resource"]
    assert {"/data1": 100 * 2**30} == info.answer["usage"]["volumes"]
    assert [] == info.answer["diffs"]


def test_lines_fit(output: str) -> None:
    """A longer line than a terminal is wide holds one piece of JSON, which has no comma to break it at."""
    long = [line for line in output.splitlines() if len(line) > 110 and line.startswith(("  std", " " * 9))]

    assert [] == [line for line in long if "," in re.sub(r'"[^"]*"', "", line)[:-1]]


def test_colour_is_for_terminals_only(output: str) -> None:
    """The same demo is coloured on a terminal, and not when its output goes elsewhere."""
    controller, terminal = pty.openpty()
    environ = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
    files = [REPOSITORY / f".cache/demo/resource-{kind}.pyz" for kind in ("gpu", "storage")]
    demo = subprocess.Popen(
        [REPOSITORY / ".venv/bin/python", REPOSITORY / "scripts/demonstration.py", *files],
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        env=environ,
    )
    os.close(terminal)
    shown = b""
    try:
        while chunk := os.read(controller, 1 << 16):
            shown += chunk
    except OSError:  # a closed terminal ends like this
        pass
    os.close(controller)

    assert 0 == demo.wait(timeout=60)
    assert ESCAPE.encode() in shown
    assert ESCAPE not in output
