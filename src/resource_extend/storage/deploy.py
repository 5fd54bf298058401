"""Placing new workloads on a node (specification, storage 8)."""

from resource_extend.errors import ResourceError
from resource_extend.storage.binding import needs_scheduling
from resource_extend.storage.plan import engine_params, limit_plan, limit_rows, workload_of
from resource_extend.storage.resource import Record
from resource_extend.storage.schedule import Slots, place
from resource_extend.storage.state import state_of
from resource_extend.storage.workload import Workload
from resource_extend.storage.workload_resource import EngineParams, WorkloadResource
from resource_extend.units import truncated

SHORTAGE = "cannot alloc a plan, not enough resource"


def deploy(record: Record, workload: Workload, count: int) -> tuple[list[EngineParams], list[WorkloadResource]]:
    """Return engine params and resources of `count` equal workloads, in order. Equal ones are the same object.

    Args:
        record: the node's record.
        workload: the request, validated and folded.
        count: how many; at least 1.

    Raises:
        ResourceError: the node cannot hold them; the text says what is short.
    """
    asked = workload.storage_request
    if asked > 0:
        fitting = truncated(record.capacity.storage - record.usage.storage, asked)
        if fitting < count:
            raise ResourceError(f"not enough storage, request: {asked}, available: {fitting}: {SHORTAGE}")
    slots = [Slots(count, {}, [])]
    if needs_scheduling(workload.request):
        slots = place(state_of(record), workload.request, count)
        placed = sum([run.count for run in slots])
        if placed < count:
            raise ResourceError(f"not enough volume plan, need {count}, available {placed}: {SHORTAGE}")
    engines, resources = [], []
    for run in slots:
        plan_limit = limit_plan(workload, run.plan, raised=False)
        rows_limit = limit_rows(workload.limit, plan_limit, record.capacity.disks)
        engines += [engine_params(workload, run.plan, rows_limit, volume_changed=False)] * run.count
        resources += [workload_of(workload, run.plan, run.rows, plan_limit, rows_limit)] * run.count
    return engines, resources
