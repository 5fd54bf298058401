"""What shows after a change: webhooks, runs that are stopped while they wait, signs of life; and the real process."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from lightkube.resources.core_v1 import Node

from kubernetes.extended_resource.conftest import Nodes, Run, interrupt
from kubernetes.extended_resource.fake_api_server import FakeApiServer, Fault
from kubernetes.extended_resource.fake_cluster import FakeClock
from kubernetes.extended_resource.fake_objects import StatusError
from kubernetes.extended_resource.server_facts import NAME
from resource_extend.kubernetes.extended_resource.changing import Outcome
from resource_extend.kubernetes.extended_resource.cluster import Cluster
from resource_extend.kubernetes.extended_resource.connection import connect
from resource_extend.kubernetes.extended_resource.decisions import Wish
from resource_extend.kubernetes.extended_resource.progress import progress
from resource_extend.kubernetes.extended_resource.running import Runner

NODE = "/api/v1/nodes/n1"


def test_a_webhook_that_changes_the_patch_is_noticed(run: Run, nodes: Nodes) -> None:
    """The server took the patch and made something else of it: that is no success."""
    nodes.make("n1")
    nodes.server.cluster.admission = lambda node: node["status"]["capacity"].update({NAME: "1"})

    ran = run("set", f"{NAME}=2", "--node", "n1")

    assert 1 == ran.code
    assert "the server took the patch, but the node shows capacity 1" in ran.out


def test_a_fault_that_the_server_finds_is_not_tried_again(run: Run, nodes: Nodes) -> None:
    """A 422 with causes is about the object, not about a change meanwhile."""
    nodes.make("n1")

    def refuse(_: object) -> None:
        raise StatusError(422, "Invalid", 'Node "n1" is invalid', [{"reason": "FieldValueInvalid", "field": "status"}])

    nodes.server.cluster.admission = refuse

    ran = run("set", f"{NAME}=2", "--node", "n1")

    assert 1 == ran.code
    assert 'node n1: 422 Node "n1" is invalid' in ran.out
    assert 1 == len([call for call in nodes.server.calls if call[0] == "PATCH"])


def test_any_other_refusal_is_passed_on(run: Run, nodes: Nodes) -> None:
    """A code without a rule of its own ends the change with the server's words."""
    nodes.make("n1")
    nodes.server.faults = [Fault("PATCH", f"{NODE}/status", code=400)]

    assert "node n1: 400 injected 400" in run("set", f"{NAME}=2", "--node", "n1").out


def test_a_quantity_that_nobody_could_store_is_an_error_of_its_node(run: Run, nodes: Nodes) -> None:
    """A server that sends nonsense ends the change of that node, not the program."""
    nodes.make("n1", {NAME: "2"}, kubelet=False)
    nodes.server.cluster.objects["nodes"]["n1"]["status"]["capacity"][NAME] = "junk"

    ran = run("set", f"{NAME}=2", "--node", "n1")

    assert 1 == ran.code
    assert f"{NAME} of node n1: 'junk' is not a Kubernetes quantity" in ran.out


def test_a_node_that_cannot_be_read_again_is_unverified(run: Run, nodes: Nodes) -> None:
    """--wait and the look after a removal say so when the node cannot be read any more."""
    nodes.make("n1", {NAME: "2"}, mark={NAME: 2})

    def fail() -> None:
        nodes.server.faults.append(Fault("GET", NODE, times=9, code=403))

    nodes.server.faults = [Fault("PATCH", f"{NODE}/status", meddle=fail)]
    waited = run("set", f"{NAME}=3", "--node", "n1", "--wait", "-o", "json")
    nodes.server.faults = [Fault("PATCH", f"{NODE}/status", meddle=fail)]
    removed = run("unset", NAME, "--node", "n1", "-o", "json")

    assert (1, 1) == (waited.code, removed.code)
    assert ["unverified"] * 2 == [ran.document["results"][0]["outcome"] for ran in (waited, removed)]
    assert (None, None) == nodes.shows("n1")


def test_a_node_that_went_with_its_entry_is_fine(run: Run, nodes: Nodes) -> None:
    """A node object that is gone when the removal is verified does not show the entry either."""
    nodes.make("n1", {NAME: "2"}, mark={NAME: 2})

    def leave(now: float) -> None:
        if now > 1010 and "n1" in nodes.server.cluster.objects["nodes"]:
            nodes.server.cluster.delete("nodes", "n1")

    nodes.server.clock.listeners.append(leave)

    ran = run("unset", NAME, "--node", "n1")

    assert 0 == ran.code, ran.out
    assert "the node is gone as well" in ran.out


@pytest.mark.parametrize("words", [["set", f"{NAME}=3", "--wait"], ["unset", NAME]])
def test_a_run_stopped_while_it_waits_tells_what_was_done(run: Run, nodes: Nodes, words: list[str]) -> None:
    """Ctrl-C during the wait: the change is made, and called unverified."""
    nodes.make("n1", {NAME: "2"}, mark={NAME: 2}, kubelet=False)
    begun = nodes.server.clock.now()
    nodes.server.clock.listeners.append(lambda now: interrupt() if now > begun + 1 else None)

    ran = run(*words, "--node", "n1", "-o", "json")

    assert 1 == ran.code
    assert "unverified" == ran.document["results"][0]["outcome"]
    assert "stopped before it was verified" in ran.document["results"][0]["message"]


def test_ctrl_c_while_looking_is_one_line(run: Run, nodes: Nodes) -> None:
    """Nothing was changed, so there is nothing to account for."""
    nodes.make("n1")
    nodes.server.faults = [Fault("GET", "/api/v1/nodes", meddle=interrupt, delay=0.1)]

    ran = run("list")

    assert (1, "extended-resource: stopped\n") == (ran.code, ran.err)


def test_a_fault_of_ours_on_one_node_does_not_cost_the_others(nodes: Nodes, tmp_path: Path) -> None:
    """An exception nobody expected is that node's outcome."""
    nodes.make("n1")
    nodes.make("n2")
    config = nodes.server.kubeconfig(tmp_path)

    class Broken(Cluster):
        def node(self, name: str) -> Node:
            return super().node(name) if name == "n1" else super().node(str(1 // 0))

    with Broken(lambda: connect(config), nodes.server.clock) as cluster:
        results = Runner(cluster, nodes.server.clock, 2).make(["n1", "n2"], Wish(NAME, 2))

    assert [Outcome.SET, Outcome.UNKNOWN] == [result.outcome for result in results]
    assert "unexpected ZeroDivisionError" in results[1].message


def test_a_long_run_shows_a_sign_of_life(capsys: pytest.CaptureFixture[str]) -> None:
    """In a log there is a line every ten seconds, and none on a short run."""
    clock = FakeClock()
    with progress("nodes", 100, clock) as step:
        for _ in range(100):
            clock.sleep(0.3)
            step()

    assert ["nodes: 34 of 100", "nodes: 68 of 100"] == capsys.readouterr().err.splitlines()


def test_the_program_as_a_process(server: FakeApiServer, nodes: Nodes, tmp_path: Path) -> None:
    """Started as Python starts it, with the kubeconfig in the environment."""
    nodes.make("n1", {NAME: "2"})
    environ = {**os.environ, "KUBECONFIG": server.kubeconfig(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)}

    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", "resource_extend.kubernetes.extended_resource", "list"],
        check=False,
        capture_output=True,
        text=True,
        env=environ,
        timeout=60,
    )

    assert (0, "") == (done.returncode, done.stderr)
    assert ["n1", NAME, "2"] == done.stdout.splitlines()[1].split()[:3]
