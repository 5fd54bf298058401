"""The demands of device plugins' users (specification, kubernetes 6) that a kubelet can check, each one on two plugins.

Ours has to pass, the naive one has to fail: a demand that the naive plugin passes does not check anything. Numbers
are those of the table in section 6.
"""

from __future__ import annotations

import asyncio
import gc
import os
import random
import socket
import threading
import tracemalloc
import urllib.error
import urllib.request
from collections.abc import Awaitable, Callable
from pathlib import Path

import grpc
import pytest

from kubernetes.naive_plugin import NaivePlugin
from resource_extend.kubernetes.api import KUBELET_SOCKET, device_plugin
from resource_extend.kubernetes.fake_kubelet import Amounts, FakeKubelet, Limits
from resource_extend.kubernetes.loss import Delay
from resource_extend.kubernetes.model import Device, Hook
from resource_extend.kubernetes.sockets import identity
from support.device_plugin import (
    NAME,
    Ours,
    PluginUnderTest,
    call,
    dead_socket,
    numbered,
    plugin_sockets,
    story,
    until,
)

Make = Callable[[], PluginUnderTest]
Demand = Callable[[Make, str], Awaitable[None]]
DEMANDS: dict[str, Demand] = {}


def demand(check: Demand) -> Demand:
    """Add a check to the table; its name begins with the demand's number."""
    DEMANDS[check.__name__.removeprefix("demand_")] = check
    return check


class Running:
    """A plugin that was started, and is stopped whatever the check finds."""

    def __init__(self, plugin: PluginUnderTest) -> None:
        self.plugin = plugin

    async def __aenter__(self) -> PluginUnderTest:
        return self.plugin

    async def __aexit__(self, *_error: object) -> None:
        await self.plugin.stop()


async def _lost_stream(make: Make, folder: str, generation: str) -> None:
    async with FakeKubelet(folder, generation) as kubelet, Running(make()) as plugin:
        await plugin.start(folder, numbered(3))
        await kubelet.wait_for(NAME, allocatable=3)
        before = identity(kubelet.socket)
        await kubelet.plugins.drop_streams(NAME)
        await kubelet.wait_for(NAME, allocatable=0)
        await kubelet.wait_for(NAME, allocatable=3, timeout=4)
        assert before == identity(kubelet.socket), "no file was touched"
        endpoints = [endpoint for _, endpoint, _ in kubelet.registrations]
        assert len(set(endpoints)) == len(endpoints), "a socket name is used once"


@demand
async def demand_01_lost_stream_of_an_old_kubelet(make: Make, folder: str) -> None:
    """A stream dropped without any file touched leads to a new registration on a new socket (up to 1.36)."""
    await _lost_stream(make, folder, "le136")


@demand
async def demand_01_lost_stream_of_a_new_kubelet(make: Make, folder: str) -> None:
    """A stream dropped without any file touched leads to a new registration on a new socket (from 1.37)."""
    await _lost_stream(make, folder, "ge137")


@demand
async def demand_01_kubelet_restart(make: Make, folder: str) -> None:
    """A restarted kubelet, which has wiped all sockets, gets the resource again."""
    async with FakeKubelet(folder) as kubelet, Running(make()) as plugin:
        await plugin.start(folder, numbered(3))
        await kubelet.wait_for(NAME, allocatable=3)
        await kubelet.restart(down=0.2)
        assert Amounts(0, 0) == kubelet.node()[NAME], "known from the checkpoint, not offered"
        await kubelet.wait_for(NAME, allocatable=3, timeout=4)


@demand
async def demand_02_late_end_of_an_old_instance(make: Make, folder: str) -> None:
    """When the end of the old instance takes the new one down (up to 1.36), the new one comes back."""
    async with FakeKubelet(folder, "le136") as kubelet, Running(make()) as old, Running(make()) as new:
        await old.start(folder, numbered(3))
        await kubelet.wait_for(NAME, allocatable=3)
        await new.start(folder, numbered(3))
        await until(lambda: len(kubelet.registrations) == 2)
        await asyncio.sleep(0.3)
        assert Amounts(3, 3) == kubelet.node()[NAME]
        kubelet.faults.late_end = 0.2
        await old.stop()
        assert Amounts(3, 3) == kubelet.node()[NAME], "the end is not dealt with yet"
        await kubelet.wait_for(NAME, allocatable=0)
        kubelet.faults.late_end = 0.0
        await kubelet.wait_for(NAME, allocatable=3, timeout=5)
        await kubelet.admit("pod", {NAME: 1})


