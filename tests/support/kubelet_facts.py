"""What kubelets do with device plugins (specification, kubernetes 2), one function a fact, for any kubelet.

The fake kubelet has to give the same answers as a real one: its tests run this table in both generations, and
scripts/check-real-kubernetes runs it on the device managers of 1.36 and 1.37.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import grpc
import grpc.aio
import pytest

from resource_extend.kubernetes.api import device_plugin
from support.device_plugin import NAME, dead_socket, until
from support.kubelets import Node, RefusedError
from support.puppet_plugin import Puppet

Fact = Callable[[Node], Awaitable[None]]
FACTS: dict[str, Fact] = {}


def fact(check: Fact) -> Fact:
    """Add a fact to the table."""
    FACTS[check.__name__] = check
    return check


@asynccontextmanager
async def offering(node: Node, *ids: str, **options: bool) -> AsyncIterator[Puppet]:
    """Give a puppet that is registered and has sent healthy devices."""
    async with Puppet(node.folder, **options) as puppet:
        await puppet.register()
        puppet.send(**dict.fromkeys(ids or ("a", "b"), "Healthy"))
        count = len(ids) or 2
        await node.wait(NAME, count, count)
        yield puppet


async def refusal(job: Awaitable[None]) -> str:
    """Give the text of a refused Register; its code is UNKNOWN."""
    with pytest.raises(grpc.aio.AioRpcError) as info:
        await job
    assert grpc.StatusCode.UNKNOWN is info.value.code()
    return info.value.details() or ""


async def stays(node: Node, capacity: int | None, allocatable: int | None, seconds: float = 0.5) -> None:
    """Check that the node goes on showing this for a while."""
    await asyncio.sleep(seconds)
    assert (capacity, allocatable) == await node.counts(NAME)


@fact
async def register_is_checked(node: Node) -> None:
    """Version and name are checked, with the kubelet's own texts."""
    async with Puppet(node.folder) as puppet:
        assert "is not supported by kubelet" in await refusal(puppet.register(version="v1"))
        for name in ("x", "kubernetes.io/x", "Example.com/x"):
            assert f'the ResourceName "{name}" is invalid' in await refusal(puppet.register(resource_name=name))
        await puppet.register()


@fact
async def a_plugin_that_is_not_there_cannot_register(node: Node) -> None:
    """The kubelet dials back for ten seconds, and says so."""
    async with Puppet(node.folder) as puppet:
        assert "failed to dial device plugin" in await refusal(puppet.register(endpoint="nobody.sock"))


@fact
async def options_are_asked_inside_register(node: Node) -> None:
    """The options in the request do not count; GetDevicePluginOptions is called before Register returns."""
    async with Puppet(node.folder) as puppet:
        await puppet.register()
        assert "GetDevicePluginOptions" in [name for name, _ in puppet.calls]


@fact
async def nothing_shows_before_the_first_list(node: Node) -> None:
    """Register alone changes nothing; an empty list shows zeros."""
    async with Puppet(node.folder) as puppet:
        await puppet.register()
        await until(lambda: puppet.streams == 1)
        await stays(node, None, None)
        puppet.send()
        await node.wait(NAME, 0, 0)


@fact
async def lists_replace_each_other(node: Node) -> None:
    """Each list is the whole truth; only the very word Healthy counts."""
    async with offering(node) as puppet:
        puppet.send(a="Healthy", b="healthy", c="Unhealthy")
        await node.wait(NAME, 3, 1)
        puppet.send(c="Healthy")
        await node.wait(NAME, 1, 1)
        puppet.send()
        await node.wait(NAME, 0, 0)


@fact
async def grace_after_the_end_of_a_stream(node: Node) -> None:
    """At once nothing is allocatable; after five minutes capacity is 0, and the entry stays."""
    async with offering(node) as puppet:
        puppet.end()
        await node.wait(NAME, 2, 0)
        await node.age(290)
        assert (2, 0) == await node.counts(NAME)
        await node.age(11)
        assert (0, 0) == await node.counts(NAME)
        await node.age(10_000)
        assert (0, 0) == await node.counts(NAME)


@fact
async def the_stream_is_not_opened_again(node: Node) -> None:
    """A stream that ended stays ended, though the socket is there."""
    async with offering(node) as puppet:
        puppet.end()
        await node.wait(NAME, 2, 0)
        await asyncio.sleep(1)
        assert (0, 1) == (puppet.streams, len(puppet.called("ListAndWatch")))


@fact
async def a_message_of_four_mib(node: Node) -> None:
    """55,188 devices with ids of 63 characters pass; one more ends the stream."""
    async with offering(node) as puppet:
        devices = [{"ID": f"{number:063}", "health": "Healthy"} for number in range(55_189)]
        puppet.send_message(devices[:-1])
        await node.wait(NAME, 55_188, 55_188, 30)
        puppet.send_message(devices)
        await node.wait(NAME, 55_188, 0, 30)


