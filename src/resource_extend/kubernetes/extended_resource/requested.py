"""What pods ask for and hold, by the scheduler's own sum.

A pod asks for its containers and sidecars together, or for the most that one of its init containers needs beside the
sidecars started before it, whichever is more, plus its overhead. What the pod as a whole asks for (its own cpu, memory
and huge pages, Kubernetes 1.34) stands in place of that sum. Pods that ended hold nothing.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction

from lightkube.models.core_v1 import Container, Pod, PodSpec

from resource_extend.kubernetes.extended_resource.objects import bound_to, pod_name, takes_room
from resource_extend.kubernetes.extended_resource.quantities import read_quantity

Amounts = dict[str, Fraction]


@dataclass(frozen=True)
class Holder:
    """A pod on a node and how many of one resource it asks for."""

    pod: str
    count: int

    def __str__(self) -> str:
        return f"{self.pod} {self.count}"


def pod_requests(pod: Pod) -> Amounts:
    """What the scheduler counts for the pod, by resource name; cpu in cores, memory in bytes."""
    if pod.spec is None:
        return {}
    running = _sum(_requests(container) for container in pod.spec.containers)
    sidecars: Amounts = {}
    starting: Amounts = {}
    for container in pod.spec.initContainers or []:
        own = _requests(container)
        if container.restartPolicy == "Always":
            sidecars = _sum([sidecars, own])
            own = sidecars
        else:
            own = _sum([sidecars, own])
        starting = _most(starting, own)
    total = {**_most(_sum([running, sidecars]), starting), **_requests(pod.spec)}
    overhead = {name: read_quantity(str(text)) for name, text in (pod.spec.overhead or {}).items()}
    return _sum([total, overhead])


def holders(pods: Iterable[Pod], name: str) -> list[Holder]:
    """Those of `pods` that ask for `name`, most first; the caller leaves out who takes no room."""
    found = [Holder(pod_name(pod), int(pod_requests(pod).get(name, 0))) for pod in pods]
    return sorted((holder for holder in found if holder.count), key=lambda holder: (-holder.count, holder.pod))


def held(pods: Iterable[Pod]) -> Amounts:
    """What the pods ask for together, by resource name; the caller leaves out who takes no room."""
    return _sum(pod_requests(pod) for pod in pods)


def by_node(pods: Iterable[Pod]) -> dict[str, list[Pod]]:
    """The pods that take room, under the name of their node."""
    grouped: dict[str, list[Pod]] = {}
    for pod in pods:
        if takes_room(pod):
            grouped.setdefault(bound_to(pod), []).append(pod)
    return grouped


def _requests(asking: Container | PodSpec) -> Amounts:
    requests = (asking.resources.requests if asking.resources else None) or {}
    return {name: read_quantity(str(text)) for name, text in requests.items()}


def _sum(amounts: Iterable[Mapping[str, Fraction]]) -> Amounts:
    total: Amounts = {}
    for amount in amounts:
        for name, quantity in amount.items():
            total[name] = total.get(name, Fraction(0)) + quantity
    return total


def _most(first: Amounts, second: Amounts) -> Amounts:
    return {name: max(first.get(name, Fraction(0)), second.get(name, Fraction(0))) for name in {**first, **second}}
