"""Devices that an external command lists, one JSON object a line."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from resource_extend.kubernetes.commands import CommandError, run_command
from resource_extend.kubernetes.devices import identity
from resource_extend.kubernetes.devices.match import Match, NodeFound, travels
from resource_extend.kubernetes.devices.tree import Tree
from resource_extend.kubernetes.model import Mount

KEYS = {
    "id": str, "match": str, "healthy": bool, "reason": str, "numa": list, "nodes": list, "mounts": list,
    "env": dict, "annotations": dict, "cdi": list,
}  # fmt: skip
NODE_KEYS = {"path": str, "mountPath": str, "permissions": str, "shared": bool}
MOUNT_KEYS = {"path": str, "mountPath": str, "readOnly": bool, "optional": bool}


@dataclass(frozen=True, slots=True)
class CommandMember:
    """A command whose lines are devices. It is killed after `timeout` seconds."""

    command: tuple[str, ...]
    timeout: float = 10.0
    optional: bool = False
    limit: int = 1

    def open(self, tree: Tree) -> CommandFinder:
        """Make the finder."""
        return CommandFinder(self, tree)


class CommandFinder:
    """Remembers what the command said last."""

    def __init__(self, member: CommandMember, tree: Tree) -> None:
        self._member = member
        self._tree = tree
        self._listed: list[Match] = []
        self._latest: list[Match] | None = None

    async def refresh(self) -> None:
        """Run the command. Raises CommandError, also for a line that is no device."""
        output = await run_command(self._member.command, self._member.timeout)
        lines = output.decode("utf-8", "replace").splitlines()
        listed = [
            parse_line(line, f"command {self._member.command[0]!r}, line {number}")
            for number, line in enumerate(lines, 1)
            if line.strip()
        ]
        self._listed = sorted(listed, key=lambda match: match.identity.name)

    def look(self) -> bool:
        """Look at the nodes of what the command said."""
        before, self._latest = self._latest, [self._looked_at(match) for match in self._listed]
        return before != self._latest

    def matches(self) -> list[Match]:
        """Give what the command said."""
        return self._latest or []

    def _looked_at(self, match: Match) -> Match:
        nodes, reason = [], match.reason
        for node in match.nodes:
            status = self._tree.status(node.host_path)
            if status is None and self._tree.seen(node.host_path):
                reason = reason or f"{node.host_path} does not exist"
            nodes.append(replace(node, number=status.st_rdev if status else 0))
        mounts = tuple(replace(mount, seen_path=self._tree.seen(mount.host_path)) for mount in match.mounts)
        return replace(match, nodes=tuple(nodes), mounts=mounts, reason=reason)


def parse_line(line: str, where: str) -> Match:
    """Turn one line of the command into a match. Raises CommandError that begins with `where`."""
    try:
        entry = json.loads(line)
    except ValueError as error:
        raise CommandError(f"{where}: it is no JSON object: {error}") from error
    _check(entry, KEYS, where)
    for text in _strings(entry):
        if not travels(text):
            raise CommandError(f"{where}: {text!r} has a NUL character or half of a surrogate pair")
    if not entry.get("id"):
        raise CommandError(f"{where}: 'id' is missing")
    nodes = [_node(node, where) for node in entry.get("nodes", [])]
    mounts = [_mount(mount, where) for mount in entry.get("mounts", [])]
    numa = entry.get("numa", [])
    if not all(isinstance(node, int) and not isinstance(node, bool) for node in numa):
        raise CommandError(f"{where}: 'numa' must be a list of node numbers")
    name = identity.clean(entry["id"])
    healthy = entry.get("healthy", True)
    return Match(
        identity=identity.Identity(name, name),
        text=entry.get("match", entry["id"]),
        path=nodes[0].host_path if nodes else "",
        nodes=tuple(nodes),
        mounts=tuple(mounts),
        numa=tuple(sorted({node for node in numa if node >= 0})),
        reason="" if healthy else entry.get("reason") or "the command says so",
        env=_texts(entry.get("env", {}), f"{where}: 'env'"),
        annotations=_texts(entry.get("annotations", {}), f"{where}: 'annotations'"),
        cdi_names=tuple(_text(name, f"{where}: 'cdi'") for name in entry.get("cdi", [])),
    )


def _strings(entry: Any) -> Iterator[str]:
    """Give all texts of a JSON value, keys included."""
    if isinstance(entry, str):
        yield entry
    elif isinstance(entry, (dict, list)):
        parts = [*entry, *entry.values()] if isinstance(entry, dict) else entry
        for part in parts:
            yield from _strings(part)


def _check(entry: Any, keys: Mapping[str, type], where: str) -> None:
    if not isinstance(entry, dict):
        raise CommandError(f"{where}: it is no JSON object")
    for key, value in entry.items():
        if key not in keys:
            raise CommandError(f"{where}: unknown key {key!r}: use {', '.join(keys)}")
        if not isinstance(value, keys[key]):
            raise CommandError(f"{where}: {key!r} must be a {keys[key].__name__}")


def _node(entry: Any, where: str) -> NodeFound:
    _check(entry, NODE_KEYS, where)
    path = _absolute(entry.get("path", ""), where)
    permissions = check_permissions(entry.get("permissions", "rw"), where)
    return NodeFound(path, entry.get("mountPath", ""), permissions, shared=entry.get("shared", False))


def _mount(entry: Any, where: str) -> Mount:
    _check(entry, MOUNT_KEYS, where)
    path = _absolute(entry.get("path", ""), where)
    return Mount(path, entry.get("mountPath") or path, entry.get("readOnly", True), "", entry.get("optional", False))


def check_permissions(text: str, where: str) -> str:
    """Return device permissions. Raises CommandError when they are no subset of `rwm`."""
    if not text or set(text) - set("rwm") or len(set(text)) != len(text):
        raise CommandError(f"{where}: permissions {text!r} must be one or more of r, w, m")
    return text


def _absolute(path: str, where: str) -> str:
    if not path.startswith("/"):
        raise CommandError(f"{where}: path {path!r} must be an absolute path of the host")
    return path


def _texts(entries: dict[str, Any], where: str) -> tuple[tuple[str, str], ...]:
    return tuple(sorted((key, _text(value, where)) for key, value in entries.items()))


def _text(value: Any, where: str) -> str:
    if not isinstance(value, str):
        raise CommandError(f"{where} must hold texts only")
    return value
