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

    @property
    def path(self) -> str:
        """Give the only path that a literal pattern can match."""
        return "".join(f"/{part}" for part in _parts(self))

    def with_match(self, text: str) -> PathPattern:
        """Put a text for `{match}`; it stands for itself, whatever characters it has."""
        plain = re.escape(text) if self.kind == REGEX else re.sub(r"([*?[])", r"[\1]", text)
        return PathPattern(self.text.replace("{match}", plain), self.kind)

    def find(self, tree: Tree) -> list[str]:
        """List the host paths that are there, sorted. A dangling link counts as there."""
        found = [""]
        for part in _parts(self):
            found = [longer for path in found for longer in _step(tree, path, part)]
        return sorted(found)

    def match(self, path: str) -> str:
        """Give what the first wildcard or group stands for in a path that was found; "" without one."""
        for part, name in zip(_parts(self), path.strip("/").split("/"), strict=False):
            hit = None if isinstance(part, str) else part.fullmatch(name)
            text = next((group for group in hit.groups() if group), "") if hit else ""
            if text:
                return text
        return ""


def _step(tree: Tree, path: str, part: str | re.Pattern[str]) -> list[str]:
    if isinstance(part, str):
        seen = tree.seen(f"{path}/{part}")
        return [f"{path}/{part}"] if seen and os.path.lexists(seen) else []
    folder = tree.seen(tree.resolve(path or "/"))
    try:
        names = os.listdir(folder) if folder else []
    except OSError:
        return []
    return [f"{path}/{name}" for name in names if part.fullmatch(name) and _is_text(name)]


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
