"""The fake kubelet keeps to what real kubelets do (specification, kubernetes 2.13 and 8.4)."""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest

from resource_extend.kubernetes import api, rpc
from resource_extend.kubernetes.api import device_plugin
from resource_extend.kubernetes.fake_kubelet import (
    AdmissionError,
    Amounts,
    ContainerError,
    FakeClock,
    FakeKubelet,
    Limits,
)
from support.device_plugin import NAME, dead_socket, story, until

GENERATIONS = pytest.mark.parametrize("generation", ["le136", "ge137"])


class Puppet:
    """A plugin whose every answer is the test's."""

    def __init__(self, folder: Path, name: str = "puppet.sock") -> None:
        self.path = str(folder / name)
        self.folder = folder
        self.options = device_plugin.DevicePluginOptions()
        self.lists: asyncio.Queue[Any] = asyncio.Queue()
        self.allocate: Callable[[Any], Any] = lambda request: device_plugin.AllocateResponse(
            container_responses=[{"envs": {"IDS": ",".join(request.container_requests[0].devices_ids)}}]
        )
        self.prefer: Callable[[Any], Any] = lambda request: device_plugin.PreferredAllocationResponse()
        self.pre_starts: list[list[str]] = []
        self.pre_start_seconds = 0.0

    async def __aenter__(self) -> Puppet:
        self.server = grpc.aio.server()
        answers = {
            "GetDevicePluginOptions": self._options,
            "ListAndWatch": self._list,
            "GetPreferredAllocation": self._prefer,
            "Allocate": self._allocate,
            "PreStartContainer": self._pre_start,
        }
        self.server.add_generic_rpc_handlers((rpc.handlers(api.DEVICE_PLUGIN, answers),))
        self.server.add_insecure_port(f"unix:{self.path}")
        await self.server.start()
        return self

    async def __aexit__(self, *_error: object) -> None:
        self.end()
        await self.server.stop(0.1)

    def end(self) -> None:
        """End the stream."""
        self.lists.put_nowait(None)

    def send(self, **health: str) -> None:
        """Send a list, as id=word."""
        devices = [{"ID": name, "health": word} for name, word in health.items()]
        self.lists.put_nowait(device_plugin.ListAndWatchResponse(devices=devices))

    async def register(self, **fields: str) -> None:
        """Register with the kubelet."""
        said = {"version": "v1beta1", "endpoint": os.path.basename(self.path), "resource_name": NAME, **fields}
        async with rpc.open_channel(str(self.folder / "kubelet.sock")) as channel:
            await rpc.Client(channel, api.REGISTRATION).Register(device_plugin.RegisterRequest(**said), timeout=5)

    async def _options(self, _request: Any, _context: Any) -> Any:
        return self.options

    async def _list(self, _request: Any, _context: Any) -> AsyncIterator[Any]:
        while (message := await self.lists.get()) is not None:
            yield message

    async def _prefer(self, request: Any, context: Any) -> Any:
        answer = self.prefer(request)
        if isinstance(answer, str):
            await context.abort(grpc.StatusCode.INTERNAL, answer)
        return answer

    async def _allocate(self, request: Any, _context: Any) -> Any:
        return self.allocate(request)

    async def _pre_start(self, request: Any, _context: Any) -> Any:
        self.pre_starts.append(list(request.devices_ids))
        await asyncio.sleep(self.pre_start_seconds)
        return device_plugin.PreStartContainerResponse()


@asynccontextmanager
async def registered(folder: Path, generation: str = "ge137", **more: Any) -> AsyncIterator[tuple[FakeKubelet, Puppet]]:
    """Give a kubelet, and a puppet that offers `a` and `b`."""
    async with FakeKubelet(folder, generation, seed=1, **more) as kubelet, Puppet(folder) as puppet:
        await puppet.register()
        puppet.send(a="Healthy", b="Healthy")
        await kubelet.wait_for(NAME, allocatable=2)
        yield kubelet, puppet


async def refusal(job: Any) -> str:
    """Give the text of a refused Register; its code is UNKNOWN, as the kubelet's."""
    with pytest.raises(grpc.aio.AioRpcError) as info:
        await job
    assert grpc.StatusCode.UNKNOWN is info.value.code()
    return info.value.details() or ""


@story
async def test_start_removes_sockets_and_keeps_files(tmp_path: Path) -> None:
    """At its start every unix socket in the folder goes; files, folders and the checkpoint stay."""
    dead_socket(str(tmp_path / "old.sock"))
    (tmp_path / "file").write_text("")
    (tmp_path / "folder").mkdir()
    async with FakeKubelet(tmp_path) as kubelet:
        assert {"file", "folder", "kubelet.sock"} == set(os.listdir(tmp_path))
        assert stat.S_ISSOCK(os.stat(kubelet.socket).st_mode)


