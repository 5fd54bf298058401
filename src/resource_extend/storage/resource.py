"""The storage of a node: shapes, arithmetic, and the checks at every write (specification, storage 4)."""

from msgspec import Struct

from resource_extend.errors import ResourceError
from resource_extend.storage.disk import OUT_OF_RANGE, Disk, combined
from resource_extend.units import in_int64

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    EMPTY: Any
    Volumes = dict[str, int]
    Disks = list[Disk]
else:
    # Records of the existing Go plugins hold null here; __post_init__ makes it empty before anything else sees it.
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
else:
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


def in_range(resource: Resource) -> Resource:
    """Return a computed resource that is to be stored or answered.

    Raises:
        ResourceError: a number outside int64 (specification, storage 1.3).
    """
    for size in resource.volumes.values():
        if not in_int64(size):
            raise ResourceError("volume size is out of range: invalid volume")
    if not in_int64(resource.storage):
        raise ResourceError("storage is out of range: invalid storage")
    for disk in resource.disks:
        for number in disk.quota():
            if not in_int64(number):
                raise ResourceError(OUT_OF_RANGE)
    return resource


def changed(stored: Resource, sources: "Iterable[Resource]", sign: int) -> Resource:
    """Return what is stored plus (`sign` 1) or minus (-1) each of the sources (specification, storage 5.4 step 5).

    Raises:
        ResourceError: a number outside int64.
    """
    volumes = dict(stored.volumes)
    disks = stored.disks
    storage = stored.storage
    for source in sources:
        for device, size in source.volumes.items():
            volumes[device] = volumes.get(device, 0) + sign * size
        if source.disks:
            disks = combined(disks, source.disks, sign)
        storage += sign * source.storage
    return in_range(Resource(volumes, disks, storage))


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


def differences(usage: Resource, workloads: "Iterable[Resource]") -> tuple[list[str], Resource]:
    """Return how stored usage differs from the sum of what workloads use, and that sum (specification, storage 5.5).

    Raises:
        ResourceError: a sum outside int64.
    """
    summed = changed(Resource(), workloads, 1)
    diffs = []
    if usage.storage != summed.storage:
        diffs.append(f"node.Storage != sum(workload.Storage): {usage.storage} != {summed.storage}")
    only_in_workloads = [device for device in summed.volumes if device not in usage.volumes]
    for device in sorted(usage.volumes) + sorted(only_in_workloads):
        stored, computed = usage.volumes.get(device, 0), summed.volumes.get(device, 0)
        if stored != computed:
            diffs.append(f"node.Volumes[{device}] != sum(workload.Volumes[{device}]): {stored} != {computed}")
    numbers: dict[str, Disk] = {}
    for disk in summed.disks:
        numbers.setdefault(disk.device, disk)
    for disk in usage.disks:
        name = disk.device
        stored_text = disk.text()
        computed_text = Disk(name, disk.mounts, *numbers.get(name, Disk()).quota()).text()
        if stored_text != computed_text:
            diffs.append(f"node.Disks[{name}] != sum(workload.Disks[{name}]): {stored_text} != {computed_text}")
    return diffs, summed
