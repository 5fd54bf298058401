"""How many workloads a node can take (specification, storage 5.3)."""

from resource_extend.answers.capacity import NodeDeployCapacity, ratio
from resource_extend.storage.binding import needs_scheduling
from resource_extend.storage.resource import Record
from resource_extend.storage.schedule import place
from resource_extend.storage.state import state_of
from resource_extend.storage.workload import Workload, total_size
from resource_extend.units import truncated


def node_capacity(record: Record, workload: Workload, most: int) -> NodeDeployCapacity | None:
    """Return what the capacity query answers for one node, None when it can take nothing."""
    count = most
    if needs_scheduling(workload.request):
        count = sum([slots.count for slots in place(state_of(record), workload.request, most)])
    asked = workload.storage_request
    if asked > 0:
        count = min(count, truncated(record.capacity.storage - record.usage.storage, asked))
    if count <= 0:
        return None
    if workload.request or not asked:
        whole = sum(record.capacity.volumes.values())
        used, asked = sum(record.usage.volumes.values()), total_size(workload.request)
    else:
        whole, used = record.capacity.storage, record.usage.storage
    return NodeDeployCapacity(count, ratio(used, whole), ratio(asked, whole))
