"""The life of one resource with a kubelet, in all its turns."""

from __future__ import annotations

import asyncio
import math
import os
import shutil
import sys
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from resource_extend.kubernetes import kubelet as life_module
from resource_extend.kubernetes.counts import Counts
from resource_extend.kubernetes.fake_kubelet import AdmissionError, Amounts, FakeKubelet, Limits
from resource_extend.kubernetes.folder import PluginFolder
from resource_extend.kubernetes.kubelet import Lifecycle, State
from resource_extend.kubernetes.loss import Delay, LostError
from resource_extend.kubernetes.model import Resource
from resource_extend.kubernetes.service import Service
from resource_extend.kubernetes.table import DeviceTable
from support.device_plugin import NAME, RULES, Listed, numbered, plugin_sockets, story, until

GENERATIONS = pytest.mark.parametrize("generation", ["le136", "ge137"])


class Living:
    """One resource with two devices, living on a folder."""

    def __init__(
        self,
        folder: str,
        *,
        name: str = NAME,
        registry: str = "",
        registry_host: str = "",
        delay: Delay | None = None,
    ) -> None:
        self.table = DeviceTable()
        self.table.publish(numbered(2))
        self.counts = Counts()
        self.folder = PluginFolder(folder, period=0.05)
        self.folder.look()
        resource = Resource(name, Listed(), allocation_policy="packed")
        service = Service(resource, self.table, self.counts, RULES.combine, RULES.prefer)
        delay = delay or Delay(0.1, 1.0)
        self.life = Lifecycle(service, self.folder, registry=registry, registry_host=registry_host, delay=delay)

    async def __aenter__(self) -> Living:
        self._tasks = [asyncio.ensure_future(self.folder.run()), asyncio.ensure_future(self.life.run())]
        return self

    async def __aexit__(self, *_error: object) -> None:
        self.life.stop()
        await self._tasks[1]
        self._tasks[0].cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def reaches(self, state: State, timeout: float = 10.0) -> None:
        """Wait for a state."""
        await until(lambda: self.life.state is state, timeout)

    @property
    def results(self) -> dict[str, int]:
        """How the tries ended so far."""
        return dict(self.counts.registrations)


@asynccontextmanager
async def offered(folder: Path, generation: str = "ge137") -> AsyncIterator[tuple[FakeKubelet, Living]]:
    """Give a kubelet, and a resource that it shows."""
    async with FakeKubelet(folder, generation) as kubelet, Living(str(folder)) as living:
        await kubelet.wait_for(living.life.name, allocatable=2)
        yield kubelet, living


@GENERATIONS
@story
async def test_ten_restarts_leak_nothing(generation: str, tmp_path: Path) -> None:
    """Ten kubelet restarts in a row: offered again each time, no descriptor, socket or thread more than after one."""
    async with offered(tmp_path, generation) as (kubelet, living):
        before: tuple[int, ...] = ()
        for turn in range(10):
            await kubelet.restart(down=0.02)
            await kubelet.wait_for(NAME, allocatable=2)
            await living.reaches(State.ACTIVE)
            await kubelet.admit(f"pod-{turn}", {NAME: 1})
            kubelet.pods.delete(f"pod-{turn}")
            await asyncio.sleep(0.2)
            now = (len(os.listdir("/proc/self/fd")), len(plugin_sockets(str(tmp_path))), threading.active_count())
            before = before or now
        assert 1 == now[1]
        assert before[0] + 2 >= now[0]
        assert before[2] == now[2]
        endpoints = [endpoint for _, endpoint, _ in kubelet.registrations]
        assert len(set(endpoints)) == len(endpoints)


@story
async def test_kubelet_comes_late(tmp_path: Path) -> None:
    """Without a kubelet, and without its folder, the resource waits without a try, then registers."""
    folder = tmp_path / "not" / "yet"
    async with Living(str(folder)) as living:
        await asyncio.sleep(0.3)
        assert (State.INIT, {}) == (living.life.state, living.results)
        async with FakeKubelet(folder) as kubelet:
            await kubelet.wait_for(NAME, allocatable=2)


@story
async def test_dead_kubelet_socket(tmp_path: Path) -> None:
    """A kubelet.sock that nobody listens on is tried with a pause; the kubelet's start cuts the pause short."""
    kubelet = FakeKubelet(tmp_path)
    await kubelet.start()
    await kubelet.stop()
    async with Living(str(tmp_path)) as living:
        await until(lambda: living.results.get("unreachable", 0) >= 2)
        assert "nobody answers on kubelet.sock" in living.life.reason
        await kubelet.start()
        await kubelet.wait_for(NAME, allocatable=2)
        assert {"ok"} <= set(living.results)
        await kubelet.stop()


