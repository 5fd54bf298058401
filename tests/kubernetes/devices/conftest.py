"""What tests of device discovery share: a made-up host, and a scanner over a configuration."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from resource_extend.kubernetes.config import load_config
from resource_extend.kubernetes.devices.allocation import combine
from resource_extend.kubernetes.model import Device, DeviceAnswer, Resource
from support.device_tree import DeviceTree


class Scanner:
    """One resource of a configuration, scanned whenever a test wants it, with a clock of its own."""

    def __init__(self, tree: DeviceTree, folder: Path, text: str) -> None:
        path = folder / "config.yaml"
        path.write_text(f"roots: {{dev: {tree.dev}, sys: {tree.sys}}}\n{text}")
        self.config = load_config(str(path))
        self.resource: Resource = self.config.resources[0]
        self.source = self.resource.source.open(self.resource.name, self.config.roots)
        self.now = 0.0

    def scan(self, *held: str, wait: float = 3.0) -> list[Device]:
        """Scan after `wait` seconds of the scanner's clock."""
        self.now += wait
        return asyncio.run(self.source.scan(frozenset(held), self.now))

    def answer(self, *devices: Device) -> DeviceAnswer:
        """Say what a container gets."""
        return combine(self.resource, list(devices))


@pytest.fixture
def tree(tmp_path: Path) -> DeviceTree:
    """Give an empty host."""
    return DeviceTree(tmp_path / "host")


@pytest.fixture
def scanner(tree: DeviceTree, tmp_path: Path) -> Callable[[str], Scanner]:
    """Make a scanner of the first resource of a configuration."""
    return lambda text: Scanner(tree, tmp_path, text)
