"""Typed records over a store of bytes: what a node has and what of it is allocated (specification, protocol 7).

A record is a Struct with the members `capacity` and `usage`, both of the plugin's stored form. The empty record stands
for a node without one. These functions are the only way of the plugins to the store; revisions stay inside it.
"""

from resource_extend.codec import decode, encode
from resource_extend.errors import CorruptRecord, ResourceError, Undecodable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import TypeVar

    from resource_extend.store import Store

    Record = TypeVar("Record")


def read(
    store: "Store", shape: "type[Record]", node: str, prepare: "Callable[[], object] | None" = None
) -> "Record | None":
    """Return the record of a node, None for an unknown node. `prepare` is called while the store is at work."""
    value = store.get(node, prepare)
    return None if value is None else decoded(store, shape, node, value)


def read_many(store: "Store", shape: "type[Record]", nodes: "Iterable[str]") -> "dict[str, Record]":
    """Return the records of the nodes that have one. Equal values are decoded once: treat the records as frozen."""
    seen: dict[bytes, Record] = {}

    def look(values: list[bytes]) -> None:
        for value in values:
            try:
                if value not in seen:
                    seen[value] = decode(value, shape)
            except Undecodable:
                pass  # comes up again

    records = {}
    for node, value in store.get_many(nodes, lambda: look).items():
        record = seen.get(value)
        if record is None:
            record = seen[value] = decoded(store, shape, node, value)
        records[node] = record
    return records


def create(store: "Store", node: str, record: object) -> None:
    """Write the record of a node that has none; otherwise `node already exists`, whatever the stored value holds."""

    def change(value: bytes | None) -> bytes:
        if value is not None:
            raise ResourceError("node already exists")
        return encode(record)

    store.update(node, change)


def update(
    store: "Store",
    shape: "type[Record]",
    node: str,
    change: "Callable[[Record], Record]",
    must_exist: bool = False,
) -> "tuple[Record, Record]":
    """Change the record of a node, starting from the empty record if there is none, without ever losing an update.

    Args:
        store: where the record is.
        shape: the type of the record.
        node: the node's name.
        change: a pure function from the stored record to a new, validated one. It leaves its argument as it is, may be
            called several times, raises to write nothing, and returns its argument itself to leave what is stored.
        must_exist: an unknown node is an error (specification, protocol 3.3: fix-node-resource).

    Returns:
        The record before and after.
    """
    seen: list[Record] = []

    def change_value(value: bytes | None) -> bytes:
        if value is None and must_exist:
            raise ResourceError(f"key: {node}: node not exists")
        before = shape() if value is None else decoded(store, shape, node, value)
        after = change(before)
        seen[:] = before, after
        return value if value is not None and after is before else encode(after)

    store.update(node, change_value)
    before, after = seen
    return before, after


def replace(store: "Store", node: str, record: object) -> None:
    """Write a record that does not depend on what is stored, which is not even decoded."""
    store.update(node, lambda _: encode(record))


def decoded(store: "Store", shape: "type[Record]", node: str, value: bytes) -> "Record":
    """Return the record that a stored value is.

    Raises:
        CorruptRecord: it is none; the text names the key.
    """
    try:
        return decode(value, shape)
    except Undecodable as error:
        raise CorruptRecord(f"corrupt record {store.key(node)}: {error}") from None
