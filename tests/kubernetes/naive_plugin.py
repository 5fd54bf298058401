"""A device plugin as one writes it first: it works, until something happens. Every F demand must catch it.

It registers once and never looks again, keeps its own book of what is in use, sends whatever it has, says that it is
well whatever happens, leaves its socket behind, and sits behind an HTTP/2 front that takes a path for a bad
authority.
"""

from __future__ import annotations

import asyncio
import contextlib
import http.server
import os
import threading
import uuid
from collections.abc import Iterable
from typing import Any

import grpc
import grpc.aio
import hpack

from resource_extend.kubernetes import api, rpc
from resource_extend.kubernetes.model import Device, Hook
from support.device_plugin import NAME

PREFACE = 24  # bytes before the first HTTP/2 frame
HEADERS, RESET = 1, 3
PROTOCOL_ERROR = 1


class StrictFront:
    """Passes HTTP/2 frames from `path` on, and resets streams whose authority is no host name, as old servers did."""

    def __init__(self, path: str, inner: str) -> None:
        self._path = path
        self._inner = inner
        self._server: asyncio.AbstractServer | None = None
        self._tasks: set[asyncio.Task[Any]] = set()

    async def start(self) -> None:
        """Listen."""
        self._server = await asyncio.start_unix_server(self._forward, self._path)

    async def stop(self) -> None:
        """Hang up everywhere."""
        assert self._server is not None
        self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        ends, back = [writer], None
        try:
            with contextlib.suppress(asyncio.IncompleteReadError, OSError, asyncio.CancelledError):
                inner_reader, inner_writer = await asyncio.open_unix_connection(self._inner)
                ends.append(inner_writer)
                back = asyncio.ensure_future(self._copy(inner_reader, writer))
                await self._pass_frames(reader, writer, inner_writer)
        finally:
            # All of them before any wait, which may be cancelled.
            for end in ends:
                end.close()
            if back is not None:
                back.cancel()
            await asyncio.gather(*(end.wait_closed() for end in ends), *filter(None, [back]), return_exceptions=True)
            self._tasks.discard(task)

    @staticmethod
    async def _pass_frames(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter, inner: asyncio.StreamWriter
    ) -> None:
        inner.write(await reader.readexactly(PREFACE))
        decoder = hpack.Decoder()
        while True:
            head = await reader.readexactly(9)
            body = await reader.readexactly(int.from_bytes(head[:3], "big"))
            if head[3] == HEADERS:
                fields = {str(pair[0]): str(pair[1]) for pair in decoder.decode(body)}
                if set(fields.get(":authority", "")) & set("/%"):
                    writer.write(bytes((0, 0, 4, RESET, 0)) + head[5:9] + PROTOCOL_ERROR.to_bytes(4, "big"))
                    continue
            inner.write(head + body)

    @staticmethod
    async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            while some := await reader.read(65536):
                writer.write(some)
        writer.close()


