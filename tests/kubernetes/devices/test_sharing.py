"""Counters, replicas, and what several devices of one container make together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from resource_extend.kubernetes.devices.allocation import combine, distinct_mounts, distinct_nodes, env_prefix
from resource_extend.kubernetes.devices.identity import short_hash
from resource_extend.kubernetes.devices.source import GroupsConfig
from resource_extend.kubernetes.model import AllocationError, Device, DeviceAnswer, DeviceNode, Mount, Resource
from support.device_tree import DeviceTree, needs_device_nodes

Scan = Callable[[str], Any]


def test_counter_counts(scanner: Scan) -> None:
    """A counter's devices are the resource's hash with a number, from 0; the answer holds nothing but their ids."""
    one = scanner("resources: [{name: example.com/resource, counter: 2}]")
    prefix = short_hash("example.com/resource")

    devices = one.scan()

    assert [f"{prefix}-0", f"{prefix}-1"] == [device.id for device in devices]
    assert DeviceAnswer(env=(("EXAMPLE_COM_RESOURCE_DEVICES", f"{prefix}-1"),)) == one.answer(devices[1])


def test_counters_of_two_resources_have_no_common_id(scanner: Scan) -> None:
    """Ids are unique over all resources."""
    text = "resources: [{name: example.com/a, counter: 3}, {name: example.com/b, counter: 3}]"
    first, second = scanner(text), scanner(text.replace("/a", "/c").replace("/b", "/d"))

    assert set() == {device.id for device in first.scan()} & {device.id for device in second.scan()}


@needs_device_nodes
def test_count_makes_replicas(tree: DeviceTree, scanner: Scan) -> None:
    """Each device is offered `count` times; replicas share the hardware and the answer."""
    tree.node("fuse", 10, 229)
    one = scanner("resources: [{name: example.com/fuse, groups: [{count: 10, paths: [{path: /dev/fuse}]}]}]")

    devices = one.scan()

    assert 10 == len({device.id for device in devices})
    assert 1 == len({device.physical for device in devices})
    assert {f"{devices[0].physical}::{n}" for n in range(10)} == {device.id for device in devices}
    assert "spread" == one.resource.allocation_policy
    answer = one.answer(devices[0], devices[1])
    assert (DeviceNode("/dev/fuse", "/dev/fuse", "rw"),) == answer.nodes
    assert f"{devices[0].id},{devices[1].id}" == dict(answer.env)["EXAMPLE_COM_FUSE_DEVICES"]


@needs_device_nodes
def test_number_of_replicas_for_some_devices(tree: DeviceTree, scanner: Scan) -> None:
    """The first override that matches a device's path, match or identity says its number; none leaves it out."""
    for n in range(4):
        tree.node(f"gpu{n}", 195, n)
    one = scanner("""
resources:
  - name: example.com/gpu
    count: 2
    counts: [{device: /dev/gpu1, count: 3}, {device: "gpu2", count: 0}, {device: "3", count: 1}]
    paths: [{path: "/dev/gpu*"}]
""")

    replicas: dict[str, int] = {}
    for device in one.scan():
        path = device.answer.nodes[0].host_path
        replicas[path] = replicas.get(path, 0) + 1

    assert {"/dev/gpu0": 2, "/dev/gpu1": 3, "/dev/gpu3": 1} == replicas


@needs_device_nodes
def test_single_refuses_two_replicas_of_one_device(tree: DeviceTree, scanner: Scan) -> None:
    """With `single` a container cannot get two replicas of the same device; two devices are fine."""
    tree.node("gpu0", 195, 0)
    tree.node("gpu1", 195, 1)
    one = scanner(
        "resources: [{name: example.com/gpu, nameSuffix: .shared, single: true, count: 2, "
        "paths: [{path: '/dev/gpu*'}]}]"
    )
    devices = one.scan()

    assert "example.com/gpu.shared" == one.resource.name
    assert 2 == len(one.answer(devices[0], devices[2]).nodes)
    with pytest.raises(AllocationError, match=r"2 replicas of device '.*gpu0' were asked for"):
        one.answer(devices[0], devices[1])


