"""The device plugin's answers to the kubelet, over a table of devices.

Allocate is a pure function of the table: it keeps no book about who has what (the kubelet does), so any listed id may
be asked for, twice in a row as well, healthy or not (specification, kubernetes 8.1-7). The preferred allocation never
fails, since a failure there would fail the pod.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import Any

from resource_extend.errors import PluginError
from resource_extend.kubernetes.api import device_plugin
from resource_extend.kubernetes.counts import Counts
from resource_extend.kubernetes.hooks import run_hook
from resource_extend.kubernetes.logs import note, warn
from resource_extend.kubernetes.model import AllocationError, Device, DeviceAnswer, Hook, Mount, Resource
from resource_extend.kubernetes.table import DeviceTable

PRE_START_LIMIT = 25.0  # seconds; the kubelet gives a PreStartContainer call 30

Combine = Callable[[Resource, list[Device]], DeviceAnswer]
Prefer = Callable[[str, list[Device], list[str], int], list[str]]


def options(resource: Resource) -> Any:
    """Say which optional calls the kubelet should make for `resource`."""
    return device_plugin.DevicePluginOptions(
        pre_start_required=resource.pre_start is not None,
        get_preferred_allocation_available=resource.allocation_policy != "none",
    )


def container_answer(resource: Resource, devices: list[Device], combine: Combine) -> DeviceAnswer:
    """Say what one container gets with `devices`. Raises AllocationError, also for a mount whose source is missing."""
    answer = combine(resource, devices)
    missing = [mount for mount in answer.mounts if mount.seen_path and not os.path.lexists(mount.seen_path)]
    for mount in missing:
        if not mount.optional:
            raise AllocationError(f"{resource.name}: the mount source {mount.host_path!r} does not exist on this node")
    if not missing:
        return answer
    kept: Iterable[Mount] = (mount for mount in answer.mounts if mount not in missing)
    return DeviceAnswer(answer.nodes, tuple(kept), answer.env, answer.annotations, answer.cdi_names)


def to_message(answer: DeviceAnswer) -> Any:
    """Write a container's answer as the kubelet wants it."""
    return device_plugin.ContainerAllocateResponse(
        envs=dict(answer.env),
        mounts=[
            {"container_path": m.container_path, "host_path": m.host_path, "read_only": m.read_only}
            for m in answer.mounts
        ],
        devices=[
            {"container_path": n.container_path, "host_path": n.host_path, "permissions": n.permissions}
            for n in answer.nodes
        ],
        annotations=dict(answer.annotations),
        cdi_devices=[{"name": name} for name in answer.cdi_names],
    )


def legal_choice(wanted: Iterable[str], available: Iterable[str], must_include: Iterable[str], size: int) -> list[str]:
    """Make any wish legal: what must be included, then what is wanted and available, `size` ids if possible."""
    offered = set(available)
    chosen = dict.fromkeys(must_include)
    for candidates in (wanted, sorted(offered)):
        for name in candidates:
            if len(chosen) >= size:
                return list(chosen)
            if name in offered:
                chosen[name] = None
    return list(chosen)


class Service:
    """The unary methods of the device plugin API for one resource."""

    def __init__(
        self, resource: Resource, table: DeviceTable, counts: Counts, combine: Combine, prefer: Prefer
    ) -> None:
        self.resource = resource
        self.table = table
        self.counts = counts
        self._combine = combine
        self._prefer = prefer

    async def get_options(self, _request: Any, _context: Any) -> Any:
        """Answer GetDevicePluginOptions."""
        return options(self.resource)

    async def allocate(self, request: Any, _context: Any) -> Any:
        """Answer Allocate: one answer for each container request, in order."""
        response = device_plugin.AllocateResponse()
        for container in request.container_requests:
            ids = list(container.devices_ids)
            try:
                answer = container_answer(self.resource, self._find(ids), self._combine)
            except AllocationError as error:
                self.counts.allocation_failures += 1
                warn("allocate refused", resource=self.resource.name, devices=ids, reason=str(error))
                raise
            response.container_responses.append(to_message(answer))
            self.counts.allocations += 1
            note("allocate", resource=self.resource.name, devices=ids)
        return response

    def _find(self, ids: list[str]) -> list[Device]:
        devices = self.table.devices
        for name in ids:
            if name not in devices:
                raise AllocationError(
                    f"{self.resource.name} has no device {name!r} any more: it was removed from the node, "
                    f"{len(devices)} others are there"
                )
        return [devices[name] for name in ids]

    async def get_preferred_allocation(self, request: Any, _context: Any) -> Any:
        """Answer GetPreferredAllocation; whatever is asked, the answer is legal and no error."""
        response = device_plugin.PreferredAllocationResponse()
        for container in request.container_requests:
            self.counts.preferred += 1
            available = list(container.available_deviceIDs)
            must_include = list(container.must_include_deviceIDs)
            wanted = self._choose(available, must_include, container.allocation_size)
            choice = legal_choice(wanted, available, must_include, container.allocation_size)
            response.container_responses.add(deviceIDs=choice)
        return response

    def _choose(self, available: list[str], must_include: list[str], size: int) -> list[str]:
        """Ask the policy. A wish that it cannot deal with must not fail the pod, so any error means no preference."""
        known = self.table.devices
        devices = [known.get(name) or Device(name) for name in dict.fromkeys(available)]
        try:
            return self._prefer(self.resource.allocation_policy, devices, must_include, size)
        except Exception as error:
            warn("preferred allocation failed", resource=self.resource.name, error=repr(error))
            return []

    async def pre_start_container(self, request: Any, _context: Any) -> Any:
        """Answer PreStartContainer by running the resource's hook, if it has one."""
        configured = self.resource.pre_start
        if configured is not None:
            hook = Hook(configured.command, min(configured.timeout, PRE_START_LIMIT))
            try:
                await run_hook(hook, self.resource.name, request.devices_ids)
            except PluginError as error:
                self.counts.hooks["pre_start", "failed"] += 1
                warn("pre-start hook failed", resource=self.resource.name, reason=str(error))
                raise
            self.counts.hooks["pre_start", "ok"] += 1
        return device_plugin.PreStartContainerResponse()
