"""The storage metrics: one table for both their description and their rows (specification, storage 10)."""

from resource_extend.metrics import MetricDescription, MetricRow, key_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from resource_extend.metrics import NodeOfPod

_LABELS = ("podname", "nodename")

# (name, help, end of the key, which of (capacity, usage) it shows)
_METRICS = (
    ("storage_used", "node used storage.", "storage.used", 1),
    ("storage_capacity", "node available storage.", "storage.capacity", 0),
)


def descriptions() -> list[MetricDescription]:
    """Describe the metrics."""
    return [MetricDescription(name, text, "gauge", list(_LABELS)) for name, text, _, _ in _METRICS]


def rows(node: "NodeOfPod", capacity: int, usage: int) -> list[MetricRow]:
    """Give the rows of one node; both numbers are bytes."""
    labels = [node.podname, node.nodename]
    return [
        MetricRow(name, labels, key_of(node.nodename, key), str((capacity, usage)[which]))
        for name, _, key, which in _METRICS
    ]
