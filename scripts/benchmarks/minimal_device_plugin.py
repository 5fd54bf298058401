"""The least that registers and lists devices: grpc.aio, no life cycle, no scan, no configuration.

`minimal_device_plugin.py FOLDER COUNT` is measured beside the device plugin, to tell what is gRPC's and what is ours.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from typing import Any

import grpc.aio

from resource_extend.kubernetes import api, rpc
from resource_extend.kubernetes.api import device_plugin


async def main(folder: str, count: int) -> None:
    """Register `count` devices with the kubelet on `folder` and list them once."""
    devices = [{"ID": f"f71ef937-{number}", "health": "Healthy"} for number in range(count)]
    snapshot = device_plugin.ListAndWatchResponse(devices=devices).SerializeToString()

    async def options(_request: Any, _context: Any) -> Any:
        return device_plugin.DevicePluginOptions()

    async def watch(_request: Any, _context: Any) -> AsyncIterator[bytes]:
        yield snapshot
        await asyncio.Event().wait()

    names = ("GetDevicePluginOptions", "GetPreferredAllocation", "Allocate", "PreStartContainer")
    answers = {**dict.fromkeys(names, options), "ListAndWatch": watch}
    endpoint = f"minimal-{os.getpid()}.sock"
    server = grpc.aio.server()
    server.add_generic_rpc_handlers((rpc.handlers(api.DEVICE_PLUGIN, answers),))
    server.add_insecure_port(f"unix:{folder}/{endpoint}")
    await server.start()
    async with rpc.open_channel(f"{folder}/kubelet.sock") as channel:
        request = device_plugin.RegisterRequest(
            version=api.API_VERSION, endpoint=endpoint, resource_name="example.com/resource"
        )
        await rpc.Client(channel, api.REGISTRATION).Register(request)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2])))
