"""Kinds of values in the configuration: each reads a place of the file and describes itself as JSON Schema.

The configuration is described once, in `description`, with these; the parser and the published schema both follow.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from resource_extend.errors import PluginError
from resource_extend.kubernetes.config.document import BOOLEAN, NUMBERS, TEXT, Place, unknown
from resource_extend.kubernetes.model import ConfigError

Schema = dict[str, Any]

_DURATION = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|s|m|h)?")
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, None: 1.0}


class Kind(Protocol):
    """What a value may be."""

    def read(self, place: Place) -> Any:
        """Give the value. Raises ConfigError."""
        ...

    def schema(self) -> Schema:
        """Describe the value as JSON Schema."""
        ...


@dataclass(frozen=True, slots=True)
class Text:
    """A text. `check` gives it back or raises a PluginError; `number`: what YAML takes for a number is a text too."""

    check: Callable[[str], str] = str
    pattern: str = ""
    number: bool = False

    def read(self, place: Place) -> str:
        """Give the text."""
        node = place.scalar("a text")
        if node.tag != TEXT and not (self.number and node.tag in NUMBERS):
            place.fail(f"it must be a text: put {node.value} in quotes")
        try:
            return self.check(str(node.value))
        except PluginError as error:
            place.fail(str(error))

    def schema(self) -> Schema:
        """Describe it."""
        described: Schema = {"type": ["string", "number"] if self.number else "string"}
        return described | ({"pattern": self.pattern} if self.pattern else {})


@dataclass(frozen=True, slots=True)
class Hex:
    """Hexadecimal digits of one of the given lengths, in quotes or not, with or without 0x; read as lower case."""

    lengths: tuple[int, ...]

    def read(self, place: Place) -> str:
        """Give the digits in lower case, without 0x."""
        text = str(place.scalar("hexadecimal digits").value).lower().removeprefix("0x")
        if not re.fullmatch(r"[0-9a-f]+", text) or len(text) not in self.lengths:
            place.fail(f"it must be {' or '.join(map(str, self.lengths))} hexadecimal digits, not {text!r}")
        return text

    def schema(self) -> Schema:
        """Describe it."""
        options = "|".join(f"[0-9A-Fa-f]{{{length}}}" for length in self.lengths)
        return {"type": ["string", "number"], "pattern": f"^(0[xX])?({options})$"}


@dataclass(frozen=True, slots=True)
class Choice:
    """One of a few words."""

    words: tuple[str, ...]

    def read(self, place: Place) -> str:
        """Give the word."""
        text = str(place.scalar(f"one of {', '.join(self.words)}").value)
        if text not in self.words:
            place.fail(f"it must be one of {', '.join(self.words)}, not {text!r}")
        return text

    def schema(self) -> Schema:
        """Describe it."""
        return {"enum": list(self.words)}


@dataclass(frozen=True, slots=True)
class Flag:
    """True or false."""

    def read(self, place: Place) -> bool:
        """Give the flag."""
        node = place.scalar("true or false")
        if node.tag != BOOLEAN:
            place.fail(f"it must be true or false, not {node.value!r}")
        return str(node.value).lower() in {"true", "yes", "on"}

    def schema(self) -> Schema:
        """Describe it."""
        return {"type": "boolean"}


@dataclass(frozen=True, slots=True)
class Count:
    """A whole number between two bounds, both included."""

    least: int
    most: int

    def read(self, place: Place) -> int:
        """Give the number."""
        text = str(place.scalar("a whole number").value)
        if not re.fullmatch(r"[0-9]{1,18}", text) or not self.least <= int(text) <= self.most:
            place.fail(f"it must be a whole number from {self.least} to {self.most}, not {text!r}")
        return int(text)

    def schema(self) -> Schema:
        """Describe it."""
        return {"type": "integer", "minimum": self.least, "maximum": self.most}


@dataclass(frozen=True, slots=True)
class Seconds:
    """A length of time: a number of seconds, or with a unit as in 500ms, 5s, 2m, 1h."""

    least: float
    most: float

    def read(self, place: Place) -> float:
        """Give the number of seconds."""
        text = str(place.scalar("a length of time").value)
        parts = _DURATION.fullmatch(text)
        seconds = float(parts[1]) * _UNITS[parts[2]] if parts else -1.0
        if not self.least <= seconds <= self.most:
            place.fail(f"it must be a time from {self.least:g}s to {self.most:g}s, as in 500ms, 5s or 2m, not {text!r}")
        return seconds

    def schema(self) -> Schema:
        """Describe it."""
        return {
            "anyOf": [
                {"type": "number", "minimum": self.least, "maximum": self.most},
                {"type": "string", "pattern": f"^{_DURATION.pattern}$"},
            ]
        }


@dataclass(frozen=True, slots=True)
class ListOf:
    """A list of values of one kind."""

    kind: Kind
    least: int = 0

    def read(self, place: Place) -> tuple[Any, ...]:
        """Give the values."""
        items = place.items()
        if len(items) < self.least:
            place.fail("the list must not be empty")
        return tuple(self.kind.read(item) for item in items)

    def schema(self) -> Schema:
        """Describe it."""
        described: Schema = {"type": "array", "items": self.kind.schema()}
        return described | ({"minItems": self.least} if self.least else {})


@dataclass(frozen=True, slots=True)
class MapOf:
    """A mapping whose keys people choose; the values are of one kind. Given as sorted pairs."""

    key: Text
    kind: Kind

    def read(self, place: Place) -> tuple[tuple[str, Any], ...]:
        """Give the pairs."""
        pairs = []
        for key, at, value in place.entries():
            try:
                pairs.append((self.key.check(key), self.kind.read(value)))
            except ConfigError:
                raise
            except PluginError as error:
                at.fail(str(error))
        return tuple(sorted(pairs))

    def schema(self) -> Schema:
        """Describe it."""
        described: Schema = {"type": "object", "additionalProperties": self.kind.schema()}
        return described | ({"propertyNames": {"pattern": self.key.pattern}} if self.key.pattern else {})


@dataclass(frozen=True, slots=True)
class Key:
    """A key of a section: what its value may be, and what it is for."""

    kind: Kind
    purpose: str
    default: Any = None


@dataclass(frozen=True, slots=True)
class Values:
    """A section as it was read: every known key with its value or default, and the places of those in the file."""

    values: Mapping[str, Any]
    places: Mapping[str, Place]
    place: Place

    def __getitem__(self, key: str) -> Any:
        return self.values[key]

    def given(self, *keys: str) -> list[str]:
        """Name those of `keys` that are in the file."""
        return [key for key in keys if key in self.places]

    def at(self, key: str) -> Place:
        """Give the place of a key, or of the section when it is not in the file."""
        return self.places.get(key, self.place)


@dataclass(frozen=True, slots=True)
class Section:
    """A mapping with known keys. `one_of`: exactly one of these keys must be there; `some_of`: at least one."""

    keys: Mapping[str, Key]
    required: Sequence[str] = ()
    one_of: Sequence[str] = ()
    some_of: Sequence[str] = ()

    def read(self, place: Place) -> Values:
        """Give the values."""
        values = {name: key.default for name, key in self.keys.items()}
        places = {}
        for name, at, value in place.entries():
            if name not in self.keys:
                at.fail(unknown(name, self.keys))
            places[name] = value
            values[name] = self.keys[name].kind.read(value)
        for name in self.required:
            if name not in places:
                place.fail(f"{name!r} is missing")
        given = [name for name in self.one_of if name in places]
        if self.one_of and len(given) != 1:
            place.fail(f"exactly one of {', '.join(map(repr, self.one_of))} is needed")
        if self.some_of and not any(name in places for name in self.some_of):
            place.fail(f"one of {', '.join(map(repr, self.some_of))} is needed")
        return Values(values, places, place)

    def schema(self) -> Schema:
        """Describe it."""
        properties = {name: {"description": key.purpose} | key.kind.schema() for name, key in self.keys.items()}
        described: Schema = {"type": "object", "additionalProperties": False, "properties": properties}
        if self.required:
            described["required"] = list(self.required)
        if self.one_of:
            described["oneOf"] = [{"required": [name]} for name in self.one_of]
        if self.some_of:
            described["anyOf"] = [{"required": [name]} for name in self.some_of]
        return described
