"""What `get`, `list` and `explain` look up: rows of resources on nodes, and why a pod is Pending."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from lightkube.models.core_v1 import Event, Node, Pod

from resource_extend.errors import ResourceError
from resource_extend.kubernetes.extended_resource.cluster import Cluster
from resource_extend.kubernetes.extended_resource.entries import Entry, Owner, entries, entry
from resource_extend.kubernetes.extended_resource.explain import (
    Verdict,
    competitors,
    not_looked_at,
    summary,
    verdict,
)
from resource_extend.kubernetes.extended_resource.objects import bound_to, node_name, phase, pod_name
from resource_extend.kubernetes.extended_resource.quantities import whole
from resource_extend.kubernetes.extended_resource.requested import by_node, held


@dataclass(frozen=True)
class Row:
    """One name on one node, in whole things; None is "not there", for `requested` "not known"."""

    node: str
    name: str
    capacity: int | None
    allocatable: int | None
    requested: int | None
    owner: Owner
    mark: int | None

    @property
    def free(self) -> int | None:
        """What the scheduler could still hand out: allocatable minus requested."""
        return None if self.requested is None else (self.allocatable or 0) - self.requested


def rows(nodes: Iterable[Node], pods: Iterable[Pod] | None, names: Sequence[str] = ()) -> tuple[list[Row], list[str]]:
    """The rows of `names` (of every extended resource, when empty) on the nodes, and complaints about unreadable nodes.

    `pods` None: nobody knows what is requested.
    """
    grouped = None if pods is None else by_node(pods)
    found: list[Row] = []
    complaints: list[str] = []
    for node in nodes:
        requested = None if grouped is None else _held(grouped, node)
        try:
            shown = [entry(node, name) for name in names] if names else list(entries(node))
        except ResourceError as error:
            complaints.append(str(error))
            continue
        found += [_row(node_name(node), item, requested) for item in shown]
    return found, complaints


def _held(grouped: Mapping[str, Sequence[Pod]], node: Node) -> dict[str, int]:
    return {name: int(amount) for name, amount in held(grouped.get(node_name(node), [])).items()}


def _row(node: str, item: Entry, requested: Mapping[str, int] | None) -> Row:
    return Row(
        node,
        item.name,
        None if item.capacity is None else whole(item.capacity),
        None if item.allocatable is None else whole(item.allocatable),
        None if requested is None else requested.get(item.name, 0),
        item.owner,
        item.mark,
    )


@dataclass(frozen=True)
class Explanation:
    """All that is known of why a pod is where it is.

    `state` is one sentence. `verdicts` judge the nodes for a pod that still looks for one; `event` is what the
    scheduler said last, word for word; `unjudged` names what of the pod only the scheduler looks at.
    """

    pod: str
    state: str
    verdicts: Sequence[Verdict] = ()
    summary: str = ""
    event: str = ""
    unjudged: Sequence[str] = ()
    warnings: Sequence[str] = ()


def explain_pod(cluster: Cluster, namespace: str, name: str, nodes: Sequence[Node] | None = None) -> Explanation:
    """Why the pod is Pending, or where it is; `nodes` limits the nodes that are judged.

    Raises:
        ClusterError: something cannot be read.
    """
    pod = cluster.pod(namespace, name)
    if phase(pod) != "Pending" or bound_to(pod):
        where = f", bound to node {bound_to(pod)}" if bound_to(pod) else ""
        return Explanation(pod_name(pod), f"phase {phase(pod)}{where}: the scheduler has nothing left to do")
    gates = [gate.name for gate in (pod.spec.schedulingGates if pod.spec else None) or []]
    if gates:
        return Explanation(
            pod_name(pod), f"held back by scheduling gates ({', '.join(gates)}): no node is looked at yet"
        )
    pods = cluster.pods()
    judged = cluster.nodes() if nodes is None else nodes
    verdicts = [verdict(pod, node, competitors(pod, pods, node_name(node))) for node in judged]
    return Explanation(
        pod_name(pod),
        "Pending, bound to no node",
        verdicts,
        summary(verdicts),
        scheduler_event(cluster.events(namespace, name), pod),
        not_looked_at(pod),
    )


def scheduler_event(events: Iterable[Event], pod: Pod) -> str:
    """The newest FailedScheduling message about this very pod, else what its status says, "" for none."""
    uid = pod.metadata.uid if pod.metadata else None
    failed = [event for event in events if event.reason == "FailedScheduling" and event.involvedObject.uid == uid]
    newest = max(failed, key=_time, default=None)
    if newest is not None:
        return newest.message or ""
    conditions = (pod.status.conditions if pod.status else None) or []
    return next((item.message or "" for item in conditions if item.type == "PodScheduled"), "")


def _time(event: Event) -> str:
    last = event.series.lastObservedTime if event.series else None
    return str(last or event.lastTimestamp or event.eventTime or "")
