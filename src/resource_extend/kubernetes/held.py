"""The devices that pods hold, asked for every ten seconds, and what follows when a pod lets go of one.

The device plugin API has no call for the release of a device (specification, kubernetes 1.4), so the pod resources
API is polled and compared. What was held is remembered in a file: a release that happens while this program is not
running is noticed at its next start.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
from collections.abc import Callable, Iterable, Mapping

from resource_extend.errors import PluginError
from resource_extend.kubernetes.counts import Counts
from resource_extend.kubernetes.hooks import run_hook
from resource_extend.kubernetes.logs import note, warn
from resource_extend.kubernetes.model import Folders, Resource
from resource_extend.kubernetes.pod_resources import Holders, PodResourcesError, read_holders

PERIOD = 10.0  # seconds
STATE_FILE = "resource-extend-held.json"
NEVER_RELEASED = "'release' never runs: it needs folders.podResources"

# Resource name -> the resource and its counters, for those that have a release hook.
Hooked = Mapping[str, tuple[Resource, Counts]]


def state_path(folders: Folders) -> str:
    """Say where the held devices are remembered."""
    return folders.state or os.path.join(folders.plugins, STATE_FILE)


def read_state(path: str) -> dict[str, dict[str, list[str]]]:
    """Read what was held: resource -> device id -> namespace/pod/container. Empty when there is no readable file."""
    try:
        with open(path, encoding="utf-8") as file:
            saved = json.load(file)["held"]
        return {
            name: {device: [str(pod) for pod in pods] for device, pods in devices.items()}
            for name, devices in saved.items()
        }
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        warn("held devices not readable", file=path, reason=str(error))
        return {}


def never_released(resource: Resource, folders: Folders) -> bool:
    """Tell whether a resource has a release hook that never runs, as nobody is asked who holds what."""
    return resource.release is not None and not folders.pod_resources


class HeldDevices:
    """Who holds what, as of the latest answer of the kubelet.

    `socket` empty: nobody is asked, nothing is held. `state` is the file that remembers, used only with release hooks.
    """

    def __init__(self, socket: str, state: str, hooked: Callable[[], Hooked], period: float = PERIOD) -> None:
        self.holders: Holders = {}
        self._socket = socket
        self._state = state
        self._hooked = hooked
        self._period = period
        self._error = ""
        self._remembered = read_state(state)
        self._missing: dict[str, set[str]] = {}

    def held(self, resource: str) -> frozenset[str]:
        """Give the ids of a resource that pods hold."""
        return frozenset(self.holders.get(resource, ()))

    async def run(self) -> None:
        """Ask again and again, until cancelled."""
        while self._socket:
            await self.look()
            await asyncio.sleep(self._period)

    async def look(self) -> None:
        """Ask once, and run the release hooks that are due."""
        try:
            self.holders = await read_holders(self._socket)
        except PodResourcesError as error:
            if str(error) != self._error:
                self._error = str(error)
                warn("pod resources failed", reason=self._error)
            return
        self._error = ""
        await self._release()

    async def _release(self) -> None:
        """Run the hooks of devices that were held, are held by nobody now, and were so at the look before.

        Twice, since a kubelet that has just started may not know its pods yet.
        """
        before = {name: dict(devices) for name, devices in self._remembered.items()}
        hooked = self._hooked()
        for name in set(self._remembered) - set(hooked):
            del self._remembered[name]
        for name, (resource, counts) in hooked.items():
            now = {device: sorted(pods) for device, pods in self.holders.get(name, {}).items()}
            remembered = self._remembered.setdefault(name, {})
            gone = set(remembered) - set(now)
            due = gone & self._missing.get(name, set())
            self._missing[name] = gone - due
            for device in sorted(due):
                await self._run(resource, counts, device, remembered.pop(device))
            remembered.update(now)
        if self._remembered != before:
            self._write()

    @staticmethod
    async def _run(resource: Resource, counts: Counts, device: str, pods: Iterable[str]) -> None:
        if resource.release is None:
            return
        try:
            await run_hook(resource.release, resource.name, [device], RELEASED_BY=",".join(pods))
        except PluginError as error:
            counts.hooks["release", "failed"] += 1
            warn("release hook failed", resource=resource.name, devices=[device], reason=str(error))
        else:
            counts.hooks["release", "ok"] += 1
            note("released", resource=resource.name, devices=[device], pods=list(pods))

    def _write(self) -> None:
        """Write the file whole or not at all."""
        partial = f"{self._state}.new"
        try:
            with open(partial, "w", encoding="utf-8") as file:
                json.dump({"held": self._remembered}, file)
            os.replace(partial, self._state)
        except OSError as error:
            warn("held devices not written", file=self._state, reason=str(error))
            with contextlib.suppress(OSError):
                os.unlink(partial)
