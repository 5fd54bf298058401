"""The fake kubelet keeps to what real kubelets do (specification, kubernetes 2.13 and 8.4)."""

from __future__ import annotations

import asyncio
import os
import stat
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest

from resource_extend.kubernetes import api, rpc
from resource_extend.kubernetes.fake_kubelet import Amounts, FakeKubelet, Limits
from support.device_plugin import NAME, dead_socket, story, until
from support.kubelet_facts import FACTS, offering
from support.kubelets import FakeNode, RefusedError
from support.puppet_plugin import Puppet


@pytest.mark.parametrize("generation", ["le136", "ge137"])
@pytest.mark.parametrize("name", FACTS)
@story
async def test_fact(name: str, generation: str, tmp_path: Path) -> None:
    """The fake kubelet gives the same answers as the real ones, on which the same table is run."""
    async with FakeKubelet(tmp_path, generation, limits=Limits(dial=0.5)) as kubelet:
        await FACTS[name](FakeNode(kubelet, generation))


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


@story
async def test_pre_start_has_a_limit(tmp_path: Path) -> None:
    """A PreStartContainer that takes longer than the kubelet waits keeps the container from starting."""
    assert 30 == Limits().pre_start
    async with FakeKubelet(tmp_path, limits=Limits(pre_start=0.2)) as kubelet:
        node = FakeNode(kubelet, "ge137")
        async with offering(node, pre_start=True) as puppet:
            await node.admit("pod", {NAME: 1})
            puppet.pre_start_seconds = 1
            with pytest.raises(RefusedError, match="code = DeadlineExceeded"):
                await node.start("pod")


@story
async def test_lost_checkpoint(tmp_path: Path) -> None:
    """A kubelet that lost its checkpoint knows neither the resource nor the pods."""
    async with FakeKubelet(tmp_path) as kubelet:
        node = FakeNode(kubelet, "ge137")
        async with offering(node):
            await node.admit("pod", {NAME: 1})
            kubelet.faults.no_checkpoint = True
            await kubelet.restart()
            assert Amounts(2, 2) == kubelet.node()[NAME], "the node object keeps what it showed"
            assert {} == kubelet.pods.pods
            assert {} == kubelet.devices.endpoints


@story
async def test_nobodys_resource(tmp_path: Path) -> None:
    """A pod that asks for what no plugin offers runs without: the fit check is not the device manager's."""
    async with FakeKubelet(tmp_path) as kubelet:
        assert {} == (await kubelet.admit("pod", {"example.com/unknown": 1})).devices


@story
async def test_watcher(tmp_path: Path) -> None:
    """The plugin watcher takes no socket with a leading dot, and no other plugin type."""
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
