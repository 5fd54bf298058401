"""What the set verbs make of a node's capacity or usage (specification, storage 5.4 and 5.8)."""

from msgspec import UNSET

from resource_extend.errors import InputError
from resource_extend.storage.resource import Record, Resource
from resource_extend.storage.sums import changed
from resource_extend.storage.validation import validated
from resource_extend.storage.workload_resource import WorkloadResource, booked

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from resource_extend.storage.node_request import NodeRequest


def capacity_change(
    resource: Resource | None, request: "NodeRequest | None", delta: bool, incr: bool
) -> "Callable[[Record], Record]":
    """Return what set-node-resource-capacity makes of a record.

    Raises:
        InputError: a fault in what was given.
    """
    from resource_extend.storage.node_request import filled_in, parse_node_request, snapshot

    if request is not None and request.rm_disks is not UNSET and delta:
        raise InputError("invalid engine args")
    before = snapshot(request) if request is not None and resource is None and not delta else None
    asked = None if request is None or before is not None else parse_node_request(request, "$.resource_request")

    def change(record: Record) -> Record:
        stored = record.capacity
        if before is not None:
            return validated(Record(before, record.usage))
        sources = _sources(resource, asked, [])
        if asked is not None and request is not None and not delta:
            sources = [filled_in(request, asked, stored)]
        capacity = _set(stored, sources, delta, incr)
        if delta:
            kept = {device: size for device, size in capacity.volumes.items() if size}
            capacity = Resource(kept, capacity.disks, capacity.storage)
        return validated(Record(capacity, record.usage))

    return change


def usage_change(
    resource: Resource | None,
    request: "NodeRequest | None",
    workloads: list[WorkloadResource],
    delta: bool,
    incr: bool,
) -> "Callable[[Record], Record]":
    """Return what set-node-resource-usage makes of a record.

    Raises:
        InputError: a fault in what was given.
    """
    asked = None
    if request is not None:
        from resource_extend.storage.node_request import parse_node_request

        asked = parse_node_request(request, "$.resource_request")
    sources = _sources(resource, asked, booked(workloads))

    def change(record: Record) -> Record:
        return validated(Record(record.capacity, _set(record.usage, sources, delta, incr)))

    return change


def _sources(resource: Resource | None, asked: Resource | None, workloads: list[Resource]) -> list[Resource]:
    """Return what counts: the request if given, else the resource, else the workloads (protocol 3.2)."""
    for given in (asked, resource):
        if given is not None:
            return [given]
    return workloads


def _set(stored: Resource, sources: list[Resource], delta: bool, incr: bool) -> Resource:
    """Add the sources to what is stored, take them off, or put them in its place."""
    if not delta:
        return changed(Resource(), sources, 1)
    return changed(stored, sources, 1 if incr else -1)
