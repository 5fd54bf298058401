"""All the devices of one resource: found, named, shared, checked, remembered."""

from __future__ import annotations

import fnmatch
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from resource_extend.kubernetes.devices import identity
from resource_extend.kubernetes.devices.check import Check, Checker, Subject
from resource_extend.kubernetes.devices.counter import CounterMember
from resource_extend.kubernetes.devices.finding import Claims, GroupFinder
from resource_extend.kubernetes.devices.groups import Draft, Group
from resource_extend.kubernetes.devices.health import Found, Tracker
from resource_extend.kubernetes.devices.match import Match, fill
from resource_extend.kubernetes.devices.tree import Tree
from resource_extend.kubernetes.model import NOTHING, Device, DeviceAnswer, DeviceNode, Roots
from resource_extend.kubernetes.threads import run_apart


@dataclass(frozen=True, slots=True)
class GroupsConfig:
    """What the configuration says about the devices of one resource.

    `numa`: tell the kubelet the NUMA nodes. `recovery`: scans in a row that must find a device well after it was not.
    `listing`: how the answer's environment lists what a container got, see `allocation`.
    `shared`: all nodes are in other resources too, on purpose.
    """

    groups: tuple[Group, ...]
    numa: bool = True
    recovery: int = 1
    check: Check | None = None
    listing: str = "list"
    shared: bool = False

    def open(self, name: str, roots: Roots) -> GroupsSource:
        """Make the scanner for the resource called `name`."""
        return GroupsSource(self, name, Tree(roots))


class GroupsSource:
    """Finds the devices of one resource, again and again."""

    def __init__(self, config: GroupsConfig, name: str, tree: Tree) -> None:
        self._config = config
        self._name = name
        self._finders = [GroupFinder(group, tree) for group in config.groups]
        self._on_files = any(not isinstance(m, CounterMember) for group in config.groups for m in group.members)
        self._claims = Claims()
        self._tracker = Tracker(f"{identity.short_hash(name)}-", config.recovery)
        self._checker = Checker(config.check) if config.check else None
        self._found: Sequence[Found] = ()
        self._subjects: Sequence[Subject] = ()
        self._failed = False

    @property
    def checks(self) -> Mapping[str, int]:
        """Count the health checks that were run, by result: `ok`, `failed`."""
        return self._checker.results if self._checker else {}

    async def scan(self, held: frozenset[str], now: float) -> list[Device]:
        """Give the full list to show, sorted by id. Raises CommandError when a source's command fails."""
        for finder in self._finders:
            await finder.refresh()
        # A mount source may be on a dead network file system, and only this resource should wait for it.
        found = await run_apart(self._look) if self._on_files else self._look()
        if self._checker:
            self._checker.start(self._subjects, now)
            found = self._checker.apply(found)
        return self._tracker.update(found, held, now)

    async def settle(self) -> None:
        """Wait until no health check is running; the next scan shows what they found."""
        if self._checker:
            await self._checker.settle()

    async def close(self) -> None:
        """Stop the health checks."""
        if self._checker:
            await self._checker.close()

    def _look(self) -> Sequence[Found]:
        # A look that failed half-way may have taken note of a change that nobody heard of.
        failed, self._failed = self._failed, True
        if True in [finder.look() for finder in self._finders] or failed:
            drafts = [(finder.group, draft) for finder in self._finders for draft in finder.drafts()]
            found: list[Found] = []
            subjects: list[Subject] = []
            for name, group, draft in self._claims.settle(drafts):
                values = self._values(name, draft)
                found += self._devices(name, group, draft, values)
                if self._checker:
                    subjects.append(Subject(values["id"], values))
            self._found, self._subjects = found, subjects
        self._failed = False
        return self._found

    def _values(self, name: str, draft: Draft) -> dict[str, str]:
        leader = draft.matches[0]
        path = next((match.path for match in draft.matches if match.path), "")
        physical = identity.device_id(self._name, name)
        return {"match": leader.text, "id": physical, "path": path, "name": os.path.basename(path)}

    def _devices(self, name: str, group: Group, draft: Draft, values: dict[str, str]) -> Iterator[Found]:
        physical = values["id"]
        answer = _answer(group, draft, values, self._config.shared)
        numa = sorted({node for match in draft.matches for node in match.numa}) if self._config.numa else []
        device = Device(physical, not draft.reason, tuple(numa), answer, draft.reason, physical)
        signature = tuple((node.host_path, node.number) for match in draft.matches for node in match.nodes)
        count = _count(group, name, values)
        if count is None:
            yield Found(device, signature)
            return
        for number in range(count):
            yield Found(replace(device, id=identity.replica_id(physical, number)), signature)


def _count(group: Group, name: str, values: dict[str, str]) -> int | None:
    """Give the number of replicas, None for a device that is not shared."""
    for pattern, count in group.counts:
        if any(fnmatch.fnmatchcase(text, pattern) for text in (name, values["path"], values["match"])):
            return count
    return group.count if group.count != 1 or group.counts else None


def _answer(group: Group, draft: Draft, values: dict[str, str], shared: bool) -> DeviceAnswer:
    parts = draft.matches
    if not any((group.env, group.annotations, group.cdi_names, *map(Match.brings_something, parts))):
        return NOTHING
    # A serial number may have any characters, and must not lead out of a folder.
    places = {**values, "match": values["match"].replace("/", "_").replace("..", "__")}
    nodes = [
        DeviceNode(node.host_path, fill(node.alias, places) or node.host_path, node.permissions, shared or node.shared)
        for match in parts
        for node in match.nodes
    ]
    mounts = [replace(m, container_path=fill(m.container_path, places)) for match in parts for m in match.mounts]
    env = _filled([*(match.env for match in parts), group.env], values)
    annotations = _filled([*(match.annotations for match in parts), group.annotations], values)
    names = [name for match in parts for name in match.cdi_names] + list(group.cdi_names)
    cdi_names = dict.fromkeys(fill(name, values) for name in names)
    answer = DeviceAnswer(tuple(nodes), tuple(mounts), env, annotations, tuple(cdi_names))
    # Thousands of counted devices share the one empty answer.
    return NOTHING if answer == NOTHING else answer


def _filled(texts: list[tuple[tuple[str, str], ...]], values: dict[str, str]) -> tuple[tuple[str, str], ...]:
    """Fill templates; of two with the same key the later one, which is the configuration's own, counts."""
    return tuple(sorted({key: fill(text, values) for each in texts for key, text in each}.items()))
