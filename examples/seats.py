"""A third plugin, part of no product: seats of a licence. A node has a number of them, a workload takes some.

What each method has to do is said in `resource_extend.plugin`. The two optional ones are left out.
"""

from msgspec import Struct

from resource_extend import records
from resource_extend.answers.calculate import CalculateDeploy, CalculateRealloc
from resource_extend.answers.capacity import MostIdleNode, NodeDeployCapacity, NodesDeployCapacity, ratio
from resource_extend.answers.node import Capacity, Change, NodeResourceInfo
from resource_extend.codec import INT64_MAX
from resource_extend.errors import ResourceError
from resource_extend.metrics import MetricDescription, MetricRow, NodeOfPod, key_of
from resource_extend.plugin import Plugin

MOST = 1_000_000


class Seats(Struct, frozen=True):
    """A number of seats: the one shape of what nodes have and workloads take."""

    seats: int = 0


class Record(Struct, frozen=True):
    """What the store holds for a node."""

    capacity: Seats = Seats()
    usage: Seats = Seats()

    @property
    def free(self) -> int:
        """The seats that no workload has."""
        return self.capacity.seats - self.usage.seats


class SeatsPlugin(Plugin):
    """Seats, counted."""

    name = "seats"
    NodeResource = NodeRequest = WorkloadResource = WorkloadRequest = Seats

    def calculate_deploy(self, nodename: str, deploy_count: int, request: Seats) -> CalculateDeploy:
        each = [checked(request)] * deploy_count
        self._expect_room(nodename, request.seats * len(each))
        return CalculateDeploy(each, each)

    def calculate_realloc(self, nodename: str, resource: Seats, request: Seats) -> CalculateRealloc:
        after = checked(Seats(resource.seats + request.seats))
        self._expect_room(nodename, request.seats)
        return CalculateRealloc(after, request, after)

    def add_node(self, nodename: str, resource: Seats, info: object) -> Capacity:
        records.create(self.store, nodename, Record(checked(resource)))
        return Capacity(resource)

    def remove_node(self, nodename: str) -> None:
        self.store.delete(nodename)

    def get_nodes_deploy_capacity(self, nodenames: list[str], request: Seats) -> NodesDeployCapacity:
        asked, nodes = checked(request).seats, {}
        for node in nodenames:
            record = self._read(node)
            fitting = record.free // asked if asked else MOST
            if fitting > 0:
                whole = record.capacity.seats
                nodes[node] = NodeDeployCapacity(fitting, ratio(record.usage.seats, whole), ratio(asked, whole))
        return NodesDeployCapacity(nodes, sum(node.capacity for node in nodes.values()))

    def set_node_resource_capacity(
        self, nodename: str, resource: Seats | None, resource_request: Seats | None, delta: bool, incr: bool
    ) -> Change:
        given = resource_request or resource or Seats()

        def change(old: Record) -> Record:
            return Record(changed(old.capacity, given, delta, incr), old.usage)

        before, after = records.update(self.store, Record, nodename, change)
        return Change(before.capacity, after.capacity)

    def get_node_resource_info(self, nodename: str, workloads_resource: list[Seats]) -> NodeResourceInfo | None:
        record = records.read(self.store, Record, nodename)
        return compared(record, record.usage, total(workloads_resource)) if record else None

    def set_node_resource_info(self, nodename: str, capacity: Seats, usage: Seats) -> None:
        records.replace(self.store, nodename, Record(checked(capacity), checked(usage)))

    def set_node_resource_usage(
        self,
        nodename: str,
        resource: Seats | None,
        resource_request: Seats | None,
        workloads_resource: list[Seats],
        delta: bool,
        incr: bool,
    ) -> Change:
        given = resource_request or resource or total(workloads_resource)

        def change(old: Record) -> Record:
            return Record(old.capacity, changed(old.usage, given, delta, incr))

        before, after = records.update(self.store, Record, nodename, change)
        return Change(before.usage, after.usage)

    def get_most_idle_node(self, nodenames: list[str]) -> MostIdleNode:
        return MostIdleNode(max(nodenames, key=lambda node: self._read(node).free), 1)

    def fix_node_resource(self, nodename: str, workloads_resource: list[Seats]) -> NodeResourceInfo:
        usage = total(workloads_resource)
        before, after = records.update(
            self.store, Record, nodename, lambda old: Record(old.capacity, usage), must_exist=True
        )
        return compared(after, before.usage, usage)

    def get_metrics_description(self) -> list[MetricDescription]:
        return [MetricDescription("seats_used", "seats taken by workloads.", "gauge", ["podname", "nodename"])]

    def get_metrics(self, nodes: list[NodeOfPod]) -> list[MetricRow]:
        used = {node.nodename: str(self._read(node.nodename).usage.seats) for node in nodes}
        return [
            MetricRow("seats_used", [pod.podname, pod.nodename], key_of(pod.nodename, "seats.used"), used[pod.nodename])
            for pod in nodes
        ]

    def _read(self, node: str) -> Record:
        return records.read(self.store, Record, node) or Record()

    def _expect_room(self, node: str, asked: int) -> None:
        if asked > max(self._read(node).free, 0):
            raise ResourceError("cannot alloc a plan, not enough resource")


def checked(value: Seats) -> Seats:
    """Refuse what can be no number of seats."""
    if not 0 <= value.seats <= INT64_MAX:
        raise ResourceError(f"{value.seats} seats: must be 0 to {INT64_MAX}")
    return value


def changed(stored: Seats, given: Seats, delta: bool, incr: bool) -> Seats:
    """Replace what is stored, or with `delta` add to it or subtract from it."""
    return checked(Seats(stored.seats + (given.seats if incr else -given.seats)) if delta else given)


def total(workloads: list[Seats]) -> Seats:
    """Sum up what workloads have."""
    return checked(Seats(sum(workload.seats for workload in workloads)))


def compared(record: Record, usage: Seats, summed: Seats) -> NodeResourceInfo:
    """Say how a usage differs from the workloads' sum."""
    same = usage == summed
    diffs = [] if same else [f"node.usage != sum(workload.seats): {usage.seats} != {summed.seats}"]
    return NodeResourceInfo(record.capacity, record.usage, diffs)