@story
async def test_own_socket_is_removed(tmp_path: Path) -> None:
    """When somebody removes our socket, the resource is registered on a new one, though the stream still stands."""
    async with offered(tmp_path) as (kubelet, living):
        (path,) = plugin_sockets(str(tmp_path))
        os.unlink(path)
        await until(lambda: len(kubelet.registrations) == 2)
        await kubelet.wait_for(NAME, allocatable=2)
        assert {"ok": 2, "socket_removed": 1} == living.results
        assert [path] != plugin_sockets(str(tmp_path))


@story
async def test_folder_is_removed_and_comes_back(tmp_path: Path) -> None:
    """The whole plugin folder may go and come back with another kubelet in it."""
    folder = tmp_path / "plugins"
    async with offered(folder) as (kubelet, living):
        await kubelet.stop()
        shutil.rmtree(folder)
        await living.reaches(State.INIT)
        async with FakeKubelet(folder) as another:
            await another.wait_for(NAME, allocatable=2)


@story
async def test_a_new_kubelet_socket_means_a_new_kubelet(tmp_path: Path) -> None:
    """A kubelet.sock that was made again leads to a new registration, though our stream never ended."""
    async with offered(tmp_path) as (old, living):
        async with FakeKubelet(tmp_path) as new:
            await new.wait_for(NAME, allocatable=2)
            assert living.results.get("kubelet_restarted", 0) + living.results.get("socket_removed", 0) >= 1
        assert [(0, 2)] == [(a.allocatable, a.capacity) for a in old.node().values()]


@story
async def test_a_vanished_kubelet_socket_alone_means_nothing(tmp_path: Path) -> None:
    """Somebody removes kubelet.sock: the stream stands, so the resource stays as it is."""
    async with offered(tmp_path) as (kubelet, living):
        os.unlink(kubelet.socket)
        await asyncio.sleep(0.3)
        assert (State.ACTIVE, {"ok": 1}) == (living.life.state, living.results)


@GENERATIONS
@story
async def test_lost_stream_is_noticed(generation: str, tmp_path: Path) -> None:
    """Streams dropped three times, no file touched: registered anew three times, on new sockets."""
    async with offered(tmp_path, generation) as (kubelet, living):
        for turn in range(3):
            await living.reaches(State.ACTIVE)
            await kubelet.plugins.drop_streams(NAME)
            await until(lambda turn=turn: living.results.get("ok") == turn + 2)  # type: ignore[misc]
        await kubelet.wait_for(NAME, allocatable=2)
        assert {"ok": 4, "stream_ended": 3} == living.results


@story
async def test_kubelet_that_never_opens_the_stream(tmp_path: Path) -> None:
    """Registered, and no stream within the wait: registered again."""
    async with FakeKubelet(tmp_path) as kubelet:
        kubelet.faults.no_stream = True
        living = Living(str(tmp_path))
        living.life.stream_wait = 0.2
        async with living:
            await until(lambda: living.results.get("no_stream", 0) >= 2)
            kubelet.faults.no_stream = False
            await kubelet.wait_for(NAME, allocatable=2)


@story
async def test_kubelet_that_refuses(tmp_path: Path) -> None:
    """A refusal is told in the log's reason, with the kubelet's own words, and tried again."""
    async with FakeKubelet(tmp_path) as kubelet:
        kubelet.faults.refuse, kubelet.faults.refusal = 2, 'the ResourceName "x" is invalid'
        async with Living(str(tmp_path)) as living:
            await until(lambda: living.life.state is State.LOST)
            assert "does not take this resource name" in living.life.reason
            assert 'the ResourceName "x" is invalid' in living.life.reason
            await kubelet.wait_for(NAME, allocatable=2)
            assert {"refused": 2, "ok": 1} == living.results


class Recorded(Delay):
    """Pauses of 0.1 s and more that are remembered."""

    def __init__(self) -> None:
        super().__init__(0.1, 30)
        self.taken: list[float] = []

    def take(self) -> float:
        """Give a pause, and remember it."""
        self.taken.append(super().take())
        return self.taken[-1]


@story
async def test_pause_is_short_again_once_active(tmp_path: Path) -> None:
    """A stream, however short, ends the growth of the pauses: what is lost right after refusals comes back soon."""
    delay = Recorded()
    async with FakeKubelet(tmp_path) as kubelet:
        kubelet.faults.refuse = 3
        async with Living(str(tmp_path), delay=delay) as living:
            await living.reaches(State.ACTIVE)
            (path,) = plugin_sockets(str(tmp_path))
            os.unlink(path)
            await until(lambda: living.results.get("ok") == 2)
    assert {"refused": 3, "ok": 2, "socket_removed": 1} == living.results
    assert [0, 1, 2, 0] == [round(math.log2(pause / 0.1)) for pause in delay.taken]


