"""What identifies a device: the hardware, not the order in which the kernel found it.

An identity has letters, digits, `.`, `_` and `-` only and at most IDENTITY_LIMIT characters. A device id is the hash of
its resource's name, an identity, and for shared devices a replica mark: at most 63 characters, and unique over all
resources of the process by construction (specification, kubernetes 8.1-6).
"""

from __future__ import annotations

import hashlib
import os
import re
from dataclasses import dataclass
from functools import lru_cache

from resource_extend.kubernetes.devices import sysfs

ID_LIMIT = 63
HASH_LENGTH = 8
REPLICA_MARK = "::"
REPLICA_LIMIT = 99_999  # what fits into the room kept for the mark
IDENTITY_LIMIT = ID_LIMIT - (HASH_LENGTH + 1) - (len(REPLICA_MARK) + 5)


@dataclass(frozen=True, slots=True)
class Identity:
    """`name` identifies the device; `location` is where it is plugged in, which tells equal names apart.

    `serial`: the name comes from a serial number, which other devices may have as well.
    """

    name: str
    location: str
    serial: bool = False


@lru_cache(maxsize=64)
def short_hash(text: str) -> str:
    """Give eight hexadecimal digits that stand for a text."""
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:HASH_LENGTH]


def clean(text: str) -> str:
    """Make a text fit for an id. What had to be replaced is told apart by a hash."""
    out = re.sub(r"[^A-Za-z0-9._-]+", "_", text)
    return out if out == text else f"{out}-{short_hash(text)}"


def shorten(name: str, limit: int = IDENTITY_LIMIT) -> str:
    """Cut a name to `limit` characters; a hash of the whole keeps it unique."""
    return name if len(name) <= limit else f"{name[: limit - HASH_LENGTH - 1]}-{short_hash(name)}"


def device_id(resource: str, identity: str) -> str:
    """Make the id of a device of a resource from its identity."""
    return f"{short_hash(resource)}-{shorten(identity)}"


def replica_id(physical: str, number: int) -> str:
    """Make the id of one replica of a device."""
    return f"{physical}{REPLICA_MARK}{number}"


def of_path(host_path: str) -> Identity:
    """Identify by the host path what has no hardware that sysfs knows."""
    plain = host_path.removeprefix("/dev/")
    name = clean(plain.replace("/", "."))
    if "." in plain:
        name += f"-{short_hash(host_path)}"  # so that no other path makes the same name
    return Identity(name, host_path)


def of_node(root: str, folder: str) -> Identity | None:
    """Identify a device node by its sysfs folder; None for a virtual or platform device, which has no hardware name."""
    disk = _of_disk(folder)
    if disk:
        return disk
    interface = ""
    for place in sysfs.ancestors(root, folder):
        number = sysfs.read(place, "bInterfaceNumber")
        if number:
            interface = place
        hardware = of_usb(root, place) or of_pci(place)
        if not hardware:
            continue
        if place == folder:
            return hardware
        suffix = _suffix(interface or place, folder)
        if interface:
            suffix = f"-if{clean(sysfs.read(interface, 'bInterfaceNumber'))}{suffix}"
        return Identity(hardware.name + suffix, hardware.location + suffix, hardware.serial)
    return None


def of_usb(root: str, folder: str) -> Identity | None:
    """Identify a USB device by its folder: by serial number, or by port when it has none."""
    vendor, product = sysfs.read(folder, "idVendor"), sysfs.read(folder, "idProduct")
    if not vendor or not product:
        return None
    port = usb_port(root, folder)
    serial = sysfs.read(folder, "serial")
    return Identity(f"usb-{clean(vendor)}-{clean(product)}-{clean(serial) if serial else port}", port, bool(serial))


def of_pci(folder: str) -> Identity | None:
    """Identify a PCI function by its folder: by its address."""
    address = os.path.basename(folder)
    if not sysfs.PCI_ADDRESS.fullmatch(address):
        return None
    name = "pci-" + address.replace(":", "-")
    return Identity(name, name)


def usb_port(root: str, folder: str) -> str:
    """Name the port of a USB device: its controller, the controller's root hub, the path of ports from there.

    Bus numbers are not used, they depend on the order in which controllers were found.
    """
    hubs = [place for place in sysfs.ancestors(root, folder) if re.fullmatch(r"usb\d+", os.path.basename(place))]
    path = sysfs.read(folder, "devpath") or os.path.basename(folder).partition("-")[2]
    if not hubs:
        return clean(f"port-{path}")
    controller = os.path.dirname(hubs[-1])
    siblings = [name for name in _names(controller) if re.fullmatch(r"usb\d+", name)]
    hub = sorted(siblings, key=sysfs.natural).index(os.path.basename(hubs[-1]))
    return f"{re.sub(r'[^A-Za-z0-9._-]', '-', os.path.basename(controller))}-usb{hub}-{clean(path)}"


def _suffix(base: str, folder: str) -> str:
    """Tell a node from the others of its class below the same function, in the order in which the driver makes them."""
    subsystem = sysfs.link_name(folder, "subsystem")
    alike = [node.folder for node in sysfs.child_nodes(base) if node.subsystem == subsystem]
    number = alike.index(folder) if folder in alike else 0
    return f"-{clean(subsystem or 'node')}-{number}"


def _of_disk(folder: str) -> Identity | None:
    """Disks carry a name of their own; all those of a controller would else be told apart by probing order only."""
    if sysfs.link_name(folder, "subsystem") != "block":
        return None
    partition = sysfs.read(folder, "partition")
    disk = os.path.dirname(folder) if partition else folder
    for place, name in ((disk, "wwid"), (f"{disk}/device", "wwid"), (f"{disk}/device", "serial"), (disk, "serial")):
        text = sysfs.read(place, name)
        if text:
            whole = f"disk-{clean(text)}" + (f"-part{partition}" if partition else "")
            return Identity(whole, whole)
    return None


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []
