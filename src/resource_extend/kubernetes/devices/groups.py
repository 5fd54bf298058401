"""Groups: several nodes and mounts that are handed out together as one device.

The members are paired by position, sorted: the first device of a group has the first match of each member, and so on. A
match is used for as many devices as its member's limit says. The *leader*, the first member that a device cannot do
without, names the device; where a path contains `{match}`, the leader's match is put in.

A required path that is written without wildcards but is not there leaves its devices unhealthy; a pattern without a
match leaves nothing to pair, and without a leader there is no device.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from resource_extend.kubernetes.devices.identity import Identity
from resource_extend.kubernetes.devices.match import Match, Member
from resource_extend.kubernetes.devices.paths import PathMember


@dataclass(frozen=True, slots=True)
class Group:
    """What the configuration says about one kind of device.

    `count`: replicas of each device; `counts`: (glob, count) pairs that override it for devices whose identity or path
    matches. `env`, `annotations`, `cdi_names`: templates of what a container gets besides nodes and mounts.
    """

    members: tuple[Member, ...]
    count: int = 1
    counts: tuple[tuple[str, int], ...] = ()
    env: tuple[tuple[str, str], ...] = ()
    annotations: tuple[tuple[str, str], ...] = ()
    cdi_names: tuple[str, ...] = ()

    @property
    def leader(self) -> int:
        """Give the position of the member that names the devices."""
        required = [i for i, member in enumerate(self.members) if not member.optional and not _follows(member)]
        return next((i for i in required if self.members[i].limit == 1), required[0] if required else 0)


@dataclass(frozen=True, slots=True)
class Draft:
    """One device before it has an id: the matches it is made of, the leader's first, and what is missing."""

    identity: Identity
    matches: tuple[Match, ...]
    reason: str = ""


Follow = Callable[[int, str], list[Match]]


def pair(group: Group, found: list[list[Match]], follow: Follow) -> Iterator[Draft]:
    """Pair the matches of a group's members to devices.

    `found` has the matches of each member, empty for one that follows; `follow(position, text)` gives the matches of a
    member that follows, for one match of the leader.
    """
    lead = group.leader
    limit = group.members[lead].limit or 1
    for number in range(_number(group, found)):
        leader = found[lead][number // limit]
        matches, missing = [leader], ""
        for position, member in enumerate(group.members):
            if position == lead:
                continue
            following = _follows(member)
            more = follow(position, leader.text) if following else _share(found[position], number, member.limit)
            if not more and not member.optional:
                missing = missing or _missing(member, leader.text)
            matches += more
        again, identity = number % limit, leader.identity
        if again:
            identity = Identity(f"{identity.name}-{again}", f"{identity.location}-{again}", identity.serial)
        reason = next((match.reason for match in matches if match.reason), "") or missing
        yield Draft(identity, tuple(matches), reason)


def _number(group: Group, found: list[list[Match]]) -> int:
    lead = group.leader
    numbers = [len(found[lead]) * (group.members[lead].limit or 1)]
    for position, member in enumerate(group.members):
        if position != lead and member.limit and not member.optional and not _follows(member):
            numbers.append(len(found[position]) * member.limit)
    return min(numbers)


def _share(matches: list[Match], number: int, limit: int) -> list[Match]:
    """Give what the device with this number gets of a member's matches: one, or none when they are used up."""
    if not matches or (limit and number >= len(matches) * limit):
        return []
    return [matches[number // limit if limit else number % len(matches)]]


def _follows(member: Member) -> bool:
    return isinstance(member, PathMember) and member.follows


def _missing(member: Member, text: str) -> str:
    if isinstance(member, PathMember):
        return f"nothing matches {member.follow(text).pattern.text}"
    return "a part of it is missing"
