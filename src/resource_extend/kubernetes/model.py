"""The values that the parts of the device plugin hand to each other: devices, what a container gets, resources.

Nothing here knows gRPC, YAML, files or the kubelet. Sources make `Device` values, the service turns them into messages,
the configuration makes `Resource` and `Config` values. All are immutable and compared by value: that is how a reload
tells a changed resource from an unchanged one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from resource_extend.errors import PluginError


class AllocationError(PluginError):
    """A container cannot get these devices; the text reaches the pod's events."""


class ConfigError(PluginError):
    """The device plugin's configuration is wrong: `file:line: text`."""


@dataclass(frozen=True, slots=True)
class DeviceNode:
    """One device node of the host that a container gets.

    `permissions` is a subset of `rwm`. `shared`: other resources hand it out too, on purpose.
    """

    host_path: str
    container_path: str
    permissions: str = "rw"
    shared: bool = False


@dataclass(frozen=True, slots=True)
class Mount:
    """One bind mount.

    `seen_path` is where this process sees `host_path`; it is looked at when a container asks, because a container
    runtime makes an empty folder of a missing mount source (specification, kubernetes 2.11). Empty: cannot be seen from
    here, not checked. An `optional` mount whose source is missing is left out, another one fails the Allocate.
    """

    host_path: str
    container_path: str
    read_only: bool = True
    seen_path: str = ""
    optional: bool = False


@dataclass(frozen=True, slots=True)
class DeviceAnswer:
    """What a container gets with a device.

    It must not hold anything that changes while the device stays: the kubelet keeps the answer and uses it again
    at each restart of the container.
    """

    nodes: tuple[DeviceNode, ...] = ()
    mounts: tuple[Mount, ...] = ()
    env: tuple[tuple[str, str], ...] = ()
    annotations: tuple[tuple[str, str], ...] = ()
    cdi_names: tuple[str, ...] = ()


NOTHING = DeviceAnswer()


@dataclass(frozen=True, slots=True)
class Device:
    """One device as offered to the kubelet.

    `id`: at most 63 bytes, unique over all resources of the process. `numa`: node numbers >= 0, sorted. `physical`: the
    id that replicas of the same hardware share, equal to `id` for a device without replicas (empty means the same).
    `reason` says in a few words why the device is not healthy.
    """

    id: str
    healthy: bool = True
    numa: tuple[int, ...] = ()
    answer: DeviceAnswer = NOTHING
    reason: str = ""
    physical: str = ""


class DeviceSource(Protocol):
    """Finds the devices of one resource, again and again. It keeps what it must remember between scans."""

    @property
    def checks(self) -> Mapping[str, int]:
        """Count the health checks that were run, by result: `ok`, `failed`."""
        ...

    async def scan(self, held: frozenset[str], now: float) -> list[Device]:
        """Give the full list to show: sorted by id, ids unique, unhealthy and vanished-but-still-shown ones included.

        `held`: ids that pods hold according to the kubelet. `now`: seconds of a monotonic clock. An exception means
        that nothing is known: the caller keeps the last list, logs and counts.
        """
        ...

    async def settle(self) -> None:
        """Wait until nothing runs between scans, such as health checks: the next scan shows what they found."""
        ...

    async def close(self) -> None:
        """Stop what runs between scans. No scan follows."""
        ...


@dataclass(frozen=True, slots=True)
class Roots:
    """Where this process sees the host's `/dev` and `/sys`; answers always speak of the host's own paths."""

    dev: str = "/dev"
    sys: str = "/sys"


class SourceConfig(Protocol):
    """What the configuration says about the devices of one resource: a frozen value that can be compared."""

    def open(self, name: str, roots: Roots) -> DeviceSource:
        """Make the scanner for the resource called `name`."""
        ...


@dataclass(frozen=True, slots=True)
class Hook:
    """A command run for a resource's devices. It is killed after `timeout` seconds."""

    command: tuple[str, ...]
    timeout: float = 10.0


@dataclass(frozen=True, slots=True)
class Resource:
    """One extended resource: its name, where its devices come from and how they are handed out.

    `allocation_policy`: `none` (the kubelet chooses by itself), `packed`, `spread` or `numa`. `single`: a container may
    not ask for more than one replica of a device. `scan_interval`: seconds. `pre_start` runs before each start of a
    container, `release` once after a pod let go of a device.
    """

    name: str
    source: SourceConfig
    allocation_policy: str = "none"
    single: bool = False
    scan_interval: float = 5.0
    pre_start: Hook | None = None
    release: Hook | None = None
    cdi: bool = False


@dataclass(frozen=True, slots=True)
class Folders:
    """Paths that differ between clusters, as this process sees them. `registry` empty: register in the ordinary way.

    `registry_host` is the same folder as the kubelet sees it. `pod_resources` is the kubelet's pod resources socket;
    empty: do not ask who holds what. `state` is where the held devices are remembered for release hooks; empty: in
    `plugins`.
    """

    plugins: str = "/var/lib/kubelet/device-plugins"
    registry: str = ""
    registry_host: str = ""
    pod_resources: str = ""
    cdi: str = "/var/run/cdi"
    state: str = ""


@dataclass(frozen=True, slots=True)
class Config:
    """Everything the daemon needs to know. `listen` is `host:port` of metrics and probes, empty for none."""

    resources: tuple[Resource, ...]
    roots: Roots = field(default_factory=Roots)
    folders: Folders = field(default_factory=Folders)
    listen: str = ""
    log_format: str = "text"
