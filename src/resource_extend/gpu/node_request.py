"""What an operator typed for a node's cards (specification, gpu 3)."""

from msgspec import UNSET, Struct, UnsetType


class NodeRequest(Struct):
    """Cards by product. Only here it matters whether the map is given at all."""

    prod_count_map: dict[str, int] | None | UnsetType = UNSET

    @property
    def cards(self) -> dict[str, int]:
        """The map; a missing or null one holds no cards."""
        return self.prod_count_map or {}