@demand
async def demand_03_whole_first_list(make: Make, folder: str) -> None:
    """The first list that the kubelet gets has all 100 devices: no pod meets a resource that is not there yet."""
    async with FakeKubelet(folder) as kubelet, Running(make()) as plugin:
        await plugin.start(folder, numbered(100))
        first = await kubelet.wait_for(NAME)
        assert Amounts(100, 100) == first


@demand
async def demand_04_no_growth_over_rescans(make: Make, folder: str) -> None:
    """2,000 re-scans that each change something leave nothing behind."""
    async with FakeKubelet(folder) as kubelet, Running(make()) as plugin:
        await plugin.start(folder, numbered(50))
        await kubelet.wait_for(NAME, allocatable=50)
        devices = numbered(50)
        for count in range(200):
            await plugin.rescan(devices[count % 2 :])
        gc.collect()
        tracemalloc.start()
        try:
            before, _ = tracemalloc.get_traced_memory()
            for count in range(2000):
                await plugin.rescan(devices[count % 2 :])
            gc.collect()
            grown = tracemalloc.get_traced_memory()[0] - before
        finally:
            tracemalloc.stop()
        assert grown < 256 * 1024, f"{grown} bytes more"


@demand
async def demand_10_list_too_large(make: Make, folder: str) -> None:
    """60,000 devices with ids of 63 characters would end the stream: they are never sent, the old list stays."""
    async with FakeKubelet(folder) as kubelet, Running(make()) as plugin:
        await plugin.start(folder, numbered(3))
        await kubelet.wait_for(NAME, allocatable=3)
        await plugin.rescan(Device(f"{number:063}") for number in range(60_000))
        await asyncio.sleep(0.5)
        assert Amounts(3, 3) == kubelet.node()[NAME]
        assert 1 == len(kubelet.registrations)


@demand
async def demand_12_reconnects_leave_nothing(make: Make, folder: str) -> None:
    """100 streams that come and go leave no task and no thread, and the plugin still answers."""
    async with FakeKubelet(folder) as kubelet, Running(make()) as plugin:
        await plugin.start(folder, numbered(3))
        await kubelet.wait_for(NAME, allocatable=3)
        path = next(path for path in plugin_sockets(folder) if not path.endswith(".inner"))
        await _watch_once(path)
        tasks, threads = len(asyncio.all_tasks()), threading.active_count()
        for _ in range(100):
            await _watch_once(path)
        # A few tasks come and go by themselves; a leak would be a hundred.
        await until(lambda: len(asyncio.all_tasks()) < tasks + 10, timeout=3)
        assert threads == threading.active_count()
        await call(path, "GetDevicePluginOptions", device_plugin.Empty())


async def _watch_once(path: str) -> None:
    from resource_extend.kubernetes import api, rpc

    async with rpc.open_channel(path) as channel:
        stream = rpc.Client(channel, api.DEVICE_PLUGIN).ListAndWatch(device_plugin.Empty())
        await stream.read()
        stream.cancel()


