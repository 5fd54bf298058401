"""Pods on the fake kubelet: admission picks devices and asks the plugin, starts use what was answered then."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import grpc
import grpc.aio

from resource_extend.kubernetes.api import HEALTHY, device_plugin
from resource_extend.kubernetes.fake_kubelet.devices import DeviceManager, Plugin


class AdmissionError(Exception):
    """The pod is `Failed` for good, reason UnexpectedAdmissionError."""


def go_error(error: grpc.RpcError) -> str:
    """Write a plugin's error as the kubelet's own language does: `rpc error: code = Internal desc = no power`."""
    if not isinstance(error, grpc.aio.AioRpcError):
        return str(error)
    code = error.code().name.title().replace("_", "")
    return f"rpc error: code = {code} desc = {error.details()}"


class ContainerError(Exception):
    """A container does not start (now)."""


@dataclass
class Pod:
    """An admitted pod of one container: ids by resource, and the plugin's first answer by resource."""

    name: str
    namespace: str
    requests: dict[str, int]
    devices: dict[str, list[str]] = field(default_factory=dict)
    answers: dict[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Write the pod for the checkpoint."""
        answers = {name: answer.SerializeToString().hex() for name, answer in self.answers.items()}
        return {**vars(self), "answers": answers}

    @classmethod
    def from_json(cls, text: Mapping[str, Any]) -> Pod:
        """Read a pod of the checkpoint."""
        make = device_plugin.ContainerAllocateResponse.FromString
        answers = {name: make(bytes.fromhex(answer)) for name, answer in text["answers"].items()}
        return cls(text["name"], text["namespace"], text["requests"], text["devices"], answers)


class Pods:
    """The pods of a node, by (namespace, name). They outlive a restart of the kubelet."""

    def __init__(self, manager: DeviceManager, chance: random.Random) -> None:
        self.pods: dict[tuple[str, str], Pod] = {}
        self._manager = manager
        self._chance = chance

    def held(self, resource: str) -> set[str]:
        """Give the ids of a resource that pods hold."""
        return {name for pod in self.pods.values() for name in pod.devices.get(resource, ())}

    async def admit(self, name: str, requests: dict[str, int], namespace: str = "default") -> Pod:
        """Admit a pod. Raises AdmissionError."""
        pod = Pod(name, namespace, dict(requests))
        for resource, count in requests.items():
            if resource not in self._manager.endpoints:
                continue  # nobody's resource, as the kubelet sees it: the pod runs without
            try:
                ids = await self._pick(resource, count)
                pod.answers[resource] = await self._allocate(resource, ids)
            except AdmissionError as error:
                raise AdmissionError(f"Allocate failed due to {error}, which is unexpected") from error
            pod.devices[resource] = ids
        self.pods[namespace, name] = pod
        return pod

    async def _pick(self, resource: str, count: int) -> list[str]:
        listed = self._manager.listed.get(resource)
        if listed is None:
            raise AdmissionError(f"cannot allocate unregistered device {resource}")
        if not listed.healthy:
            raise AdmissionError(f"no healthy devices present; cannot allocate unhealthy devices {resource}")
        available = sorted(listed.healthy - self.held(resource))
        if len(available) < count:
            raise AdmissionError(
                f"requested number of devices unavailable for {resource}. "
                f"Requested: {count}, Available: {len(available)}"
            )
        self._chance.shuffle(available)
        plugin = self._live(resource)
        wanted: list[str] = []
        if plugin.preferred:
            try:
                wanted = await plugin.client.prefer(available, [], count)
            except grpc.RpcError as error:
                text = f"device plugin GetPreferredAllocation rpc failed with err: {go_error(error)}"
                raise AdmissionError(text) from error
        chosen = [name for name in dict.fromkeys(wanted) if name in available]
        chosen += [name for name in available if name not in chosen]
        return chosen[:count]

    async def _allocate(self, resource: str, ids: list[str]) -> Any:
        try:
            response = await self._live(resource).client.allocate(ids)
        except grpc.RpcError as error:
            raise AdmissionError(go_error(error)) from error
        if not response.container_responses:
            raise AdmissionError(f"no containers return in allocation response {response}")
        return response.container_responses[0]

    def _live(self, resource: str) -> Plugin:
        plugin = self._manager.endpoints[resource]
        if plugin.stopped_at is not None:
            raise AdmissionError(f"endpoint {resource} has been stopped")
        return plugin

    async def start_container(self, pod: Pod) -> dict[str, Any]:
        """Start the pod's container (again): the cached answers, after PreStartContainer where it is asked for."""
        for resource, ids in pod.devices.items():
            plugin = self._manager.endpoints.get(resource)
            if plugin is None:
                raise ContainerError(f"endpoint not found in cache for a registered resource: {resource}")
            if plugin.pre_start:
                await self._pre_start(plugin, ids)
        return pod.answers

    async def _pre_start(self, plugin: Plugin, ids: list[str]) -> None:
        if plugin.stopped_at is not None:
            raise ContainerError(f"endpoint {plugin.resource} has been stopped")
        try:
            await plugin.client.pre_start(ids)
        except grpc.RpcError as error:
            text = f"device plugin PreStartContainer rpc failed with err: {go_error(error)}"
            raise ContainerError(text) from error

    def delete(self, name: str, namespace: str = "default") -> None:
        """Take a pod off the node; no plugin hears of it."""
        self.pods.pop((namespace, name))

    def health(self, pod: Pod) -> dict[str, str]:
        """Give the health of a pod's devices as its status tells it: a device no longer listed stays Healthy."""
        status = {}
        for resource, ids in pod.devices.items():
            listed = self._manager.listed.get(resource)
            for name in ids:
                word = listed.words.get(name, HEALTHY) if listed else HEALTHY
                status[name] = "Healthy" if word == HEALTHY else "Unhealthy"
        return status
