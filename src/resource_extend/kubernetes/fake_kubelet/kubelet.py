"""The fake kubelet as a whole: its folder, its registration socket, start, end and restart."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import random
import stat
from types import TracebackType
from typing import Any

import grpc
import grpc.aio

from resource_extend.kubernetes import api, rpc
from resource_extend.kubernetes.fake_kubelet.devices import Amounts, DeviceManager
from resource_extend.kubernetes.fake_kubelet.faults import FakeClock, Faults, Limits
from resource_extend.kubernetes.fake_kubelet.plugins import DialError, Plugins
from resource_extend.kubernetes.fake_kubelet.pod_resources import PodResources
from resource_extend.kubernetes.fake_kubelet.pods import Pod, Pods
from resource_extend.kubernetes.fake_kubelet.watcher import RegistryWatcher
from resource_extend.kubernetes.names import name_fault

GENERATIONS = ("le136", "ge137")
CHECKPOINT = "kubelet_internal_checkpoint"


class FakeKubelet:
    """A kubelet on `folder` (its device plugin folder), as of `le136` (up to 1.36) or `ge137` (1.37 and later).

    `registry`: folder for plugins that do not call Register. `pod_resources`: path of the pod resources socket. Both
    are off when empty. `clock` is what the five minutes of grace are measured by.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        generation: str = "ge137",
        *,
        registry: str = "",
        pod_resources: str = "",
        clock: FakeClock | None = None,
        faults: Faults | None = None,
        limits: Limits | None = None,
        seed: int | None = None,
    ) -> None:
        if generation not in GENERATIONS:
            raise ValueError(f"generation is one of {', '.join(GENERATIONS)}, not {generation!r}")
        self.folder = os.fspath(folder)
        self.clock = clock or FakeClock()
        self.faults = faults or Faults()
        self.limits = limits or Limits()
        by_socket = generation == "ge137"
        self.devices = DeviceManager(self.clock, self.limits.grace, by_socket=by_socket)
        self.plugins = Plugins(self.devices, self.faults, self.limits, by_socket=by_socket)
        self.pods = Pods(self.devices, random.Random(seed))  # noqa: S311 - picks devices
        self._registry = RegistryWatcher(registry, self.plugins, self.limits) if registry else None
        self._pod_resources = pod_resources
        self._servers: list[grpc.aio.Server] = []

    @property
    def socket(self) -> str:
        """The path of `kubelet.sock`."""
        return os.path.join(self.folder, api.KUBELET_SOCKET)

    # Start and end

    async def start(self) -> FakeKubelet:
        """Start: read the checkpoint, remove every unix socket in the folder, serve registration."""
        os.makedirs(self.folder, exist_ok=True)
        self._read_checkpoint()
        for entry in os.scandir(self.folder):
            if stat.S_ISSOCK(entry.stat(follow_symlinks=False).st_mode):
                os.unlink(entry.path)
        await self._serve(self.socket, api.REGISTRATION, {"Register": self._register})
        if self._pod_resources:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self._pod_resources)
            methods = PodResources(self.devices, self.pods).methods
            await self._serve(self._pod_resources, api.POD_RESOURCES, methods)
        if self._registry:
            self._registry.start()
        return self

    async def _serve(self, path: str, service: str, methods: dict[str, Any]) -> None:
        server = grpc.aio.server()
        server.add_generic_rpc_handlers((rpc.handlers(service, methods),))
        # A server takes its file with it when it stops, a real kubelet leaves it behind: so it gets to know another
        # name.
        bound = f"{path}.bound"
        server.add_insecure_port(f"unix:{bound}")
        await server.start()
        os.rename(bound, path)
        self._servers.append(server)

    async def stop(self) -> None:
        """End as a kubelet ends on SIGTERM and SIGKILL alike: connections break, `kubelet.sock` and all files stay."""
        self._write_checkpoint()
        if self._registry:
            await self._registry.stop()
        await self.plugins.close()
        for server in self._servers:
            await server.stop(None)
        self._servers.clear()

    async def restart(self, down: float = 0.0) -> None:
        """End, stay away for `down` seconds, start again."""
        await self.stop()
        await asyncio.sleep(down)
        await self.start()

    async def __aenter__(self) -> FakeKubelet:
        """Start."""
        return await self.start()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End."""
        await self.stop()

    def _checkpoint_path(self) -> str:
        return os.path.join(self.folder, CHECKPOINT)

    def _write_checkpoint(self) -> None:
        pods = [pod.to_json() for pod in self.pods.pods.values()]
        with open(self._checkpoint_path(), "w", encoding="utf-8") as file:
            json.dump({"registered": sorted(self.devices.listed), "pods": pods}, file)

    def _read_checkpoint(self) -> None:
        self.pods.pods.clear()
        registered: list[str] = []
        if not self.faults.no_checkpoint:
            with contextlib.suppress(FileNotFoundError), open(self._checkpoint_path(), encoding="utf-8") as file:
                saved = json.load(file)
                registered = saved["registered"]
                for text in saved["pods"]:
                    pod = Pod.from_json(text)
                    self.pods.pods[pod.namespace, pod.name] = pod
        self.devices.forget_plugins(registered)

    # Registration

    async def _register(self, request: Any, context: Any) -> Any:
        """Answer Register: checks, then dial and options inside the call, then the list in the background."""
        error = ""
        try:
            error = self._registration_fault(request)
            if not error:
                await self.plugins.connect(request.resource_name, os.path.join(self.folder, request.endpoint))
        except (DialError, ValueError) as problem:
            error = str(problem)
        except grpc.RpcError as problem:
            error = f"failed to get device plugin options: {rpc.error_text(problem)}"
        finally:
            self.plugins.registrations.append((request.resource_name, request.endpoint, error))
        if error:
            await context.abort(grpc.StatusCode.UNKNOWN, error)
        return api.device_plugin.Empty()

    def _registration_fault(self, request: Any) -> str:
        if self.faults.refuse > 0:
            self.faults.refuse -= 1
            return self.faults.refusal
        if request.version != api.API_VERSION:
            return (
                f"requested API version {request.version!r} is not supported by kubelet. "
                f"Supported version is [{api.API_VERSION}]"
            )
        if name_fault(request.resource_name):
            return f'the ResourceName "{request.resource_name}" is invalid'
        return ""

    # What tests look at and do

    @property
    def registrations(self) -> list[tuple[str, str, str]]:
        """Every Register so far: resource, endpoint, error text or ""."""
        return self.plugins.registrations

    def node(self) -> dict[str, Amounts]:
        """Give the node's extended resources as after a status sync now."""
        return self.devices.sync_node()

    async def wait_for(
        self, resource: str, *, capacity: int | None = None, allocatable: int | None = None, timeout: float = 10.0
    ) -> Amounts:
        """Wait until the node shows a resource with these numbers. Raises TimeoutError that says what it shows."""
        end = asyncio.get_running_loop().time() + timeout
        while True:
            shown = self.node().get(resource)
            if shown and capacity in {None, shown.capacity} and allocatable in {None, shown.allocatable}:
                return shown
            if asyncio.get_running_loop().time() > end:
                wanted = f"capacity {capacity}, allocatable {allocatable}"
                raise TimeoutError(f"{resource}: wanted {wanted}, the node shows {shown}; {self.registrations[-3:]}")
            await asyncio.sleep(0.01)

    async def admit(self, name: str, requests: dict[str, int], namespace: str = "default") -> Pod:
        """Admit a pod that asks for devices. Raises AdmissionError."""
        return await self.pods.admit(name, requests, namespace)
