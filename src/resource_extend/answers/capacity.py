"""Answers about where workloads fit: get-nodes-deploy-capacity and get-most-idle-node."""

from msgspec import Struct


class NodeDeployCapacity(Struct):
    """How many workloads one node can take.

    `capacity` is a number of workloads; `usage` is the part of the node in use and `rate` the part that one workload
    would take, both doubles of which integral values are written as integers; `weight` is 1.
    """

    capacity: int
    usage: float | int
    rate: float | int
    weight: int = 1


class NodesDeployCapacity(Struct):
    """The nodes that can take at least one workload, and the plain sum of their capacities."""

    nodes_deploy_capacity_map: dict[str, NodeDeployCapacity]
    total: int


class MostIdleNode(Struct):
    """The best node to build an image on. Among plugins the highest priority wins."""

    nodename: str
    priority: int


def ratio(part: int, whole: int) -> float | int:
    """Return part / whole: both made doubles first, 0 when whole is 0, an int when the value is a whole number.

    (Specification, protocol 5: Python's own int / int rounds differently above 2^53.)
    """
    if not whole:
        return 0
    value = float(part) / float(whole)
    return int(value) if value.is_integer() else value
