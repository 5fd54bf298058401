"""`set` and `unset` on nodes with and without a kubelet."""

import pytest

from kubernetes.extended_resource.conftest import Nodes, Run
from kubernetes.extended_resource.fake_api_server import FakeApiServer
from kubernetes.extended_resource.fake_cluster import DevicePlugin
from kubernetes.extended_resource.server_facts import CAPACITY, NAME


def test_set_writes_capacity_and_mark_and_the_kubelet_follows(run: Run, nodes: Nodes) -> None:
    """After `set --wait` the node offers the count, marked as ours."""
    nodes.make("n1")

    ran = run("set", f"{NAME}=2", "--node", "n1", "--wait", "-o", "json")

    assert 0 == ran.code, ran.err
    assert ("2", "2") == nodes.shows("n1")
    assert {NAME: 2} == nodes.marks("n1")
    assert "set" == ran.document["results"][0]["outcome"]
    assert {"capacity": 2, "allocatable": 2} == ran.document["results"][0]["after"]


def test_set_again_changes_nothing(run: Run, nodes: Nodes) -> None:
    """A second `set` of the same count sends no patch."""
    nodes.make("n1")
    run("set", f"{NAME}=1000", "--node", "n1")
    nodes.server.calls.clear()

    ran = run("set", f"{NAME}=1000", "--node", "n1")

    assert 0 == ran.code
    assert "unchanged" in ran.out
    assert not [call for call in nodes.server.calls if call[0] == "PATCH"]


def test_set_without_a_kubelet_says_so(run: Run, nodes: Nodes) -> None:
    """--wait ends at its time limit with a text that names the way out."""
    nodes.make("n1", kubelet=False)

    ran = run("set", f"{NAME}=2", "--node", "n1", "--wait", "--timeout", "60")

    assert 1 == ran.code
    assert "no kubelet seems to sync this node" in ran.out
    assert "--allocatable" in ran.out


def test_set_writes_allocatable_when_asked(run: Run, nodes: Nodes) -> None:
    """--allocatable makes the count schedulable on a node without a kubelet."""
    nodes.make("n1", kubelet=False)

    ran = run("set", f"{NAME}=2", "--node", "n1", "--allocatable", "--wait")

    assert 0 == ran.code, ran.out
    assert ("2", "2") == nodes.shows("n1")


def test_set_on_a_node_without_capacity(run: Run, server: FakeApiServer, nodes: Nodes) -> None:
    """A node object made by hand, without any status, gets its first entry."""
    server.cluster.create("nodes", {"metadata": {"name": "n1"}})

    ran = run("set", f"{NAME}=2", "--node", "n1")

    assert 0 == ran.code, ran.out
    assert ("2", "2") == nodes.shows("n1")
    assert {NAME: 2} == nodes.marks("n1")


def test_set_refuses_to_go_below_what_pods_hold(run: Run, nodes: Nodes) -> None:
    """A count lower than what the node's pods request is refused, with the pods' names; --force overrides it."""
    nodes.make("n1", {NAME: "3"}, mark={NAME: 3})
    nodes.pod("w-one", {NAME: "2"}, "n1")

    ran = run("set", f"{NAME}=1", "--node", "n1")
    forced = run("set", f"{NAME}=1", "--node", "n1", "--force")

    assert 1 == ran.code
    assert "pods on the node hold 2 of kkloud.io/widget (default/w-one 2), 1 would be left" in ran.out
    assert 0 == forced.code
    assert "1" == nodes.shows("n1")[0]


def test_raising_needs_no_look_at_pods(run: Run, nodes: Nodes) -> None:
    """The right to list pods is only needed to take something away."""
    nodes.make("n1", {NAME: "1"}, mark={NAME: 1})

    run("set", f"{NAME}=2", "--node", "n1")

    assert not [call for call in nodes.server.calls if "pods" in call[1]]


def test_set_over_a_live_plugin_is_overwritten_and_said_so(run: Run, nodes: Nodes) -> None:
    """A device plugin's name may be set, but the kubelet writes its own count back and --wait tells."""
    nodes.make("n1", {NAME: "4"})
    nodes.server.cluster.kubelets["n1"].plugins[NAME] = DevicePlugin(4)

    ran = run("set", f"{NAME}=9", "--node", "n1", "--wait", "-o", "json")

    assert 1 == ran.code
    assert "overwritten" == ran.document["results"][0]["outcome"]
    assert "not set by this tool" in ran.document["results"][0]["warnings"][0]


def test_unset_takes_the_entry_and_its_mark_away(run: Run, nodes: Nodes) -> None:
    """After `unset` nothing of the name is left, and a kubelet's sync later still nothing."""
    nodes.make("n1", {NAME: "2", "a.b/c": "1"}, mark={NAME: 2, "a.b/c": 1})
    before = nodes.server.clock.now()

    ran = run("unset", NAME, "--node", "n1")

    assert 0 == ran.code, ran.out
    assert (None, None) == nodes.shows("n1")
    assert {"a.b/c": 1} == nodes.marks("n1")
    assert nodes.server.clock.now() - before > 15