class NaivePlugin:
    """Registers once, trusts everything."""

    def __init__(self) -> None:
        self.devices: list[Device] = []
        self._history: list[bytes] = []
        self._in_use: set[str] = set()
        self._streams: list[asyncio.Task[Any]] = []
        self._tasks: list[asyncio.Task[Any]] = []
        self._changed = asyncio.Event()
        self._web: http.server.HTTPServer | None = None
        self._server: grpc.aio.Server | None = None
        self._front: StrictFront | None = None

    def socket_name(self) -> str:
        """Make a name as its sockets have."""
        return f"naive-{uuid.uuid4().hex[:8]}.sock"

    async def start(
        self,
        folder: str,
        devices: Iterable[Device],
        *,
        policy: str = "none",
        release: Hook | None = None,
        pod_resources: str = "",
        listen: str = "",
    ) -> None:
        """Serve, register until it works, list the devices one by one."""
        name = self.socket_name()
        path = os.path.join(folder, name)
        self._server = grpc.aio.server()
        self._server.add_generic_rpc_handlers(
            (
                rpc.handlers(
                    api.DEVICE_PLUGIN,
                    {
                        "GetDevicePluginOptions": self._options,
                        "ListAndWatch": self._list,
                        "GetPreferredAllocation": self._prefer,
                        "Allocate": self._allocate,
                        "PreStartContainer": self._pre_start,
                    },
                ),
            )
        )
        self._server.add_insecure_port(f"unix:{path}.inner")
        await self._server.start()
        self._front = StrictFront(path, f"{path}.inner")
        await self._front.start()
        if listen:
            self._serve_health(int(listen.rpartition(":")[2]))
        self._tasks.append(asyncio.ensure_future(self._register(folder, name)))
        self._tasks.append(asyncio.ensure_future(self._probe(list(devices))))

    async def _register(self, folder: str, name: str) -> None:
        request = api.device_plugin.RegisterRequest(
            version=api.API_VERSION, endpoint=name, resource_name=NAME, options=await self._options(None, None)
        )
        while True:
            async with rpc.open_channel(os.path.join(folder, api.KUBELET_SOCKET)) as channel:
                with contextlib.suppress(grpc.RpcError):
                    await rpc.Client(channel, api.REGISTRATION).Register(request)
                    return

    async def _probe(self, devices: list[Device]) -> None:
        """Look at each device before it is listed."""
        for device in devices:
            await asyncio.sleep(0.02)
            self.devices.append(device)
            self._changed.set()

    async def rescan(self, devices: Iterable[Device]) -> None:
        """Take a new list, and remember what was sent."""
        self.devices = list(devices)
        self._history.append(self._snapshot())
        self._changed.set()

    async def poll_pods(self) -> None:
        """Never ask who holds what."""

    async def stop(self) -> None:
        """End in a hurry: the socket stays."""
        for task in self._tasks + self._streams:
            task.cancel()
        await asyncio.gather(*self._tasks, *self._streams, return_exceptions=True)
        if self._front is not None:
            await self._front.stop()
        if self._server is not None:
            await self._server.stop(None)
        if self._web is not None:
            await asyncio.to_thread(self._web.shutdown)
            self._web.server_close()

    # The API

    def _snapshot(self) -> bytes:
        devices = [{"ID": d.id, "health": api.HEALTHY if d.healthy else api.UNHEALTHY} for d in self.devices]
        return bytes(api.device_plugin.ListAndWatchResponse(devices=devices).SerializeToString())

    async def _options(self, _request: Any, _context: Any) -> Any:
        return api.device_plugin.DevicePluginOptions()

    async def _list(self, _request: Any, _context: Any) -> Any:
        async def wait() -> None:
            while True:
                await asyncio.sleep(3600)

        self._streams.append(asyncio.ensure_future(wait()))
        while True:
            yield self._snapshot()
            await self._changed.wait()
            self._changed.clear()

    async def _prefer(self, request: Any, context: Any) -> Any:
        response = api.device_plugin.PreferredAllocationResponse()
        for wish in request.container_requests:
            if not set(wish.must_include_deviceIDs) <= set(wish.available_deviceIDs):
                await context.abort(grpc.StatusCode.INVALID_ARGUMENT, "must include what is not available")
            response.container_responses.add(deviceIDs=sorted(wish.available_deviceIDs)[: wish.allocation_size])
        return response

    async def _allocate(self, request: Any, context: Any) -> Any:
        response = api.device_plugin.AllocateResponse()
        for container in request.container_requests:
            if self._in_use & set(container.devices_ids):
                await context.abort(grpc.StatusCode.UNAVAILABLE, "in use")
            self._in_use |= set(container.devices_ids)
            response.container_responses.add()
        return response

    async def _pre_start(self, _request: Any, _context: Any) -> Any:
        return api.device_plugin.PreStartContainerResponse()

    # Probes

    def _serve_health(self, port: int) -> None:
        class Fine(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_arguments: object) -> None:
                pass

        self._web = http.server.HTTPServer(("127.0.0.1", port), Fine)
        threading.Thread(target=self._web.serve_forever, daemon=True).start()
