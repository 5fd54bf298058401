"""Metrics as the protocol carries them (specification, protocol 3.2 and gpu.md 8, storage.md 10)."""

from msgspec import Struct


class NodeOfPod(Struct):
    """A node that metrics are asked for, and the pod (core's group of nodes) that it belongs to."""

    podname: str = ""
    nodename: str = ""


class MetricsRequest(Struct):
    """The request of get-metrics. Older cores name one node beside `nodes`."""

    nodes: list[NodeOfPod] | None = None
    podname: str | None = None
    nodename: str | None = None


class MetricDescription(Struct):
    """One metric: its name, what it tells, and the labels that each of its rows carries, in order."""

    name: str
    help: str
    type: str
    labels: list[str]


class MetricRow(Struct):
    """One value of a metric. `key` is its graphite-style name, `value` a decimal text."""

    name: str
    labels: list[str]
    key: str
    value: str


def key_of(nodename: str, rest: str) -> str:
    """Return the key of a row: dots of the node's name would open new levels, so they become `_`."""
    return f"core.node.{nodename.replace('.', '_')}.{rest}"
