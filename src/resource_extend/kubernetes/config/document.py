"""A YAML file as nodes that know their line, so that every mistake can be shown where it was made."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NoReturn

import yaml

from resource_extend.kubernetes.model import ConfigError

TEXT = "tag:yaml.org,2002:str"
NULL = "tag:yaml.org,2002:null"
BOOLEAN = "tag:yaml.org,2002:bool"
NUMBERS = frozenset({"tag:yaml.org,2002:int", "tag:yaml.org,2002:float"})


@dataclass(frozen=True, slots=True)
class Place:
    """A node of the file and the way to it, as in `resources[0].name`."""

    file: str
    node: yaml.Node
    path: str

    @property
    def line(self) -> int:
        """Give the line number, counted from 1."""
        return int(self.node.start_mark.line) + 1

    def fail(self, text: str) -> NoReturn:
        """Raise a ConfigError that names the file, the line and the way to this place."""
        where = f"{self.path}: " if self.path else ""
        raise ConfigError(f"{self.file}:{self.line}: {where}{text}")

    def scalar(self, what: str) -> yaml.ScalarNode:
        """Give the node when it is a single value. Raises ConfigError: it must be `what`."""
        if not isinstance(self.node, yaml.ScalarNode) or self.node.tag == NULL:
            self.fail(f"it must be {what}")
        return self.node

    def items(self) -> list[Place]:
        """Give the places of a list. Raises ConfigError when it is none."""
        if not isinstance(self.node, yaml.SequenceNode):
            self.fail("it must be a list")
        return [Place(self.file, node, f"{self.path}[{i}]") for i, node in enumerate(self.node.value)]

    def entries(self) -> Iterator[tuple[str, Place, Place]]:
        """Give (key, place of the key, place of the value). Raises ConfigError: no mapping, or a key twice."""
        if not isinstance(self.node, yaml.MappingNode):
            self.fail("it must be a mapping of keys to values")
        seen: set[str] = set()
        for key_node, node in self.node.value:
            at = Place(self.file, key_node, self.path)
            key = str(at.scalar("a mapping with texts as keys").value)
            if key in seen:
                at.fail(f"key {key!r} is there twice")
            seen.add(key)
            yield key, at, Place(self.file, node, f"{self.path}.{key}" if self.path else key)


def unknown(key: str, known: Iterable[str]) -> str:
    """Say that a key is unknown, and which one was probably meant."""
    names = sorted(known)
    close = difflib.get_close_matches(key, names, n=1)
    hint = f"did you mean {close[0]!r}?" if close else f"known keys are {', '.join(names)}"
    return f"unknown key {key!r}: {hint}"


def read_document(file: str) -> Place:
    """Read a YAML file. Raises ConfigError when it cannot be read, is no YAML or is empty."""
    try:
        with open(file, "rb") as opened:
            text = opened.read().decode()
    except OSError as error:
        raise ConfigError(f"{file}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{file}: it is no UTF-8 text: {error.reason} at byte {error.start}") from error
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise ConfigError(f"{file}:{line}: it is no YAML: {error.problem}") from error
    except (yaml.YAMLError, RecursionError) as error:
        raise ConfigError(f"{file}:1: it is no YAML: {' '.join(str(error).split())}") from error
    if node is None:
        raise ConfigError(f"{file}:1: it is empty: the smallest is `resources: [{{name: example.com/x, counter: 2}}]`")
    return Place(file, node, "")
