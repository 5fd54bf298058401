"""`explain`: which node lacks what, in the scheduler's words."""

from typing import Any

import msgspec
import pytest
from lightkube.models.core_v1 import Node, Pod, Taint, Toleration

from kubernetes.extended_resource.conftest import Nodes, Run
from kubernetes.extended_resource.server_facts import NAME
from resource_extend.kubernetes.extended_resource.placing import NOT_NAMED, TAINTED, WRONG_LABELS, obstacles, tolerates


def failed_scheduling(nodes: Nodes, pod: str, message: str, when: str) -> None:
    """The scheduler's event about a pod."""
    uid = nodes.server.cluster.get("pods", f"default/{pod}")["metadata"]["uid"]
    nodes.server.cluster.create(
        "events",
        {
            "metadata": {"name": f"{pod}.{when}", "namespace": "default"},
            "involvedObject": {"kind": "Pod", "name": pod, "namespace": "default", "uid": uid},
            "reason": "FailedScheduling",
            "message": message,
            "lastTimestamp": f"2026-01-01T00:00:{when}Z",
        },
    )


def test_each_node_says_what_it_lacks(run: Run, nodes: Nodes) -> None:
    """Free is allocatable minus what the pods there request; holders, the rule's sentence and the event stand by."""
    nodes.make("n1", {NAME: "2"})
    nodes.make("n2")
    nodes.make("n3", {NAME: "4"}, spec={"unschedulable": True})
    nodes.make("n4", {NAME: "4"}, spec={"taints": [{"key": "k", "value": "v", "effect": "NoSchedule"}]})
    nodes.pod("w-one", {NAME: "1"}, "n1")
    nodes.pod("w-two", {NAME: "2"})
    failed_scheduling(nodes, "w-two", "older words", "01")
    failed_scheduling(nodes, "w-two", "0/4 nodes are available: newer words.", "02")

    ran = run("explain", "w-two")

    assert 0 == ran.code, ran.err
    lines = [" ".join(line.split()) for line in ran.out.splitlines()]
    assert "default/w-two: Pending, bound to no node" == lines[0]
    numbers = "wants 2, free 1 = allocatable 2 - requested 1; held by default/w-one 1"
    assert f"n1 Insufficient kkloud.io/widget {numbers}" in lines
    assert "n2 Insufficient kkloud.io/widget wants 2, free 0: the node does not offer it" in lines
    assert "n3 node(s) were unschedulable the node is cordoned" in lines
    assert "n4 node(s) had untolerated taint(s) k=v:NoSchedule" in lines
    assert (
        "by the rule: 0/4 nodes are available: 1 node(s) had untolerated taint(s), 1 node(s) were unschedulable, "
        "2 Insufficient kkloud.io/widget."
    ) in lines
    assert "the scheduler: 0/4 nodes are available: newer words." in lines
    assert "older words" not in ran.out


def test_the_document_has_the_numbers(run: Run, nodes: Nodes) -> None:
    """Programs get what is wanted, allocatable, requested and free, and the reasons."""
    nodes.make("n1", {NAME: "2"})
    nodes.pod("w-two", {NAME: "3", "cpu": "500m"})

    (node,) = run("explain", "w-two", "-o", "json").document["nodes"]

    assert [f"Insufficient {NAME}"] == [reason["text"] for reason in node["reasons"]]
    assert [("cpu", "0.5", "4", False), (NAME, "3", "2", True)] == [
        (room["resource"], room["wanted"], room["free"], room["lacking"]) for room in node["resources"]
    ]
    assert not node["fits"]


def test_every_lacking_resource_is_named(run: Run, nodes: Nodes) -> None:
    """cpu, memory and the number of pods are judged by the same rule."""
    nodes.make("n1", {"pods": "1"})
    nodes.pod("w-one", {"cpu": "3", "memory": "7Gi"}, "n1")
    nodes.pod("w-two", {"cpu": "1500m", "memory": "2Gi", NAME: "1"})

    document = run("explain", "w-two", "-o", "json").document

    tally = "1 Insufficient cpu, 1 Insufficient kkloud.io/widget, 1 Insufficient memory, 1 Too many pods"
    assert f"0/1 nodes are available: {tally}." == document["summary"]


def test_a_node_with_room_is_said_to_fit(run: Run, nodes: Nodes) -> None:
    """When some node has room the sentence says which, and what only the scheduler looks at is named."""
    nodes.make("n1", {NAME: "2"})
    nodes.make("n2")
    nodes.pod("w-one", {NAME: "2"}, topologySpreadConstraints=[])
    nodes.pod(
        "w-two",
        {NAME: "2"},
        affinity={"podAntiAffinity": {}},
        volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}],
        schedulerName="other",
    )

    plain = run("explain", "w-one").out
    spread = run("explain", "w-two").out

    assert "1/2 nodes have room: n1." in plain
    assert "not looked at" not in plain
    assert "not looked at: persistentVolumeClaim, podAntiAffinity, schedulerName other" in spread


def test_nominated_pods_count_when_they_are_not_less_important(run: Run, nodes: Nodes) -> None:
    """Room made by preemption is kept for the pod it was made for, against equal or lower priority."""
    nodes.make("n1", {NAME: "2"})
    nodes.pod("w-one", {NAME: "2"}, priority=5)
    nodes.server.cluster.objects["pods"]["default/w-one"]["status"]["nominatedNodeName"] = "n1"
    nodes.pod("w-low", {NAME: "2"}, priority=5)
    nodes.pod("w-high", {NAME: "2"}, priority=6)

    assert f"Insufficient {NAME}" in run("explain", "w-low").out
    assert "fits" in run("explain", "w-high").out


