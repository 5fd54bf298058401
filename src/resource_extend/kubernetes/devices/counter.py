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
        names = map(str, range(count))
        self._matches = [Match(Identity(name, name), name) for name in names]

    def find(self) -> list[Match]:
        """List one match a number."""
        return self._matches