@demand
async def demand_13_no_storm_while_the_kubelet_is_down(make: Make, folder: str) -> None:
    """A kubelet socket that hangs up at once is tried a few times, with a growing pause."""
    tries = 0

    async def hang_up(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal tries
        tries += 1
        writer.close()

    server = await asyncio.start_unix_server(hang_up, os.path.join(folder, KUBELET_SOCKET))
    async with Running(make()) as plugin:
        await plugin.start(folder, numbered(3))
        await asyncio.sleep(2.5)
    server.close()
    assert 1 <= tries < 10


@demand
async def demand_14_preferred_allocation_never_fails(make: Make, folder: str) -> None:
    """Whatever is asked for, the answer holds what must be included and as many as possible, and is no error."""
    chance = random.Random(14)
    async with FakeKubelet(folder) as kubelet, Running(make()) as plugin:
        await plugin.start(folder, numbered(8), policy="packed")
        await kubelet.wait_for(NAME, allocatable=8)
        path = next(path for path in plugin_sockets(folder) if not path.endswith(".inner"))
        names = [device.id for device in numbered(8)] + ["gone", ""]
        for _ in range(200):
            available = chance.choices(names, k=chance.randrange(10))
            must = chance.choices(names, k=chance.randrange(3))
            size = chance.choice([-1, 0, 1, 2, 5, 8, 100])
            wish = {"available_deviceIDs": available, "must_include_deviceIDs": must, "allocation_size": size}
            request = device_plugin.PreferredAllocationRequest(container_requests=[wish])
            response = await call(path, "GetPreferredAllocation", request)
            (answer,) = response.container_responses
            chosen = set(answer.deviceIDs)
            assert len(chosen) == len(answer.deviceIDs)
            assert set(must) <= chosen <= set(must) | set(available)
            assert len(chosen) == max(len(set(must)), min(max(size, 0), len(set(must) | set(available))))


@demand
async def demand_15_the_kubelet_decides(make: Make, folder: str) -> None:
    """Any listed device may be allocated, twice in a row and unhealthy ones too; an absent one is named."""
    async with FakeKubelet(folder) as kubelet, Running(make()) as plugin:
        await plugin.start(folder, [*numbered(2), Device("sick", healthy=False, reason="gone")])
        await kubelet.wait_for(NAME, allocatable=2)
        path = next(path for path in plugin_sockets(folder) if not path.endswith(".inner"))
        for ids in (["d00000"], ["d00000"], ["sick"], ["d00000", "d00001"]):
            request = device_plugin.AllocateRequest(container_requests=[{"devices_ids": ids}] * 2)
            assert 2 == len((await call(path, "Allocate", request)).container_responses)
        request = device_plugin.AllocateRequest(container_requests=[{"devices_ids": ["never"]}])
        with pytest.raises(grpc.RpcError, match="never"):
            await call(path, "Allocate", request)


@demand
async def demand_18_replicas_by_policy(make: Make, folder: str) -> None:
    """With `spread`, two replicas come from two cards; with `packed`, from one."""
    devices = [Device(f"{card}-{copy}", physical=card) for card in ("a", "b") for copy in range(4)]
    for policy, cards in (("spread", 2), ("packed", 1)):
        async with FakeKubelet(folder, seed=18) as kubelet, Running(make()) as plugin:
            await plugin.start(folder, devices, policy=policy)
            await kubelet.wait_for(NAME, allocatable=8)
            for number in range(3):
                pod = await kubelet.admit(f"{policy}-{number}", {NAME: 2})
                assert cards == len({name[0] for name in pod.devices[NAME]}), policy
                kubelet.pods.delete(f"{policy}-{number}")


@demand
async def demand_19_release_hook(make: Make, folder: str) -> None:
    """The release hook runs once after the pod is gone, also when the plugin was down meanwhile."""
    told = Path(folder) / "told"
    pods = os.path.join(folder, "pods.sock")
    hook = Hook(("sh", "-c", f'echo "$RESOURCE_NAME $DEVICE_IDS $RELEASED_BY" >> {told}'))
    async with FakeKubelet(folder, pod_resources=pods) as kubelet:
        for round_number in (1, 2):
            async with Running(make()) as plugin:
                await plugin.start(folder, numbered(1), release=hook, pod_resources=pods)
                await kubelet.wait_for(NAME, allocatable=1, timeout=5)
                await kubelet.admit("pod", {NAME: 1})
                await plugin.poll_pods()
                assert (told.read_text().count("\n") if told.exists() else 0) == round_number - 1, "held"
                if round_number == 2:
                    await plugin.stop()
                    await kubelet.wait_for(NAME, allocatable=0)
                kubelet.pods.delete("pod")
                if round_number == 2:
                    await plugin.start(folder, numbered(1), release=hook, pod_resources=pods)
                    await kubelet.wait_for(NAME, allocatable=1, timeout=5)
                for _ in range(4):
                    await plugin.poll_pods()
                assert told.exists()
                assert [f"{NAME} d00000 default/pod/main"] * round_number == told.read_text().splitlines()
            await kubelet.wait_for(NAME, allocatable=0)  # else the next round may find the last one's list


@demand
async def demand_22_probes_tell_the_truth(make: Make, folder: str) -> None:
    """/livez is well while our sockets answer; /readyz is well only while the kubelet follows every resource."""
    port = _free_port()
    async with Running(make()) as plugin:
        await plugin.start(folder, numbered(1), listen=f"127.0.0.1:{port}")
        assert (200, 503) == (await _probe(port, "livez"), await _probe(port, "readyz")), "no kubelet: alive, not ready"
        kubelet = FakeKubelet(folder)
        await kubelet.start()
        await kubelet.wait_for(NAME, allocatable=1)
        await until(lambda: True)
        assert (200, 200) == (await _probe(port, "livez"), await _probe(port, "readyz"))
        await kubelet.stop()
        await asyncio.sleep(0.3)
        assert (200, 503) == (await _probe(port, "livez"), await _probe(port, "readyz"))


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


async def _probe(port: int, name: str) -> int:
    def ask() -> int:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/{name}", timeout=5) as answer:
                return int(answer.status)
        except urllib.error.HTTPError as error:
            with error:
                return error.code

    for _ in range(100):
        try:
            return await asyncio.to_thread(ask)
        except urllib.error.URLError:
            await asyncio.sleep(0.05)
    raise AssertionError("nobody listens")


@demand
async def demand_32_any_authority(make: Make, folder: str) -> None:
    """`localhost`, the path, the path percent-encoded, and no host at all as authority: all are answered."""
    for authority in ("localhost", "{path}", "{quoted}"):
        async with FakeKubelet(folder, limits=Limits(dial=2)) as kubelet, Running(make()) as plugin:
            kubelet.faults.authority = authority
            await plugin.start(folder, numbered(2))
            await kubelet.wait_for(NAME, allocatable=2, timeout=3)
            await kubelet.admit(f"pod-{len(authority)}", {NAME: 1})
            kubelet.pods.delete(f"pod-{len(authority)}")


@demand
async def demand_34_dead_sockets_are_removed(make: Make, folder: str) -> None:
    """What a killed run left is removed at the next start; a live socket and a foreign one are not."""
    names = (make().socket_name(), "foreign.sock", make().socket_name())
    mine, foreign, alive = (os.path.join(folder, name) for name in names)
    dead_socket(mine)
    dead_socket(foreign)
    with socket.socket(socket.AF_UNIX) as living:
        living.bind(alive)
        living.listen()
        async with Running(make()) as plugin:
            await plugin.start(folder, numbered(1))
            await asyncio.sleep(0.3)
            assert [False, True, True] == [os.path.exists(path) for path in (mine, foreign, alive)]


@pytest.mark.parametrize("number", sorted(DEMANDS))
@story
async def test_our_plugin_meets_the_demand(number: str, tmp_path: Path) -> None:
    """Our device plugin meets each demand that a kubelet can check."""
    await DEMANDS[number](Ours, str(tmp_path))


@story
async def test_the_naive_plugin_fails_every_demand(tmp_path: Path) -> None:
    """Each demand is able to fail: a naive plugin does not meet it."""

    async def passes(number: str) -> bool:
        folder = tmp_path / str(sorted(DEMANDS).index(number))  # short: sockets are made in it
        folder.mkdir()
        try:
            await DEMANDS[number](NaivePlugin, str(folder))
        except (AssertionError, TimeoutError, grpc.RpcError):
            return False
        return True

    # Most of the time is spent waiting for what a good plugin would do; those that count tasks or memory are alone.
    alone = [number for number in DEMANDS if number[:2] in {"04", "12"}]
    together = sorted(set(DEMANDS) - set(alone))
    passed = dict(zip(together, await asyncio.gather(*map(passes, together)), strict=True))
    passed |= {number: await passes(number) for number in alone}
    assert dict.fromkeys(DEMANDS, False) == passed


def test_demand_13_a_minute_has_less_than_fifteen_tries() -> None:
    """The pauses grow so that fewer than 15 tries fit into a minute without a kubelet."""
    delay = Delay()
    total, tries = 0.0, 0
    while total < 60:
        total += delay.take()
        tries += 1
    assert tries < 15
