"""PCI functions by vendor, device and class. A function that `vfio-pci` drives is handed out with its IOMMU group."""

from __future__ import annotations

import fnmatch
import os
from dataclasses import dataclass, field

from resource_extend.kubernetes.devices import identity, sysfs
from resource_extend.kubernetes.devices.hardware import Hardware, NodeOptions, SysfsFinder, nodes_below
from resource_extend.kubernetes.devices.tree import Tree

VFIO_DRIVER = "vfio-pci"
# Drivers that leave a function of the group alone, so that the group can still be handed out as a whole.
VFIO_HARMLESS = frozenset({"", VFIO_DRIVER, "pci-stub", "pcieport"})
VFIO_CLASS = "vfio"


@dataclass(frozen=True, slots=True)
class PciMember:
    """PCI functions: hexadecimal digits in lower case, `kind` is the first two, four or all six of the class.

    `address` is a glob, "" everywhere matches any.
    """

    vendor: str = ""
    device: str = ""
    kind: str = ""
    driver: str = ""
    address: str = ""
    options: NodeOptions = field(default_factory=NodeOptions)
    optional: bool = False
    limit: int = 1

    def open(self, tree: Tree) -> PciFinder:
        """Make the finder."""
        return PciFinder(self, tree)


class PciFinder(SysfsFinder):
    """Finds the PCI functions of one member. Functions of one IOMMU group that `vfio-pci` drives are one device."""

    def __init__(self, member: PciMember, tree: Tree) -> None:
        super().__init__(tree, member.options)
        self._member = member

    def read(self) -> list[Hardware]:
        """Read all functions, sorted by address."""
        bus = f"{self.tree.sys}/bus/pci/devices"
        try:
            addresses = sorted(os.listdir(bus))
        except OSError:
            return []
        found, groups = [], set()
        for address in addresses:
            folder = os.path.realpath(f"{bus}/{address}")
            if not self._wanted(folder, address):
                continue
            group = sysfs.link_name(folder, "iommu_group") if sysfs.link_name(folder, "driver") == VFIO_DRIVER else ""
            if group and group in groups:
                continue
            groups.add(group)
            found.append(self._hardware_of(folder, address, group))
        return found

    def _wanted(self, folder: str, address: str) -> bool:
        wanted = self._member
        return (
            _digits(folder, "vendor").startswith(wanted.vendor)
            and _digits(folder, "device").startswith(wanted.device)
            and _digits(folder, "class").startswith(wanted.kind)
            and (not wanted.driver or sysfs.link_name(folder, "driver") == wanted.driver)
            and (not wanted.address or fnmatch.fnmatchcase(address, wanted.address))
        )

    def _hardware_of(self, folder: str, address: str, group: str) -> Hardware:
        named = identity.of_pci(folder) or identity.Identity(identity.clean(address), identity.clean(address))
        numa = sysfs.numa_nodes(self.tree.sys, folder)
        if not group:
            return Hardware(named, address, nodes_below(folder), numa)
        nodes = ((f"vfio/{group}", VFIO_CLASS), ("vfio/vfio", VFIO_CLASS))
        return Hardware(named, address, nodes, numa, self._group_fault(group))

    def _group_fault(self, group: str) -> str:
        """Name a function that keeps the whole group from being used."""
        folder = f"{self.tree.sys}/kernel/iommu_groups/{group}/devices"
        try:
            addresses = sorted(os.listdir(folder))
        except OSError:
            return ""
        for address in addresses:
            driver = sysfs.link_name(os.path.realpath(f"{folder}/{address}"), "driver")
            if driver not in VFIO_HARMLESS:
                return f"{address} of its IOMMU group {group} is bound to {driver}"
        return ""


def _digits(folder: str, name: str) -> str:
    return sysfs.read(folder, name).lower().removeprefix("0x")
