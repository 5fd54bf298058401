"""The gpu metrics: one table from which both their description and their rows come (specification, gpu 8)."""

from resource_extend.metrics import MetricDescription, MetricRow, key_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from resource_extend.gpu.cards import Cards
    from resource_extend.metrics import NodeOfPod

_LABELS = ("podname", "nodename", "product")

# (name, help, end of the key, which of (capacity, usage) it shows)
_METRICS = (
    ("gpu_capacity", "node available gpu.", "gpu.capacity", 0),
    ("gpu_used", "node used gpu.", "gpu.used", 1),
)


def descriptions() -> list[MetricDescription]:
    """Describe the metrics."""
    return [MetricDescription(name, text, "gauge", list(_LABELS)) for name, text, _, _ in _METRICS]


def rows(node: "NodeOfPod", capacity: "Cards", usage: "Cards") -> "Iterator[MetricRow]":
    """Give the rows of one node: for each product of its capacity, sorted, each metric."""
    for product in sorted(capacity):
        labels = [node.podname, node.nodename, product]
        for name, _, key, which in _METRICS:
            count = (capacity, usage)[which].get(product, 0)
            yield MetricRow(name, labels, key_of(node.nodename, key), str(count))
