"""Adding up the storage of nodes and workloads (specification, storage 1.3, 5.4 and 5.5)."""

from resource_extend.errors import ResourceError
from resource_extend.storage.disk import OUT_OF_RANGE, Disk, combined
from resource_extend.storage.resource import Resource
from resource_extend.units import in_int64

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable


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
