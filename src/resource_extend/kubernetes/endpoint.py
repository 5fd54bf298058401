"""One served socket of one resource: bound once, never again under the same name.

The kubelet opens `ListAndWatch` once for each registration. An endpoint knows how many such streams are open and tells
its owner about each change; that is the only proof of being in use there is.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import grpc
import grpc.aio

from resource_extend.kubernetes import api, rpc, sockets
from resource_extend.kubernetes.logs import note
from resource_extend.kubernetes.service import Service

SELF_DIAL_TIMEOUT = 5.0  # seconds
BURST = 0.2  # seconds in which changes are joined to one message
STOP_GRACE = 0.3  # seconds for calls that are still open when the server stops

Notify = Callable[[bool, str], Awaitable[None]]


class Endpoint:
    """A server on `path` with the device plugin service, and plugin registration when `registry_endpoint` is given.

    `changed` is called when a stream begins or ends. `registered` is what the kubelet said by NotifyRegistrationStatus:
    None so far, "" for success, or its error.
    """

    def __init__(self, service: Service, path: str, changed: Callable[[], None], registry_endpoint: str = "") -> None:
        self.path = path
        self.streams = 0
        self.registered: str | None = None
        self._service = service
        self._changed = changed
        self._registry_endpoint = registry_endpoint
        self._ending = False
        self._wakes: set[asyncio.Event] = set()
        self._server: grpc.aio.Server | None = None
        self._identity: sockets.Identity | None = None

    @property
    def exists(self) -> bool:
        """Tell whether the socket file is still there and still ours."""
        return self._identity is not None and sockets.identity(self.path) == self._identity

    async def start(self) -> None:
        """Bind and serve. Raises SocketError."""
        sockets.check_bindable(self.path)
        server = grpc.aio.server()
        service = self._service
        server.add_generic_rpc_handlers(
            (
                rpc.handlers(
                    api.DEVICE_PLUGIN,
                    {
                        "GetDevicePluginOptions": service.get_options,
                        "ListAndWatch": self._list_and_watch,
                        "GetPreferredAllocation": service.get_preferred_allocation,
                        "Allocate": service.allocate,
                        "PreStartContainer": service.pre_start_container,
                    },
                ),
            )
        )
        if self._registry_endpoint:
            answers = {"GetInfo": self._get_info, "NotifyRegistrationStatus": self._notify}
            server.add_generic_rpc_handlers((rpc.handlers(api.PLUGIN_WATCHER, answers),))
        try:
            server.add_insecure_port(f"unix:{self.path}")
        except RuntimeError as error:
            raise sockets.SocketError(f"cannot bind {self.path!r}: {error}") from error
        await server.start()
        self._server = server
        self._identity = sockets.identity(self.path)

    async def self_dial(self, timeout: float = SELF_DIAL_TIMEOUT) -> None:
        """Call our own socket the way the kubelet will. Raises SocketError when it does not answer."""
        async with rpc.open_channel(self.path) as channel:
            client = rpc.Client(channel, api.DEVICE_PLUGIN)
            try:
                await client.GetDevicePluginOptions(api.device_plugin.Empty(), timeout=timeout)
            except grpc.RpcError as error:
                text = rpc.error_text(error)
                raise sockets.SocketError(f"own socket {self.path!r} gives no answer: {text}") from error

    async def close(self) -> None:
        """End the streams, then the server, and remove the socket."""
        self._ending = True
        for wake in self._wakes:
            wake.set()
        if self._server is not None:
            await self._server.stop(STOP_GRACE)
            self._server = None
        if self.exists:
            with contextlib.suppress(OSError):
                os.unlink(self.path)

    async def _list_and_watch(self, _request: Any, _context: Any) -> AsyncIterator[bytes]:
        """Send the list now and again whenever it changes, until either side ends the stream."""
        table = self._service.table
        wake, sent = asyncio.Event(), 0
        table.watch(wake)
        self._wakes.add(wake)
        self.streams += 1
        self._service.counts.streams += 1
        self._changed()
        try:
            while not self._ending:
                if sent != table.version:
                    sent = table.version
                    note("list sent", resource=self._service.resource.name, devices=len(table.devices))
                    yield table.snapshot
                await wake.wait()
                if not self._ending:
                    await asyncio.sleep(BURST)
                wake.clear()
        finally:
            self._wakes.discard(wake)
            table.unwatch(wake)
            self.streams -= 1
            self._changed()

    async def _get_info(self, _request: Any, _context: Any) -> Any:
        """Tell a kubelet that found our socket in its plugin registry what it is."""
        return api.plugin_registration.PluginInfo(
            type=api.PLUGIN_TYPE,
            name=self._service.resource.name,
            endpoint=self._registry_endpoint,
            supported_versions=[api.API_VERSION],
        )

    async def _notify(self, request: Any, _context: Any) -> Any:
        """Hear how the registration of a socket found in the registry went."""
        self.registered = "" if request.plugin_registered else request.error or "no reason given"
        self._changed()
        return api.plugin_registration.RegistrationStatusResponse()
