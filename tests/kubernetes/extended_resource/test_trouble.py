"""What goes wrong between the tool and the API server, and what is said of it."""

import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from kubernetes.extended_resource.conftest import Nodes, Run, interrupt
from kubernetes.extended_resource.fake_api_server import FakeApiServer, Fault
from kubernetes.extended_resource.server_facts import CAPACITY, NAME, add

STATUS = "/api/v1/nodes/n1/status"
NODE = "/api/v1/nodes/n1"


def patch_elsewhere(server: FakeApiServer, value: str) -> None:
    """Somebody else's PATCH of the capacity."""
    server.cluster.patch_node("n1", "application/json-patch+json", [add(CAPACITY, value)], status=True)


def test_a_change_between_read_and_patch_is_read_again(run: Run, nodes: Nodes) -> None:
    """The patch of a node that changed meanwhile is a 422: the tool reads, decides and patches again."""
    nodes.make("n1")
    nodes.server.faults = [Fault("PATCH", STATUS, meddle=lambda: patch_elsewhere(nodes.server, "7"))]

    ran = run("set", f"{NAME}=2", "--node", "n1")

    assert 0 == ran.code, ran.out
    assert "2" == nodes.shows("n1")[0]
    assert 2 == len([call for call in nodes.server.calls if call[0] == "PATCH"])


def test_a_change_that_makes_the_wish_wrong_is_refused(run: Run, nodes: Nodes) -> None:
    """What is decided again rests on the new state: a pod that came in between keeps the entry."""
    nodes.make("n1", {NAME: "2"}, mark={NAME: 2})

    def meddle() -> None:
        nodes.pod("w-one", {NAME: "1"}, "n1")
        patch_elsewhere(nodes.server, "3")

    nodes.server.faults = [Fault("PATCH", STATUS, meddle=meddle)]

    ran = run("unset", NAME, "--node", "n1")

    assert 1 == ran.code
    assert "pods on the node hold 1" in ran.out
    assert "3" == nodes.shows("n1")[0]


def test_a_node_that_always_changes_is_given_up(run: Run, nodes: Nodes) -> None:
    """After five conflicts the tool stops, and says with what."""
    nodes.make("n1")
    nodes.server.faults = [Fault("PATCH", STATUS, times=9, code=409)]

    ran = run("set", f"{NAME}=2", "--node", "n1")

    assert 1 == ran.code
    assert "node n1: 409 injected 409" in ran.out
    assert 5 == len([call for call in nodes.server.calls if call[0] == "PATCH"])


@pytest.mark.parametrize("code", [409, 422, 429, 503, 500, 504])
def test_passing_trouble_is_tried_again(run: Run, nodes: Nodes, code: int) -> None:
    """A conflict, a busy server and an internal error pass."""
    nodes.make("n1")
    nodes.server.faults = [Fault("PATCH", STATUS, code=code)]

    ran = run("set", f"{NAME}=2", "--node", "n1")

    assert 0 == ran.code, ran.out
    assert "2" == nodes.shows("n1")[0]


@pytest.mark.parametrize("cut", ["before", "after", "half"])
def test_a_lost_answer_is_found_out(run: Run, nodes: Nodes, cut: str) -> None:
    """When the connection is cut around a PATCH, the node is read again: done is not done twice, not done is done."""
    nodes.make("n1")
    nodes.server.faults = [Fault("PATCH", STATUS, cut=cut)]

    ran = run("set", f"{NAME}=2", "--node", "n1", "-o", "json")

    assert 0 == ran.code, ran.out
    assert "2" == nodes.shows("n1")[0]
    (result,) = ran.document["results"]
    assert "set" == result["outcome"]
    assert (cut != "before") == ("the answer was lost; the node shows the change" in result["message"])


def test_a_slow_server_is_not_waited_for_for_ever(run: Run, nodes: Nodes) -> None:
    """An answer later than the time limit counts as lost; the next look finds the change made."""
    nodes.make("n1")
    nodes.server.faults = [Fault("PATCH", STATUS, delay=0.6)]

    ran = run("set", f"{NAME}=2", "--node", "n1", timeout=0.3)

    assert 0 == ran.code, ran.out
    assert "2" == nodes.shows("n1")[0]


def test_a_lost_answer_and_then_no_server_is_unknown(run: Run, nodes: Nodes) -> None:
    """When nothing can be found out any more, the outcome is called unknown, with what is known."""
    nodes.make("n1")

    def break_reads() -> None:
        nodes.server.faults.append(Fault("GET", NODE, times=99, cut="before"))

    nodes.server.faults = [Fault("PATCH", STATUS, cut="after", meddle=break_reads)]

    ran = run("set", f"{NAME}=2", "--node", "n1", "-o", "json")

    assert 1 == ran.code
    assert "unknown" == ran.document["results"][0]["outcome"]
    assert "the change was sent and may or may not have been made" in ran.document["results"][0]["message"]


def test_a_read_is_tried_again(run: Run, nodes: Nodes) -> None:
    """Three lost reads are made good; the list of nodes comes all the same."""
    nodes.make("n1", {NAME: "2"})
    nodes.server.faults = [Fault("GET", "/api/v1/nodes", times=3, cut="half")]

    assert 0 == run("list").code


