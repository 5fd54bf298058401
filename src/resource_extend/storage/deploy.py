"""Placing new workloads on a node (specification, storage 8)."""

from resource_extend.errors import ResourceError
from resource_extend.storage.binding import needs_scheduling
from resource_extend.storage.plan import engine_params, full_forms, limit_plan, limit_rows, workload_of
from resource_extend.storage.schedule import place, state_of
from resource_extend.units import truncated

TYPE_CHECKING = False
if TYPE_CHECKING:
    from resource_extend.storage.plan import EngineParams
    from resource_extend.storage.resource import Record
    from resource_extend.storage.schedule import Slots
    from resource_extend.storage.workload import Workload
    from resource_extend.storage.workload_resource import WorkloadResource

SHORTAGE = "cannot alloc a plan, not enough resource"


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