@fact
async def an_id_that_is_not_utf8(node: Node) -> None:
    """A message whose text is not UTF-8 ends the stream."""
    async with offering(node) as puppet:
        puppet.send_message(bytes.fromhex("0a0c0a01ff12074865616c746879"))
        await node.wait(NAME, 2, 0)


@fact
async def the_old_ends_while_the_new_is_registered(node: Node) -> None:
    """Up to 1.36 the end of the old stream takes the new instance down; from 1.37 on it does not."""
    async with offering(node) as old, offering(node, "a", "b", "c"):
        old.end()
        if node.generation == "le136":
            await node.wait(NAME, 3, 0)
        else:
            await stays(node, 3, 3, 1)
            await node.admit("pod", {NAME: 1})


@fact
async def the_newer_leaves_the_older_stays(node: Node) -> None:
    """Up to 1.36 the older one's stream is followed and its devices cannot be had; from 1.37 on they can."""
    async with offering(node) as old, offering(node, "a", "b", "c") as new:
        new.end()
        if node.generation == "le136":
            await node.wait(NAME, 3, 0)
            old.send(a="Healthy", b="Healthy")
            await node.wait(NAME, 2, 2)
            with pytest.raises(RefusedError, match="has been stopped"):
                await node.admit("pod", {NAME: 1})
        else:
            await asyncio.sleep(0.5)
            old.send(a="Healthy", b="Healthy")
            await node.wait(NAME, 2, 2)
            await node.admit("pod", {NAME: 1})


@fact
async def the_same_socket_again(node: Node) -> None:
    """From 1.37 on it is refused, and then the end of the stream goes unnoticed until the kubelet restarts."""
    async with offering(node) as puppet:
        if node.generation == "le136":
            await puppet.register()
            return
        assert "device plugin already connected" in await refusal(puppet.register())
        puppet.end()
        await stays(node, 2, 2, 1)
        assert "device plugin already connected" in await refusal(puppet.register())
        await node.restart()
        await node.wait(NAME, 0, 0)


@fact
async def a_second_register_that_fails(node: Node) -> None:
    """Up to 1.36 the end of the stream then goes unnoticed, until the next good registration."""
    async with offering(node) as puppet:
        await refusal(puppet.register(endpoint="nobody.sock"))
        puppet.end()
        if node.generation == "ge137":
            await node.wait(NAME, 2, 0)
            return
        await stays(node, 2, 2, 1)
        async with offering(node, "a") as next_one:
            next_one.end()
            await node.wait(NAME, 1, 0)


@fact
async def admission(node: Node) -> None:
    """Free and healthy devices are picked; too many are refused; the answer reaches the container."""
    async with offering(node, "a", "b", "c") as puppet:
        puppet.send(a="Healthy", b="Healthy", c="Unhealthy")
        await node.wait(NAME, 3, 2)
        first = await node.admit("first", {NAME: 1})
        assert {"IDS": first.devices[NAME][0]} == first.env
        with pytest.raises(RefusedError, match=r"Requested: 2, Available: 1"):
            await node.admit("second", {NAME: 2})
        third = await node.admit("third", {NAME: 1})
        assert ["a", "b"] == sorted(first.devices[NAME] + third.devices[NAME])
        await node.delete("first")
        assert first.devices == (await node.admit("fourth", {NAME: 1})).devices
        assert [[ids] for ids in (first.devices[NAME], third.devices[NAME], first.devices[NAME])] == puppet.called(
            "Allocate"
        )


@fact
async def refused_pods(node: Node) -> None:
    """All unhealthy, an error of Allocate, an empty answer, a plugin that is gone: each has its text."""
    async with offering(node) as puppet:
        puppet.allocate = lambda _: "no power"
        with pytest.raises(RefusedError, match="Allocate failed due to rpc error: code = Internal desc = no power"):
            await node.admit("error", {NAME: 1})
        puppet.send(a="Unhealthy", b="Unhealthy")
        await node.wait(NAME, 2, 0)
        with pytest.raises(RefusedError, match="no healthy devices present; cannot allocate unhealthy devices"):
            await node.admit("sick", {NAME: 1})
        puppet.send(a="Healthy", b="Healthy")
        await node.wait(NAME, 2, 2)
        puppet.allocate = lambda _: device_plugin.AllocateResponse()
        with pytest.raises(RefusedError, match="no containers return in allocation response"):
            await node.admit("empty", {NAME: 1})
    await node.wait(NAME, 2, 0)
    with pytest.raises(RefusedError, match="no healthy devices present"):
        await node.admit("gone", {NAME: 1})


