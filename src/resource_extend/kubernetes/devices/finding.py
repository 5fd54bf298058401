"""Finding the devices of a group, again and again, and giving each its final identity."""

from __future__ import annotations

from collections.abc import Iterator

from resource_extend.kubernetes.devices.command import CommandFinder
from resource_extend.kubernetes.devices.groups import Draft, Group, pair
from resource_extend.kubernetes.devices.identity import clean
from resource_extend.kubernetes.devices.match import Finder, Member
from resource_extend.kubernetes.devices.paths import PathFinder, PathMember
from resource_extend.kubernetes.devices.tree import Tree


class GroupFinder:
    """Finds the devices of one group."""

    def __init__(self, group: Group, tree: Tree) -> None:
        self.group = group
        self._tree = tree
        self._finders = [self._open(position, member) for position, member in enumerate(group.members)]
        self._following = [position for position, finder in enumerate(self._finders) if finder is None]
        self._followers: dict[tuple[int, str], PathFinder] = {}

    async def refresh(self) -> None:
        """Run the commands of the group's members. Raises CommandError."""
        for finder in self._finders:
            if isinstance(finder, CommandFinder):
                await finder.refresh()

    def look(self) -> bool:
        """Look for the devices, and tell whether anything changed since the last time."""
        # All have to look, so that none reports an old change later.
        changed = True in [finder.look() for finder in self._finders if finder]
        leader = self._finders[self.group.leader]
        if changed and leader and self._following:
            keys = [(position, match.text) for match in leader.matches() for position in self._following]
            self._followers = {key: self._followers.get(key) or self._follower(*key) for key in keys}
        return True in [finder.look() for finder in self._followers.values()] or changed

    def drafts(self) -> Iterator[Draft]:
        """Give the devices that the last look found."""
        found = [finder.matches() if finder else [] for finder in self._finders]
        return pair(self.group, found, lambda position, text: self._followers[position, text].matches())

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
    """Which hardware a serial number stands for.

    Cheap devices share serial numbers. The one that had the name first keeps it, others get their location added, and a
    device found twice is one device.
    """

    def __init__(self) -> None:
        self._owners: dict[str, str] = {}

    def settle(self, drafts: list[tuple[Group, Draft]]) -> Iterator[tuple[str, Group, Draft]]:
        """Give each draft its final identity; drafts of the same hardware collapse to the first.

        `drafts` is emptied on the way: of thousands of devices only one should be in two shapes at a time.
        """
        identities = [draft.identity for _, draft in drafts if draft.identity.serial]
        present = {(identity.name, identity.location) for identity in identities}
        self._owners = {name: place for name, place in self._owners.items() if (name, place) in present}
        settled: set[str] = set()
        drafts.reverse()
        while drafts:
            group, draft = drafts.pop()
            name, place = draft.identity.name, draft.identity.location
            if draft.identity.serial and self._owners.setdefault(name, place) != place:
                name = f"{name}-{clean(place)}"
            if name not in settled:
                settled.add(name)
                yield name, group, draft
