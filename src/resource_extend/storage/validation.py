"""What a node's record must be at every write (specification, storage 4.4)."""

from resource_extend.errors import ResourceError
from resource_extend.storage.disk import Disk
from resource_extend.storage.resource import Record, Resource

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


def validated(record: Record) -> Record:
    """Return a record as it is written: disks sorted and usage's disks fitted to the capacity's.

    Raises:
        ResourceError: the first fault of the volumes, of the storage and of the disks, joined (specification,
            storage 4.4). Usage above capacity in storage is accepted.
    """
    faults = [
        fault
        for fault in (
            _volumes_fault(record.capacity.volumes, record.usage.volumes),
            _storage_fault(record.capacity.storage, record.usage.storage),
        )
        if fault
    ]
    capacity = sorted(record.capacity.disks, key=_device)
    try:
        usage = _fitted(capacity, sorted(record.usage.disks, key=_device))
    except ResourceError as error:
        faults.append(str(error))
    if faults:
        raise ResourceError("; ".join(faults))
    return Record(
        Resource(record.capacity.volumes, capacity, record.capacity.storage),
        Resource(record.usage.volumes, usage, record.usage.storage),
    )


def _device(disk: Disk) -> str:
    return disk.device


def _volumes_fault(capacity: "Mapping[str, int]", usage: "Mapping[str, int]") -> str:
    for device, size in sorted(capacity.items()):
        if size < 0:
            return "volume size should not be less than 0: invalid volume"
        if not 0 <= usage.get(device, 0) <= size:
            return "invalid size in usage: invalid volume"
    return ""


def _storage_fault(capacity: int, usage: int) -> str:
    if capacity < 0:
        return "storage capacity can't be negative: invalid storage"
    return "storage usage can't be negative: invalid storage" if usage < 0 else ""


def _fitted(capacity: list[Disk], usage: list[Disk]) -> list[Disk]:
    """Return usage's disks with the mounts of the capacity's, without unused disks that the capacity lacks."""
    fitted = list(usage)
    place: dict[str, int] = {}
    for index, disk in enumerate(usage):
        place.setdefault(disk.device, index)
    known = set()
    for disk in capacity:
        whole = disk.quota()
        if min(whole) < 0:
            raise ResourceError("disk IOPS / BPS can't be negative: invalid disk")
        known.add(disk.device)
        index = place.get(disk.device, -1)
        if index < 0:
            continue
        used = usage[index].quota()
        if min(used) < 0:
            raise ResourceError("disk IOPS / BPS can't be negative: invalid disk")
        if any(part > total for part, total in zip(used, whole, strict=True)):
            raise ResourceError("disk IOPS / BPS usage can't be greater than capacity: invalid disk")
        fitted[index] = Disk(disk.device, disk.mounts, *used)
    for disk in usage:
        if disk.device not in known and any(disk.quota()):
            raise ResourceError(f"disk {disk.device} not found in capacity: invalid disk")
    return [disk for disk in fitted if disk.device in known]
