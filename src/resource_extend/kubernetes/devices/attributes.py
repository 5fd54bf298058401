"""Devices by their sysfs class and attributes, as udev rules name them."""

from __future__ import annotations

import fnmatch
import os
from dataclasses import dataclass, field

from resource_extend.kubernetes.devices import identity, sysfs
from resource_extend.kubernetes.devices.hardware import Hardware, NodeOptions, SysfsFinder, nodes_below
from resource_extend.kubernetes.devices.tree import Tree


@dataclass(frozen=True, slots=True)
class AttributesMember:
    """Devices of a kernel class (or on a bus), whose kernel name and attributes match globs.

    Each attribute may be the device's own or one of a device above it, as `ATTRS` of udev has it.
    """

    subsystem: str
    name: str = ""
    attributes: tuple[tuple[str, str], ...] = ()
    options: NodeOptions = field(default_factory=NodeOptions)
    optional: bool = False
    limit: int = 1

    def open(self, tree: Tree) -> AttributesFinder:
        """Make the finder."""
        return AttributesFinder(self, tree)


class AttributesFinder(SysfsFinder):
    """Finds the devices of one member."""

    def __init__(self, member: AttributesMember, tree: Tree) -> None:
        super().__init__(tree, member.options)
        self._member = member

    def read(self) -> list[Hardware]:
        """Read the devices of the class, sorted by identity."""
        found = []
        for place in (f"class/{self._member.subsystem}", f"bus/{self._member.subsystem}/devices"):
            folder = f"{self.tree.sys}/{place}"
            try:
                names = sorted(os.listdir(folder))
            except OSError:
                continue
            paths = {name: os.path.realpath(f"{folder}/{name}") for name in names}
            found += [self._hardware_of(path, name) for name, path in paths.items() if self._wanted(path, name)]
        return sorted(found, key=lambda hardware: (hardware.identity.name, hardware.identity.location))

    def _wanted(self, folder: str, name: str) -> bool:
        wanted = self._member
        if wanted.name and not fnmatch.fnmatchcase(name, wanted.name):
            return False
        places = list(sysfs.ancestors(self.tree.sys, folder))
        return all(
            any(fnmatch.fnmatchcase(text, value) for place in places if (text := sysfs.read(place, key)))
            for key, value in wanted.attributes
        )

    def _hardware_of(self, folder: str, name: str) -> Hardware:
        plain = identity.clean(f"{self._member.subsystem}-{name}")
        named = identity.of_node(self.tree.sys, folder) or identity.Identity(plain, plain)
        return Hardware(named, name, nodes_below(folder), sysfs.numa_nodes(self.tree.sys, folder))
