"""The fake kubelet's plugin watcher: finds plugin sockets in the registry folder and registers them by itself."""

from __future__ import annotations

import asyncio
import os
import stat
import time

import grpc

from resource_extend.kubernetes import api, rpc
from resource_extend.kubernetes.fake_kubelet.faults import Limits
from resource_extend.kubernetes.fake_kubelet.plugins import DialError, Plugins
from resource_extend.kubernetes.names import name_fault

RETRY_LIMIT = 120.0  # seconds


class RegistryWatcher:
    """Scans `folder`: a new socket is asked what it is and registered, a removed one is deregistered."""

    def __init__(self, folder: str, plugins: Plugins, limits: Limits) -> None:
        self.folder = folder
        self._plugins = plugins
        self._limits = limits
        self._known: dict[str, tuple[int, int]] = {}  # socket path -> device, inode, of those registered
        self._failures: dict[str, tuple[float, float]] = {}  # socket path -> next try, delay
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Start scanning; sockets that are there already are found."""
        os.makedirs(self.folder, exist_ok=True)
        self._known.clear()
        self._failures.clear()
        self._task = asyncio.ensure_future(self._run())

    async def stop(self) -> None:
        """Stop scanning."""
        if self._task:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        while True:
            await self._scan()
            await asyncio.sleep(self._limits.watch_period)

    async def _scan(self) -> None:
        found = self._sockets()
        for path in [path for path, seen in self._known.items() if found.get(path) != seen]:
            del self._known[path]
            for client in self._plugins.find(path):
                await self._plugins.disconnect(client)
        for path, seen in found.items():
            due, delay = self._failures.get(path, (0.0, self._limits.watch_retry))
            if path in self._known or time.monotonic() < due:
                continue
            if await self._register(path):
                self._known[path] = seen
                self._failures.pop(path, None)
            else:
                self._failures[path] = (time.monotonic() + delay, min(delay * 2, RETRY_LIMIT))

    def _sockets(self) -> dict[str, tuple[int, int]]:
        found = {}
        for folder, folders, names in os.walk(self.folder):
            folders[:] = [name for name in folders if not name.startswith(".")]
            for name in names:
                path = os.path.join(folder, name)
                seen = os.lstat(path)
                if stat.S_ISSOCK(seen.st_mode) and not name.startswith("."):
                    found[path] = (seen.st_dev, seen.st_ino)
        return found

    async def _register(self, path: str) -> bool:
        """Ask a socket what it is, connect, and tell it how that went."""
        # This dial has no override: the path itself is the authority (specification, kubernetes 2.12).
        async with rpc.open_channel(path, authority=path) as channel:
            client = rpc.Client(channel, api.PLUGIN_WATCHER)
            try:
                request = api.plugin_registration.InfoRequest()
                info = await client.GetInfo(request, timeout=self._limits.get_info)
            except grpc.RpcError:
                return False
            error = self._fault(info)
            if not error:
                try:
                    await self._plugins.connect(info.name, info.endpoint or path)
                except (DialError, ValueError) as problem:
                    error = str(problem)
                except grpc.RpcError as problem:
                    error = rpc.error_text(problem)
            self._plugins.registrations.append((info.name, os.path.basename(path), error))
            status = api.plugin_registration.RegistrationStatus(plugin_registered=not error, error=error)
            try:
                await client.NotifyRegistrationStatus(status, timeout=self._limits.notify)
            except grpc.RpcError:
                return False
            return not error

    @staticmethod
    def _fault(info: object) -> str:
        kind, name = getattr(info, "type", ""), getattr(info, "name", "")
        versions = list(getattr(info, "supported_versions", ()))
        if kind != api.PLUGIN_TYPE:
            return f"no handler registered for plugin type: {kind}"
        if api.API_VERSION not in versions:
            return f"manager version, {api.API_VERSION}, is not among plugin supported versions {versions}"
        return f'the ResourceName "{name}" is invalid' if name_fault(name) else ""
