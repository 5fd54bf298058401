"""The Plugin interface: one method a verb (specification, protocol 11).

A plugin is a class. It names the shapes of its resource, so that requests decode straight into them, and answers verbs
from typed arguments; it knows nothing of argv, streams, JSON or exit status, and raises to fail. The same class runs
inside a process (tests, embedding) and, packed, as the executable that core calls.
"""

from resource_extend.errors import PluginError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from resource_extend.answers.calculate import CalculateDeploy, CalculateRealloc
    from resource_extend.answers.capacity import MostIdleNode, NodesDeployCapacity
    from resource_extend.answers.node import Capacity, Change, NodeResourceInfo
    from resource_extend.metrics import MetricDescription, MetricRow, NodeOfPod
    from resource_extend.settings import Settings
    from resource_extend.store import Store

INCR = True
DECR = False


def _unread() -> type:
    """Return the shape of an object of which nothing is looked at."""
    from msgspec import defstruct

    return defstruct("Unread", [])


class Plugin:
    """A resource: what nodes have of it, what workloads take of it.

    A class gives `name` and the five shapes, each a Struct type whose fields all have defaults, and overrides every
    method below. A shape may also be a static method that returns the type: then only calls that decode it pay for
    making it, some 0.5 % of a call. Two more methods are optional and leave their verb out of the answer of `verbs`
    when absent:

    * `get_nodes_resource_info(nodenames: list[str]) -> NodesResourceInfo` reads the records of many nodes in one call;
      without it core asks node by node.
    * `calculate_remap(nodename: str, workloads_resource: dict[str, WorkloadResource]) -> CalculateRemap` is a pure
      calculation of new engine params for workloads whose mapping depends on the rest of the node.

    "Pure calculation" means: computed from the record and the request alone, never writing. "Reads only" means: answers
    what is stored, never writing. Unknown nodes are no error, specification, protocol 3.3.
    """

    name: str
    """The kind, e.g. "gpu". It is part of every key in the store and names the configuration file, `<name>.yaml`."""

    # The plugin's own Struct types. Any, because a type checker cannot bind a class attribute to a type variable.
    NodeResource: "Any"
    """What a node has or uses, in the stored form: numbers are numbers."""
    NodeRequest: "Any"
    """What an operator typed for a node; may hold texts where the stored form holds numbers."""
    WorkloadResource: "Any"
    """What one workload holds, as an earlier calculation answered it."""
    WorkloadRequest: "Any"
    """What a client asks for one workload."""
    EngineInfo: "Any" = staticmethod(_unread)
    """The members of the engine's report that add_node looks at (specification, protocol 4.4)."""

    def __init__(self, store: "Store", settings: "Settings") -> None:
        self.store = store
        self.settings = settings

    def calculate_deploy(self, nodename: str, deploy_count: int, request: "Any") -> "CalculateDeploy":
        """Place `deploy_count` equal workloads on the node, all or nothing. Pure calculation.

        Fails when the node cannot hold them. A count of 0 or less: two empty lists.
        """
        raise _missing(self, "calculate_deploy")

    def calculate_realloc(self, nodename: str, resource: "Any", request: "Any") -> "CalculateRealloc":
        """Apply the request, a difference, to the resource that the workload holds. Pure calculation."""
        raise _missing(self, "calculate_realloc")

    def add_node(self, nodename: str, resource: "Any", info: "Any | None") -> "Capacity":
        """Create the record with that capacity and empty usage; fails when the node exists."""
        raise _missing(self, "add_node")

    def remove_node(self, nodename: str) -> None:
        """Delete the record; an unknown node is fine."""
        raise _missing(self, "remove_node")

    def get_nodes_deploy_capacity(self, nodenames: list[str], request: "Any") -> "NodesDeployCapacity":
        """Count how many such workloads each node can take; nodes that can take none are left out. Reads only."""
        raise _missing(self, "get_nodes_deploy_capacity")

    def set_node_resource_capacity(
        self, nodename: str, resource: "Any | None", resource_request: "Any | None", delta: bool, incr: bool
    ) -> "Change":
        """Set or change the total. Accepts its own `before` in `resource_request`."""
        raise _missing(self, "set_node_resource_capacity")

    def get_node_resource_info(self, nodename: str, workloads_resource: "list[Any]") -> "NodeResourceInfo | None":
        """Return the record and how its usage differs from the workloads' sum; None for an unknown node. Reads only."""
        raise _missing(self, "get_node_resource_info")

    def set_node_resource_info(self, nodename: str, capacity: "Any", usage: "Any") -> None:
        """Store absolute values, both at once, exactly as given. Core rolls back a node removal with it."""
        raise _missing(self, "set_node_resource_info")

    def set_node_resource_usage(
        self,
        nodename: str,
        resource: "Any | None",
        resource_request: "Any | None",
        workloads_resource: "list[Any]",
        delta: bool,
        incr: bool,
    ) -> "Change":
        """Set or change what is allocated. Accepts its own `before` in `resource`."""
        raise _missing(self, "set_node_resource_usage")

    def get_most_idle_node(self, nodenames: list[str]) -> "MostIdleNode":
        """Name the best node to build an image on. Reads only."""
        raise _missing(self, "get_most_idle_node")

    def fix_node_resource(self, nodename: str, workloads_resource: "list[Any]") -> "NodeResourceInfo":
        """Make the stored usage the sum of the workloads; answers the differences found before.

        Fails for an unknown node and when the write fails.
        """
        raise _missing(self, "fix_node_resource")

    def get_metrics_description(self) -> "list[MetricDescription]":
        """Describe the metrics. A fixed answer that reads nothing; `self.store` is None here."""
        raise _missing(self, "get_metrics_description")

    def get_metrics(self, nodes: "list[NodeOfPod]") -> "list[MetricRow]":
        """Return the records of all nodes asked as metrics rows. Reads only."""
        raise _missing(self, "get_metrics")


def _missing(plugin: Plugin, method: str) -> PluginError:
    return PluginError(f"{type(plugin).__name__} does not implement {method}")