@story
async def test_end_leaves_the_socket_as_it_was(tmp_path: Path) -> None:
    """After its end kubelet.sock is still there, the same file, and nobody answers on it."""
    kubelet = FakeKubelet(tmp_path)
    await kubelet.start()
    before = os.stat(kubelet.socket)
    await kubelet.stop()
    after = os.stat(kubelet.socket)
    assert (before.st_ino, before.st_ctime_ns) == (after.st_ino, after.st_ctime_ns)
    with pytest.raises(grpc.RpcError, match="UNAVAILABLE"):
        await Puppet(tmp_path).register()


@GENERATIONS
@story
async def test_register_checks(generation: str, tmp_path: Path) -> None:
    """Version and name are checked with the kubelet's texts, and the plugin has to be there to be dialed."""
    limits = Limits(dial=0.3)
    async with FakeKubelet(tmp_path, generation, limits=limits) as kubelet, Puppet(tmp_path) as puppet:
        assert "is not supported by kubelet" in await refusal(puppet.register(version="v1"))
        assert 'the ResourceName "x" is invalid' in await refusal(puppet.register(resource_name="x"))
        assert "failed to dial device plugin" in await refusal(puppet.register(endpoint="no.sock"))
        assert [bool(error) for _, _, error in kubelet.registrations] == [True] * 3


@story
async def test_nothing_before_the_first_list(tmp_path: Path) -> None:
    """Register alone shows nothing in the node; an empty list shows zeros."""
    async with FakeKubelet(tmp_path) as kubelet, Puppet(tmp_path) as puppet:
        await puppet.register()
        await asyncio.sleep(0.1)
        assert {} == kubelet.node()
        puppet.send()
        await kubelet.wait_for(NAME, capacity=0, allocatable=0)


@story
async def test_lists_replace_and_health_is_exact(tmp_path: Path) -> None:
    """Each list replaces the last; only the very word Healthy counts as healthy."""
    async with registered(tmp_path) as (kubelet, puppet):
        puppet.send(a="Healthy", b="healthy", c="Unhealthy")
        await kubelet.wait_for(NAME, capacity=3, allocatable=1)
        puppet.send(c="Healthy")
        await kubelet.wait_for(NAME, capacity=1, allocatable=1)


@GENERATIONS
@story
async def test_stream_end_and_grace(generation: str, tmp_path: Path) -> None:
    """After the end of the stream nothing is allocatable; after five minutes capacity is 0, and stays in the node."""
    clock = FakeClock()
    async with registered(tmp_path, generation, clock=clock) as (kubelet, puppet):
        puppet.end()
        await kubelet.wait_for(NAME, capacity=2, allocatable=0)
        clock.advance(299)
        assert Amounts(2, 0) == kubelet.node()[NAME]
        clock.advance(2)
        assert Amounts(0, 0) == kubelet.node()[NAME]
        clock.advance(100_000)
        assert Amounts(0, 0) == kubelet.node()[NAME]


@GENERATIONS
@story
async def test_messages_that_end_the_stream(generation: str, tmp_path: Path) -> None:
    """A list above 4 MiB and one with an id that is not UTF-8 end the stream; one just below does not."""
    async with registered(tmp_path, generation) as (kubelet, puppet):
        entry = {"health": "Healthy"}
        fits = device_plugin.ListAndWatchResponse(devices=[{"ID": f"{n:063}", **entry} for n in range(55_188)])
        puppet.lists.put_nowait(fits)
        await kubelet.wait_for(NAME, allocatable=55_188)
        fits.devices.add(ID=f"{55_188:063}", **entry)
        puppet.lists.put_nowait(fits)
        await kubelet.wait_for(NAME, allocatable=0)
    async with registered(tmp_path, generation) as (kubelet, puppet):
        puppet.lists.put_nowait(bytes.fromhex("0a030a01ff"))
        await kubelet.wait_for(NAME, allocatable=0)


@story
async def test_late_end_kills_the_newcomer_up_to_1_36(tmp_path: Path) -> None:
    """Up to 1.36 the end of an old instance's stream disconnects the new one."""
    async with registered(tmp_path, "le136") as (kubelet, old), Puppet(tmp_path, "new.sock") as new:
        await new.register()
        new.send(a="Healthy", b="Healthy", c="Healthy")
        await kubelet.wait_for(NAME, allocatable=3)
        old.end()
        await kubelet.wait_for(NAME, capacity=3, allocatable=0)


