"""A node store in a dict, with the contract of `resource_extend.store.Store`."""

from collections.abc import Callable, Iterable


class MemoryStore:
    """Values by node name, for tests that look at what was written."""

    def __init__(self, values: dict[str, bytes] | None = None) -> None:
        self.values = dict(values or {})
        self.writes = 0

    def key(self, node: str) -> str:
        """Return what messages call a node's record."""
        return f"memory/{node}"

    def get(self, node: str, prepare: Callable[[], object] | None = None) -> bytes | None:
        """Return the value of one node."""
        if prepare is not None:
            prepare()
        return self.values.get(node)

    def get_many(
        self, nodes: Iterable[str], prepare: Callable[[], Callable[[list[bytes]], object]] | None = None
    ) -> dict[str, bytes]:
        """Return the values of the nodes that have one; the caller may look at each before."""
        found = {node: self.values[node] for node in nodes if node in self.values}
        if prepare is not None:
            prepare()(list(found.values()))
        return found

    def update(self, node: str, change: Callable[[bytes | None], bytes]) -> None:
        """Write what `change` makes of the value; an equal value is no write."""
        before = self.values.get(node)
        after = change(before)
        if after != before:
            self.values[node] = after
            self.writes += 1

    def delete(self, node: str) -> None:
        """Remove the value."""
        self.values.pop(node, None)
