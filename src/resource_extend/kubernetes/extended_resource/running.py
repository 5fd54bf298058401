"""A change on many nodes: which ones, a few at a time, then the kubelets' answer, and an account of each in the end."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import cast

from lightkube.models.core_v1 import Node, Pod

from resource_extend.errors import PluginError
from resource_extend.kubernetes.extended_resource.changing import DryRun, Outcome, Result, change
from resource_extend.kubernetes.extended_resource.clock import Clock
from resource_extend.kubernetes.extended_resource.cluster import Cluster
from resource_extend.kubernetes.extended_resource.decisions import Wish, is_stale
from resource_extend.kubernetes.extended_resource.entries import entries
from resource_extend.kubernetes.extended_resource.many import Interrupted, on_each
from resource_extend.kubernetes.extended_resource.objects import node_name
from resource_extend.kubernetes.extended_resource.progress import progress, say
from resource_extend.kubernetes.extended_resource.waiting import SYNC_WAIT, verify_removed, wait_for_allocatable

SHOWN = 10
"""Nodes that a summary names for each outcome."""


@dataclass(frozen=True)
class Selection:
    """Which nodes: by name, by label selector, or all of them."""

    names: tuple[str, ...] = ()
    selector: str = ""

    def node_names(self, cluster: Cluster) -> list[str]:
        """The names; those given are taken at their word, a missing node shows when it is looked at."""
        return list(dict.fromkeys(self.names)) or [node_name(node) for node in cluster.nodes(self.selector)]

    def nodes(self, cluster: Cluster, parallel: int) -> tuple[list[Node], list[str]]:
        """The node objects, and complaints about those that cannot be read."""
        if not self.names:
            return list(cluster.nodes(self.selector)), []
        found = on_each(self.node_names(cluster), lambda name: _node_or_complaint(cluster, name), parallel)
        nodes = [item for item in found if not isinstance(item, str)]
        return nodes, [item for item in found if isinstance(item, str)]

    def pods(self, cluster: Cluster, parallel: int) -> list[Pod]:
        """The pods on these nodes, others perhaps as well: few nodes are asked for one by one, many all at once."""
        if not self.names:
            return list(cluster.pods())
        groups = on_each(self.node_names(cluster), cluster.pods_on, parallel)
        return [pod for group in groups for pod in group]


def _node_or_complaint(cluster: Cluster, name: str) -> Node | str:
    try:
        return cluster.node(name)
    except PluginError as error:
        return str(error)


@dataclass(frozen=True)
class Runner:
    """How a change is run: on which cluster, how many nodes at a time, for real or not."""

    cluster: Cluster
    clock: Clock
    parallel: int
    dry_run: DryRun = DryRun.NONE

    def make(self, nodes: Sequence[str], wish: Wish) -> list[Result]:
        """One wish on each node."""
        return self._each(nodes, lambda node: [change(self.cluster, self.clock, node, wish, self.dry_run)], wish.name)

    def clean(self, nodes: Sequence[str], names: Sequence[str], *, force: bool) -> list[Result]:
        """What is stale among `names` (among all, when empty) on each node."""
        return self._each(nodes, lambda node: self._clean(node, names, force=force), ", ".join(names) or "-")

    def wait(self, results: list[Result], count: int, limit: float) -> list[Result]:
        """Let the kubelets follow; `limit` is in seconds."""
        return self._watched(
            results,
            lambda: wait_for_allocatable(self.cluster, self.clock, results, count, limit, self.parallel),
            f"waiting up to {limit:.0f} s for allocatable to follow",
        )

    def verify(self, results: list[Result]) -> list[Result]:
        """Look whether what was removed stays away."""
        if not any(result.outcome is Outcome.REMOVED for result in results):
            return results
        return self._watched(
            results,
            lambda: verify_removed(self.cluster, self.clock, results, self.parallel),
            f"waiting {SYNC_WAIT:.0f} s for the kubelets' next sync, to see that what was removed stays away",
        )

    def _clean(self, node: str, names: Sequence[str], *, force: bool) -> list[Result]:
        if not names:
            try:
                shown = self.cluster.node(node)
                names = [item.name for item in entries(shown) if is_stale(item, force=force)]
            except PluginError as error:
                return [Result(node, "-", Outcome.FAILED, message=str(error))]
        wishes = [Wish(name, stale_only=True, force=force) for name in names]
        return [change(self.cluster, self.clock, node, wish, self.dry_run) for wish in wishes]

    def _each(self, nodes: Sequence[str], work: Callable[[str], list[Result]], name: str) -> list[Result]:
        def guarded(node: str) -> list[Result]:
            try:
                return work(node)
            except Exception as error:
                # A fault of ours on one node must not cost the account of the others.
                return [Result(node, name, Outcome.UNKNOWN, message=f"unexpected {type(error).__name__}: {error}")]

        with progress("nodes", len(nodes), self.clock) as step:
            try:
                groups = on_each(nodes, guarded, self.parallel, step)
            except Interrupted as stop:
                skipped = [[Result(node, name, Outcome.NOT_TRIED, message="stopped before")] for node in nodes]
                groups = [cast(list[Result], stop.done.get(place, skipped[place])) for place in range(len(nodes))]
        return [result for group in groups for result in group]

    def _watched(self, results: list[Result], watch: Callable[[], list[Result]], text: str) -> list[Result]:
        if self.dry_run is not DryRun.NONE or any(result.outcome is Outcome.NOT_TRIED for result in results):
            return results
        say(text)
        try:
            return watch()
        except (KeyboardInterrupt, Interrupted):
            return [_unverified(result) if result.outcome.good else result for result in results]


def _unverified(result: Result) -> Result:
    return replace(
        result, outcome=Outcome.UNVERIFIED, message=f"{result.outcome.value}, stopped before it was verified"
    )


def summary(results: Sequence[Result]) -> str:
    """One line: how many of each outcome, and the nodes of those that are not as wished."""
    tally = Counter(result.outcome for result in results)
    parts = []
    for outcome in Outcome:
        if tally[outcome]:
            names = sorted({result.node for result in results if result.outcome is outcome})
            shown = ", ".join(names[:SHOWN]) + (", ..." if len(names) > SHOWN else "")
            parts.append(f"{tally[outcome]} {outcome.value}" + ("" if outcome.good else f" ({shown})"))
    return ", ".join(parts) or "nothing to do"
