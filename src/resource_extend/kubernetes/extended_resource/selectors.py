"""Label selectors in kubectl's words, judged here for the rules of a keep file.

`pool=gpu`, `pool==gpu`, `pool!=gpu`, `pool`, `!pool`, `pool in (a, b)`, `pool notin (a, b)`, joined by commas.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from resource_extend.errors import InputError

_KEY = r"(?:[a-z0-9](?:[-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?"
_VALUE = r"(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?)?"
_REQUIREMENT = re.compile(
    rf"\s*(?:(?P<absent>!)\s*(?P<absent_key>{_KEY})"
    rf"|(?P<key>{_KEY})(?:\s*(?P<equality>==|=|!=)\s*(?P<value>{_VALUE})"
    rf"|\s+(?P<set>in|notin)\s*\((?P<values>[^()]*)\))?)\s*(?:,|$)"
)


@dataclass(frozen=True)
class Requirement:
    """One part of a selector: the label `key` is (or with `negated` is not) one of `values`; None stands for any."""

    key: str
    values: frozenset[str] | None
    negated: bool = False

    def matches(self, labels: Mapping[str, str]) -> bool:
        """A missing label satisfies every negated requirement, as in kubectl."""
        value = labels.get(self.key)
        found = value is not None and (self.values is None or value in self.values)
        return found != self.negated


@dataclass(frozen=True)
class LabelSelector:
    """All requirements together."""

    text: str
    requirements: tuple[Requirement, ...]

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Every requirement holds."""
        return all(requirement.matches(labels) for requirement in self.requirements)


def parse_selector(text: str) -> LabelSelector:
    """Read a selector.

    Raises:
        InputError: the text is none; it says from where on.
    """
    requirements = []
    place = 0
    while place < len(text):
        match = _REQUIREMENT.match(text, place)
        if not match or (match.end() == len(text) and text.endswith(",")):
            raise InputError(f"{text!r} is not a label selector: not understood from {text[place:]!r} on")
        requirements.append(_requirement(match, text))
        place = match.end()
    if not requirements:
        raise InputError("an empty label selector selects nothing on purpose: leave it out to mean all nodes")
    return LabelSelector(text, tuple(requirements))


def _requirement(match: re.Match[str], text: str) -> Requirement:
    if match["absent"]:
        return Requirement(match["absent_key"], None, negated=True)
    if match["equality"]:
        return Requirement(match["key"], frozenset({match["value"]}), negated=match["equality"] == "!=")
    if match["set"]:
        values = [value.strip() for value in match["values"].split(",")]
        if not all(re.fullmatch(_VALUE, value) for value in values):
            raise InputError(f"{text!r} is not a label selector: not values: ({match['values']})")
        return Requirement(match["key"], frozenset(values), negated=match["set"] == "notin")
    return Requirement(match["key"], None)
