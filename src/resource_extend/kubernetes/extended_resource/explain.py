"""Why a pod is Pending: the scheduler's rule as pure functions (its plugin NodeResourcesFit and those before it).

A node lacks a resource when what the pod asks for is more than allocatable minus what the pods there ask for. The
scheduler calls that `Insufficient NAME`.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from lightkube.models.core_v1 import Node, Pod

from resource_extend.kubernetes.extended_resource.objects import (
    allocatable,
    bound_to,
    node_name,
    nominated_for,
    pod_uid,
    priority,
    takes_room,
)
from resource_extend.kubernetes.extended_resource.placing import obstacles
from resource_extend.kubernetes.extended_resource.quantities import read_quantity
from resource_extend.kubernetes.extended_resource.requested import Holder, held, holders, pod_requests

TOO_MANY = "Too many pods"


@dataclass(frozen=True)
class Reason:
    """Why one node does not do: the scheduler's words, and the numbers or names behind them."""

    text: str
    detail: str


@dataclass(frozen=True)
class Room:
    """One resource on one node: what the pod asks for, and allocatable minus requested there. Whole things, mostly."""

    name: str
    wanted: Fraction
    allocatable: Fraction
    requested: Fraction

    @property
    def free(self) -> Fraction:
        """What is left; below 0 when a by-hand entry was lowered under what pods hold."""
        return self.allocatable - self.requested

    @property
    def lacking(self) -> bool:
        """The scheduler would say `Insufficient NAME`."""
        return 0 < self.wanted > self.free


@dataclass(frozen=True)
class Verdict:
    """One node: no reasons means that the pod fits there, by the rules looked at."""

    node: str
    reasons: list[Reason]
    rooms: list[Room]
    holders: dict[str, list[Holder]]

    @property
    def fits(self) -> bool:
        """Nothing that was looked at keeps the pod off."""
        return not self.reasons


def verdict(pod: Pod, node: Node, pods: Sequence[Pod]) -> Verdict:
    """Judge one node; `pods` are those that count there, see `competitors`."""
    rooms = _rooms(pod, node, held(pods))
    reasons = [Reason(text, detail) for text, detail in obstacles(pod, node)]
    limit = allocatable(node).get("pods", "0")
    if len(pods) + 1 > read_quantity(limit):
        reasons.append(Reason(TOO_MANY, f"{len(pods)} of {limit} pods are there"))
    lacking = [room for room in rooms if room.lacking]
    reasons += [Reason(f"Insufficient {room.name}", _numbers(room, node)) for room in lacking]
    return Verdict(node_name(node), reasons, rooms, {room.name: holders(pods, room.name) for room in lacking})


def competitors(pod: Pod, pods: Iterable[Pod], node: str) -> list[Pod]:
    """The pods whose requests count on the node when `pod` is placed.

    Those bound to it that have not ended, and those nominated for it (they made room there by preemption) whose
    priority is not lower.
    """
    others = [other for other in pods if pod_uid(other) != pod_uid(pod)]
    bound = [other for other in others if takes_room(other) and bound_to(other) == node]
    nominated = [
        other
        for other in others
        if not bound_to(other) and nominated_for(other) == node and priority(other) >= priority(pod)
    ]
    return bound + nominated


def summary(verdicts: Sequence[Verdict]) -> str:
    """The sentence that the scheduler would write: how many nodes fail, counted by their first reasons.

    It stops at the first rule that fails on a node, but names every resource that is lacking there.
    """
    if any(verdict.fits for verdict in verdicts):
        names = ", ".join(verdict.node for verdict in verdicts if verdict.fits)
        return f"{sum(verdict.fits for verdict in verdicts)}/{len(verdicts)} nodes have room: {names}."
    tally = Counter(text for verdict in verdicts for text in _first_texts(verdict.reasons))
    counted = ", ".join(sorted(f"{count} {text}" for text, count in tally.items()))
    return f"0/{len(verdicts)} nodes are available" + (f": {counted}." if counted else ".")


def _first_texts(reasons: Sequence[Reason]) -> list[str]:
    texts = [reason.text for reason in reasons]
    about_room = [text for text in texts if text == TOO_MANY or text.startswith("Insufficient ")]
    return texts[:1] if len(about_room) < len(texts) else about_room


def not_looked_at(pod: Pod) -> list[str]:
    """What of the pod only the scheduler itself judges, in the words of the pod's fields."""
    spec = pod.spec
    if spec is None:
        return []
    affinity = spec.affinity
    ports = [port for container in spec.containers for port in container.ports or [] if port.hostPort]
    claims = [volume for volume in spec.volumes or [] if volume.persistentVolumeClaim or volume.ephemeral]
    found = {
        "hostPort": bool(ports),
        "persistentVolumeClaim": bool(claims),
        "topologySpreadConstraints": bool(spec.topologySpreadConstraints),
        "podAffinity": bool(affinity and affinity.podAffinity),
        "podAntiAffinity": bool(affinity and affinity.podAntiAffinity),
        "resourceClaims": bool(spec.resourceClaims),
        f"schedulerName {spec.schedulerName}": spec.schedulerName not in (None, "", "default-scheduler"),
    }
    return [name for name, used in found.items() if used]


def _rooms(pod: Pod, node: Node, requested: Mapping[str, Fraction]) -> list[Room]:
    there = allocatable(node)
    return [
        Room(name, wanted, read_quantity(there.get(name, "0")), requested.get(name, Fraction(0)))
        for name, wanted in sorted(pod_requests(pod).items())
        if wanted
    ]


def _numbers(room: Room, node: Node) -> str:
    numbers = f"wants {number(room.wanted)}, free {number(room.free)}"
    if room.name not in allocatable(node):
        return f"{numbers}: the node does not offer it"
    return f"{numbers} = allocatable {number(room.allocatable)} - requested {number(room.requested)}"


def number(amount: Fraction) -> str:
    """A quantity for people: whole, or in thousandths as for cpu."""
    return str(amount.numerator) if amount.denominator == 1 else f"{float(amount):g}"
