"""What sysfs says about devices: attributes, ancestors, the nodes below a device, NUMA nodes.

Paths here are real paths as this process sees them, below the folder where the host's `/sys` is.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass

NODE_DEPTH = 8  # folders between a device and its nodes; five is the deepest that USB classes use
SKIPPED = frozenset({"power", "firmware_node", "driver", "subsystem"})
PCI_ADDRESS = re.compile(r"[0-9a-f]{4,}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")


@dataclass(frozen=True, slots=True)
class ChildNode:
    """A device node that the kernel made for a device: the node's name below `/dev`, its class and sysfs folder."""

    name: str
    subsystem: str
    folder: str


def read(folder: str, name: str) -> str:
    """Read a one-line attribute; "" when there is none or it is no text."""
    try:
        with open(f"{folder}/{name}", "rb") as file:
            raw = file.read(4096)
    except OSError:
        return ""
    return raw.decode("utf-8", "replace").strip().strip("\0")


def link_name(folder: str, name: str) -> str:
    """Give the last part of a link's target, as sysfs names drivers, subsystems and IOMMU groups; "" without a link."""
    try:
        return os.path.basename(os.readlink(f"{folder}/{name}"))
    except OSError:
        return ""


def device_folder(root: str, mode: int, number: int) -> str:
    """Find the sysfs folder of a device node; "" when it is none or sysfs (mounted at `root`) does not have it."""
    if not (stat.S_ISCHR(mode) or stat.S_ISBLK(mode)):
        return ""
    place = f"{root}/dev/{'block' if stat.S_ISBLK(mode) else 'char'}"
    try:
        # There are no further links below /sys/devices, so this is the real path.
        return os.path.normpath(f"{place}/{os.readlink(f'{place}/{os.major(number)}:{os.minor(number)}')}")
    except OSError:
        return ""


def ancestors(root: str, folder: str) -> Iterator[str]:
    """Give a device's folder and those above it, up to the top of `<root>/devices`."""
    top = f"{root}/devices"
    while folder.startswith(top + "/"):
        yield folder
        folder = os.path.dirname(folder)


def numa_nodes(root: str, folder: str) -> tuple[int, ...]:
    """Give the NUMA node of the nearest ancestor that has one. -1 means unknown and is dropped (kubernetes 2.8)."""
    for place in ancestors(root, folder):
        text = read(place, "numa_node")
        if text:
            return (int(text),) if text.isdecimal() else ()
    return ()


def event_number(root: str) -> str:
    """Give the kernel's count of device events: while it stands still, no device came, went or changed its driver."""
    return read(f"{root}/kernel", "uevent_seqnum")


def child_nodes(folder: str) -> list[ChildNode]:
    """List the device nodes of a device and of its functions, not those of other USB or PCI devices behind it."""
    nodes: list[ChildNode] = []
    _collect(folder, NODE_DEPTH, nodes)
    return sorted(nodes, key=lambda node: natural(node.folder))


def natural(text: str) -> list[tuple[int, str]]:
    """Give a sort key that orders ttyUSB2 before ttyUSB10."""
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d+)", text) if part]


def _collect(folder: str, depth: int, nodes: list[ChildNode]) -> None:
    event = read(folder, "uevent")
    name = re.search(r"^DEVNAME=(.+)$", event, re.MULTILINE)
    if name and os.path.lexists(f"{folder}/dev"):
        nodes.append(ChildNode(name[1], link_name(folder, "subsystem"), folder))
    if not depth:
        return
    try:
        with os.scandir(folder) as entries:
            below = [
                entry.path for entry in entries if entry.name not in SKIPPED and entry.is_dir(follow_symlinks=False)
            ]
    except OSError:
        return
    for path in below:
        if not _another_device(path):
            _collect(path, depth - 1, nodes)


def _another_device(folder: str) -> bool:
    return os.path.lexists(f"{folder}/idVendor") or PCI_ADDRESS.fullmatch(os.path.basename(folder)) is not None