@story
async def test_instances_live_side_by_side_from_1_37(tmp_path: Path) -> None:
    """From 1.37 on the end of one instance promotes the other, whichever leaves."""
    async with registered(tmp_path, "ge137") as (kubelet, old), Puppet(tmp_path, "new.sock") as new:
        await new.register()
        new.send(a="Healthy", b="Healthy", c="Healthy")
        await kubelet.wait_for(NAME, allocatable=3)
        old.end()
        await asyncio.sleep(0.2)
        assert Amounts(3, 3) == kubelet.node()[NAME]
        await kubelet.admit("pod", {NAME: 1})


@story
async def test_older_instance_is_not_used_when_the_newer_leaves_up_to_1_36(tmp_path: Path) -> None:
    """Up to 1.36 the older one's open stream raises allocatable again, and every pod fails."""
    async with registered(tmp_path, "le136") as (kubelet, old), Puppet(tmp_path, "new.sock") as new:
        await new.register()
        new.send(a="Healthy")
        await kubelet.wait_for(NAME, allocatable=1)
        new.end()
        await kubelet.wait_for(NAME, allocatable=0)
        old.send(a="Healthy", b="Healthy")
        await kubelet.wait_for(NAME, allocatable=2)
        with pytest.raises(AdmissionError, match="has been stopped"):
            await kubelet.admit("pod", {NAME: 1})


@story
async def test_same_socket_again_from_1_37(tmp_path: Path) -> None:
    """From 1.37 on registering a tracked socket is refused, and the end of its stream goes unnoticed for good."""
    async with registered(tmp_path, "ge137") as (kubelet, puppet):
        assert "already connected" in await refusal(puppet.register())
        puppet.end()
        await asyncio.sleep(0.2)
        assert Amounts(2, 2) == kubelet.node()[NAME]
        assert "already connected" in await refusal(puppet.register())
        await kubelet.restart()
        assert Amounts(0, 0) == kubelet.node()[NAME]


@story
async def test_failed_second_register_up_to_1_36(tmp_path: Path) -> None:
    """Up to 1.36 a second Register that fails makes the end of the stream go unnoticed, until the next good one."""
    async with registered(tmp_path, "le136", limits=Limits(dial=0.3)) as (kubelet, puppet):
        await refusal(puppet.register(endpoint="no.sock"))
        puppet.end()
        await asyncio.sleep(0.2)
        assert Amounts(2, 2) == kubelet.node()[NAME]
        async with Puppet(tmp_path, "next.sock") as healer:
            await healer.register()
            healer.send(a="Healthy")
            await kubelet.wait_for(NAME, allocatable=1)
            healer.end()
            await kubelet.wait_for(NAME, allocatable=0)


@story
async def test_admission(tmp_path: Path) -> None:
    """Devices are picked among the free and healthy ones; too few is refused; the first response only is kept."""
    async with registered(tmp_path) as (kubelet, puppet):
        puppet.allocate = lambda _: device_plugin.AllocateResponse(
            container_responses=[{"envs": {"N": "1"}}, {"envs": {"N": "2"}}]
        )
        pod = await kubelet.admit("first", {NAME: 1})
        assert "1" == pod.answers[NAME].envs["N"]
        with pytest.raises(AdmissionError, match=r"Requested: 2, Available: 1"):
            await kubelet.admit("second", {NAME: 2})
        other = await kubelet.admit("third", {NAME: 1})
        assert {"a", "b"} == {*pod.devices[NAME], *other.devices[NAME]}
        puppet.allocate = lambda _: device_plugin.AllocateResponse()
        kubelet.pods.delete("third")
        with pytest.raises(AdmissionError, match="no containers return in allocation response"):
            await kubelet.admit("fourth", {NAME: 1})
        free = await kubelet.admit("fifth", {"example.com/unknown": 1})
        assert {} == free.devices


@story
async def test_preferred_allocation(tmp_path: Path) -> None:
    """The preference is taken where it is legal, filled up where it is short, and an error fails the pod."""
    async with FakeKubelet(tmp_path, seed=7) as kubelet, Puppet(tmp_path) as puppet:
        puppet.options = device_plugin.DevicePluginOptions(get_preferred_allocation_available=True)
        await puppet.register()
        puppet.send(**dict.fromkeys("abcdef", "Healthy"))
        await kubelet.wait_for(NAME, allocatable=6)
        puppet.prefer = lambda _: device_plugin.PreferredAllocationResponse(
            container_responses=[{"deviceIDs": ["e", "nonsense", "e"]}]
        )
        pod = await kubelet.admit("first", {NAME: 2})
        assert "e" in pod.devices[NAME]
        assert 2 == len(set(pod.devices[NAME]))
        puppet.prefer = lambda _: "I do not know"
        with pytest.raises(AdmissionError, match=r"GetPreferredAllocation rpc failed.*I do not know"):
            await kubelet.admit("second", {NAME: 1})


@story
async def test_answers_are_kept_over_restarts(tmp_path: Path) -> None:
    """A container restart gets the first answer again, without Allocate, also after a restart of the kubelet."""
    async with registered(tmp_path) as (kubelet, puppet):
        pod = await kubelet.admit("pod", {NAME: 1})
        puppet.allocate = lambda _: pytest.fail("Allocate is not called again")
        assert pod.answers == await kubelet.pods.start_container(pod)
        await kubelet.restart()
        (again,) = kubelet.pods.pods.values()
        assert pod.answers == await kubelet.pods.start_container(again)
        assert pod.devices == again.devices


@story
async def test_pre_start(tmp_path: Path) -> None:
    """With the option, each start asks PreStartContainer; one that takes too long keeps the container from starting."""
    async with FakeKubelet(tmp_path, limits=Limits(pre_start=0.2)) as kubelet, Puppet(tmp_path) as puppet:
        puppet.options = device_plugin.DevicePluginOptions(pre_start_required=True)
        await puppet.register()
        puppet.send(a="Healthy")
        await kubelet.wait_for(NAME, allocatable=1)
        pod = await kubelet.admit("pod", {NAME: 1})
        await kubelet.pods.start_container(pod)
        await kubelet.pods.start_container(pod)
        assert [["a"], ["a"]] == puppet.pre_starts
        puppet.pre_start_seconds = 1
        with pytest.raises(ContainerError, match="DEADLINE_EXCEEDED"):
            await kubelet.pods.start_container(pod)
        puppet.end()
        await kubelet.wait_for(NAME, allocatable=0)
        with pytest.raises(ContainerError, match="has been stopped"):
            await kubelet.pods.start_container(pod)


@story
async def test_pod_status_health(tmp_path: Path) -> None:
    """A changed word reaches the pod's status; a device that vanished from the list goes on as Healthy."""
    async with registered(tmp_path) as (kubelet, puppet):
        pod = await kubelet.admit("pod", {NAME: 2})
        puppet.send(a="Unhealthy")
        await kubelet.wait_for(NAME, capacity=1)
        assert {"a": "Unhealthy", "b": "Healthy"} == kubelet.pods.health(pod)


@story
async def test_checkpoint(tmp_path: Path) -> None:
    """A restarted kubelet knows a resource by its checkpoint (0, 0); without it, it knows nothing."""
    async with registered(tmp_path) as (kubelet, puppet):
        puppet.end()
        await kubelet.restart()
        assert Amounts(0, 0) == kubelet.node()[NAME]
        kubelet.node().clear()
        kubelet.devices.node.clear()
        kubelet.faults.no_checkpoint = True
        await kubelet.restart()
        assert {} == kubelet.node()


@story
async def test_watcher(tmp_path: Path) -> None:
    """The plugin watcher takes no socket with a leading dot, no other plugin type, and notices a removed file."""
    registry = tmp_path / "registry"
    registry.mkdir()
    told: list[Any] = []

    async def info(_request: Any, _context: Any) -> Any:
        return api.plugin_registration.PluginInfo(type="CSIPlugin", name=NAME, supported_versions=["v1beta1"])

    async def notify(request: Any, _context: Any) -> Any:
        told.append(request.error)
        return api.plugin_registration.RegistrationStatusResponse()

    server = grpc.aio.server()
    answers = {"GetInfo": info, "NotifyRegistrationStatus": notify}
    server.add_generic_rpc_handlers((rpc.handlers(api.PLUGIN_WATCHER, answers),))
    server.add_insecure_port(f"unix:{registry}/other.sock")
    server.add_insecure_port(f"unix:{registry}/.hidden.sock")
    await server.start()
    limits = Limits(watch_period=0.05, watch_retry=10)
    async with FakeKubelet(tmp_path / "plugins", registry=str(registry), limits=limits) as kubelet:
        await until(lambda: told)
        await asyncio.sleep(0.2)
        assert ["no handler registered for plugin type: CSIPlugin"] == told
        assert ["other.sock"] == [endpoint for _, endpoint, _ in kubelet.registrations]
    await server.stop(None)


def test_generations_are_checked() -> None:
    """A generation that does not exist is refused by name."""
    with pytest.raises(ValueError, match="le136, ge137, not"):
        FakeKubelet("/nowhere", "1.20")
