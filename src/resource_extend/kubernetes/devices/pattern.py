"""Patterns of host paths: globs, and regular expressions that must match the whole path.

A pattern is compared folder by folder, so neither kind reaches across a slash. What the first wildcard (of a glob) or
the first group (of an expression) stood for is the *match* of a path, which other settings may use as `{match}`.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from functools import lru_cache

from resource_extend.errors import InputError
from resource_extend.kubernetes.devices.tree import Tree

GLOB = "glob"
REGEX = "regex"


@dataclass(frozen=True, slots=True)
class PathPattern:
    """A pattern of absolute host paths; `kind` is GLOB or REGEX."""

    text: str
    kind: str = GLOB

    def check(self) -> PathPattern:
        """Return the pattern itself. Raises InputError when it is no absolute path or does not compile."""
        if not self.text.startswith("/"):
            raise InputError(f"{self.text!r} must be an absolute path of the host, as in /dev/ttyUSB*")
        if any(part in {".", ".."} for part in self.text.split("/")):
            raise InputError(f"{self.text!r} may not contain '.' or '..' as a folder")
        try:
            _parts(self)
        except re.error as error:
            raise InputError(
                f"{self.text!r} is not a regular expression of paths (each folder is matched by itself): {error}"
            ) from error
        return self

    @property
    def literal(self) -> bool:
        """Tell whether the pattern can only match one path."""
        return all(isinstance(part, str) for part in _parts(self))

    def with_match(self, text: str) -> PathPattern:
        """Put a text for `{match}`; it stands for itself, whatever characters it has."""
        plain = re.escape(text) if self.kind == REGEX else re.sub(r"([*?[])", r"[\1]", text)
        return PathPattern(self.text.replace("{match}", plain), self.kind)

    def find(self, tree: Tree) -> list[tuple[str, str]]:
        """List the host paths that are there, with their match, sorted by path. A dangling link counts as there."""
        found = [("", "")]
        for part in _parts(self):
            found = [longer for path, match in found for longer in _step(tree, path, match, part)]
        return sorted(found)


def _step(tree: Tree, path: str, match: str, part: str | re.Pattern[str]) -> list[tuple[str, str]]:
    if isinstance(part, str):
        longer = f"{path}/{part}"
        seen = tree.seen(longer)
        return [(longer, match)] if seen and os.path.lexists(seen) else []
    folder = tree.seen(tree.resolve(path or "/"))
    try:
        names = os.listdir(folder) if folder else []
    except OSError:
        return []
    hits = []
    for name in names:
        hit = part.fullmatch(name)
        if hit and _is_text(name):
            hits.append((f"{path}/{name}", match or next((g for g in hit.groups() if g), "")))
    return hits


def _is_text(name: str) -> bool:
    """Names that are no UTF-8 cannot travel to the kubelet (specification, kubernetes 1.1)."""
    return name.isprintable()


@lru_cache(maxsize=1024)
def _parts(pattern: PathPattern) -> tuple[str | re.Pattern[str], ...]:
    make = _glob_part if pattern.kind == GLOB else _regex_part
    return tuple(make(part) for part in pattern.text.split("/") if part)


def _regex_part(part: str) -> str | re.Pattern[str]:
    plain = re.sub(r"\\(\W)", r"\1", part)
    return plain if re.escape(plain) == part or re.escape(part) == part else re.compile(part)


def _glob_part(part: str) -> str | re.Pattern[str]:
    if not set(part) & set("*?["):
        return part
    out, i = "", 0
    while i < len(part):
        char = part[i]
        close = part.find("]", i + 2) if char == "[" else -1
        if char == "*":
            out += "(.*)"
        elif char == "?":
            out += "(.)"
        elif close > 0:
            body = re.sub(r"([\\\[&~|])", r"\\\1", part[i + 1 : close])
            out += f"([{'^' + body[1:] if body[0] in '!^' else body}])"
            i = close
        else:
            out += re.escape(char)
        i += 1
    return re.compile(out)
