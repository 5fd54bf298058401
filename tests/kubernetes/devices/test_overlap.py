"""One device in two resources: an error of `check`, unless it is meant."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from resource_extend.kubernetes.inspection import check, scan_all
from support.configuration import loader
from support.device_tree import DeviceTree, needs_device_nodes

pytestmark = needs_device_nodes


@pytest.mark.parametrize(
    ("first", "second", "errors"),
    [
        # Two ways to find the same serial port.
        ("paths: [{path: '/dev/ttyUSB*'}]", 'usb: [{vendor: "0403", nodes: [tty]}]', ["/dev/ttyUSB0"]),
        ("paths: [{path: '/dev/ttyUSB*'}]", "paths: [{path: '/dev/tty*'}]", ["/dev/ttyUSB0"]),
        ("paths: [{path: '/dev/ttyUSB*'}], shared: true", "paths: [{path: '/dev/tty*'}], shared: true", []),
        ("paths: [{path: '/dev/ttyUSB*'}]", "paths: [{path: /dev/fuse}]", []),
        # A node that belongs to both by nature.
        (
            "paths: [{path: /dev/ttyUSB0}, {path: /dev/fuse}]",
            "paths: [{path: /dev/kvm}, {path: /dev/fuse}]",
            ["/dev/fuse"],
        ),
        (
            "paths: [{path: /dev/ttyUSB0}, {path: /dev/fuse, shared: true}]",
            "paths: [{path: /dev/kvm}, {path: /dev/fuse, shared: true}]",
            [],
        ),
    ],
)
def test_device_in_two_resources(tree: DeviceTree, tmp_path: Path, first: str, second: str, errors: list[str]) -> None:
    """Demand 35: `check` names the node that two resources would hand out independently."""
    tree.usb_tty(tree.usb("1", "0403", "6001", "A"), "ttyUSB0", 0)
    tree.node("fuse", 10, 229)
    tree.node("kvm", 10, 232)
    config = loader(tmp_path)(f"""
roots: {{dev: {tree.dev}, sys: {tree.sys}}}
folders: {{plugins: {tmp_path}}}
resources: [{{name: a.b/c, {first}}}, {{name: a.b/d, {second}}}]
""")

    findings = check(config, asyncio.run(scan_all(config)))

    assert [f"{path} is offered by a.b/c and by a.b/d: two pods may get it at once" for path in errors] == [
        finding.text for finding in findings if finding.error
    ]
