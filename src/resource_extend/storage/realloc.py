"""Changing what a workload holds (specification, storage 9)."""

from resource_extend.errors import ResourceError
from resource_extend.storage.affinity import Unplaceable, replan
from resource_extend.storage.binding import Binding, needs_scheduling, parse_bindings, total_size
from resource_extend.storage.deploy import (
    SHORTAGE,
    EngineParams,
    apply_plan,
    engine_params,
    full_forms,
    limit_plan,
    limit_rows,
    only_device,
    workload_of,
)
from resource_extend.storage.disk import add
from resource_extend.storage.merge import merge
from resource_extend.storage.resource import Record, Resource
from resource_extend.storage.sums import in_range
from resource_extend.storage.workload import in_range as storage_in_range
from resource_extend.storage.workload import validate
from resource_extend.storage.workload_resource import WorkloadResource, parse_plan

TYPE_CHECKING = False
if TYPE_CHECKING:
    from resource_extend.storage.workload import Workload
    from resource_extend.storage.workload_resource import Plan

DELTA_KEY = "fake-source:fake-destination:fake-flags:0:0:0:0:0"
"""The binding that a difference of plans is kept under: only its bytes by device count."""


class Change:
    """A realloc before its node is known: the request, a difference, merged into the origin (9.1 steps 1 to 4).

    Raises InputError or ResourceError: the origin is malformed, or the merged request is invalid.

    `origin` is what the workload holds, with its lists and plans also parsed; `merged` is what it shall hold;
    `reschedule` tells whether its volumes are placed anew.
    """

    __slots__ = ("limit", "merged", "origin", "plan_limit", "plan_request", "request", "reschedule")

    def __init__(self, origin: WorkloadResource, asked: "Workload") -> None:
        known: dict[str, Binding] = {}
        self.origin = origin
        self.request = parse_bindings(origin.volumes_request or (), known)
        self.limit = parse_bindings(origin.volumes_limit or (), known)
        self.plan_request = parse_plan(origin.volume_plan_request or {}, known)
        self.plan_limit = parse_plan(origin.volume_plan_limit or {}, known)
        for plan in (self.plan_request, self.plan_limit):
            for devices in plan.values():
                only_device(devices)
        request, limit, storage_request, storage_limit = asked
        storage_request += origin.storage_request + total_size(request)
        storage_limit += origin.storage_limit + total_size(limit)
        self.merged = validate(
            (
                merge(request, self.request),
                merge(limit, self.limit),
                storage_in_range(storage_request),
                storage_in_range(storage_limit),
            )
        )
        self.reschedule = needs_scheduling(request)


def reallocate(record: Record, change: Change) -> tuple[EngineParams, WorkloadResource, WorkloadResource]:
    """Return the new engine params, the difference to book on the node, and what the workload then holds.

    Raises:
        ResourceError: `cannot alloc a plan, not enough resource`, or a number outside int64.
    """
    origin, merged = change.origin, change.merged
    request, limit, storage_request, _ = merged
    if storage_request - origin.storage_request > record.capacity.storage - record.usage.storage:
        raise ResourceError(SHORTAGE)
    held = origin.disks_request or []
    plan, rows = change.plan_request, held
    if change.reschedule:
        try:
            plan, rows = replan(record, request, change.request, change.plan_request)
        except Unplaceable:
            raise ResourceError(SHORTAGE) from None
    plan_limit = limit_plan(merged, plan, raised=True)
    rows_limit = limit_rows(limit, plan_limit, record.capacity.disks)
    target = workload_of(merged, full_forms(merged), plan, rows, plan_limit, rows_limit)
    delta = WorkloadResource(
        volume_plan_request=_plan_delta(plan, change.plan_request),
        storage_request=storage_in_range(storage_request - origin.storage_request),
        disks_request=add(rows, held, -1),
    )
    return engine_params(merged, plan, rows_limit, _moved(change, plan)), delta, target


def _plan_delta(plan: "Plan", old: "Plan") -> dict[str, dict[str, int]]:
    """Return the bytes by device that a new plan takes more than the old one, zeros included."""
    if not plan and not old:
        return {}
    sizes: dict[str, int] = {}
    for sign, entries in ((1, plan), (-1, old)):
        for devices in entries.values():
            for device, size in devices.items():
                sizes[device] = sizes.get(device, 0) + sign * size
    return {DELTA_KEY: in_range(Resource(sizes)).volumes}


def _moved(change: Change, plan: "Plan") -> bool:
    """Tell whether the engine has to bind something anew; a change of size alone is none."""
    _, limit, _, _ = change.merged
    new = [binding.identity() for binding in apply_plan(limit, plan)]
    old = {binding.identity() for binding in apply_plan(change.limit, change.plan_limit)}
    return len(new) != len(old) or not old.issuperset(new)
