"""The pod resources service of the fake kubelet: who holds which devices, and which ones are healthy."""

from __future__ import annotations

from typing import Any

import grpc
import grpc.aio

from resource_extend.kubernetes.api import pod_resources
from resource_extend.kubernetes.fake_kubelet.devices import DeviceManager
from resource_extend.kubernetes.fake_kubelet.pods import Pod, Pods


class PodResources:
    """The methods List, Get and GetAllocatableResources over the fake kubelet's pods and devices."""

    def __init__(self, manager: DeviceManager, pods: Pods) -> None:
        self._manager = manager
        self._pods = pods
        self.methods = {"List": self._list, "Get": self._get, "GetAllocatableResources": self._allocatable}

    def _entries(self, resource: str, ids: list[str]) -> list[dict[str, Any]]:
        """Write ids as the kubelet does: an entry for each group of devices with the same NUMA nodes."""
        numa = self._manager.listed[resource].numa if resource in self._manager.listed else {}
        groups: dict[tuple[int, ...], list[str]] = {}
        for name in ids:
            groups.setdefault(numa.get(name, ()), []).append(name)
        return [
            {
                "resource_name": resource,
                "device_ids": group,
                "topology": {"nodes": [{"ID": node} for node in nodes]} if nodes else None,
            }
            for nodes, group in groups.items()
        ]

    def _pod(self, pod: Pod) -> dict[str, Any]:
        devices = [entry for name, ids in pod.devices.items() for entry in self._entries(name, ids)]
        return {"name": pod.name, "namespace": pod.namespace, "containers": [{"name": "main", "devices": devices}]}

    async def _list(self, _request: Any, _context: Any) -> Any:
        return pod_resources.ListPodResourcesResponse(pod_resources=[self._pod(p) for p in self._pods.pods.values()])

    async def _get(self, request: Any, context: Any) -> Any:
        pod = self._pods.pods.get((request.pod_namespace, request.pod_name))
        if pod is None:
            await context.abort(grpc.StatusCode.NOT_FOUND, "pod not found")
            raise AssertionError("abort raises")
        return pod_resources.GetPodResourcesResponse(pod_resources=self._pod(pod))

    async def _allocatable(self, _request: Any, _context: Any) -> Any:
        entries = [
            entry
            for resource, listed in self._manager.listed.items()
            for entry in self._entries(resource, sorted(listed.healthy))
        ]
        return pod_resources.AllocatableResourcesResponse(devices=entries)
