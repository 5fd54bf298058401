"""What pods ask for, by the scheduler's sum."""

from fractions import Fraction
from typing import Any

import msgspec
import pytest
from lightkube.models.core_v1 import Pod

from kubernetes.extended_resource.server_facts import NAME
from resource_extend.kubernetes.extended_resource.requested import Holder, by_node, held, holders, pod_requests


def container(count: int, *, sidecar: bool = False) -> dict[str, Any]:
    """A container that asks for so many."""
    always = {"restartPolicy": "Always"} if sidecar else {}
    return {"name": "c", "resources": {"requests": {NAME: str(count)}}, **always}


def pod(name: str = "p", node: str = "n1", phase: str = "Running", **spec: Any) -> Pod:
    """A pod as lightkube hands it out."""
    document = {
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"nodeName": node, "containers": [container(1)], **spec},
        "status": {"phase": phase},
    }
    return msgspec.convert(document, Pod)


@pytest.mark.parametrize(
    ("spec", "count"),
    [
        ({"containers": [container(1), container(2)]}, 3),
        ({"containers": [container(1)], "initContainers": [container(5), container(2)]}, 5),
        ({"containers": [container(4)], "initContainers": [container(3)]}, 4),
        ({"containers": [container(1)], "initContainers": [container(2, sidecar=True)]}, 3),
        # A sidecar runs on beside the init containers that come after it, not beside those before.
        ({"containers": [container(1)], "initContainers": [container(2, sidecar=True), container(4)]}, 6),
        ({"containers": [container(1)], "initContainers": [container(4), container(2, sidecar=True)]}, 4),
        ({"containers": [container(1)], "overhead": {NAME: "1"}}, 2),
        ({"containers": [{"name": "c"}]}, 0),
    ],
)
def test_a_pods_request(spec: dict[str, Any], count: int) -> None:
    """Containers and sidecars together, or the hungriest init container, plus the overhead."""
    assert count == pod_requests(pod(**spec)).get(NAME, 0)


def test_what_a_pod_asks_for_as_a_whole() -> None:
    """The pod's own cpu and memory stand in place of its containers' sum; its extended resources are still summed."""
    asked: dict[str, Any] = {
        "containers": [container(2)],
        "resources": {"requests": {"cpu": "3"}},
        "overhead": {"cpu": "1"},
    }

    assert {NAME: Fraction(2), "cpu": Fraction(4)} == pod_requests(pod(**asked))


def test_who_holds() -> None:
    """Bound pods that have not ended hold; pods that are unbound, succeeded or failed do not."""
    pods = [
        pod("a"),
        pod("b", containers=[container(3)]),
        pod("c", phase="Succeeded"),
        pod("d", phase="Failed"),
        pod("e", node="", phase="Pending"),
        pod("f", phase="Pending"),
        pod("g", containers=[{"name": "c"}]),
    ]

    there = by_node(pods)

    assert {"n1": [pods[0], pods[1], pods[5], pods[6]]} == there
    assert [Holder("default/b", 3), Holder("default/a", 1), Holder("default/f", 1)] == holders(there["n1"], NAME)
    assert {NAME: Fraction(5)} == held(there["n1"])
