"""Devices and mounts found by their path: globs, regular expressions, links such as those in `/dev/serial/by-id`."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass, replace

from resource_extend.kubernetes.devices import identity, sysfs
from resource_extend.kubernetes.devices.identity import Identity
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


class PathFinder:
    """Finds the paths of one member. Between looks it keeps no more than a fingerprint of what is at each path."""

    def __init__(self, member: PathMember, tree: Tree, report: bool) -> None:
        self._member = member
        self._tree = tree
        self._report = report and member.pattern.literal
        self._found: dict[str, int] | None = None
        self._named: dict[str, tuple[int, Identity, tuple[int, ...]]] = {}

    def look(self) -> bool:
        """Look at the paths, without following what does not have to be followed."""
        found = {path: hash(self._at(path)) for path in self._paths()}
        if found == self._found:
            return False
        self._found = found
        self._named = {path: named for path, named in self._named.items() if found.get(path) == named[0]}
        return True

    def matches(self) -> list[Match]:
        """Make the matches, sorted by path."""
        return [self._match(path) for path in self._found or ()]

    def _paths(self) -> list[str]:
        pattern = self._member.pattern
        known = self._report or (pattern.literal and not self._tree.seen(pattern.path))
        return [pattern.path] if known else pattern.find(self._tree)

    def _at(self, path: str) -> tuple[str, int, int, int, int]:
        """Say what is at a path: where it leads to, mode (0: nothing is there), device number, time and inode."""
        seen = self._tree.seen(path)
        try:
            status: os.stat_result | None = os.lstat(seen) if seen else None
        except OSError:
            status = None
        target = path
        if status and stat.S_ISLNK(status.st_mode):
            target = self._tree.resolve(path)
            status = self._tree.status(target)
        if status is None:
            return (target, 0, 0, 0, 0)
        return (target, status.st_mode, status.st_rdev, status.st_ctime_ns, status.st_ino)

    def _match(self, path: str) -> Match:
        at = target, mode, number, _, _ = self._at(path)
        member = self._member
        named, numa = self._name(path, hash(at), mode, number)
        text = member.pattern.match(path) or os.path.basename(path)
        if member.kind == MOUNT:
            seen = self._tree.seen(path)
            mount = Mount(path, member.alias or path, member.read_only, seen, member.optional)
            missing = _missing(path, target) if seen and not mode else ""
            return Match(named, text, path, mounts=(mount,), reason=missing)
        host_path = target if member.resolve == NOW else path
        node = NodeFound(host_path, member.alias or path, member.permissions, number, member.shared)
        return Match(named, text, path, nodes=(node,), numa=numa, reason=_fault(path, target, mode))

    def _name(self, path: str, fingerprint: int, mode: int, number: int) -> tuple[Identity, tuple[int, ...]]:
        """Identify what is at a path. What sysfs said holds as long as the path leads to the same thing."""
        known = self._named.get(path)
        if known and known[0] == fingerprint:
            return known[1], known[2]
        folder = sysfs.device_folder(self._tree.sys, mode, number)
        hardware = identity.of_node(self._tree.sys, folder) if folder else None
        numa = sysfs.numa_nodes(self._tree.sys, folder) if folder else ()
        if hardware:
            self._named[path] = (fingerprint, hardware, numa)
        return hardware or identity.of_path(path), numa


def _missing(path: str, target: str) -> str:
    return f"{path} does not exist" if path == target else f"{path} leads to {target}, which does not exist"


def _fault(path: str, target: str, mode: int) -> str:
    if not mode:
        return _missing(path, target)
    if stat.S_ISCHR(mode) or stat.S_ISBLK(mode) or stat.S_ISDIR(mode):
        return ""
    return f"{path} is no device node"
