"""Placing new workloads on a node, and what slots mean for a workload and its engine (specification, storage 2.4, 8).

The second half serves a changed workload too (9.5).
"""

from msgspec import Struct

from resource_extend.errors import ResourceError
from resource_extend.storage.binding import Binding, needs_scheduling
from resource_extend.storage.disk import covering, quota_text, summed
from resource_extend.storage.schedule import place, state_of
from resource_extend.storage.workload_resource import WorkloadResource, plan_texts
from resource_extend.units import in_int64, truncated

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from resource_extend.storage.disk import Disk, Quota
    from resource_extend.storage.resource import Record
    from resource_extend.storage.schedule import Slots
    from resource_extend.storage.workload import Workload
    from resource_extend.storage.workload_resource import Plan

SHORTAGE = "cannot alloc a plan, not enough resource"


class EngineParams(Struct):
    """What core passes on to the container engine; `iops_options` is a quota text by disk device."""

    volumes: list[str]
    volume_changed: bool
    storage: int
    iops_options: dict[str, str]


def deploy(record: "Record", workload: "Workload", count: int) -> "tuple[list[EngineParams], list[WorkloadResource]]":
    """Return engine params and resources of `count` equal workloads, in order. Equal ones are the same object.

    Args:
        record: the node's record.
        workload: the request, validated and folded.
        count: how many; at least 1.

    Raises:
        ResourceError: the node cannot hold them; the text says what is short.
    """
    asked, limit, storage, _ = workload
    if storage > 0:
        fitting = truncated(record.capacity.storage - record.usage.storage, storage)
        if fitting < count:
            raise ResourceError(f"not enough storage, request: {storage}, available: {fitting}: {SHORTAGE}")
    slots: list[Slots] = [(count, {}, [])]
    if needs_scheduling(asked):
        slots = place(state_of(record), asked, count)
        placed = sum([number for number, _, _ in slots])
        if placed < count:
            raise ResourceError(f"not enough volume plan, need {count}, available {placed}: {SHORTAGE}")
    engines, resources = [], []
    texts = full_forms(workload)
    for number, plan, rows in slots:
        # Where one list stands for requests and limits, one plan does.
        plan_limit = plan if limit is asked else limit_plan(workload, plan, raised=False)
        rows_limit = limit_rows(limit, plan_limit, record.capacity.disks)
        engines += [engine_params(workload, plan, rows_limit, volume_changed=False)] * number
        resources += [workload_of(workload, texts, plan, rows, plan_limit, rows_limit)] * number
    return engines, resources


def only_device(devices: dict[str, int]) -> tuple[str, int]:
    """Return the device of a workload's plan entry and the bytes on it.

    Raises:
        ResourceError: the entry has none or several, which no plan of ours has.
    """
    if len(devices) != 1:
        raise ResourceError("a volume plan entry needs exactly one device: invalid volume")
    ((device, size),) = devices.items()
    return device, size


def apply_plan(bindings: "Sequence[Binding]", plan: "Plan") -> list[Binding]:
    """Return the bindings with the planned devices as sources; a plan's entry is found by destination alone."""
    by_destination = {binding.destination: devices for binding, devices in plan.items()}
    applied = []
    for binding in bindings:
        devices = by_destination.get(binding.destination)
        if devices is not None:
            ((device, size),) = devices.items()
            size = max(binding.size, size)
            binding = Binding(device, binding.destination, binding.flags, size, binding.quota)  # noqa: PLW2901
        applied.append(binding)
    return applied


def limit_plan(workload: "Workload", plan: "Plan", raised: bool) -> "Plan":
    """Return the plan of the limits: the scheduled limit bindings of which the plan has the identity.

    Args:
        workload: the request; request and limit lists pair by index.
        plan: the plan of the requests.
        raised: add what the limit is above the request, as a realloc does and a deploy does not.

    Raises:
        ResourceError: a size outside int64.
    """
    by_identity = {binding.identity(): devices for binding, devices in plan.items()}
    result = {}
    asked_list, limit_list, _, _ = workload
    for asked, limit in zip(asked_list, limit_list, strict=True):
        devices = by_identity.get(limit.identity())
        if devices is not None and limit.scheduled():
            ((device, size),) = devices.items()
            size += limit.size - asked.size if raised else 0
            if not in_int64(size):
                raise ResourceError("volume size is out of range: invalid volume")
            result[limit] = {device: size}
    return result


def limit_rows(limits: "Sequence[Binding]", plan_limit: "Plan", disks: "Sequence[Disk]") -> "list[Disk]":
    """Return the quotas of the limits by disk of the node's capacity: mounts first, then the planned bindings.

    Raises:
        ResourceError: a number outside int64.
    """
    mounted: list[tuple[Disk, Quota]] = []
    planned: list[tuple[Disk, Quota]] = []
    for binding in limits:
        if binding.has_iops():
            entries, path = mounted, binding.source
            if binding.scheduled():
                if binding not in plan_limit:
                    continue
                (path,) = plan_limit[binding]
                entries = planned
            index = covering(disks, path)
            if index >= 0:
                entries.append((disks[index], binding.quota))
    return summed(mounted + planned)


def workload_of(
    workload: "Workload",
    texts: tuple[list[str], list[str]],
    plan: "Plan",
    rows: "list[Disk]",
    plan_limit: "Plan",
    rows_limit: "list[Disk]",
) -> WorkloadResource:
    """Return what a workload holds once it is placed; `texts` are the full forms of its requests and of its limits."""
    _, _, storage_request, storage_limit = workload
    entries = plan_texts(plan)
    limit_entries = entries if plan_limit is plan else plan_texts(plan_limit)
    return WorkloadResource(*texts, entries, limit_entries, storage_request, storage_limit, rows, rows_limit)


def full_forms(workload: "Workload") -> tuple[list[str], list[str]]:
    """Return the full forms of the requests and of the limits."""
    asked, limit, _, _ = workload
    texts = [binding.full() for binding in asked]
    return texts, texts if limit is asked else [binding.full() for binding in limit]


def engine_params(workload: "Workload", plan: "Plan", rows_limit: "list[Disk]", volume_changed: bool) -> EngineParams:
    """Return what the engine of a placed workload is told."""
    _, limit, _, storage_limit = workload
    return EngineParams(
        [binding.normalized() for binding in apply_plan(limit, plan)],
        volume_changed,
        storage_limit,
        {disk.device: quota_text(disk.quota()) for disk in rows_limit},
    )
