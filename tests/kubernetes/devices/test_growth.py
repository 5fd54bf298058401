"""Scanning again and again leaves nothing behind."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable
from typing import Any

from support.device_tree import DeviceTree, needs_device_nodes

NOBODY: frozenset[str] = frozenset()
Scan = Callable[[str], Any]


def _objects() -> int:
    gc.collect()
    return len(gc.get_objects())


@needs_device_nodes
def test_nothing_grows_with_the_scans(tree: DeviceTree, scanner: Scan) -> None:
    """After warm-up, a hundred rounds of unplugging, plugging and scanning make no object that stays."""
    for minor in range(10):
        tree.node(f"ttyUSB{minor}", 188, minor)
    one = scanner("""
resources:
  - name: example.com/x
    count: 2
    groups:
      - paths: [{path: "/dev/ttyUSB*"}, {path: "/dev/extra{match}", optional: true}]
      - usb: [{vendor: "0403"}]
""")

    async def rounds(number: int) -> None:
        for i in range(number):
            stick = tree.usb("1", "0403", "6001", f"S{i % 3}", number=2 + i % 3)
            tree.node("extra1", 1, i % 5)
            await one.source.scan(NOBODY, one.now)
            tree.unplug(stick)
            tree.remove("ttyUSB5")
            one.now += 30
            await one.source.scan(NOBODY, one.now)
            tree.node("ttyUSB5", 188, 5)
            one.now += 30

    asyncio.run(rounds(20))
    before = _objects()
    asyncio.run(rounds(100))

    assert _objects() - before < 20
