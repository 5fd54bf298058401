"""A fixed number of devices with nothing behind them: the kubelet counts, containers get no node."""

from __future__ import annotations

from dataclasses import dataclass

from resource_extend.kubernetes.devices.identity import Identity
from resource_extend.kubernetes.devices.match import Match
from resource_extend.kubernetes.devices.tree import Tree


@dataclass(frozen=True, slots=True)
class CounterMember:
    """`count` devices, numbered from 0."""

    count: int
    optional: bool = False
    limit: int = 1

    def open(self, _tree: Tree) -> CounterFinder:
        """Make the finder."""
        return CounterFinder(self.count)


class CounterFinder:
    """Gives the same numbers each time."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._looked = False

    def look(self) -> bool:
        """Tell that nothing changes."""
        first, self._looked = not self._looked, True
        return first

    def matches(self) -> list[Match]:
        """Make one match a number."""
        return [Match(Identity(name, name), name) for name in map(str, range(self._count))]
