"""What an operator typed for a node, as a resource, and what of it was given (specification, storage 4.3, 5.4)."""

from msgspec import UNSET, Struct, UnsetType

from resource_extend.errors import InputError
from resource_extend.storage.disk import Disk, parse_disk
from resource_extend.storage.resource import Resource
from resource_extend.units import parse_size, size_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable


class NodeRequest(Struct, rename={"rm_disks": "rm-disks"}):
    """A node request as it arrives.

    The object members are those of a snapshot, which set-node-resource-capacity takes under the same key; everywhere
    else they are wrong types.
    """

    volumes: list[str] | dict[str, int] | None | UnsetType = UNSET
    disks: list[str | Disk] | None | UnsetType = UNSET
    storage: int | str | None | UnsetType = UNSET
    rm_disks: str | None | UnsetType = UNSET


def snapshot(request: NodeRequest) -> Resource | None:
    """Return the capacity that core sends back to undo a change, None if the request is not one (5.4)."""
    volumes, disks, storage = request.volumes, request.disks, request.storage
    if volumes is UNSET or disks is UNSET or storage is UNSET or isinstance(volumes, list) or isinstance(storage, str):
        return None
    whole = [disk for disk in disks or () if isinstance(disk, Disk)]
    return Resource(volumes or {}, whole, storage or 0) if len(whole) == len(disks or ()) else None


def parse_node_request(request: NodeRequest, place: str) -> Resource:
    """Return the resource that a node request asks for; its storage includes the volumes it names.

    Args:
        request: the decoded request.
        place: its JSON path, for messages.

    Raises:
        InputError: a text that does not parse, a device listed twice, or the stored form where texts belong.
    """
    volumes = {}
    for text in _texts(request.volumes, f"{place}.volumes"):
        device, colon, size = text.partition(":")
        if not colon or ":" in size:
            raise InputError("volume should have 2 parts: invalid volume")
        volumes[device] = parse_size(size)
    storage = size_of(request.storage or None)
    disks: dict[str, Disk] = {}
    for index, entry in enumerate(request.disks or ()):
        if isinstance(entry, Disk):
            raise InputError(f"decode plugin input: expected str, got object at {place}.disks[{index}]")
        disk = parse_disk(entry)
        if disk.device in disks:
            raise InputError(f"duplicate disk {disk.device}: invalid disk")
        disks[disk.device] = disk
    return Resource(volumes, list(disks.values()), storage + sum(volumes.values()))


def _texts(volumes: list[str] | dict[str, int] | None | UnsetType, place: str) -> list[str]:
    if isinstance(volumes, dict):
        raise InputError(f"decode plugin input: expected array, got object at {place}")
    return volumes or []


def filled_in(request: NodeRequest, asked: Resource, stored: Resource) -> Resource:
    """Return what an absolute capacity request means: keys that were not given keep what is stored (5.4 steps 3, 4)."""
    removed = removed_disks(request)
    kept = [disk for disk in stored.disks if disk.device not in removed]
    volumes = stored.volumes if request.volumes is UNSET else asked.volumes
    storage = asked.storage
    if request.storage is UNSET:
        storage = stored.storage
        if request.volumes is not UNSET:
            storage += sum(volumes.values()) - sum(stored.volumes.values())
    return Resource(volumes, kept if request.disks is UNSET else asked.disks, storage)


def removed_disks(request: NodeRequest) -> "Iterable[str]":
    """Return the devices named in `rm-disks`."""
    names = request.rm_disks
    return () if isinstance(names, UnsetType) else (names or "").split(",")
