"""Devices that an external command lists."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from resource_extend.kubernetes.commands import OUTPUT_LIMIT, CommandError, run_command
from resource_extend.kubernetes.devices.command import parse_line
from resource_extend.kubernetes.hooks import HookError, run_hook
from resource_extend.kubernetes.model import DeviceNode, Hook, Mount
from support.device_tree import DeviceTree, needs_device_nodes

Scan = Callable[[str], Any]


def _resource(command: str, more: str = "") -> str:
    return f"resources: [{{name: example.com/a, command: {{command: {command}}}{more}}}]"


@needs_device_nodes
def test_each_line_is_a_device(tree: DeviceTree, scanner: Scan, tmp_path: Path) -> None:
    """A line says all about a device; nodes are looked at as those of any other source."""
    tree.node("card0", 1, 0)
    listing = tmp_path / "devices"
    line = {
        "id": "GPU-1/a",
        "match": "uuid-1",
        "numa": [1, 0, -1],
        "nodes": [{"path": "/dev/card0", "mountPath": "/dev/card", "permissions": "r"}],
        "mounts": [{"path": "/opt/lib", "mountPath": "/lib/{match}", "readOnly": False}],
        "env": {"CARD": "{match}"},
        "annotations": {"a": "b"},
        "cdi": ["v.io/c={match}"],
    }
    listing.write_text(
        json.dumps(line)
        + "\n\n"
        + json.dumps({"id": "b", "healthy": False, "reason": "on fire"})
        + "\n"
        + json.dumps({"id": "c", "nodes": [{"path": "/dev/card9"}]})
    )
    one = scanner(_resource(f"[cat, {listing}]"))

    devices = {device.id.partition("-")[2]: device for device in one.scan()}
    answer = one.answer(devices["GPU-1_a-fe646de3"])

    assert 30.0 == one.resource.scan_interval
    assert [True, False, False] == [device.healthy for device in devices.values()]
    assert "on fire" == devices["b"].reason
    assert "/dev/card9 does not exist" == devices["c"].reason
    assert (0, 1) == devices["GPU-1_a-fe646de3"].numa
    assert (DeviceNode("/dev/card0", "/dev/card", "r"),) == answer.nodes
    assert (Mount("/opt/lib", "/lib/uuid-1", read_only=False),) == answer.mounts
    assert ("CARD", "uuid-1") in answer.env
    assert (("a", "b"),) == answer.annotations
    assert ("v.io/c=uuid-1",) == answer.cdi_names


def test_devices_come_and_go(scanner: Scan, tmp_path: Path) -> None:
    """The command runs at each scan; a failure of it tells nothing about the devices and is an error."""
    listing = tmp_path / "devices"
    listing.write_text('{"id": "a"}\n{"id": "b"}')
    one = scanner(_resource(f"[cat, {listing}]", ", count: 2"))

    assert 4 == len(one.scan())
    listing.write_text('{"id": "a"}')
    assert [True, True, False, False] == [device.healthy for device in one.scan()]
    listing.unlink()
    with pytest.raises(CommandError, match="failed with status 1"):
        one.scan()


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("nonsense", "it is no JSON object"),
        ("[]", "it is no JSON object"),
        ("{}", "'id' is missing"),
        ('{"id": ""}', "'id' is missing"),
        ('{"id": 1}', "'id' must be a str"),
        ('{"id": "a", "node": []}', "unknown key 'node'"),
        ('{"id": "a", "nodes": [{"path": "dev/x"}]}', "must be an absolute path"),
        ('{"id": "a", "nodes": [{"path": "/dev/x", "permissions": "x"}]}', "one or more of r, w, m"),
        ('{"id": "a", "nodes": ["/dev/x"]}', "it is no JSON object"),
        ('{"id": "a", "mounts": [{"path": "x"}]}', "must be an absolute path"),
        ('{"id": "a", "numa": ["0"]}', "'numa' must be a list of node numbers"),
        ('{"id": "a", "numa": [true]}', "'numa' must be a list of node numbers"),
        ('{"id": "a", "env": {"A": 1}}', "'env' must hold texts only"),
        ('{"id": "a", "cdi": [1]}', "'cdi' must hold texts only"),
        ('{"id": "a", "env": {"A": "\\ud800"}}', "half of a surrogate pair"),
        ('{"id": "a", "env": {"A\\u0000": ""}}', "has a NUL character"),
        ('{"id": "a", "nodes": [{"path": "/dev/x\\u0000"}]}', "has a NUL character"),
    ],
)
def test_line_that_is_no_device(line: str, fault: str) -> None:
    """A wrong line is refused, with its place and what is wrong."""
    with pytest.raises(CommandError) as caught:
        parse_line(line, "command 'x', line 3")

    assert str(caught.value).startswith("command 'x', line 3: ")
    assert fault in str(caught.value)


@pytest.mark.parametrize(
    ("command", "fault"),
    [
        (("/no/such/program",), "did not start"),
        (("sh", "-c", "echo it is broken >&2; exit 4"), "failed with status 4: it is broken"),
        (("sh", "-c", "echo said on stdout; exit 4"), "failed with status 4: said on stdout"),
        (("sleep", "60"), "was killed after 0.3 s"),
        (("sh", "-c", "sleep 60 & wait"), "was killed after 0.3 s"),
        (("sh", "-c", "setsid sleep 2"), "was killed after 0.3 s"),
        (("sh", "-c", "head -c 1000000 /dev/zero; sleep 60"), "was killed after 0.3 s"),
        (("yes",), f"printed more than {OUTPUT_LIMIT} bytes"),
    ],
)
def test_command_that_does_not_work(command: tuple[str, ...], fault: str) -> None:
    """A command that cannot start, fails, hangs or prints without end is stopped and told about."""
    limit = 0.3 if "killed" in fault else 20
    with pytest.raises(CommandError) as caught:
        asyncio.run(run_command(command, limit))

    assert fault in str(caught.value)


def test_hook_whose_child_holds_on_ends_in_time() -> None:
    """A hook is done when its time is up, also when it started something that left its process group."""

    async def run() -> None:
        hook = Hook(("sh", "-c", "setsid sleep 3 & sleep 60"), 0.2)
        await asyncio.wait_for(run_hook(hook, "example.com/a", ["x"]), 2)

    with pytest.raises(HookError, match=r"was killed after 0\.2 s"):
        asyncio.run(run())


def test_children_of_a_killed_command_die(tmp_path: Path) -> None:
    """What a killed command started does not go on."""
    mark = tmp_path / "alive"
    with pytest.raises(CommandError):
        asyncio.run(run_command(("sh", "-c", f"(sleep 0.6; touch {mark}) & wait"), 0.1))
    asyncio.run(asyncio.sleep(0.8))

    assert not mark.exists()
