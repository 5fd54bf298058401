"""A plugin that is no part of the product becomes a file by the same build, as the manual says."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from support.calls import Outcome, call_program
from support.checkout import REPOSITORY
from support.pages import blocks


@pytest.fixture(scope="module")
def seats(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of `examples/seats.py`, built by the manual's recipe in a copy of the project, installed."""
    root = tmp_path_factory.mktemp("project")
    for part in ("src", "build", "requirements"):
        shutil.copytree(REPOSITORY / part, root / part)
    (root / ".cache").symlink_to(REPOSITORY / ".cache")
    shutil.copy(REPOSITORY / "examples/seats.py", root / "src")
    (recipe,) = [block.text for block in blocks(REPOSITORY / "docs/adding-a-plugin.md") if block.language == "toml"]
    with (root / "build/artefacts.toml").open("a") as file:
        file.write("\n" + recipe)
    command = [sys.executable, "build/pyz.py", "--interpreter", "this", "--one", "resource-seats.pyz"]
    environ = {**os.environ, "PYTHONPATH": str(root / "src")}
    done = subprocess.run(command, cwd=root, env=environ, capture_output=True, text=True, check=False)
    assert (0, "") == (done.returncode, done.stderr)
    plugin = root / "plugins" / "resource-seats"
    plugin.parent.mkdir()
    shutil.copy(root / "dist/resource-seats.pyz", plugin)
    return plugin


def call(plugin: Path, verb: str, request: bytes) -> Outcome:
    """Call it on a store of its own beside the plugin directory."""
    (plugin.parent / "seats.yaml").write_text("sqlite: {path: ../seats.db}\n")
    return call_program(plugin, [verb], request)


def test_it_is_a_plugin(seats: Path) -> None:
    """It knows its kind, and lists the verbs that its class has: without the optional ones."""
    verbs = call(seats, "verbs", b"{}")

    assert Outcome(0, b'"seats"', b"") == call(seats, "name", b"")
    assert b"fix-node-resource" in verbs.stdout
    assert b"get-nodes-resource-info" not in verbs.stdout
    assert b"calculate-remap" not in verbs.stdout


def test_it_does_a_plugins_job(seats: Path) -> None:
    """Seats are added, planned, booked, refused when they are gone, read back, given back."""
    ask = b'{"nodename":"n","deploy_count":2,"workload_resource_request":{"seats":3}}'
    assert b'{"capacity":{"seats":10}}' == call(seats, "add-node", b'{"nodename":"n","resource":{"seats":10}}').stdout
    assert (
        b'{"engines_params":[{"seats":3},{"seats":3}],"workloads_resource":[{"seats":3},{"seats":3}]}'
        == call(seats, "calculate-deploy", ask).stdout
    )
    book = b'{"nodename":"n","workloads_resource":[{"seats":3},null,{"seats":3}],"delta":true,"incr":%s}'
    assert (
        b'{"before":{"seats":0},"after":{"seats":6}}' == call(seats, "set-node-resource-usage", book % b"true").stdout
    )
    assert Outcome(128, b"", b"cannot alloc a plan, not enough resource\n") == call(seats, "calculate-deploy", ask)
    capacity = call(seats, "get-nodes-deploy-capacity", b'{"nodenames":["n","m"],"workload_resource":{"seats":2}}')
    assert (
        b'{"nodes_deploy_capacity_map":{"n":{"capacity":2,"usage":0.6,"rate":0.2,"weight":1}},"total":2}'
        == capacity.stdout
    )
    info = call(seats, "get-node-resource-info", b'{"nodename":"n","workloads_resource":[{"seats":3}]}')
    assert (
        b'{"capacity":{"seats":10},"usage":{"seats":6},"diffs":["node.usage != sum(workload.seats): 6 != 3"]}'
        == info.stdout
    )
    assert (
        b'{"before":{"seats":6},"after":{"seats":0}}' == call(seats, "set-node-resource-usage", book % b"false").stdout
    )


def test_its_snapshots_roll_back(seats: Path) -> None:
    """What a set verb answers as `before` is accepted back, as core does it when another plugin fails."""
    call(seats, "set-node-resource-info", b'{"nodename":"r","capacity":{"seats":4},"usage":{"seats":1}}')
    for verb, key in (("set-node-resource-capacity", b"resource_request"), ("set-node-resource-usage", b"resource")):
        more = b'{"nodename":"r","resource_request":{"seats":2},"delta":true,"incr":true}'
        before = call(seats, verb, more).stdout.partition(b'"before":')[2].partition(b',"after"')[0]
        call(seats, verb, b'{"nodename":"r","%s":%s,"delta":false,"incr":false}' % (key, before))

    assert (
        b'{"capacity":{"seats":4},"usage":{"seats":1},"diffs":[]}'
        == call(seats, "get-node-resource-info", b'{"nodename":"r","workloads_resource":[{"seats":1}]}').stdout
    )


def test_it_refuses_what_is_no_number_of_seats(seats: Path) -> None:
    """Negative seats, and sums beyond 64 bits, are errors, and nothing is written."""
    assert Outcome(128, b"", b"-1 seats: must be 0 to 9223372036854775807\n") == call(
        seats, "add-node", b'{"nodename":"x","resource":{"seats":-1}}'
    )
    assert b"null" == call(seats, "get-node-resource-info", b'{"nodename":"x"}').stdout
