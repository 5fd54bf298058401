"""The storage resource behind the Plugin interface (specification, storage 5 to 10).

A method imports what it needs when it is called: a call pays for the modules and structs of its own verb only.
"""

from resource_extend import records
from resource_extend.plugin import Plugin
from resource_extend.storage.resource import Record, Resource

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from resource_extend.answers.calculate import CalculateDeploy, CalculateRealloc
    from resource_extend.answers.capacity import MostIdleNode, NodesDeployCapacity
    from resource_extend.answers.node import Capacity, Change, NodeResourceInfo, NodesResourceInfo
    from resource_extend.metrics import MetricDescription, MetricRow, NodeOfPod
    from resource_extend.storage.capacity import CapacityQuery
    from resource_extend.storage.engine_info import EngineInfo as StorageEngineInfo
    from resource_extend.storage.node_request import NodeRequest as StorageNodeRequest
    from resource_extend.storage.workload import WorkloadRequest as StorageWorkloadRequest
    from resource_extend.storage.workload_resource import WorkloadResource as StorageWorkloadResource


def _node_request() -> type:
    from resource_extend.storage.node_request import NodeRequest

    return NodeRequest


def _workload_resource() -> type:
    from resource_extend.storage.workload_resource import WorkloadResource

    return WorkloadResource


def _workload_request() -> type:
    from resource_extend.storage.workload import WorkloadRequest

    return WorkloadRequest


def _engine_info() -> type:
    from resource_extend.storage.engine_info import EngineInfo

    return EngineInfo


