"""The file of `keep`: which nodes should offer how many of what.

rules:
- selector: pool=licences        # kubectl's words; or
nodes: [build-1, build-2]      # names; or neither, for every node
resources:
example.com/licence: 10
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import yaml
from lightkube.models.core_v1 import Node

from resource_extend.errors import InputError, ResourceError
from resource_extend.kubernetes.extended_resource.decisions import Refused, Wish, decide
from resource_extend.kubernetes.extended_resource.objects import check_object_name, labels, node_name
from resource_extend.kubernetes.extended_resource.ownership import read_marks
from resource_extend.kubernetes.extended_resource.quantities import parse_count
from resource_extend.kubernetes.extended_resource.selectors import LabelSelector, parse_selector
from resource_extend.kubernetes.names import check_name

RULE_KEYS = {"selector", "nodes", "resources"}


@dataclass(frozen=True)
class Rule:
    """Counts for the nodes that match both `selector` and `nodes` (None: all)."""

    counts: Mapping[str, int]
    selector: LabelSelector | None = None
    nodes: frozenset[str] | None = None

    def concerns(self, node: Node) -> bool:
        """The rule speaks of this node."""
        named = self.nodes is None or node_name(node) in self.nodes
        return named and (self.selector is None or self.selector.matches(labels(node)))


@dataclass(frozen=True)
class Wanted:
    """All rules of a file."""

    rules: Sequence[Rule]

    def counts_on(self, node: Node) -> dict[str, int]:
        """Name -> count for one node.

        Raises:
            ResourceError: two rules want different counts of one name there.
        """
        counts: dict[str, int] = {}
        for rule in self.rules:
            for name, count in rule.counts.items() if rule.concerns(node) else ():
                if counts.setdefault(name, count) != count:
                    raise ResourceError(
                        f"node {node_name(node)}: one rule wants {counts[name]} and another {count} of {name}"
                    )
        return counts


@dataclass(frozen=True)
class Terms:
    """How far `keep` may go: `prune` takes away own names that no rule wants; the rest as in Wish."""

    prune: bool = False
    force: bool = False
    with_allocatable: bool = False


def wishes(wanted: Wanted, node: Node, terms: Terms) -> list[Wish]:
    """What is not as wanted on the node; each is to be decided on again from a fresh look.

    Raises:
        ResourceError: the rules contradict each other, or the ownership annotation is unreadable.
    """
    counts = wanted.counts_on(node)
    found = [
        Wish(name, count, own_only=True, force=terms.force, with_allocatable=terms.with_allocatable)
        for name, count in counts.items()
    ]
    if terms.prune:
        found += [Wish(name, force=terms.force) for name in sorted(read_marks(node)) if name not in counts]
    return [wish for wish in found if _open(node, wish)]


def _open(node: Node, wish: Wish) -> bool:
    try:
        return bool(decide(node, wish, []).operations)
    except Refused:
        return True


def parse_wanted(text: str) -> Wanted:
    """Read the file's text.

    Raises:
        InputError: it is not what the docstring of this module shows; the place and the fault are named.
    """
    try:
        document = yaml.load(text, _StrictLoader)  # noqa: S506 - makes texts, lists and mappings only
    except yaml.YAMLError as error:
        raise InputError(f"not YAML: {' '.join(str(error).split())}") from error
    except RecursionError as error:
        raise InputError("not the rules of `keep`: nested too deeply") from error
    _expect(isinstance(document, dict) and set(document) == {"rules"}, "the file", "must hold `rules` and nothing else")
    rules = document["rules"]
    _expect(isinstance(rules, list) and bool(rules), "rules", "must be a list of at least one rule")
    return Wanted([_rule(rule, f"rules[{place}]") for place, rule in enumerate(rules)])


def _rule(rule: Any, place: str) -> Rule:
    _expect(isinstance(rule, dict), place, "must hold `resources`, and `selector` or `nodes`")
    unknown = ", ".join(sorted(str(key) for key in set(rule) - RULE_KEYS))
    _expect(not unknown, place, f"unknown key: {unknown} (known: {', '.join(sorted(RULE_KEYS))})")
    counts = rule.get("resources")
    _expect(isinstance(counts, dict) and bool(counts), f"{place}.resources", "must map names to counts")
    selector, nodes = rule.get("selector"), rule.get("nodes")
    _expect("selector" not in rule or isinstance(selector, str), f"{place}.selector", "must be a text")
    names = isinstance(nodes, list) and bool(nodes) and all(isinstance(node, str) for node in nodes)
    _expect("nodes" not in rule or names, f"{place}.nodes", "must be a list of node names")
    try:
        return Rule(
            {check_name(name): _count(count) for name, count in counts.items()},
            parse_selector(selector) if selector is not None else None,
            frozenset(map(check_object_name, nodes)) if nodes is not None else None,
        )
    except InputError as error:
        raise InputError(f"{place}: {error}") from error


def _count(value: Any) -> int:
    if not isinstance(value, str):
        raise InputError(f"{value} is not a count: an extended resource is a whole number, 0 or more, digits only")
    return parse_count(value)


def _expect(holds: bool, place: str, rule: str) -> None:
    if not holds:
        raise InputError(f"{place}: {rule}")


class _StrictLoader(yaml.BaseLoader):
    """YAML in which a key given twice is a mistake, not a silent choice of the last, and every scalar is its text.

    A count is what stands there: YAML would make 8 of 010 and 90 of 1:30.
    """

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        """The mapping, when no key comes twice."""
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        for place, key in enumerate(keys):
            if key in keys[:place]:
                raise yaml.constructor.ConstructorError(
                    None, None, f"{key!r} is there twice", node.value[place][0].start_mark
                )
        return super().construct_mapping(node, deep)
