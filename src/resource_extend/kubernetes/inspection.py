"""What the commands `check`, `list` and `allocate` find out: a configuration tried on this node, none registered."""

from __future__ import annotations

import asyncio
import grp
import os
import pwd
import stat
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from resource_extend.errors import PluginError
from resource_extend.kubernetes import sockets
from resource_extend.kubernetes.devices.tree import Tree
from resource_extend.kubernetes.held import NEVER_RELEASED, never_released
from resource_extend.kubernetes.model import AllocationError, Config, Device, DeviceAnswer, Resource, Roots
from resource_extend.kubernetes.runner import Rules
from resource_extend.kubernetes.service import container_answer
from resource_extend.kubernetes.table import build_snapshot


@dataclass(frozen=True)
class Found:
    """The devices of one resource on this node, or why they could not be listed."""

    resource: Resource
    devices: tuple[Device, ...]
    error: str = ""


@dataclass(frozen=True)
class Finding:
    """One line of `check`. `error`: the configuration cannot work as it is; otherwise something worth knowing."""

    error: bool
    text: str


async def _scan(resource: Resource, roots: Roots) -> Found:
    source = resource.source.open(resource.name, roots)
    try:
        await source.scan(frozenset(), time.monotonic())
        await source.settle()
        devices = await source.scan(frozenset(), time.monotonic())
    except Exception as error:
        return Found(resource, (), str(error) or repr(error))
    finally:
        await source.close()
    return Found(resource, tuple(devices))


async def scan_all(config: Config) -> list[Found]:
    """Scan every resource once, all at the same time."""
    return list(await asyncio.gather(*(_scan(resource, config.roots) for resource in config.resources)))


def check(config: Config, found: Iterable[Found]) -> Iterator[Finding]:
    """Say what is wrong or worth knowing: folder, socket path, size of the list, nodes and who may open them."""
    owners: dict[str, str] = {}
    for item in found:
        name = item.resource.name
        path = os.path.join(config.folders.registry or config.folders.plugins, sockets.fresh_name(name))
        try:
            sockets.check_bindable(path)
        except PluginError as error:
            # The devices are worth knowing all the same, above all where there is no kubelet.
            yield Finding(error=True, text=f"{name}: {error}")
        if never_released(item.resource, config.folders):
            yield Finding(error=True, text=f"{name}: {NEVER_RELEASED}")
        if item.error:
            yield Finding(error=True, text=f"{name}: {item.error}")
            continue
        try:
            size = len(build_snapshot(item.devices))
        except PluginError as error:
            yield Finding(error=True, text=f"{name}: {error}")
            continue
        healthy = sum(device.healthy for device in item.devices)
        yield Finding(error=False, text=f"{name}: {len(item.devices)} devices, {healthy} healthy, list of {size} bytes")
        for device in item.devices:
            if not device.healthy:
                yield Finding(error=False, text=f"{name}: {device.id} is not healthy: {device.reason}")
        yield from _check_nodes(config, item, owners)


def _check_nodes(config: Config, found: Found, owners: dict[str, str]) -> Iterator[Finding]:
    """Check the device nodes of a resource; `owners` says which resource offers a node already."""
    name, tree = found.resource.name, Tree(config.roots)
    nodes = {node.host_path: node.shared for device in found.devices for node in device.answer.nodes}
    for path, shared in sorted(nodes.items()):
        other = name if shared else owners.setdefault(path, name)
        if other != name:
            yield Finding(error=True, text=f"{path} is offered by {other} and by {name}: two pods may get it at once")
        status = tree.status(path)
        if status is None:
            yield Finding(error=False, text=f"{name}: {path} cannot be looked at: it does not exist here")
            continue
        access = f"{path} belongs to {_user(status.st_uid)}:{_group(status.st_gid)}, {stat.filemode(status.st_mode)}"
        only_root = (
            status.st_uid == 0 and not status.st_mode & 0o006 and (status.st_gid == 0 or not status.st_mode & 0o060)
        )
        hint = "; only root can open it, a container with another user cannot" if only_root else ""
        yield Finding(error=False, text=f"{name}: {access}{hint}")


def _user(number: int) -> str:
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return str(number)


def _group(number: int) -> str:
    try:
        return grp.getgrgid(number).gr_name
    except KeyError:
        return str(number)


def dry_allocate(found: Iterable[Found], name: str, ids: Sequence[str], rules: Rules) -> DeviceAnswer:
    """Say what a container would get with the devices `ids` of resource `name`. Raises AllocationError."""
    by_name = {item.resource.name: item for item in found}
    if name not in by_name:
        raise AllocationError(f"no resource {name!r} is configured; there are: {', '.join(sorted(by_name))}")
    item = by_name[name]
    if item.error:
        raise AllocationError(f"{name}: {item.error}")
    devices = {device.id: device for device in item.devices}
    missing = sorted(set(ids) - set(devices))
    if missing:
        raise AllocationError(f"{name} has no device {', '.join(missing)}; there are: {', '.join(devices) or 'none'}")
    twice = sorted({one for one in ids if ids.count(one) > 1})
    if twice:
        raise AllocationError(f"{', '.join(twice)} is named more than once: a container gets a device once")
    return container_answer(item.resource, [devices[one] for one in ids], rules.combine)
