"""What a node shows for an extended resource, and what that says of its owner.

Specification, kubernetes 2.5 and 4.3.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from lightkube.models.core_v1 import Node

from resource_extend.errors import ResourceError
from resource_extend.kubernetes.extended_resource.objects import allocatable, capacity, node_name
from resource_extend.kubernetes.extended_resource.ownership import read_marks
from resource_extend.kubernetes.extended_resource.quantities import whole
from resource_extend.kubernetes.names import is_extended


class Owner(str, Enum):
    """Who is behind an entry, as far as the node object tells; the values are what programs read."""

    TOOL = "tool"
    CHANGED = "tool-then-changed"
    LOST = "tool-then-lost"
    UNKNOWN = "by-hand-or-plugin"
    LEAVING = "plugin-leaving"
    STALE = "stale"
    NONE = "none"

    @property
    def words(self) -> str:
        """The same for people."""
        return _WORDS[self]


_WORDS = {
    Owner.TOOL: "this tool",
    Owner.CHANGED: "this tool, changed since by somebody else",
    Owner.LOST: "this tool, lost since",
    Owner.UNKNOWN: "by hand, or a live device plugin",
    Owner.LEAVING: "device plugin gone for < 5 min, or its devices all unhealthy",
    Owner.STALE: "stale, or a device plugin without devices",
    Owner.NONE: "-",
}


@dataclass(frozen=True)
class Entry:
    """One name on one node: `capacity` and `allocatable` as stored (None: absent), `mark` as this tool set it last."""

    name: str
    capacity: str | None = None
    allocatable: str | None = None
    mark: int | None = None

    @property
    def present(self) -> bool:
        """The node shows the name somewhere."""
        return self.capacity is not None or self.allocatable is not None

    @property
    def owner(self) -> Owner:
        """The owner, guessed: a by-hand entry and a live plugin's look the same."""
        if self.mark is not None:
            if self.capacity is None:
                return Owner.LOST
            return Owner.TOOL if whole(self.capacity) == self.mark else Owner.CHANGED
        if not self.present:
            return Owner.NONE
        if whole(self.capacity) == 0 and whole(self.allocatable) == 0:
            return Owner.STALE
        return Owner.LEAVING if whole(self.allocatable) == 0 else Owner.UNKNOWN


def entry(node: Node, name: str) -> Entry:
    """What the node shows for `name`.

    Raises:
        ResourceError: the ownership annotation is unreadable, or what is stored is no quantity.
    """
    found = Entry(name, capacity(node).get(name), allocatable(node).get(name), read_marks(node).get(name))
    try:
        for stored in (found.capacity, found.allocatable):
            whole(stored)
    except ResourceError as error:
        raise ResourceError(f"{name} of node {node_name(node)}: {error}") from error
    return found


def entries(node: Node) -> Iterator[Entry]:
    """Every extended resource that the node shows or that is marked on it, by name.

    Raises:
        ResourceError: the ownership annotation is unreadable.
    """
    names = {*capacity(node), *allocatable(node), *read_marks(node)}
    return (entry(node, name) for name in sorted(names) if is_extended(name))