def test_a_server_that_is_not_there_is_named(run: Run, server: FakeApiServer, tmp_path: Path) -> None:
    """No connection: one line that says so, exit status 1."""
    config = json.loads(Path(server.kubeconfig(tmp_path)).read_text())
    config["clusters"][0]["cluster"]["server"] = "http://127.0.0.1:9"
    (tmp_path / "other").write_text(json.dumps(config))

    ran = run("--kubeconfig", str(tmp_path / "other"), "list")

    assert 1 == ran.code
    assert "extended-resource: list of nodes: the API server cannot be reached: " in ran.err
    assert 1 == len(ran.err.splitlines())


def test_a_node_that_cannot_be_read_is_given_up_after_one_round(run: Run, nodes: Nodes) -> None:
    """A read is tried four times; trying the whole change again would only make it twenty."""
    nodes.make("n1")
    nodes.server.faults = [Fault("GET", NODE, times=99, cut="before")]

    ran = run("set", f"{NAME}=2", "--node", "n1")

    assert 1 == ran.code
    assert 4 == len([call for call in nodes.server.calls if call == ("GET", NODE)])


def test_without_a_server_set_ends_at_once(run: Run, nodes: Nodes) -> None:
    """When not even the DeviceClasses can be asked for, the nodes are not tried one by one."""
    nodes.make("n1")
    nodes.server.faults = [Fault("GET", ".*", times=99, cut="before")]

    ran = run("set", f"{NAME}=2", "--node", "n1", "--node", "n2")

    assert 1 == ran.code
    assert 4 == len(nodes.server.calls)
    assert 1 == len(ran.err.splitlines())


def test_an_unknown_user_is_told_so(run: Run, nodes: Nodes) -> None:
    """A token that the server does not know is a 401; the token is not in the text."""
    nodes.make("n1")

    ran = run("list", user="stranger")

    assert 1 == ran.code
    assert "401" in ran.err
    assert "stranger-token" not in ran.err + ran.out


def test_an_answer_that_is_no_api_servers(run: Run, nodes: Nodes) -> None:
    """A proxy's error page does not end in a traceback."""
    nodes.make("n1")
    nodes.server.faults = [Fault("GET", "/api/v1/nodes", times=9, code=502, content_type="")]

    ran = run("list")

    assert 1 == ran.code
    assert "proxy" in ran.err


def test_a_list_that_expired_starts_again(run: Run, nodes: Nodes) -> None:
    """A list of more than one chunk whose continuation is too old (410) is begun anew."""
    for number in range(501):
        nodes.make(f"n{number}", kubelet=False)
    calls: list[int] = []

    def compact() -> None:
        calls.append(1)
        if len(calls) == 2:
            nodes.server.cluster.compact()

    nodes.server.faults = [Fault("GET", "/api/v1/nodes", times=99, meddle=compact)]

    ran = run("get", NAME, "-o", "json")

    assert 0 == ran.code, ran.err
    assert 4 == len(calls)


def test_only_so_many_nodes_at_a_time(run: Run, nodes: Nodes) -> None:
    """--parallel limits the calls that are open at once; every node gets its line."""
    for number in range(12):
        nodes.make(f"n{number}", kubelet=False)
    nodes.server.faults = [Fault("GET", "/api/v1/nodes/n.*", times=99, delay=0.02)]

    ran = run("set", f"{NAME}=1", "--all", "--parallel", "3", "-o", "json")

    assert 0 == ran.code
    assert 12 == len(ran.document["results"])
    assert 1 < nodes.server.busiest <= 3
    assert "12 set" == ran.document["summary"]


def test_some_nodes_fail_and_the_summary_says_which(run: Run, nodes: Nodes) -> None:
    """A run over several nodes ends with an account of each and exit status 1 when one failed."""
    nodes.make("n1")
    nodes.make("n2", {NAME: "3"}, mark={NAME: 3})
    nodes.pod("w-one", {NAME: "3"}, "n2")

    ran = run("set", f"{NAME}=1", "--node", "n1", "--node", "n2", "--node", "n3")

    assert 1 == ran.code
    assert "1 set, 1 refused (n2), 1 failed (n3)" in ran.err
    assert '404 nodes "n3" not found' in ran.out


def interrupt_twice() -> None:
    """Ctrl-C by somebody without patience: the second one comes while the program waits for what had begun."""
    interrupt()
    time.sleep(0.2)
    interrupt()
    time.sleep(0.2)


@pytest.mark.parametrize("signals", [interrupt, interrupt_twice])
def test_a_stopped_run_accounts_for_every_node(run: Run, nodes: Nodes, signals: Callable[[], None]) -> None:
    """Ctrl-C ends what had begun and lists what was not tried; nothing is half-done."""
    for number in range(6):
        nodes.make(f"n{number}", kubelet=False)
    nodes.server.faults = [Fault("PATCH", "/api/v1/nodes/n1/status", meddle=signals, delay=0.1)]

    ran = run("set", f"{NAME}=1", "--all", "--parallel", "1", "--wait", "-o", "json")

    outcomes = {result["node"]: result["outcome"] for result in ran.document["results"]}
    assert 1 == ran.code
    assert ["set", "not tried"] == [outcomes["n0"], outcomes["n5"]]
    for name, outcome in outcomes.items():
        assert (outcome == "set") == (nodes.shows(name)[0] == "1")