def _resource(listing: str = "list", name: str = "example.com/a") -> Resource:
    return Resource(name, GroupsConfig((), listing=listing))


def _device(name: str, **answer: Any) -> Device:
    return Device(name, answer=DeviceAnswer(**answer))


def test_environment_lists_ids_and_paths() -> None:
    """By default two keys made of the resource's name list the ids and the paths in the container."""
    devices = [
        _device("b", nodes=(DeviceNode("/dev/b", "/dev/x"),)),
        _device("a", nodes=(DeviceNode("/dev/a", "/dev/x"),)),
    ]

    assert (("EXAMPLE_COM_A_DEVICES", "a,b"), ("EXAMPLE_COM_A_PATHS", "/dev/x,/dev/x-1")) == combine(
        _resource(), devices
    ).env
    assert (("EXAMPLE_COM_A", '{"ids":["a","b"],"paths":["/dev/x","/dev/x-1"]}'),) == combine(
        _resource("json"), devices
    ).env
    assert () == combine(_resource("none"), devices).env


def test_answer_does_not_depend_on_the_order_of_the_ids() -> None:
    """The kubelet lists ids in no order; the same ids give the same answer."""
    devices = [_device(name, nodes=(DeviceNode(f"/dev/{name}", "/dev/x"),), env=(("K", name),)) for name in "abc"]

    assert combine(_resource(), devices) == combine(_resource(), devices[::-1])


def test_values_of_several_devices_are_joined() -> None:
    """The same key of two devices holds both values, each once; annotations and CDI names as well."""
    devices = [
        _device("a", env=(("CARDS", "GPU-1"), ("MODE", "x")), annotations=(("n", "1"),), cdi_names=("v.io/c=1",)),
        _device("b", env=(("CARDS", "GPU-2"), ("MODE", "x")), annotations=(("n", "2"),), cdi_names=("v.io/c=1",)),
    ]

    answer = combine(_resource("none"), devices)

    assert (("CARDS", "GPU-1,GPU-2"), ("MODE", "x")) == answer.env
    assert (("n", "1,2"),) == answer.annotations
    assert ("v.io/c=1",) == answer.cdi_names


def test_configured_key_wins_over_the_listing() -> None:
    """Who sets the key of the listing himself gets what he set."""
    device = _device("a", env=(("EXAMPLE_COM_A_DEVICES", "mine"),))

    assert (("EXAMPLE_COM_A_DEVICES", "mine"),) == combine(_resource(), [device]).env


@pytest.mark.parametrize(
    ("name", "prefix"),
    [
        ("example.com/resource", "EXAMPLE_COM_RESOURCE"),
        ("a-b.c/X_y.z-1", "A_B_C_X_Y_Z_1"),
        ("3com.com/x", "_3COM_COM_X"),
    ],
)
def test_environment_keys_carry_the_resource_name(name: str, prefix: str) -> None:
    """Keys are made of the whole name, in capitals, digits and underscores, so that two plugins do not collide."""
    assert prefix == env_prefix(name)


def test_nodes_that_want_one_place() -> None:
    """Equal nodes merge with all their permissions; different ones get a number behind the path."""
    nodes = [
        DeviceNode("/dev/a", "/dev/x", "r"),
        DeviceNode("/dev/b", "/dev/x", "rw"),
        DeviceNode("/dev/a", "/dev/x", "w"),
        DeviceNode("/dev/c", "/dev/x-1", "m"),
    ]

    assert (
        DeviceNode("/dev/a", "/dev/x", "rw"),
        DeviceNode("/dev/b", "/dev/x-1", "rw"),
        DeviceNode("/dev/c", "/dev/x-1-1", "m"),
    ) == distinct_nodes(nodes)


def test_mounts_that_want_one_place() -> None:
    """Equal mounts merge and writable wins; of different ones the first stays."""
    mounts = [Mount("/a", "/x"), Mount("/a", "/x", read_only=False), Mount("/b", "/x"), Mount("/b", "/y")]

    assert (Mount("/a", "/x", read_only=False), Mount("/b", "/y")) == distinct_mounts(mounts)
