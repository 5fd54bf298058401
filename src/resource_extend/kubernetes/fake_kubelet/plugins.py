"""The fake kubelet's side of each plugin: dial, options, the stream, and what follows when the stream ends."""

from __future__ import annotations

import asyncio
import urllib.parse
from typing import Any

import grpc
import grpc.aio

from resource_extend.kubernetes import api, rpc
from resource_extend.kubernetes.fake_kubelet.devices import DeviceManager, Plugin
from resource_extend.kubernetes.fake_kubelet.faults import Faults, Limits


class DialError(Exception):
    """A plugin did not answer; the text is the kubelet's own."""


class PluginClient:
    """One connection to one plugin socket."""

    def __init__(self, resource: str, socket: str, faults: Faults, limits: Limits) -> None:
        self.resource = resource
        self.socket = socket
        quoted = urllib.parse.quote(socket, safe="")
        authority = faults.authority.format(path=socket, quoted=quoted)
        self._channel = rpc.open_channel(socket, authority)
        self._calls = rpc.Client(self._channel, api.DEVICE_PLUGIN)
        self._limits = limits

    async def dial(self) -> None:
        """Wait until the plugin's socket answers, as long as the kubelet waits. Raises DialError."""
        try:
            await asyncio.wait_for(self._channel.channel_ready(), self._limits.dial)
        except asyncio.TimeoutError:
            raise DialError("failed to dial device plugin: context deadline exceeded") from None

    async def options(self) -> Any:
        """Ask GetDevicePluginOptions, without a limit. Raises grpc.RpcError."""
        return await self._calls.GetDevicePluginOptions(api.device_plugin.Empty())

    async def watch(self, manager: DeviceManager) -> None:
        """Follow ListAndWatch until it ends, for whatever reason: end, error, too long, not UTF-8."""
        try:
            async for message in self._calls.ListAndWatch(api.device_plugin.Empty()):
                if message is None:  # what grpc makes of a message that cannot be decoded
                    return
                manager.received(self.resource, message.devices)
        except (grpc.RpcError, asyncio.CancelledError):
            return

    async def allocate(self, ids: list[str]) -> Any:
        """Ask Allocate for one container, without a limit."""
        request = api.device_plugin.AllocateRequest(container_requests=[{"devices_ids": ids}])
        return await self._calls.Allocate(request)

    async def prefer(self, available: list[str], must_include: list[str], size: int) -> list[str]:
        """Ask GetPreferredAllocation; the first response counts."""
        wish = {"available_deviceIDs": available, "must_include_deviceIDs": must_include, "allocation_size": size}
        request = api.device_plugin.PreferredAllocationRequest(container_requests=[wish])
        response = await self._calls.GetPreferredAllocation(request)
        return list(response.container_responses[0].deviceIDs) if response.container_responses else []

    async def pre_start(self, ids: list[str]) -> None:
        """Ask PreStartContainer, for at most 30 s."""
        request = api.device_plugin.PreStartContainerRequest(devices_ids=ids)
        await self._calls.PreStartContainer(request, timeout=self._limits.pre_start)

    async def close(self) -> None:
        """Close the connection, which ends the stream."""
        await self._channel.close(None)


class Plugins:
    """All plugins of a running kubelet. `by_socket` is what changed with 1.37: who is known by what."""

    def __init__(self, manager: DeviceManager, faults: Faults, limits: Limits, *, by_socket: bool) -> None:
        self.registrations: list[tuple[str, str, str]] = []  # resource, socket file, error or ""
        self._manager = manager
        self._faults = faults
        self._limits = limits
        self._by_socket = by_socket
        self._clients: dict[tuple[str, str], PluginClient] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._open: set[PluginClient] = set()

    def _key(self, resource: str, socket: str) -> tuple[str, str]:
        return resource, socket if self._by_socket else ""

    async def connect(self, resource: str, socket: str) -> None:
        """Dial, ask for options, and start to watch. Raises DialError, ValueError, grpc.RpcError."""
        key = self._key(resource, socket)
        client = PluginClient(resource, socket, self._faults, self._limits)
        self._open.add(client)
        self._clients[key] = client
        try:
            await asyncio.sleep(self._faults.slow_dial)
            await client.dial()
            options = await client.options()
            if self._faults.hang_register:
                await asyncio.Event().wait()
            self._manager.connected(
                Plugin(
                    resource,
                    socket,
                    client,
                    options.pre_start_required,
                    options.get_preferred_allocation_available,
                )
            )
        except BaseException:
            # As in the real one: whoever was known by this key is forgotten together with the newcomer.
            self._clients.pop(key, None)
            await self._end(client)
            raise
        if not self._faults.no_stream:
            self._run(self._watch(client))

    async def _watch(self, client: PluginClient) -> None:
        await client.watch(self._manager)
        await asyncio.sleep(self._faults.late_end)
        # The real one looks up who is known by the key now, which up to 1.36 may be a newer client.
        current = self._clients.get(self._key(client.resource, client.socket))
        if current is not None:
            await self.disconnect(current)
        if current is not client:
            await self._end(client)

    async def disconnect(self, client: PluginClient) -> None:
        """Forget a client and let the device manager know."""
        self._clients.pop(self._key(client.resource, client.socket), None)
        await self._end(client)
        self._manager.disconnected(client.resource, client.socket)

    async def _end(self, client: PluginClient) -> None:
        self._open.discard(client)
        await client.close()

    def find(self, socket: str) -> list[PluginClient]:
        """Give the clients on a socket."""
        return [client for client in self._clients.values() if client.socket == socket]

    async def drop_streams(self, resource: str) -> None:
        """Fault: end the connections of a resource from the kubelet's side, no file is touched."""
        for client in [client for client in self._open if client.resource == resource]:
            await client.close()

    def _run(self, job: Any) -> None:
        task = asyncio.ensure_future(job)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        """End as a process ends: connections close, nothing is dealt with any more."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for client in list(self._open):
            await self._end(client)
        self._clients.clear()
