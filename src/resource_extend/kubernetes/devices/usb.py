"""USB devices by vendor, product and serial number, with the device nodes that drivers made for them."""

from __future__ import annotations

import os
from dataclasses import dataclass, field

from resource_extend.kubernetes.devices import identity, sysfs
from resource_extend.kubernetes.devices.hardware import Hardware, NodeOptions, SysfsFinder, nodes_below
from resource_extend.kubernetes.devices.tree import Tree


@dataclass(frozen=True, slots=True)
class UsbMember:
    """USB devices: `vendor` and `product` are four hexadecimal digits in lower case; "" matches any."""

    vendor: str
    product: str = ""
    serial: str = ""
    options: NodeOptions = field(default_factory=NodeOptions)
    optional: bool = False
    limit: int = 1

    def open(self, tree: Tree) -> UsbFinder:
        """Make the finder."""
        return UsbFinder(self, tree)


class UsbFinder(SysfsFinder):
    """Finds the USB devices of one member."""

    def __init__(self, member: UsbMember, tree: Tree) -> None:
        super().__init__(tree, member.options)
        self._member = member

    def read(self) -> list[Hardware]:
        """Read the devices on all buses, sorted by identity."""
        bus = f"{self.tree.sys}/bus/usb/devices"
        try:
            names = os.listdir(bus)
        except OSError:
            return []
        # Names with a colon are interfaces of a device.
        folders = [os.path.realpath(f"{bus}/{name}") for name in sorted(names) if ":" not in name]
        found = [hardware for folder in folders if (hardware := self._hardware_of(folder))]
        return sorted(found, key=lambda hardware: (hardware.identity.name, hardware.identity.location))

    def _hardware_of(self, folder: str) -> Hardware | None:
        wanted = self._member
        if sysfs.read(folder, "idVendor").lower() != wanted.vendor:
            return None
        if wanted.product and sysfs.read(folder, "idProduct").lower() != wanted.product:
            return None
        serial = sysfs.read(folder, "serial")
        if wanted.serial and serial != wanted.serial:
            return None
        named = identity.of_usb(self.tree.sys, folder)
        if named is None:
            return None
        numa = sysfs.numa_nodes(self.tree.sys, folder)
        return Hardware(named, serial or named.location, nodes_below(folder), numa)
