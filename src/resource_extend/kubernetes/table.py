"""The devices of one resource as they stand now, and the message that tells the kubelet about them.

A snapshot is built once for each change and handed to every stream as bytes. It never grows beyond what the kubelet
takes: a message above 4 MiB would end the stream and with it all devices (specification, kubernetes 1.1).
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping

from resource_extend.errors import PluginError
from resource_extend.kubernetes.api import HEALTHY, MESSAGE_LIMIT, UNHEALTHY, device_plugin
from resource_extend.kubernetes.model import Device

SNAPSHOT_LIMIT = MESSAGE_LIMIT * 39 // 40  # bytes; a little below the kubelet's limit


class SnapshotTooLarge(PluginError):  # noqa: N818 - says what is wrong
    """The list of devices does not fit into one message to the kubelet."""


def build_snapshot(devices: Iterable[Device]) -> bytes:
    """Serialise the list for ListAndWatch. Raises SnapshotTooLarge.

    NUMA nodes are told for all devices or for none: with a strict topology policy, a device without would never be
    chosen beside devices that have them (specification, kubernetes 2.13). Devices that are not healthy do not count.
    """
    devices = list(devices)
    topology = all(device.numa for device in devices if device.healthy)
    message = device_plugin.ListAndWatchResponse()
    for device in devices:
        entry = message.devices.add(ID=device.id, health=HEALTHY if device.healthy else UNHEALTHY)
        if topology:
            for node in device.numa:
                entry.topology.nodes.add(ID=node)
    size = message.ByteSize()
    if size > SNAPSHOT_LIMIT:
        fits = len(devices) * SNAPSHOT_LIMIT // size
        raise SnapshotTooLarge(
            f"{len(devices)} devices make a message of {size} bytes, and the kubelet takes {MESSAGE_LIMIT}: "
            f"offer at most {fits} devices with ids of this length"
        )
    return bytes(message.SerializeToString())


class DeviceTable:
    """The current devices by id, with the snapshot for the kubelet and a version that grows with each new snapshot.

    `version` is 0 until the first list is there.
    """

    def __init__(self) -> None:
        self.devices: Mapping[str, Device] = {}
        self.snapshot = b""
        self.version = 0
        self.listed: list[Device] | None = None
        self._watchers: set[asyncio.Event] = set()

    def publish(self, devices: list[Device]) -> bool:
        """Take a new full list and wake the streams when the kubelet has to know; tell whether it has to.

        Raises SnapshotTooLarge and keeps the old list then.
        """
        if devices == self.listed:
            return False
        snapshot = build_snapshot(devices)
        self.listed = devices
        self.devices = {device.id: device for device in devices}
        if self.version and snapshot == self.snapshot:
            return False
        self.snapshot = snapshot
        self.version += 1
        for event in self._watchers:
            event.set()
        return True

    def watch(self, event: asyncio.Event) -> None:
        """Have `event` set at each new snapshot."""
        self._watchers.add(event)

    def unwatch(self, event: asyncio.Event) -> None:
        """Stop setting `event`."""
        self._watchers.discard(event)

    def count(self, *, healthy: bool) -> int:
        """Give the number of devices that are healthy, or that are not."""
        return sum(device.healthy is healthy for device in self.devices.values())
