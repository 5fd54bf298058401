"""A device plugin whose every answer is the test's: to find out what a kubelet does with it."""

from __future__ import annotations

import asyncio
import itertools
import os
from collections.abc import AsyncIterator, Callable
from typing import Any

import grpc
import grpc.aio

from resource_extend.kubernetes import api, rpc
from resource_extend.kubernetes.api import device_plugin
from support.device_plugin import NAME

_NUMBERS = itertools.count(1)


class Puppet:
    """Serves one socket in `folder`; registers when told to. A hook that gives a text makes the call fail with it."""

    def __init__(self, folder: str | os.PathLike[str], *, preferred: bool = False, pre_start: bool = False) -> None:
        self.folder = os.fspath(folder)
        self.endpoint = f"puppet-{next(_NUMBERS)}.sock"
        self.options = device_plugin.DevicePluginOptions(
            pre_start_required=pre_start, get_preferred_allocation_available=preferred
        )
        self.allocate: Callable[[list[str]], Any] = lambda ids: device_plugin.AllocateResponse(
            container_responses=[{"envs": {"IDS": ",".join(sorted(ids))}}]
        )
        self.prefer: Callable[[Any], Any] = lambda _wish: device_plugin.PreferredAllocationResponse()
        self.pre_start: Callable[[list[str]], Any] = lambda _ids: device_plugin.PreStartContainerResponse()
        self.pre_start_seconds = 0.0
        self.calls: list[tuple[str, Any]] = []
        self.streams = 0
        self._lists: asyncio.Queue[Any] = asyncio.Queue()

    @property
    def path(self) -> str:
        """The path of its socket."""
        return os.path.join(self.folder, self.endpoint)

    async def __aenter__(self) -> Puppet:
        """Serve."""
        self._server = grpc.aio.server()
        answers = {
            "GetDevicePluginOptions": self._options,
            "ListAndWatch": self._list,
            "GetPreferredAllocation": self._prefer,
            "Allocate": self._allocate,
            "PreStartContainer": self._pre_start,
        }
        self._server.add_generic_rpc_handlers((rpc.handlers(api.DEVICE_PLUGIN, answers),))
        self._server.add_insecure_port(f"unix:{self.path}")
        await self._server.start()
        return self

    async def __aexit__(self, *_error: object) -> None:
        """End the stream and the server."""
        self.end()
        await self._server.stop(0.1)

    def end(self) -> None:
        """End the stream."""
        self._lists.put_nowait(None)

    def send(self, **health: str) -> None:
        """Send a list, as id=word."""
        self.send_message([{"ID": name, "health": word} for name, word in health.items()])

    def send_message(self, devices: Any) -> None:
        """Send devices as the message's own fields, or a message as bytes."""
        if not isinstance(devices, bytes):
            devices = device_plugin.ListAndWatchResponse(devices=devices)
        self._lists.put_nowait(devices)

    async def register(self, **fields: str) -> None:
        """Register with the kubelet. Raises grpc.aio.AioRpcError."""
        said = {"version": "v1beta1", "endpoint": self.endpoint, "resource_name": NAME, **fields}
        async with rpc.open_channel(os.path.join(self.folder, api.KUBELET_SOCKET)) as channel:
            request = device_plugin.RegisterRequest(**said)
            await rpc.Client(channel, api.REGISTRATION).Register(request, timeout=20)

    def called(self, method: str) -> list[Any]:
        """Give what a method was called with so far."""
        return [what for name, what in self.calls if name == method]

    async def _options(self, _request: Any, _context: Any) -> Any:
        self.calls.append(("GetDevicePluginOptions", None))
        return self.options

    async def _list(self, _request: Any, _context: Any) -> AsyncIterator[Any]:
        self.calls.append(("ListAndWatch", None))
        self.streams += 1
        try:
            while (message := await self._lists.get()) is not None:
                yield message
        finally:
            self.streams -= 1

    async def _prefer(self, request: Any, context: Any) -> Any:
        (wish,) = request.container_requests
        self.calls.append(("GetPreferredAllocation", wish))
        return await self._said(self.prefer(wish), context)

    async def _allocate(self, request: Any, context: Any) -> Any:
        ids = [list(container.devices_ids) for container in request.container_requests]
        self.calls.append(("Allocate", ids))
        return await self._said(self.allocate(ids[0]), context)

    async def _pre_start(self, request: Any, context: Any) -> Any:
        self.calls.append(("PreStartContainer", list(request.devices_ids)))
        await asyncio.sleep(self.pre_start_seconds)
        return await self._said(self.pre_start(list(request.devices_ids)), context)

    @staticmethod
    async def _said(answer: Any, context: Any) -> Any:
        if isinstance(answer, str):
            await context.abort(grpc.StatusCode.INTERNAL, answer)
        return answer
