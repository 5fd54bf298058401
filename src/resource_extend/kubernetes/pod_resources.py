"""Who holds which devices, and which ones the kubelet may hand out: the pod resources API, read only.

One resource of one container may come in several entries (one for each group of NUMA nodes), so everything is
collected by resource (specification, kubernetes 1.3).
"""

from __future__ import annotations

import grpc
import grpc.aio

from resource_extend.errors import PluginError
from resource_extend.kubernetes import api, rpc

TIMEOUT = 5.0  # seconds

Holders = dict[str, dict[str, set[str]]]  # resource -> device id -> namespace/pod/container


class PodResourcesError(PluginError):
    """The kubelet's pod resources socket does not answer."""


def _failure(path: str, error: grpc.RpcError) -> PodResourcesError:
    return PodResourcesError(
        f"the pod resources socket {path!r} does not answer ({rpc.error_text(error)}): "
        "is the folder of that socket mounted here?"
    )


async def read_holders(path: str) -> Holders:
    """Ask the kubelet on the socket `path` who holds what. Raises PodResourcesError."""
    async with rpc.open_channel(path) as channel:
        try:
            request = api.pod_resources.ListPodResourcesRequest()
            answer = await rpc.Client(channel, api.POD_RESOURCES).List(request, timeout=TIMEOUT)
        except grpc.RpcError as error:
            raise _failure(path, error) from error
    holders: Holders = {}
    for pod in answer.pod_resources:
        for container in pod.containers:
            for entry in container.devices:
                devices = holders.setdefault(entry.resource_name, {})
                for name in entry.device_ids:
                    devices.setdefault(name, set()).add(f"{pod.namespace}/{pod.name}/{container.name}")
    return holders


async def read_allocatable(path: str) -> dict[str, set[str]]:
    """Ask the kubelet on the socket `path` for the healthy devices of each resource. Raises PodResourcesError."""
    async with rpc.open_channel(path) as channel:
        try:
            request = api.pod_resources.AllocatableResourcesRequest()
            answer = await rpc.Client(channel, api.POD_RESOURCES).GetAllocatableResources(request, timeout=TIMEOUT)
        except grpc.RpcError as error:
            raise _failure(path, error) from error
    allocatable: dict[str, set[str]] = {}
    for entry in answer.devices:
        allocatable.setdefault(entry.resource_name, set()).update(entry.device_ids)
    return allocatable
