"""Finding the devices of a group and giving them ids, again and again.

What did not change since the last scan is not made anew: an unchanged list comes back as the same object, so that a
re-scan of thousands of devices costs little more than looking at their paths.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence

from resource_extend.kubernetes.devices.command import CommandFinder
from resource_extend.kubernetes.devices.groups import Draft, Group, pair
from resource_extend.kubernetes.devices.match import Finder, Match, Member
from resource_extend.kubernetes.devices.paths import PathFinder, PathMember
from resource_extend.kubernetes.devices.tree import Tree


class GroupFinder:
    """Finds the devices of one group."""

    def __init__(self, group: Group, tree: Tree) -> None:
        self.group = group
        self._tree = tree
        self._finders = [self._open(position, member) for position, member in enumerate(group.members)]
        self._followers: dict[tuple[int, str], PathFinder] = {}
        self._found: list[list[Match]] = []
        self._followed: dict[tuple[int, str], list[Match]] = {}
        self._drafts: list[Draft] = []

    async def refresh(self) -> None:
        """Run the commands of the group's members. Raises CommandError."""
        for finder in self._finders:
            if isinstance(finder, CommandFinder):
                await finder.refresh()

    def find(self) -> list[Draft]:
        """List the devices; the same list object when nothing changed."""
        found = [finder.find() if finder else [] for finder in self._finders]
        followed = self._follow(found[self.group.leader])
        if not (same(found, self._found) and same(list(followed.values()), list(self._followed.values()))):
            self._found, self._followed = found, followed
            self._drafts = pair(self.group, found, lambda position, text: followed[position, text])
        return self._drafts

    def _follow(self, leaders: list[Match]) -> dict[tuple[int, str], list[Match]]:
        """Look for the members whose path depends on the leader's match."""
        following = [position for position, finder in enumerate(self._finders) if finder is None]
        keys = [(position, leader.text) for leader in leaders for position in following]
        self._followers = {key: self._followers.get(key) or self._follower(*key) for key in keys}
        return {key: finder.find() for key, finder in self._followers.items()}

    def _follower(self, position: int, text: str) -> PathFinder:
        member = self.group.members[position]
        assert isinstance(member, PathMember)
        return member.follow(text).open(self._tree, report=not member.optional)

    def _open(self, position: int, member: Member) -> Finder | None:
        if not isinstance(member, PathMember):
            return member.open(self._tree)
        if member.follows:
            return None
        return member.open(self._tree, report=not member.optional and position != self.group.leader)


class Claims:
    """Which identity stands for which hardware.

    Cheap devices share serial numbers. The one that had the name first keeps it, others get their location added, and a
    device found twice is one device.
    """

    def __init__(self) -> None:
        self._owners: dict[str, str] = {}

    def settle(self, drafts: list[tuple[Group, Draft]]) -> list[tuple[str, Group, Draft]]:
        """Give each draft its final identity; drafts of the same hardware collapse to the first."""
        present = {draft.identity.name: set[str]() for _, draft in drafts}
        for _, draft in drafts:
            present[draft.identity.name].add(draft.identity.location)
        self._owners = {name: place for name, place in self._owners.items() if place in present.get(name, ())}
        settled: dict[str, tuple[str, Group, Draft]] = {}
        for group, draft in drafts:
            name, place = draft.identity.name, draft.identity.location
            if self._owners.setdefault(name, place) != place:
                name = f"{name}-{place}"
            settled.setdefault(name, (name, group, draft))
        return list(settled.values())


def same(one: Sequence[object], other: Sequence[object]) -> bool:
    """Tell whether two lists hold the very same objects."""
    return len(one) == len(other) and all(map(operator.is_, one, other))