def test_unset_of_what_is_not_there_is_success(run: Run, nodes: Nodes) -> None:
    """A missing key is "already absent"."""
    nodes.make("n1")

    ran = run("unset", NAME, "--node", "n1")

    assert 0 == ran.code
    assert "already absent" in ran.out


@pytest.mark.parametrize("left", [None, 100.0])
def test_unset_tells_when_the_kubelet_wrote_it_back(run: Run, nodes: Nodes, left: float | None) -> None:
    """With a live plugin, or one that left less than five minutes ago, the removal is not called done."""
    nodes.make("n1", {NAME: "4"})
    since = None if left is None else nodes.server.clock.now() - left
    nodes.server.cluster.kubelets["n1"].plugins[NAME] = DevicePlugin(4, left=since)

    ran = run("unset", NAME, "--node", "n1", "--force", "-o", "json")

    assert 1 == ran.code
    assert "came back" == ran.document["results"][0]["outcome"]
    assert "five minutes" in ran.document["results"][0]["message"]


def test_unset_leaves_what_is_not_ours(run: Run, nodes: Nodes) -> None:
    """An entry that this tool did not set is refused, by hand or plugin; adopting it with `set` makes it ours."""
    nodes.make("n1", {NAME: "2"})
    nodes.make("n2", {NAME: "2"}, {NAME: "0"})

    ran = run("unset", NAME, "--all")
    adopted = run("set", f"{NAME}=2", "--node", "n1")
    again = run("unset", NAME, "--node", "n1", "--no-verify")

    assert 1 == ran.code
    assert "was not set by this tool" in ran.out
    assert "try again later" in ran.out
    assert (0, 0) == (adopted.code, again.code)
    assert (None, None) == nodes.shows("n1")


def test_unset_refuses_while_pods_hold_it(run: Run, nodes: Nodes) -> None:
    """Pods that request the name keep it there; ended ones do not."""
    nodes.make("n1", {NAME: "2"}, mark={NAME: 2})
    nodes.pod("w-one", {NAME: "1"}, "n1")

    ran = run("unset", NAME, "--node", "n1")
    nodes.server.cluster.objects["pods"]["default/w-one"]["status"]["phase"] = "Succeeded"
    again = run("unset", NAME, "--node", "n1", "--no-verify")

    assert 1 == ran.code
    assert "default/w-one 1" in ran.out
    assert 0 == again.code


def test_dry_run_in_the_client_shows_the_command(run: Run, nodes: Nodes) -> None:
    """--dry-run=client sends no patch and prints what kubectl would have to be told."""
    nodes.make("n1")

    ran = run("set", f"{NAME}=2", "--node", "n1", "--dry-run", "client")

    assert 0 == ran.code
    assert "kubectl patch node n1 --subresource=status --type=json -p '" in ran.out
    assert CAPACITY in ran.out
    assert not [call for call in nodes.server.calls if call[0] == "PATCH"]


def test_the_summary_of_a_dry_run_claims_nothing(run: Run, nodes: Nodes) -> None:
    """The line about many nodes says that it was a dry run, as each line of the table does."""
    nodes.make("n1")
    nodes.make("n2")

    assert "2 set (dry run)\n" == run("set", f"{NAME}=2", "--all", "--dry-run=client").err


def test_dry_run_in_the_server_stores_nothing(run: Run, nodes: Nodes) -> None:
    """--dry-run=server sends the patch, and the node stays as it is."""
    nodes.make("n1")

    ran = run("set", f"{NAME}=2", "--node", "n1", "--dry-run=server", "--wait", "-o", "json")

    assert 0 == ran.code
    assert {"capacity": 2, "allocatable": None} == ran.document["results"][0]["after"]
    assert (None, None) == nodes.shows("n1")
    assert [("PATCH", "/api/v1/nodes/n1/status")] == [call for call in nodes.server.calls if call[0] == "PATCH"]


def test_a_device_class_of_the_same_name_is_warned_of(run: Run, nodes: Nodes) -> None:
    """Dynamic resource allocation may map the same extended resource; the two exclude each other on a node."""
    nodes.make("n1")
    document = {"metadata": {"name": "widgets"}, "spec": {"extendedResourceName": NAME}}
    nodes.server.cluster.create("deviceclasses", document)

    ran = run("set", f"{NAME}=2", "--node", "n1")

    assert 0 == ran.code
    assert f"DeviceClass widgets maps {NAME}" in ran.err


def test_a_refusal_shows_what_is_there(run: Run, nodes: Nodes) -> None:
    """The row of a refused change has the count that stays."""
    nodes.make("n1", {NAME: "3"})

    ran = run("unset", NAME, "--node", "n1", "-o", "json")

    assert {"capacity": 3, "allocatable": 3} == ran.document["results"][0]["before"]
