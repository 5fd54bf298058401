"""The gpu resource behind the Plugin interface (specification, gpu 7).

A method imports the answer that it gives when it is called: a call pays for the structs of its own verb only.
"""

from msgspec import UNSET, Struct

from resource_extend import records
from resource_extend.gpu import cards
from resource_extend.plugin import Plugin

TYPE_CHECKING = False
if TYPE_CHECKING:
    from resource_extend.answers.calculate import CalculateDeploy, CalculateRealloc
    from resource_extend.answers.capacity import MostIdleNode, NodesDeployCapacity
    from resource_extend.answers.node import Capacity, Change, NodeResourceInfo, NodesResourceInfo
    from resource_extend.gpu.node_request import NodeRequest as GpuRequest
    from resource_extend.metrics import MetricDescription, MetricRow, NodeOfPod


class Gpu(Struct, frozen=True):
    """Cards by product, the one shape of everything (specification, gpu 1)."""

    prod_count_map: dict[str, int] = {}


class GpuRecord(Struct, frozen=True):
    """A node's record: the cards it has, the cards in use."""

    capacity: Gpu = Gpu()
    usage: Gpu = Gpu()


def _node_request() -> type:
    from resource_extend.gpu.node_request import NodeRequest

    return NodeRequest


class GpuPlugin(Plugin):
    """Cards counted by product model. The verbs are those of the interface, as specification, gpu 7 has them."""

    name = "gpu"
    NodeResource = WorkloadResource = WorkloadRequest = Gpu
    NodeRequest = staticmethod(_node_request)

    def calculate_deploy(self, nodename: str, deploy_count: int, request: Gpu) -> "CalculateDeploy":
        """Give each of the workloads the cards it asks for."""
        from resource_extend.answers.calculate import CalculateDeploy

        cards.validate(request.prod_count_map)
        if deploy_count <= 0:
            return CalculateDeploy([], [])
        cards.allocate(_available(self._read(nodename)), request.prod_count_map, deploy_count)
        each = [request] * deploy_count
        return CalculateDeploy(each, each)

    def calculate_realloc(self, nodename: str, resource: Gpu, request: Gpu) -> "CalculateRealloc":
        """Add the request, a difference, to the cards that the workload holds (gpu 5)."""
        from resource_extend.answers.calculate import CalculateRealloc

        merged, delta = cards.reallocate(resource.prod_count_map, request.prod_count_map)
        record = self._read(nodename)
        usage = cards.subtract(record.usage.prod_count_map, resource.prod_count_map)
        cards.allocate(cards.subtract(record.capacity.prod_count_map, usage), merged, 1)
        return CalculateRealloc(Gpu(merged), Gpu(delta), Gpu(merged))

    def add_node(self, nodename: str, resource: "GpuRequest", info: object) -> "Capacity":
        """Create the record with these cards, none of them in use. The engine's report knows nothing of cards."""
        from resource_extend.answers.node import Capacity

        cards.validate(resource.cards)
        capacity = Gpu(resource.cards)
        records.create(self.store, nodename, GpuRecord(capacity))
        return Capacity(capacity)

    def remove_node(self, nodename: str) -> None:
        """Delete the record."""
        self.store.delete(nodename)

    def get_nodes_deploy_capacity(self, nodenames: list[str], request: Gpu) -> "NodesDeployCapacity":
        """Count how many such workloads each node can take."""
        from resource_extend.answers.capacity import NodeDeployCapacity, NodesDeployCapacity, ratio

        asked = request.prod_count_map
        cards.validate(asked)
        nodes = {}
        for node, record in self._read_many(nodenames).items():
            fitting = cards.capacity(_available(record), asked)
            if fitting > 0:
                whole = cards.total(record.capacity.prod_count_map)
                usage = cards.total(record.usage.prod_count_map)
                nodes[node] = NodeDeployCapacity(fitting, ratio(usage, whole), ratio(cards.total(asked), whole))
        return NodesDeployCapacity(nodes, sum(node.capacity for node in nodes.values()))

    def set_node_resource_capacity(
        self, nodename: str, resource: Gpu | None, resource_request: "GpuRequest | None", delta: bool, incr: bool
    ) -> "Change":
        """Set or change the cards that the node has."""
        from resource_extend.answers.node import Change

        sources = _sources(resource, resource_request, [])
        keep = not delta and resource_request is not None and resource_request.prod_count_map is UNSET

        def change(record: GpuRecord) -> GpuRecord:
            capacity = record.capacity if keep else _changed(record.capacity, sources, delta, incr)
            return _validated(GpuRecord(capacity, record.usage))

        before, after = records.update(self.store, GpuRecord, nodename, change)
        return Change(before.capacity, after.capacity)

    def get_node_resource_info(self, nodename: str, workloads_resource: list[Gpu]) -> "NodeResourceInfo | None":
        """Compare the usage with the workloads' sum."""
        from resource_extend.answers.node import NodeResourceInfo

        record = records.read(self.store, GpuRecord, nodename)
        if record is None:
            return None
        diffs, _ = cards.differences(record.usage.prod_count_map, [each.prod_count_map for each in workloads_resource])
        return NodeResourceInfo(record.capacity, record.usage, diffs)

    def get_nodes_resource_info(self, nodenames: list[str]) -> "NodesResourceInfo":
        """List the records of the nodes."""
        from resource_extend.answers.node import NodeResource, NodesResourceInfo

        nodes = self._read_many(nodenames)
        return NodesResourceInfo({node: NodeResource(record.capacity, record.usage) for node, record in nodes.items()})

    def set_node_resource_info(self, nodename: str, capacity: Gpu, usage: Gpu) -> None:
        """Store exactly these cards and this usage."""
        records.replace(self.store, nodename, _validated(GpuRecord(capacity, usage)))

    def set_node_resource_usage(
        self,
        nodename: str,
        resource: Gpu | None,
        resource_request: "GpuRequest | None",
        workloads_resource: list[Gpu],
        delta: bool,
        incr: bool,
    ) -> "Change":
        """Set or change the cards in use."""
        from resource_extend.answers.node import Change

        sources = _sources(resource, resource_request, workloads_resource)

        def change(record: GpuRecord) -> GpuRecord:
            return _validated(GpuRecord(record.capacity, _changed(record.usage, sources, delta, incr)))

        before, after = records.update(self.store, GpuRecord, nodename, change)
        return Change(before.usage, after.usage)

    def get_most_idle_node(self, nodenames: list[str]) -> "MostIdleNode":
        """Name the node with the smallest part of its cards in use, the smallest name among equals (gpu 6)."""
        from resource_extend.answers.capacity import MostIdleNode, ratio

        def idleness(item: tuple[str, GpuRecord]) -> tuple[float, str]:
            node, record = item
            used, whole = cards.total(record.usage.prod_count_map), cards.total(record.capacity.prod_count_map)
            return ratio(used, whole), node

        node, _ = min(self._read_many(nodenames).items(), key=idleness)
        return MostIdleNode(node, 100)

    def fix_node_resource(self, nodename: str, workloads_resource: list[Gpu]) -> "NodeResourceInfo":
        """Make the usage the workloads' sum; without a difference nothing is written."""
        from resource_extend.answers.node import NodeResourceInfo

        workloads = [each.prod_count_map for each in workloads_resource]

        def change(record: GpuRecord) -> GpuRecord:
            diffs, summed = cards.differences(record.usage.prod_count_map, workloads)
            return _validated(GpuRecord(record.capacity, Gpu(summed))) if diffs else record

        before, after = records.update(self.store, GpuRecord, nodename, change, must_exist=True)
        diffs, _ = cards.differences(before.usage.prod_count_map, workloads)
        return NodeResourceInfo(after.capacity, after.usage, diffs)

    def get_metrics_description(self) -> "list[MetricDescription]":
        """Describe the metrics."""
        from resource_extend.gpu import metrics

        return metrics.descriptions()

    def get_metrics(self, nodes: "list[NodeOfPod]") -> "list[MetricRow]":
        """Give the cards of each node, product by product."""
        from resource_extend.gpu import metrics

        records_by_node = self._read_many([node.nodename for node in nodes])
        return [
            row
            for node in nodes
            for record in (records_by_node[node.nodename],)
            for row in metrics.rows(node, record.capacity.prod_count_map, record.usage.prod_count_map)
        ]

    def _read(self, node: str) -> GpuRecord:
        """Return a node's record, the empty one for an unknown node."""
        return records.read(self.store, GpuRecord, node) or GpuRecord()

    def _read_many(self, nodes: list[str]) -> dict[str, GpuRecord]:
        """Return the record of every node asked, in that order, the empty one for unknown nodes."""
        known = records.read_many(self.store, GpuRecord, nodes) if nodes else {}
        return {node: known.get(node) or GpuRecord() for node in nodes}


