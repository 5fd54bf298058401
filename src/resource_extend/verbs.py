"""The verbs of the protocol: a verb is a name and the keys of its request (specification, protocol 3 and 4.2).

The method of a plugin that serves a verb has the verb's name with `_` for `-`. Each row of a request is (key in the
JSON, how it is read, name of the method's argument); the ways of reading stand in `wire`, which also knows the
two forms of get-metrics.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from resource_extend.plugin import Plugin

_NODENAME = ("nodename", "node name", "nodename")
_NODENAMES = ("nodenames", "node names", "nodenames")
_DELTA = ("delta", "flag", "delta")
_INCR = ("incr", "flag", "incr")
_RESOURCE = ("resource", "optional NodeResource", "resource")
_RESOURCE_REQUEST = ("resource_request", "optional NodeRequest", "resource_request")
_WORKLOADS = ("workloads_resource", "list of WorkloadResource", "workloads_resource")
_WORKLOAD_REQUEST = ("workload_resource_request", "WorkloadRequest", "request")

# The order is that of the answer of `verbs`.
REQUESTS: "dict[str, tuple[tuple[str, str, str], ...]]" = {
    "get-metrics-description": (),
    "get-metrics": (),
    "add-node": (_NODENAME, ("resource", "NodeRequest", "resource"), ("info", "optional EngineInfo", "info")),
    "remove-node": (_NODENAME,),
    "get-nodes-deploy-capacity": (_NODENAMES, ("workload_resource", "WorkloadRequest", "request")),
    "set-node-resource-capacity": (_NODENAME, _RESOURCE, _RESOURCE_REQUEST, _DELTA, _INCR),
    "get-node-resource-info": (_NODENAME, _WORKLOADS),
    "get-nodes-resource-info": (_NODENAMES,),
    "set-node-resource-info": (
        _NODENAME,
        ("capacity", "NodeResource", "capacity"),
        ("usage", "NodeResource", "usage"),
    ),
    "set-node-resource-usage": (_NODENAME, _RESOURCE, _RESOURCE_REQUEST, _WORKLOADS, _DELTA, _INCR),
    "get-most-idle-node": (_NODENAMES,),
    "fix-node-resource": (_NODENAME, _WORKLOADS),
    "calculate-deploy": (_NODENAME, ("deploy_count", "deploy count", "deploy_count"), _WORKLOAD_REQUEST),
    "calculate-realloc": (
        _NODENAME,
        ("workload_resource", "WorkloadResource", "resource"),
        _WORKLOAD_REQUEST,
    ),
    "calculate-remap": (_NODENAME, ("workloads_resource", "map of WorkloadResource", "workloads_resource")),
}

# A plugin without the method answers this verb all the same, though it does not list it: cores of 2024 and before call
# it unasked, and drop every plugin's remap when one fails (specification, protocol 3.1).
ANSWERED_UNLISTED = "calculate-remap"

# Their methods return nothing and the answer is an empty object. (None of get_node_resource_info is a null.)
ANSWER_NOTHING = ("remove-node", "set-node-resource-info")

# Their methods read nothing: they get no store.
FIXED_ANSWER = ("get-metrics-description",)


def method_name(verb: str) -> str:
    """Return the name of the plugin method that serves a verb."""
    return verb.replace("-", "_")


def listed(plugin: "type[Plugin]") -> list[str]:
    """Return the verbs that a plugin class implements, in the protocol's order (specification, protocol 3.1)."""
    return [verb for verb in REQUESTS if hasattr(plugin, method_name(verb))]
