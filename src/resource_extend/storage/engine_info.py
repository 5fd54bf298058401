"""The engine's report of a node, as far as storage looks at it (specification, protocol 4.4)."""

from msgspec import UNSET, Struct, UnsetType


class EngineInfo(Struct, rename={"total": "StorageTotal"}):
    """The engine's storage total in bytes, as core spells it, or as older reports do when that key is missing."""

    total: int | None | UnsetType = UNSET
    storage_total: int | None = None

    def bytes_total(self) -> int:
        """Return the bytes, 0 when the report has none."""
        return (self.storage_total if isinstance(self.total, UnsetType) else self.total) or 0