@fact
async def only_the_first_answer_counts(node: Node) -> None:
    """Of several container answers the first one is taken."""
    async with offering(node) as puppet:
        puppet.allocate = lambda _: device_plugin.AllocateResponse(
            container_responses=[{"envs": {"N": "1"}}, {"envs": {"N": "2"}}]
        )
        assert {"N": "1"} == (await node.admit("pod", {NAME: 1})).env


@fact
async def preferred_allocation(node: Node) -> None:
    """A preference is followed as far as it is legal, and filled up; an error fails the pod."""
    async with offering(node, *"abcdef", preferred=True) as puppet:
        wish: list[Any] = []

        def prefer(asked: Any) -> Any:
            wish[:] = [sorted(asked.available_deviceIDs), list(asked.must_include_deviceIDs), asked.allocation_size]
            return device_plugin.PreferredAllocationResponse(container_responses=[{"deviceIDs": ["e", "none", "e"]}])

        puppet.prefer = prefer
        got = await node.admit("first", {NAME: 2})
        assert [list("abcdef"), [], 2] == wish
        assert "e" in got.devices[NAME]
        assert 2 == len(set(got.devices[NAME]))
        puppet.prefer = lambda _: "no idea"
        with pytest.raises(RefusedError, match=r"GetPreferredAllocation rpc failed with err: rpc error: .*no idea"):
            await node.admit("second", {NAME: 1})


@fact
async def restarts_of_a_container(node: Node) -> None:
    """Each start gets the first answer again, also with the device unhealthy, not listed, or the plugin gone."""
    async with offering(node) as puppet:
        first = await node.admit("pod", {NAME: 1})
        assert first.env == await node.start("pod")
        puppet.send(a="Unhealthy", b="Unhealthy")
        await node.wait(NAME, 2, 0)
        assert first.env == await node.start("pod")
        puppet.send()
        await node.wait(NAME, 0, 0)
        assert first.env == await node.start("pod")
        assert 1 == len(puppet.called("Allocate"))
    assert first.env == await node.start("pod")


@fact
async def pre_start(node: Node) -> None:
    """With the option, PreStartContainer comes before each start, and its error keeps the container from starting."""
    async with offering(node, pre_start=True) as puppet:
        got = await node.admit("pod", {NAME: 1})
        await node.start("pod")
        assert [got.devices[NAME]] * 2 == puppet.called("PreStartContainer")
        puppet.pre_start = lambda _: "not reset"
        with pytest.raises(RefusedError, match=r"PreStartContainer rpc failed with err: rpc error: .*not reset"):
            await node.start("pod")
    await node.wait(NAME, 2, 0)
    with pytest.raises(RefusedError, match="has been stopped"):
        await node.start("pod")


@fact
async def health_in_the_pod_status(node: Node) -> None:
    """A changed word is told; a device that is not listed any more goes on as Healthy."""
    async with offering(node) as puppet:
        await node.admit("pod", {NAME: 2})
        puppet.send(a="Unhealthy", b="Healthy")
        await node.wait(NAME, 2, 1)
        assert {"a": "Unhealthy", "b": "Healthy"} == await node.health("pod")
        puppet.send(b="Healthy")
        await node.wait(NAME, 1, 1)
        assert {"a": "Healthy", "b": "Healthy"} == await node.health("pod")


@fact
async def a_kubelet_restart(node: Node) -> None:
    """Every socket in the folder goes, files stay; the resource shows 0; a new registration brings it back."""
    async with offering(node) as puppet:
        held = await node.admit("pod", {NAME: 1})
        (node.folder / "file").write_text("")
        dead_socket(str(node.folder / "foreign.sock"))
        await node.restart()
        await until(lambda: puppet.streams == 0)
        assert [False, False, True] == [
            os.path.exists(path) for path in (puppet.path, node.folder / "foreign.sock", node.folder / "file")
        ]
        await node.wait(NAME, 0, 0)
        async with offering(node):
            other = await node.admit("other", {NAME: 1})
            assert ["a", "b"] == sorted(held.devices[NAME] + other.devices[NAME])
            assert held.env == await node.start("pod")


@fact
async def a_resource_that_never_comes_back(node: Node) -> None:
    """After a restart without its plugin the resource is 0, and after five minutes 0 for good."""
    async with offering(node) as puppet:
        puppet.end()
        await node.wait(NAME, 2, 0)
    await node.restart()
    await node.wait(NAME, 0, 0)
    await node.age(301)
    assert (0, 0) == await node.counts(NAME)


@fact
async def a_late_registration(node: Node) -> None:
    """A plugin that comes back after the five minutes is offered as if it were new."""
    async with offering(node) as puppet:
        puppet.end()
        await node.wait(NAME, 2, 0)
        await node.age(301)
        assert (0, 0) == await node.counts(NAME)
        async with offering(node, "c"):
            assert ["c"] == (await node.admit("pod", {NAME: 1})).devices[NAME]
