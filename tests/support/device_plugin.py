"""The device plugin of this project, started in the test's own event loop, and what its tests share."""

from __future__ import annotations

import asyncio
import functools
import os
import socket
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from dataclasses import dataclass, field
from typing import Any, ParamSpec, Protocol, TypeVar

from resource_extend.kubernetes import api, rpc, sockets
from resource_extend.kubernetes.cdi import remove_spec, write_spec
from resource_extend.kubernetes.daemon import Daemon
from resource_extend.kubernetes.devices.allocation import combine, preferred
from resource_extend.kubernetes.model import Config, Device, DeviceSource, Folders, Hook, Resource, Roots
from resource_extend.kubernetes.runner import Rules

Arguments = ParamSpec("Arguments")
T = TypeVar("T")

NAME = "example.com/resource"
RULES = Rules(combine, preferred, write_spec, remove_spec)


def story(test: Callable[Arguments, Coroutine[Any, Any, None]]) -> Callable[Arguments, None]:
    """Make an asyncio test an ordinary one."""

    @functools.wraps(test)
    def run(*arguments: Arguments.args, **named: Arguments.kwargs) -> None:
        asyncio.run(test(*arguments, **named))

    return run


async def until(done: Callable[[], object], timeout: float = 10.0) -> None:
    """Wait until `done()` is true. Raises AssertionError."""
    end = asyncio.get_running_loop().time() + timeout
    while not done():
        assert asyncio.get_running_loop().time() < end, "it did not come true in time"
        await asyncio.sleep(0.01)


def numbered(count: int, prefix: str = "d") -> list[Device]:
    """Make `count` healthy devices."""
    return [Device(f"{prefix}{number:05}") for number in range(count)]


@dataclass(frozen=True)
class Listed:
    """A source that finds what a test has put into its list; `scans` counts how often it was asked."""

    devices: list[Device] = field(default_factory=list, compare=False)
    scans: list[int] = field(default_factory=list, compare=False)
    version: int = 0
    checks: Counter[str] = field(default_factory=Counter, compare=False)

    def open(self, name: str, roots: Roots) -> DeviceSource:
        """Make the scanner, which is this value itself."""
        return self

    async def scan(self, held: frozenset[str], now: float) -> list[Device]:
        """Give the list as it is now."""
        self.scans.append(len(held))
        return list(self.devices)

    async def settle(self) -> None:
        """Nothing runs between scans."""

    async def close(self) -> None:
        """Nothing runs between scans."""


class PluginUnderTest(Protocol):
    """What a demand can do with a device plugin, ours or another."""

    def socket_name(self) -> str:
        """Make a name as its sockets have."""
        ...

    async def start(
        self,
        folder: str,
        devices: Iterable[Device],
        *,
        policy: str = "none",
        release: Hook | None = None,
        pod_resources: str = "",
        listen: str = "",
    ) -> None:
        """Start to offer `devices` as NAME to the kubelet on `folder`."""
        ...

    async def rescan(self, devices: Iterable[Device]) -> None:
        """Have it look for its devices again, and find these."""
        ...

    async def poll_pods(self) -> None:
        """Have it ask now who holds what, if it ever does."""
        ...

    async def stop(self) -> None:
        """Stop it."""
        ...


class Ours:
    """This project's daemon."""

    def __init__(self, generation: int = 0) -> None:
        self.source = Listed()
        self.daemon: Daemon | None = None
        self._task: asyncio.Task[None] | None = None

    def socket_name(self) -> str:
        """Make a name as its sockets have."""
        return sockets.fresh_name(NAME)

    async def start(
        self,
        folder: str,
        devices: Iterable[Device],
        *,
        policy: str = "none",
        release: Hook | None = None,
        pod_resources: str = "",
        listen: str = "",
    ) -> None:
        """Start the daemon in this event loop."""
        self.source.devices[:] = devices
        resource = Resource(NAME, self.source, allocation_policy=policy, release=release, scan_interval=3600)
        config = Config((resource,), folders=Folders(plugins=folder, pod_resources=pod_resources), listen=listen)
        await self.start_config(lambda: config)

    async def start_config(self, load: Callable[[], Config], path: str = "") -> None:
        """Start the daemon with a configuration."""
        self.daemon = Daemon(load, RULES, path, config_period=0.1)
        self._task = asyncio.ensure_future(self.daemon.run())
        await asyncio.sleep(0)

    @property
    def running(self) -> Daemon:
        """The daemon, which was started."""
        assert self.daemon is not None
        return self.daemon

    async def rescan(self, devices: Iterable[Device]) -> None:
        """Scan now."""
        self.source.devices[:] = devices
        await self.running.runners[0].scan()

    async def poll_pods(self) -> None:
        """Ask the kubelet now."""
        assert self.running.held is not None
        await self.running.held.look()

    async def stop(self) -> None:
        """Stop as on SIGTERM."""
        if self.daemon is not None and self._task is not None:
            self.daemon.stop()
            await self._task

    async def __aenter__(self) -> Ours:
        """Nothing is started yet."""
        return self

    async def __aexit__(self, *_error: object) -> None:
        """Stop."""
        await self.stop()


async def call(path: str, method: str, request: Any, authority: str = "localhost") -> Any:
    """Call a method of the device plugin on the socket `path`."""
    async with rpc.open_channel(path, authority) as channel:
        return await getattr(rpc.Client(channel, api.DEVICE_PLUGIN), method)(request, timeout=5)


def plugin_sockets(folder: str) -> list[str]:
    """Give the paths of all sockets in the folder but the kubelet's."""
    names = sorted(name for name in os.listdir(folder) if name != api.KUBELET_SOCKET)
    paths = [os.path.join(folder, name) for name in names]
    return [path for path in paths if sockets.identity(path) is not None]


def dead_socket(path: str) -> None:
    """Leave a socket file at `path` as a killed process does."""
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(path)
        left.listen()


Step = Callable[[], Awaitable[None]]
