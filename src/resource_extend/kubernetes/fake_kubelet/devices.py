"""What the fake kubelet knows about devices: endpoints, health, the node's numbers. Values only, no sockets."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from resource_extend.kubernetes.api import HEALTHY


@dataclass(frozen=True)
class Amounts:
    """One line of the node object."""

    capacity: int
    allocatable: int


@dataclass
class Plugin:
    """One connected device plugin: its socket, its client and the options it told when asked."""

    resource: str
    socket: str
    client: Any
    pre_start: bool = False
    preferred: bool = False
    stopped_at: float | None = None


@dataclass
class Listed:
    """The latest list of one resource: health by id, as words of the message, and NUMA nodes by id."""

    healthy: set[str] = field(default_factory=set)
    unhealthy: set[str] = field(default_factory=set)
    words: dict[str, str] = field(default_factory=dict)
    numa: dict[str, tuple[int, ...]] = field(default_factory=dict)


class DeviceManager:
    """Endpoints and lists of all resources. `by_socket`: kubelets from 1.37 on keep one endpoint for each socket."""

    def __init__(self, clock: Callable[[], float], grace: float, *, by_socket: bool) -> None:
        self.endpoints: dict[str, Plugin] = {}
        self.listed: dict[str, Listed] = {}
        self.node: dict[str, Amounts] = {}
        self._tracked: dict[str, dict[str, Plugin]] = {}
        self._clock = clock
        self._grace = grace
        self._by_socket = by_socket

    def forget_plugins(self, known: Iterable[str]) -> None:
        """Begin as after a restart of the kubelet: `known` resources (the checkpoint's) have a stopped endpoint."""
        self.endpoints = {name: Plugin(name, "", None, stopped_at=self._clock()) for name in known}
        self.listed = {name: Listed() for name in known}
        self._tracked = {}

    def connected(self, plugin: Plugin) -> None:
        """Take a plugin that answered. Raises ValueError when its socket is tracked already (1.37)."""
        if self._by_socket:
            sockets = self._tracked.setdefault(plugin.resource, {})
            if plugin.socket in sockets:
                raise ValueError(f"device plugin already connected: {plugin.socket}")
            sockets[plugin.socket] = plugin
        self.endpoints[plugin.resource] = plugin

    def disconnected(self, resource: str, socket: str) -> None:
        """Deal with the end of a plugin: up to 1.36 of whoever offers the resource now, from 1.37 on of that socket."""
        if not self._by_socket:
            if resource in self.endpoints:
                self._stop(resource, self.endpoints[resource])
            return
        sockets = self._tracked.get(resource, {})
        plugin = sockets.pop(socket, None)
        if plugin is None:
            return
        plugin.stopped_at = self._clock()
        if sockets:
            self.endpoints[resource] = next(iter(sockets.values()))
        else:
            self._stop(resource, self.endpoints[resource])

    def _stop(self, resource: str, plugin: Plugin) -> None:
        plugin.stopped_at = self._clock()
        if resource in self.listed:
            listed = self.listed[resource]
            listed.unhealthy |= listed.healthy
            listed.healthy = set()

    def received(self, resource: str, devices: Iterable[Any]) -> None:
        """Replace the list of a resource by a snapshot's devices."""
        listed = Listed()
        for device in devices:
            (listed.healthy if device.health == HEALTHY else listed.unhealthy).add(device.ID)
            listed.words[device.ID] = device.health
            listed.numa[device.ID] = tuple(node.ID for node in device.topology.nodes)
        self.listed[resource] = listed

    def sync_node(self) -> dict[str, Amounts]:
        """Do what the kubelet's status sync does, and give the node's entries. An entry never goes away by itself."""
        for resource, listed in list(self.listed.items()):
            endpoint = self.endpoints.get(resource)
            stopped = endpoint.stopped_at if endpoint else None
            if endpoint is None or (stopped is not None and self._clock() - stopped > self._grace):
                self.listed.pop(resource)
                self.endpoints.pop(resource, None)
                self.node[resource] = Amounts(0, 0)
            else:
                healthy = len(listed.healthy)
                self.node[resource] = Amounts(healthy + len(listed.unhealthy), healthy)
        return dict(self.node)