class StoragePlugin(Plugin):
    """Volumes, disk quotas and storage space."""

    name = "storage"
    NodeResource = Resource
    NodeRequest = staticmethod(_node_request)
    WorkloadResource = staticmethod(_workload_resource)
    WorkloadRequest = staticmethod(_workload_request)
    EngineInfo = staticmethod(_engine_info)

    def calculate_deploy(
        self, nodename: str, deploy_count: int, request: "StorageWorkloadRequest"
    ) -> "CalculateDeploy":
        """Choose devices for each of the workloads."""
        from resource_extend.storage.workload import folded, parse_request, validate

        workload = folded(validate(parse_request(request)))
        record = self._read(nodename, _load_scheduler) if deploy_count > 0 else None
        from resource_extend.answers.calculate import CalculateDeploy
        from resource_extend.storage.deploy import deploy

        engines, resources = ([], []) if record is None else deploy(record, workload, deploy_count)
        return CalculateDeploy(engines, resources)

    def calculate_realloc(
        self, nodename: str, resource: "StorageWorkloadResource", request: "StorageWorkloadRequest"
    ) -> "CalculateRealloc":
        """Add the request, a difference, to what the workload holds; what it keeps stays where it is."""
        from resource_extend.answers.calculate import CalculateRealloc
        from resource_extend.storage.realloc import Change, reallocate
        from resource_extend.storage.workload import parse_request

        change = Change(resource, parse_request(request))
        return CalculateRealloc(*reallocate(self._read(nodename), change))

    def add_node(self, nodename: str, resource: "StorageNodeRequest", info: "StorageEngineInfo | None") -> "Capacity":
        """Create the record; without any storage given it gets 80 % of what the engine reports."""
        from resource_extend.answers.node import Capacity
        from resource_extend.storage.node_request import parse_node_request
        from resource_extend.storage.sums import in_range
        from resource_extend.storage.validation import validated
        from resource_extend.units import truncated

        capacity = parse_node_request(resource, "$.resource")
        if not capacity.storage and info is not None:
            total = truncated(info.bytes_total() * 8, 10)
            capacity = Resource(capacity.volumes, capacity.disks, total)
        record = validated(Record(in_range(capacity)))
        records.create(self.store, nodename, record)
        return Capacity(record.capacity)

    def remove_node(self, nodename: str) -> None:
        """Delete the record."""
        self.store.delete(nodename)

    def get_nodes_deploy_capacity(
        self, nodenames: list[str], request: "StorageWorkloadRequest"
    ) -> "NodesDeployCapacity":
        """Count how many such workloads each node can take."""
        from resource_extend.storage.workload import folded, parse_request, validate

        workload = folded(validate(parse_request(request)))
        query: CapacityQuery

        def prepare() -> "Callable[[list[bytes]], object]":
            nonlocal query
            from resource_extend.storage.capacity import CapacityQuery

            query = CapacityQuery(workload, self.settings.max_deploy_count)
            return query.look

        def decoded(node: str, value: bytes) -> Record:
            return records.decoded(self.store, Record, node, value)

        values = self.store.get_many(nodenames, prepare)
        from resource_extend.answers.capacity import NodesDeployCapacity

        nodes = query.answers(nodenames, values, decoded)
        return NodesDeployCapacity(nodes, sum([node.capacity for node in nodes.values()]))

    def set_node_resource_capacity(
        self,
        nodename: str,
        resource: Resource | None,
        resource_request: "StorageNodeRequest | None",
        delta: bool,
        incr: bool,
    ) -> "Change":
        """Set or change what the node has."""
        from resource_extend.answers.node import Change
        from resource_extend.storage.change import capacity_change

        change = capacity_change(resource, resource_request, delta, incr)
        before, after = records.update(self.store, Record, nodename, change)
        return Change(before.capacity, after.capacity)

    def get_node_resource_info(
        self, nodename: str, workloads_resource: "list[StorageWorkloadResource]"
    ) -> "NodeResourceInfo | None":
        """Compare the usage with the workloads' sum."""
        from resource_extend.answers.node import NodeResourceInfo
        from resource_extend.storage.sums import differences
        from resource_extend.storage.workload_resource import booked

        workloads = booked(workloads_resource)
        record = records.read(self.store, Record, nodename)
        if record is None:
            return None
        diffs, _ = differences(record.usage, workloads)
        return NodeResourceInfo(record.capacity, record.usage, diffs)

    def get_nodes_resource_info(self, nodenames: list[str]) -> "NodesResourceInfo":
        """List the records of the nodes."""
        from resource_extend.answers.node import NodeResource, NodesResourceInfo

        known = records.read_many(self.store, Record, nodenames)
        nodes = {node: known.get(node) or Record() for node in nodenames}
        return NodesResourceInfo({node: NodeResource(record.capacity, record.usage) for node, record in nodes.items()})

    def set_node_resource_info(self, nodename: str, capacity: Resource, usage: Resource) -> None:
        """Store exactly this capacity and this usage."""
        from resource_extend.storage.validation import validated

        records.replace(self.store, nodename, validated(Record(capacity, usage)))

    def set_node_resource_usage(
        self,
        nodename: str,
        resource: Resource | None,
        resource_request: "StorageNodeRequest | None",
        workloads_resource: "list[StorageWorkloadResource]",
        delta: bool,
        incr: bool,
    ) -> "Change":
        """Set or change what of the node is allocated."""
        from resource_extend.answers.node import Change
        from resource_extend.storage.change import usage_change

        change = usage_change(resource, resource_request, workloads_resource, delta, incr)
        before, after = records.update(self.store, Record, nodename, change)
        return Change(before.usage, after.usage)

    def get_most_idle_node(self, nodenames: list[str]) -> "MostIdleNode":
        """Name the first node: storage has no opinion, and other plugins have a higher priority."""
        from resource_extend.answers.capacity import MostIdleNode

        return MostIdleNode(nodenames[0], 1)

    def fix_node_resource(
        self, nodename: str, workloads_resource: "list[StorageWorkloadResource]"
    ) -> "NodeResourceInfo":
        """Make the usage the workloads' sum; without a difference nothing is written."""
        from resource_extend.answers.node import NodeResourceInfo
        from resource_extend.storage.sums import differences
        from resource_extend.storage.validation import validated
        from resource_extend.storage.workload_resource import booked

        workloads = booked(workloads_resource)

        def change(record: Record) -> Record:
            diffs, summed = differences(record.usage, workloads)
            return validated(Record(record.capacity, summed)) if diffs else record

        before, after = records.update(self.store, Record, nodename, change, must_exist=True)
        diffs, _ = differences(before.usage, workloads)
        return NodeResourceInfo(after.capacity, after.usage, diffs)

    def get_metrics_description(self) -> "list[MetricDescription]":
        """Describe the metrics."""
        from resource_extend.storage import metrics

        return metrics.descriptions()

    def get_metrics(self, nodes: "list[NodeOfPod]") -> "list[MetricRow]":
        """Give the storage of each node, used and in total."""
        from resource_extend.storage import metrics

        known = records.read_many(self.store, Record, [node.nodename for node in nodes]) if nodes else {}
        return [
            row
            for node in nodes
            for record in (known.get(node.nodename) or Record(),)
            for row in metrics.rows(node, record.capacity.storage, record.usage.storage)
        ]

    def _read(self, node: str, prepare: "Callable[[], object] | None" = None) -> Record:
        """Return a node's record, the empty one for an unknown node."""
        return records.read(self.store, Record, node, prepare) or Record()


def _load_scheduler() -> None:
    """Load what a deploy needs once it has the record."""
    from resource_extend.answers.calculate import CalculateDeploy  # noqa: F401
    from resource_extend.storage.deploy import deploy  # noqa: F401
