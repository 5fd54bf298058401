"""What the sources that read sysfs have in common: hardware found there, and the device nodes it has in `/dev`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

from resource_extend.kubernetes.devices import sysfs
from resource_extend.kubernetes.devices.identity import Identity
from resource_extend.kubernetes.devices.match import Match, NodeFound
from resource_extend.kubernetes.devices.tree import Tree

BUS_NODE_CLASS = "usb"  # the raw node of a USB device, /dev/bus/usb/BUS/NUMBER
SHARED_NODES = frozenset({"vfio/vfio"})  # part of every device of their kind


@dataclass(frozen=True, slots=True)
class NodeOptions:
    """How the nodes of found hardware are handed out.

    `subsystems` limits them to kernel classes (tty, video4linux, hidraw, ...), None takes all. `alias` is the template
    of their path in the container, for the raw USB node only when there is no other.
    """

    subsystems: tuple[str, ...] | None = None
    alias: str = ""
    permissions: str = "rw"


@dataclass(frozen=True, slots=True)
class Hardware:
    """One piece of hardware: its match variable and the names of its device nodes below `/dev`, with their classes."""

    identity: Identity
    text: str
    nodes: tuple[tuple[str, str], ...] = ()
    numa: tuple[int, ...] = ()
    reason: str = ""


def nodes_below(folder: str) -> tuple[tuple[str, str], ...]:
    """List (name below /dev, class) of the nodes of a device, given its sysfs folder."""
    return tuple((node.name, node.subsystem) for node in sysfs.child_nodes(folder))


class SysfsFinder(ABC):
    """Finds hardware in sysfs. It reads sysfs anew only after the kernel counted a device event; nodes always."""

    def __init__(self, tree: Tree, options: NodeOptions) -> None:
        self.tree = tree
        self._options = options
        self._events = ""
        self._hardware: list[Hardware] = []
        self._latest: list[Match] | None = None

    @abstractmethod
    def read(self) -> list[Hardware]:
        """Read sysfs: all the hardware that is meant, in a stable order."""

    def look(self) -> bool:
        """Look at sysfs, when it can have changed, and at the nodes."""
        events = sysfs.event_number(self.tree.sys)
        if not events or events != self._events:
            self._hardware = self.read()
            self._events = events
        before, self._latest = self._latest, [self._match(hardware) for hardware in self._hardware]
        return before != self._latest

    def matches(self) -> list[Match]:
        """Give what the last look found."""
        return self._latest or []

    def _match(self, hardware: Hardware) -> Match:
        wanted = self._options.subsystems
        chosen = [(name, kind) for name, kind in hardware.nodes if wanted is None or kind in wanted]
        others = any(kind != BUS_NODE_CLASS for _, kind in chosen)
        nodes, missing = [], ""
        for name, kind in chosen:
            path = f"/dev/{name}"
            status = self.tree.status(path)
            if status is None:
                missing = missing or f"{path} does not exist"
            alias = "" if kind == BUS_NODE_CLASS and others else self._options.alias
            number = status.st_rdev if status else 0
            nodes.append(NodeFound(path, alias, self._options.permissions, number, name in SHARED_NODES))
        if wanted and not chosen:
            missing = f"it has no node of class {' or '.join(wanted)}"
        main = next((f"/dev/{name}" for name, kind in chosen if kind != BUS_NODE_CLASS), "")
        path = main or (nodes[0].host_path if nodes else "")
        reason = hardware.reason or missing
        return Match(hardware.identity, hardware.text, path, tuple(nodes), numa=hardware.numa, reason=reason)
