"""The node store: one value of bytes for each node, read and changed without ever losing an update.

Two stores keep the same contract (specification, protocol 7): `etcd` for clusters, `sqlite` for one machine. They know
keys and bytes only; what a value means is the business of `records`.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Protocol

    from resource_extend.settings import Settings

    class Store(Protocol):
        """What a plugin needs of a store (specification, protocol 7.2). All methods raise StoreError."""

        def key(self, node: str) -> str:
            """Return the full key of a node's record, for messages."""

        def get(self, node: str, prepare: Callable[[], object] | None = None) -> bytes | None:
            """Return the value of one node, None when there is none. A linearizable read.

            `prepare` is called once, while the store is at work: for what the caller has to do before it can go on.
            """

        def get_many(
            self, nodes: Iterable[str], prepare: Callable[[], Callable[[list[bytes]], object]] | None = None
        ) -> dict[str, bytes]:
            """Return the values of the distinct nodes that have one, by node name, read at one revision.

            `prepare` is called once, while the store is at work. What it returns may be called with values of these
            nodes as they arrive, to work ahead with; only what this method returns is what is stored.
            """

        def update(self, node: str, change: Callable[[bytes | None], bytes]) -> None:
            """Read the value, call `change` with it, write the result unless somebody else wrote meanwhile: then again.

            `change` is pure: it may be called several times. What it raises ends the update and nothing is written. A
            result equal to the stored value is not written. A write whose reply is lost is never computed anew:
            OutcomeUnknown when its effect cannot be told.
            """

        def delete(self, node: str) -> None:
            """Remove the value; a missing one is fine."""


def open_store(settings: "Settings", kind: str, deadline: float) -> "Store":
    """Return the store that the settings name, for one kind of record. Connects to nothing before the first operation.

    Args:
        settings: the parsed configuration.
        kind: the plugin's kind, part of every key.
        deadline: `time.monotonic()` seconds at which the whole call must have ended.
    """
    if settings.sqlite_path:
        from resource_extend.store.sqlite import SqliteStore

        return SqliteStore(settings.sqlite_path, kind, deadline)
    from resource_extend.store.etcd import EtcdStore

    return EtcdStore(settings, kind, deadline)
