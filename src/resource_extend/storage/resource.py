"""The storage of a node: the shapes of its record (specification, storage 4.1 and 4.2)."""

from msgspec import Struct

from resource_extend.storage.disk import Disk

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    EMPTY: Any
    Volumes = dict[str, int]
    Disks = list[Disk]
if not TYPE_CHECKING:
    # Records of the existing Go plugins hold null here; __post_init__ makes it empty before anything else sees it. This
    # is no `else`, because a start leaves out a block for type checkers only when it stands alone.
    Volumes = dict[str, int] | None
    Disks = list[Disk] | None
    EMPTY = None


class Resource(Struct):
    """What a node has or uses, in the stored form (specification, storage 4.2).

    `volumes` are bytes by device; `storage` is bytes, in a capacity including the volumes'. Never changed in place.
    """

    volumes: Volumes = {}
    disks: Disks = []
    storage: int = 0

    def __post_init__(self) -> None:
        if self.volumes is None:
            self.volumes = {}
        if self.disks is None:
            self.disks = []


if TYPE_CHECKING:
    Half = Resource
if not TYPE_CHECKING:
    Half = Resource | None


class Record(Struct):
    """A node's record: what it has in total, what of it is allocated."""

    capacity: Half = EMPTY
    usage: Half = EMPTY

    def __post_init__(self) -> None:
        if self.capacity is None:
            self.capacity = Resource()
        if self.usage is None:
            self.usage = Resource()
