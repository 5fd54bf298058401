"""Which devices a container should get, and what it gets with them. Pure functions.

The kubelet decides; `preferred` only advises, and never fails: an error would fail the pod (specification, kubernetes
2.7). Policies, where *hardware* means the device that replicas share:

    none     the lowest ids
    packed   fill up hardware that is in use before touching hardware that is free
    spread   take from the hardware that is used least, first of all from different hardware
    numa     stay on one NUMA node, or on as few as possible; different hardware within a node
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice

from resource_extend.kubernetes.devices.cdi_names import cdi_kind
from resource_extend.kubernetes.devices.source import GroupsConfig
from resource_extend.kubernetes.model import AllocationError, Device, DeviceAnswer, DeviceNode, Mount, Resource

POLICIES = ("none", "packed", "spread", "numa")
LISTINGS = ("list", "json", "none")


def preferred(policy: str, available: list[Device], must_include: list[str], size: int) -> list[str]:
    """Choose `size` of the available devices, those of `must_include` first, by a policy.

    The answer holds all of `must_include`, whatever `size` says, and fewer than `size` only when no more are available.
    """
    free = {device.id: device for device in available}
    chosen = list(dict.fromkeys(must_include))
    taken = [free.pop(name) for name in chosen if name in free]
    missing = max(0, min(size - len(chosen), len(free)))
    order = _ORDERS.get(policy, _by_id)
    return chosen + [device.id for device in islice(order(list(free.values()), taken, missing), missing)]


def _by_id(free: list[Device], _taken: list[Device], _missing: int) -> Iterator[Device]:
    yield from sorted(free, key=lambda device: device.id)


def _packed(free: list[Device], taken: list[Device], _missing: int) -> Iterator[Device]:
    started = {_hardware(device) for device in taken}
    left = Counter(_hardware(device) for device in free)
    # The fewer replicas of a device are left, the more of it is in use.
    yield from sorted(free, key=lambda d: (_hardware(d) not in started, left[_hardware(d)], _hardware(d), d.id))


def _spread(free: list[Device], taken: list[Device], _missing: int) -> Iterator[Device]:
    chosen = Counter(_hardware(device) for device in taken)
    left: dict[str, list[str]] = {}
    by_id = {device.id: device for device in free}
    for name in sorted(by_id, reverse=True):
        left.setdefault(_hardware(by_id[name]), []).append(name)
    while left:
        best = min(left, key=lambda hardware: (chosen[hardware], -len(left[hardware]), hardware))
        chosen[best] += 1
        yield by_id[left[best].pop()]
        if not left[best]:
            del left[best]


def _numa(free: list[Device], taken: list[Device], missing: int) -> Iterator[Device]:
    started = {node for device in taken for node in device.numa}
    rest = {device.id: device for device in free}
    while rest and missing > 0:
        near: dict[int, list[Device]] = {}
        for device in rest.values():
            for node in device.numa:
                near.setdefault(node, []).append(device)
        if not near:
            break
        # A node in use already, else the one that is left with least, else the one that has most.
        node = min(near, key=lambda n: (n not in started, len(near[n]) < missing, _closeness(len(near[n]), missing), n))
        for device in _spread(near[node], taken, missing):
            yield device
            taken = [*taken, device]
            del rest[device.id]
            missing -= 1
            if missing <= 0:
                return
        started.add(node)
    yield from _spread(list(rest.values()), taken, missing)


def _closeness(number: int, wanted: int) -> int:
    return number - wanted if number >= wanted else wanted - number


_ORDERS = {"none": _by_id, "packed": _packed, "spread": _spread, "numa": _numa}


def _hardware(device: Device) -> str:
    return device.physical or device.id


def combine(resource: Resource, devices: list[Device]) -> DeviceAnswer:
    """Say what one container gets with `devices`, in any order.

    With CDI specs of our own, nodes and mounts are in the specs and the answer names those. Raises AllocationError when
    the resource hands out single replicas and the container asks for two of the same hardware.
    """
    devices = sorted(devices, key=lambda device: device.id)
    if resource.single:
        _check_single(resource, devices)
    hardware = list({_hardware(device): device for device in devices}.values())
    answers = [device.answer for device in hardware]
    names = [name for answer in answers for name in answer.cdi_names]
    nodes: tuple[DeviceNode, ...] = ()
    mounts: tuple[Mount, ...] = ()
    if resource.cdi:
        kind = cdi_kind(resource.name)
        names = [f"{kind}={_hardware(device)}" for device in hardware] + names
    else:
        nodes = distinct_nodes(node for answer in answers for node in answer.nodes)
        mounts = distinct_mounts(mount for answer in answers for mount in answer.mounts)
    env = _join(pair for answer in answers for pair in answer.env)
    env = {**_listing(resource, devices, nodes), **env}
    notes = _join(pair for answer in answers for pair in answer.annotations)
    return DeviceAnswer(
        nodes, mounts, tuple(sorted(env.items())), tuple(sorted(notes.items())), tuple(dict.fromkeys(names))
    )


def _check_single(resource: Resource, devices: list[Device]) -> None:
    for hardware, number in Counter(map(_hardware, devices)).items():
        if number > 1:
            raise AllocationError(
                f"{resource.name}: {number} replicas of device {hardware!r} were asked for, and a container may have "
                "only one: ask for fewer"
            )


def distinct_nodes(nodes: Iterable[DeviceNode]) -> tuple[DeviceNode, ...]:
    """Merge equal nodes. Different ones that want the same path in the container get `-1`, `-2`, ... behind it."""
    merged: dict[tuple[str, str], set[str]] = {}
    for node in nodes:
        merged.setdefault((node.host_path, node.container_path), set()).update(node.permissions)
    used: set[str] = set()
    return tuple(
        DeviceNode(host, _free_path(path, used), "".join(letter for letter in "rwm" if letter in permissions))
        for (host, path), permissions in merged.items()
    )


def distinct_mounts(mounts: Iterable[Mount]) -> tuple[Mount, ...]:
    """Keep the first mount of each path in the container; equal sources are merged, writable wins."""
    kept: dict[str, Mount] = {}
    for mount in mounts:
        first = kept.setdefault(mount.container_path, mount)
        if first.host_path == mount.host_path and not mount.read_only:
            kept[mount.container_path] = mount
    return tuple(kept.values())


def _free_path(path: str, used: set[str]) -> str:
    free, number = path, 0
    while free in used:
        number += 1
        free = f"{path}-{number}"
    used.add(free)
    return free


def _join(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Put the values of one key together, each once, separated by commas."""
    values: dict[str, dict[str, None]] = {}
    for key, value in pairs:
        values.setdefault(key, {})[value] = None
    return {key: ",".join(texts) for key, texts in values.items()}


def env_prefix(resource: str) -> str:
    """Make the beginning of environment keys from a resource's name: two plugins must not use the same key."""
    key = re.sub(r"[^A-Z0-9]", "_", resource.upper())
    return f"_{key}" if key[0].isdigit() else key


def _listing(resource: Resource, devices: list[Device], nodes: tuple[DeviceNode, ...]) -> dict[str, str]:
    """List ids and paths in the environment, as the resource says: comma separated, as JSON, or not at all."""
    config = resource.source
    style = config.listing if isinstance(config, GroupsConfig) else "none"
    prefix = env_prefix(resource.name)
    ids, paths = [device.id for device in devices], [node.container_path for node in nodes]
    if style == "json":
        return {prefix: json.dumps({"ids": ids, "paths": paths}, separators=(",", ":"))}
    if style == "list":
        listed = {f"{prefix}_DEVICES": ",".join(ids)}
        return {**listed, f"{prefix}_PATHS": ",".join(paths)} if paths else listed
    return {}
