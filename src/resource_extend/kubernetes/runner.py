"""One resource while it is offered: scan its devices, keep the table current, keep it registered."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from resource_extend.kubernetes.counts import Counts
from resource_extend.kubernetes.folder import PluginFolder
from resource_extend.kubernetes.held import HeldDevices
from resource_extend.kubernetes.kubelet import Lifecycle, State
from resource_extend.kubernetes.logs import note, warn
from resource_extend.kubernetes.model import Device, DeviceSource, Folders, Resource, Roots
from resource_extend.kubernetes.service import Combine, Prefer, Service
from resource_extend.kubernetes.table import DeviceTable, SnapshotTooLarge


@dataclass(frozen=True)
class Rules:
    """How devices are chosen and put together, and what is written about them: the pure parts, and CDI spec files."""

    combine: Combine
    prefer: Prefer
    write_cdi: Callable[[str, Resource, list[Device]], object]
    remove_cdi: Callable[[str, str], object]


class Runner:
    """Runs one resource until stopped. Its trouble never leaves it: a failed scan keeps the last list."""

    def __init__(
        self, resource: Resource, roots: Roots, folders: Folders, rules: Rules, folder: PluginFolder, held: HeldDevices
    ) -> None:
        self.resource = resource
        self.counts = Counts()
        self.table = DeviceTable()
        self.problem = ""
        service = Service(resource, self.table, self.counts, rules.combine, rules.prefer)
        self.life = Lifecycle(service, folder, registry=folders.registry, registry_host=folders.registry_host)
        self._source: DeviceSource = resource.source.open(resource.name, roots)
        self._rules = rules
        self._cdi_folder = folders.cdi
        self._held = held
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def ready(self) -> bool:
        """Tell whether the kubelet follows this resource's list, and the list is what the node has."""
        return self.life.state is State.ACTIVE and not self.problem

    def start(self) -> None:
        """Start scanning; the first list is there before the kubelet hears of the resource."""
        self._tasks = [asyncio.ensure_future(self._run())]

    async def stop(self) -> None:
        """Leave the kubelet, then stop scanning."""
        self.life.stop()
        scanning, *living = self._tasks
        scanning.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._source.close()
        if not living:
            note("stopped", resource=self.resource.name)
        if self.resource.cdi:
            self._rules.remove_cdi(self._cdi_folder, self.resource.name)

    async def _run(self) -> None:
        await self.scan()
        self._tasks.append(asyncio.ensure_future(self.life.run()))
        while True:
            await asyncio.sleep(self.resource.scan_interval)
            await self.scan()

    async def scan(self) -> None:
        """Look for the devices once and publish them."""
        began = time.monotonic()
        try:
            devices = await self._source.scan(self._held.held(self.resource.name), began)
            if self.resource.cdi and devices != self.table.listed:
                self._rules.write_cdi(self._cdi_folder, self.resource, devices)
            changed = self.table.publish(devices)
        except SnapshotTooLarge as error:
            self.counts.snapshot_refused = True
            self._fail(str(error))
        except Exception as error:
            # Whatever a source meets (a driver's odd file, a command's output), the other resources go on.
            self.counts.scan_failures += 1
            self._fail(f"scan failed: {error!r}" if not str(error) else f"scan failed: {error}")
        else:
            self.counts.snapshot_refused = False
            self._fail("")
            if changed:
                self._tell()
        for result, number in self._source.checks.items():
            self.counts.hooks["check", result] = number
        if not self.table.version:
            self.table.publish([])
        self.counts.scans += 1
        self.counts.scan_seconds = time.monotonic() - began

    def _fail(self, problem: str) -> None:
        if problem and problem != self.problem:
            warn("devices not current", resource=self.resource.name, reason=problem)
        elif self.problem and not problem:
            note("devices current again", resource=self.resource.name)
        self.problem = problem

    def _tell(self) -> None:
        """Log what changed: the numbers, and which devices are not healthy and why."""
        sick = [device for device in self.table.devices.values() if not device.healthy]
        shown = [f"{device.id}({device.reason})" for device in sick[:20]]
        fields: dict[str, Any] = {"unhealthy_devices": shown} if shown else {}
        healthy = len(self.table.devices) - len(sick)
        note("devices", resource=self.resource.name, healthy=healthy, unhealthy=len(sick), **fields)