def test_selection_limits_the_nodes(run: Run, nodes: Nodes) -> None:
    """--node and --selector choose what is judged; a missing node is an error beside the rest."""
    nodes.make("n1", labels={"pool": "a"})
    nodes.make("n2")
    nodes.pod("w-two", {NAME: "2"})

    selected = run("explain", "w-two", "-l", "pool=a", "-o", "json")
    named = run("explain", "w-two", "--node", "n2", "--node", "n9", "-o", "json")

    assert ["n1"] == [node["node"] for node in selected.document["nodes"]]
    assert ["n2"] == [node["node"] for node in named.document["nodes"]]
    assert 1 == named.code
    assert 'nodes "n9" not found' in named.err


def test_pods_that_look_for_no_node(run: Run, nodes: Nodes) -> None:
    """A bound pod, an ended one and one held back by gates get one sentence; a missing one is an error."""
    nodes.make("n1", {NAME: "2"})
    nodes.pod("w-one", {NAME: "1"}, "n1")
    nodes.pod("w-gated", {NAME: "1"}, schedulingGates=[{"name": "a.b/c"}])

    assert "phase Running, bound to node n1" in run("explain", "w-one").out
    assert "scheduling gates (a.b/c)" in run("explain", "w-gated").out
    missing = run("explain", "w-none")
    assert 1 == missing.code
    assert 'pods "w-none" not found' in missing.err


def test_without_an_event_the_pods_own_condition_is_quoted(run: Run, nodes: Nodes) -> None:
    """Events are forgotten after an hour; the condition on the pod stays."""
    nodes.make("n1")
    nodes.pod("w-two", {NAME: "2"})
    status = nodes.server.cluster.objects["pods"]["default/w-two"]["status"]
    status["conditions"] = [{"type": "PodScheduled", "status": "False", "message": "the condition's words"}]

    assert "the scheduler: the condition's words" in run("explain", "w-two").out


@pytest.mark.parametrize(
    ("toleration", "taint", "lets"),
    [
        ({}, ("k", "v", "NoSchedule"), False),
        ({"operator": "Exists"}, ("k", "v", "NoExecute"), True),
        ({"key": "k", "operator": "Exists"}, ("k", "v", "NoSchedule"), True),
        ({"key": "k", "value": "v"}, ("k", "v", "NoSchedule"), True),
        ({"key": "k", "value": "w"}, ("k", "v", "NoSchedule"), False),
        ({"key": "j", "value": "v"}, ("k", "v", "NoSchedule"), False),
        ({"key": "k", "value": "v", "effect": "NoExecute"}, ("k", "v", "NoSchedule"), False),
        ({"key": "k", "operator": "Gt", "value": "3"}, ("k", "4", "NoSchedule"), True),
        ({"key": "k", "operator": "Gt", "value": "4"}, ("k", "4", "NoSchedule"), False),
        ({"key": "k", "operator": "Lt", "value": "5"}, ("k", "4", "NoSchedule"), True),
        ({"key": "k", "operator": "Lt", "value": "x"}, ("k", "4", "NoSchedule"), False),
    ],
)
def test_tolerations(toleration: dict[str, str], taint: tuple[str, str, str], lets: bool) -> None:
    """A toleration meets a taint by key, value and effect."""
    key, value, effect = taint
    assert lets == tolerates(msgspec.convert(toleration, Toleration), Taint(key=key, value=value, effect=effect))


def required(*terms: dict[str, Any]) -> dict[str, Any]:
    """A pod's required node affinity."""
    selector = {"nodeSelectorTerms": list(terms)}
    return {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": selector}}}


def expression(operator: str, *values: str, key: str = "pool") -> dict[str, Any]:
    """A term of one expression."""
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


def named(*names: str) -> dict[str, Any]:
    """A term that names nodes."""
    return {"matchFields": [{"key": "metadata.name", "operator": "In", "values": list(names)}]}


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"nodeSelector": {"pool": "a"}}, []),
        ({"nodeSelector": {"pool": "b"}}, [WRONG_LABELS]),
        (required(expression("In", "a", "b")), []),
        (required(expression("NotIn", "a")), [WRONG_LABELS]),
        (required(expression("Exists")), []),
        (required(expression("DoesNotExist")), [WRONG_LABELS]),
        (required(expression("Gt", "3", key="size")), []),
        (required(expression("Lt", "3", key="size")), [WRONG_LABELS]),
        (required(expression("In", "b"), expression("In", "a")), []),
        (required({}), [WRONG_LABELS]),
        (required(named("n1")), []),
        (required(named("n2", "n3")), [NOT_NAMED, WRONG_LABELS]),
        (required(named("n2"), expression("In", "b")), [WRONG_LABELS]),
    ],
)
def test_labels_and_affinity(spec: dict[str, Any], words: list[str]) -> None:
    """NodeSelector and required node affinity are matched as the scheduler does."""
    pod = msgspec.convert({"metadata": {"name": "p"}, "spec": {"containers": [], **spec}}, Pod)
    node = msgspec.convert({"metadata": {"name": "n1", "labels": {"pool": "a", "size": "4"}}}, Node)

    assert words == [text for text, _ in obstacles(pod, node)]


def test_a_preferred_taint_keeps_nobody_off() -> None:
    """PreferNoSchedule is a wish; the other two effects count."""
    pod = msgspec.convert({"metadata": {"name": "p"}, "spec": {"containers": []}}, Pod)
    taints = [{"key": "soft", "effect": "PreferNoSchedule"}, {"key": "hard", "effect": "NoExecute"}]
    node = msgspec.convert({"metadata": {"name": "n1"}, "spec": {"taints": taints}}, Node)

    assert [(TAINTED, "hard:NoExecute")] == obstacles(pod, node)
