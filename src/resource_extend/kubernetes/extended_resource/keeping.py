"""`keep`: make nodes offer what a file wants, again and again.

A list of the nodes, then a watch until the period is over, then a list again. A node object that was made anew (a
node that joined again, an autoscaler) shows up in the watch and gets its resources back within a second.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import cast

from lightkube.models.core_v1 import Node

from resource_extend.errors import InputError, PluginError, ResourceError
from resource_extend.kubernetes.extended_resource.changing import DryRun, Outcome, Result, change
from resource_extend.kubernetes.extended_resource.clock import Clock
from resource_extend.kubernetes.extended_resource.cluster import Cluster
from resource_extend.kubernetes.extended_resource.errors import ClusterError, Expired
from resource_extend.kubernetes.extended_resource.many import Interrupted, on_each
from resource_extend.kubernetes.extended_resource.objects import node_name
from resource_extend.kubernetes.extended_resource.wanted import Terms, Wanted, wishes

SHORTEST_DELAY, LONGEST_DELAY = 1.0, 30.0
"""Seconds between two lists when something is wrong: the delay doubles from the one to the other."""


@dataclass
class Keeper:
    """The loop, and what it said last of each node and name, so that it says a thing once.

    `load` reads the file afresh each period; `report` is told what was done, `complain` what stands in the way.
    """

    cluster: Cluster
    clock: Clock
    load: Callable[[], Wanted]
    report: Callable[[Result], None]
    complain: Callable[[str], None]
    terms: Terms = field(default_factory=Terms)
    selector: str = ""
    names: frozenset[str] = frozenset()
    parallel: int = 8
    dry_run: DryRun = DryRun.NONE
    _wanted: Wanted | None = None
    _said: dict[tuple[str, str], str] = field(default_factory=dict)
    _complaints: dict[str, str] = field(default_factory=dict)

    def run(self, period: int, go_on: Callable[[], bool] = lambda: True) -> None:
        """Keep on until `go_on` says no or a signal comes; `period` is in seconds."""
        delay = SHORTEST_DELAY
        while go_on():
            try:
                _, version = self.once()
                self._complaints.pop("cluster", None)
                began = self.clock.now()
                self._watch(version, period)
                delay = SHORTEST_DELAY
                # A watch that ends at once, time and again, must not become a flood of lists.
                self.clock.sleep(max(0.0, SHORTEST_DELAY - (self.clock.now() - began)))
            except ClusterError as error:
                if not isinstance(error, Expired):
                    self._complain("cluster", str(error))
                self.clock.sleep(delay)
                delay = min(2 * delay, LONGEST_DELAY)

    def once(self) -> tuple[list[Result], str]:
        """One look at all nodes: the results where something was not as wanted, and the version to watch from.

        Raises:
            ClusterError: the nodes cannot be listed.
            InputError: the file is wrong, and there is none from before.
        """
        self._load()
        nodes, version = self.cluster.nodes_at(self.selector)
        mine = [node for node in nodes if self._concerns(node)]
        return self._keep_each(mine), version

    def _watch(self, version: str, period: int) -> None:
        for node in self.cluster.watch_nodes(self.selector, version, period):
            if self._concerns(node):
                self._keep_each([node])

    def _keep_each(self, nodes: Sequence[Node]) -> list[Result]:
        """See to the nodes, and tell of each what was done, also when a signal ends it."""
        try:
            groups = on_each(nodes, self._keep, self.parallel)
        except Interrupted as stop:
            self._tell_each(cast(list[Result], group) for group in stop.done.values())
            raise
        return self._tell_each(groups)

    def _keep(self, node: Node) -> list[Result]:
        name = node_name(node)
        try:
            found = wishes(self._wanted or Wanted([]), node, self.terms)
        except ResourceError as error:
            return [Result(name, "-", Outcome.FAILED, message=str(error))]
        return [change(self.cluster, self.clock, name, wish, self.dry_run) for wish in found]

    def _concerns(self, node: Node) -> bool:
        return not self.names or node_name(node) in self.names

    def _load(self) -> None:
        """A file that went wrong leaves the rules as they were: nothing is taken away because of a slip."""
        try:
            self._wanted = self.load()
            self._complaints.pop("file", None)
        except (InputError, OSError) as error:
            if self._wanted is None:
                raise
            self._complain("file", f"the file is wrong, its last good state is kept: {error}")

    def _tell_each(self, groups: Iterable[list[Result]]) -> list[Result]:
        results = [result for group in groups for result in group]
        for result in results:
            self._tell(result)
        return results

    def _tell(self, result: Result) -> None:
        """Report what was done each time, and what stands in the way when it is news."""
        place, state = (result.node, result.name), f"{result.outcome.value}: {result.message}"
        if result.outcome in (Outcome.UNCHANGED, Outcome.ABSENT):
            self._said.pop(place, None)
        elif result.outcome.good:
            self._said.pop(place, None)
            self.report(result)
        elif self._said.get(place) != state:
            self._said[place] = state
            self.report(result)

    def _complain(self, subject: str, text: str) -> None:
        if self._complaints.get(subject) != text:
            self._complaints[subject] = text
            self.complain(text)


def load_file(path: str, parse: Callable[[str], Wanted]) -> Wanted:
    """The rules in a file.

    Raises:
        InputError: the file cannot be read or is wrong; its name is in the text.
    """
    try:
        with open(path, encoding="utf-8") as file:
            return parse(file.read())
    except (OSError, UnicodeDecodeError, PluginError) as error:
        raise InputError(f"{path}: {error}") from error