@story
async def test_kubelet_that_ends_every_stream_at_once(tmp_path: Path) -> None:
    """A kubelet that takes a registration and drops the stream is tried again with the shortest pause, not without."""
    delay = Recorded()
    async with FakeKubelet(tmp_path) as kubelet, Living(str(tmp_path), delay=delay) as living:
        for turn in range(5):
            await until(lambda turn=turn: living.results.get("ok") == turn + 1)  # type: ignore[misc]
            await kubelet.plugins.drop_streams(NAME)
        await until(lambda: living.results.get("stream_ended") == 5)
    assert 5 == len(delay.taken)
    assert all(0.08 <= pause <= 0.12 for pause in delay.taken)


@story
async def test_kubelet_that_hangs_in_register(tmp_path: Path) -> None:
    """A Register that never returns is given up when our socket goes, here by a restart of the kubelet."""
    async with FakeKubelet(tmp_path) as kubelet:
        kubelet.faults.hang_register = True
        async with Living(str(tmp_path)) as living:
            await living.reaches(State.REGISTERING)
            await asyncio.sleep(0.2)
            assert State.REGISTERING is living.life.state
            kubelet.faults.hang_register = False
            await kubelet.restart()
            await kubelet.wait_for(NAME, allocatable=2)


@story
async def test_slow_dial(tmp_path: Path) -> None:
    """A kubelet that takes its time to dial back is waited for."""
    async with FakeKubelet(tmp_path) as kubelet:
        kubelet.faults.slow_dial = 1.0
        async with Living(str(tmp_path)) as living:
            await kubelet.wait_for(NAME, allocatable=2)
            assert {"ok": 1} == living.results


def test_deadline_is_longer_than_the_kubelets_dial() -> None:
    """Register waits longer than the 10 s that the kubelet may need inside it."""
    assert Limits().dial < life_module.REGISTER_DEADLINE


@story
async def test_newer_instance_leaves(tmp_path: Path) -> None:
    """Up to 1.36 an older instance with an open stream is not used any more when a newer one leaves: it notices."""
    async with offered(tmp_path, "le136") as (kubelet, living):
        async with Living(str(tmp_path)) as newer:
            await newer.reaches(State.ACTIVE)
            await asyncio.sleep(0.2)
            assert State.ACTIVE is living.life.state
        await until(lambda: living.results.get("sibling_left") == 1)
        await kubelet.wait_for(NAME, allocatable=2)
        await kubelet.admit("pod", {NAME: 1})


@story
async def test_newer_instance_is_killed(tmp_path: Path) -> None:
    """A newer instance that is killed leaves its socket behind, and the older one notices all the same."""
    config = tmp_path / "config.yaml"
    folder = tmp_path / "plugins"
    config.write_text(f"folders: {{plugins: {folder}}}\nresources: [{{name: {NAME}, counter: 3}}]")
    words = (sys.executable, "-m", "resource_extend.kubernetes.cli", "run", "--config", str(config))
    async with offered(folder, "le136") as (kubelet, living):
        newer = await asyncio.create_subprocess_exec(*words, stderr=asyncio.subprocess.DEVNULL)
        await kubelet.wait_for(NAME, allocatable=3, timeout=30)
        await asyncio.sleep(0.2)
        newer.kill()
        await newer.wait()
        await until(lambda: living.results.get("sibling_left") == 1)
        await kubelet.wait_for(NAME, allocatable=2)
        assert 2 == len(plugin_sockets(str(folder)))


@story
async def test_two_instances_on_a_new_kubelet(tmp_path: Path) -> None:
    """From 1.37 on two instances live side by side; pods are admitted whoever leaves."""
    async with offered(tmp_path, "ge137") as (kubelet, _living):
        async with Living(str(tmp_path)) as newer:
            await newer.reaches(State.ACTIVE)
            await kubelet.admit("first", {NAME: 1})
        await kubelet.wait_for(NAME, allocatable=2)
        await kubelet.admit("second", {NAME: 1})


@story
async def test_folder_path_too_long(tmp_path: Path) -> None:
    """A folder whose sockets would not fit is told with both numbers, and tried again."""
    folder = tmp_path / ("long" * 20)
    short = tmp_path / "s"
    folder.mkdir()
    short.symlink_to(folder)
    async with FakeKubelet(short), Living(str(folder)) as living:
        await until(lambda: living.life.state is State.LOST)
        assert "Linux allows 107" in living.life.reason
        assert {"socket_error"} == set(living.results)


@story
async def test_stop_takes_the_socket_along(tmp_path: Path) -> None:
    """After a stop no socket of ours is left, and the node shows nothing allocatable at once."""
    async with offered(tmp_path) as (kubelet, living):
        living.life.stop()
        await living.reaches(State.STOPPED)
        await kubelet.wait_for(NAME, allocatable=0)
        assert Amounts(2, 0) == kubelet.node()[NAME]
        assert [] == plugin_sockets(str(tmp_path))


