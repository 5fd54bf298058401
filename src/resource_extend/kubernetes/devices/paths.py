"""Devices and mounts found by their path: globs, regular expressions, links such as those in `/dev/serial/by-id`."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass, replace

from resource_extend.kubernetes.devices import identity, sysfs
from resource_extend.kubernetes.devices.match import Match, NodeFound
from resource_extend.kubernetes.devices.pattern import PathPattern
from resource_extend.kubernetes.devices.tree import Tree
from resource_extend.kubernetes.model import Mount

DEVICE = "Device"
MOUNT = "Mount"
RUNTIME = "runtime"
NOW = "now"


@dataclass(frozen=True, slots=True)
class PathMember:
    """Paths of the host that match a pattern.

    `kind` DEVICE: device nodes (or a folder of them, which the container runtime expands). MOUNT: anything that can be
    mounted. `resolve` says who follows a link: RUNTIME hands out the link, so that a restarted container follows it
    again; NOW hands out what it leads to. `follows`: the pattern contains the match of the group's first member.
    """

    pattern: PathPattern
    alias: str = ""
    kind: str = DEVICE
    permissions: str = "rw"
    read_only: bool = True
    limit: int = 1
    optional: bool = False
    resolve: str = RUNTIME
    shared: bool = False

    @property
    def follows(self) -> bool:
        """Tell whether the path depends on the match of the group's first member."""
        return "{match}" in self.pattern.text

    def open(self, tree: Tree, *, report: bool = False) -> PathFinder:
        """Make the finder. With `report` a path without wildcards that is not there is found, with a reason."""
        return PathFinder(self, tree, report)

    def follow(self, text: str) -> PathMember:
        """Give the member for one match of the group's first member."""
        return replace(self, pattern=self.pattern.with_match(text))


_Key = tuple[str, str, str, int, int, int]


class PathFinder:
    """Finds the paths of one member. What was read about a path is kept until the path leads to something else."""

    def __init__(self, member: PathMember, tree: Tree, report: bool) -> None:
        self._member = member
        self._tree = tree
        self._report = report and member.pattern.literal
        self._known: dict[_Key, Match] = {}
        self._latest: list[Match] = []

    def find(self) -> list[Match]:
        """List the matches, sorted by path."""
        pattern = self._member.pattern
        if pattern.literal and not self._tree.seen(pattern.text):
            return self._take([(pattern.text, pattern.text, "", 0, 0, 0)])
        keys = [self._key(path, text) for path, text in pattern.find(self._tree)]
        return self._take(keys or ([(pattern.text, pattern.text, "", 0, 0, 0)] if self._report else []))

    def _take(self, keys: list[_Key]) -> list[Match]:
        if keys != list(self._known):
            self._known = {key: self._known.get(key) or self._match(key) for key in keys}
            self._latest = list(self._known.values())
        return self._latest

    def _key(self, path: str, text: str) -> _Key:
        """Say all that may change about a path. It is all that an unchanged path costs: one or two system calls."""
        target = path
        status = os.lstat(self._tree.seen(path))
        if stat.S_ISLNK(status.st_mode):
            target = self._tree.resolve(path)
            found = self._tree.status(target)
            if found is None:
                return (path, target, text, 0, 0, 0)
            status = found
        return (path, target, text, status.st_mode, status.st_rdev, status.st_ctime_ns ^ status.st_ino)

    def _match(self, key: _Key) -> Match:
        path, target, text, mode, number, _ = key
        member = self._member
        folder = sysfs.device_folder(self._tree.sys, mode, number)
        named = identity.of_path(self._tree.sys, path, folder)
        if member.kind == MOUNT:
            seen = self._tree.seen(path)
            mount = Mount(path, member.alias or path, member.read_only, seen, member.optional)
            missing = _missing(path, target) if seen and not mode else ""
            return Match(named, text or os.path.basename(path), path, mounts=(mount,), reason=missing)
        host_path = target if member.resolve == NOW else path
        node = NodeFound(host_path, member.alias or path, member.permissions, number, member.shared)
        numa = sysfs.numa_nodes(self._tree.sys, folder) if folder else ()
        reason = _fault(path, target, mode)
        return Match(named, text or os.path.basename(path), path, nodes=(node,), numa=numa, reason=reason)


def _missing(path: str, target: str) -> str:
    return f"{path} does not exist" if path == target else f"{path} leads to {target}, which does not exist"


def _fault(path: str, target: str, mode: int) -> str:
    if not mode:
        return _missing(path, target)
    if stat.S_ISCHR(mode) or stat.S_ISBLK(mode) or stat.S_ISDIR(mode):
        return ""
    return f"{path} is no device node"