def _available(record: GpuRecord) -> dict[str, int]:
    return cards.subtract(record.capacity.prod_count_map, record.usage.prod_count_map)


def _sources(resource: Gpu | None, request: "GpuRequest | None", workloads: list[Gpu]) -> list[dict[str, int]]:
    """Return the maps to add: the request if given, else the resource, else the workloads (protocol 3.2)."""
    if request is not None:
        return [request.cards]
    if resource is not None:
        return [resource.prod_count_map]
    return [workload.prod_count_map for workload in workloads]


def _changed(stored: Gpu, sources: list[dict[str, int]], delta: bool, incr: bool) -> Gpu:
    """Add the sources to what is stored, take them off, or put them in its place (gpu 3)."""
    if delta and not sources:
        return stored
    result = stored.prod_count_map if delta else {}
    for source in sources:
        result = cards.add(result, source, 1 if incr or not delta else -1)
    return Gpu(result)


def _validated(record: GpuRecord) -> GpuRecord:
    """Refuse a record whose capacity or usage breaks the rules; the texts say which (gpu 2)."""
    from resource_extend.errors import ResourceError

    for part, resource in (("capacity", record.capacity), ("usage", record.usage)):
        try:
            cards.validate(resource.prod_count_map)
        except ResourceError as error:
            raise ResourceError(f"invalid {part}: {error}") from None
    return record
