"""Answers about a node's record: its capacity, its usage, what changed, and how it differs from its workloads."""

from msgspec import Struct


class Capacity(Struct):
    """The answer of add-node: the capacity that was stored."""

    capacity: Struct


class Change(Struct):
    """The answer of the set verbs: the capacity or usage before and after. `before` is accepted back as it is."""

    before: Struct
    after: Struct


class NodeResource(Struct):
    """One node's record as get-nodes-resource-info lists it."""

    capacity: Struct
    usage: Struct


class NodeResourceInfo(Struct):
    """One node's record and, as texts, how its usage differs from the sum of the workloads that were given."""

    capacity: Struct
    usage: Struct
    diffs: list[str]


class NodesResourceInfo(Struct):
    """The records of many nodes by node name."""

    node_resource_info_map: dict[str, NodeResource]