@story
async def test_changes_are_joined(tmp_path: Path) -> None:
    """A burst of changes is one message, and the kubelet ends up with the latest list."""
    async with offered(tmp_path) as (kubelet, living):
        sent: list[int] = []
        received = kubelet.devices.received

        def count(resource: str, devices: list[object]) -> None:
            sent.append(len(devices))
            received(resource, devices)

        kubelet.devices.received = count  # type: ignore[method-assign, assignment]
        for number in range(50):
            living.table.publish(numbered(number))
            await asyncio.sleep(0)
        await kubelet.wait_for(NAME, allocatable=49)
        assert len(sent) <= 2


@story
async def test_plugin_registry(tmp_path: Path) -> None:
    """Found in the registry by the kubelet itself, through a kubelet restart and a lost stream."""
    registry = tmp_path / "registry"
    kubelet = FakeKubelet(tmp_path / "plugins", registry=str(registry), limits=Limits(watch_period=0.05))
    async with kubelet, Living(str(tmp_path / "plugins"), registry=str(registry)) as living:
        await kubelet.wait_for(NAME, allocatable=2)
        await living.reaches(State.ACTIVE)
        await kubelet.restart(down=0.1)
        await kubelet.wait_for(NAME, allocatable=2)
        await living.reaches(State.ACTIVE)
        await kubelet.plugins.drop_streams(NAME)
        await kubelet.wait_for(NAME, allocatable=0)
        await kubelet.wait_for(NAME, allocatable=2)
        await kubelet.admit("pod", {NAME: 1})


@story
async def test_plugin_registry_seen_elsewhere_by_the_kubelet(tmp_path: Path) -> None:
    """The endpoint that the kubelet is told is the path as the kubelet sees it."""
    real = tmp_path / "real"
    real.mkdir()
    seen_by_kubelet = tmp_path / "host"
    seen_by_kubelet.symlink_to(real)
    kubelet = FakeKubelet(tmp_path / "plugins", registry=str(seen_by_kubelet), limits=Limits(watch_period=0.05))
    living = Living(str(tmp_path / "plugins"), registry=str(real), registry_host=str(seen_by_kubelet))
    async with kubelet, living:
        await kubelet.wait_for(NAME, allocatable=2)
        assert str(seen_by_kubelet) == os.path.dirname(kubelet.devices.endpoints[NAME].socket)


@story
async def test_plugin_registry_refusal(tmp_path: Path) -> None:
    """What the kubelet notifies as an error is told, and tried again on a new socket."""
    registry = tmp_path / "registry"
    kubelet = FakeKubelet(tmp_path / "plugins", registry=str(registry), limits=Limits(watch_period=0.05))
    async with kubelet, Living(str(tmp_path / "plugins"), name="kubernetes.io/x", registry=str(registry)) as living:
        await until(lambda: living.results.get("refused", 0) >= 1)
        assert "is invalid" in living.life.reason


@story
async def test_an_error_of_our_own_is_survived(tmp_path: Path) -> None:
    """A bug in a round is logged and counted, and the next round works: one resource's trouble ends nothing."""
    async with FakeKubelet(tmp_path) as kubelet:
        living = Living(str(tmp_path))
        whole = living.life._serve
        broken = [True]

        async def serve() -> object:
            if broken.pop() if broken else False:
                raise ZeroDivisionError("a bug")
            return await whole()

        living.life._serve = serve  # type: ignore[method-assign, assignment]
        async with living:
            await kubelet.wait_for(NAME, allocatable=2)
            assert {"internal": 1, "ok": 1} == living.results


def test_delays_grow_and_start_small_again() -> None:
    """Pauses double from 1 s to 30 s, a fifth more or less, and start at 1 s after a success."""
    delay = Delay()
    for expected in (1, 2, 4, 8, 16, 30, 30):
        assert expected * 0.8 <= delay.take() <= expected * 1.2
    delay.reset()
    assert delay.take() <= 1.2


def test_lost_error_carries_its_short_name() -> None:
    """The metrics' word and the log's text go together."""
    error = LostError("no_stream", "the kubelet opened no stream")
    assert ("no_stream", "the kubelet opened no stream") == (error.result, str(error))


@story
async def test_pods_fail_while_nothing_is_offered(tmp_path: Path) -> None:
    """What the tests lean on: without a plugin a pod is refused with the kubelet's words."""
    async with offered(tmp_path) as (kubelet, living):
        living.life.stop()
        await kubelet.wait_for(NAME, allocatable=0)
        with pytest.raises(AdmissionError, match="no healthy devices present"):
            await kubelet.admit("pod", {NAME: 1})
