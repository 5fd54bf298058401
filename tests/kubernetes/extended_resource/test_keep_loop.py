"""The loop of `keep`: lists, watches, what it says and how it ends."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kubernetes.extended_resource.conftest import Nodes, Run, interrupt
from kubernetes.extended_resource.fake_api_server import Fault
from kubernetes.extended_resource.server_facts import NAME
from kubernetes.extended_resource.test_keep import rules as keep_file
from resource_extend.kubernetes.extended_resource.changing import Outcome, Result
from resource_extend.kubernetes.extended_resource.cluster import Cluster
from resource_extend.kubernetes.extended_resource.connection import connect
from resource_extend.kubernetes.extended_resource.keeping import Keeper, load_file
from resource_extend.kubernetes.extended_resource.many import Interrupted
from resource_extend.kubernetes.extended_resource.wanted import parse_wanted

Make = Callable[[list[str]], Keeper]


@pytest.fixture
def keeper(nodes: Nodes, tmp_path: Path) -> Iterator[Make]:
    """`keeper(said)`: a loop that wants two of NAME on every node and notes what it says."""
    config = nodes.server.kubeconfig(tmp_path)
    wanted = parse_wanted(f"rules: [{{resources: {{{NAME}: 2}}}}]")
    with Cluster(lambda: connect(config, timeout=2.0), nodes.server.clock) as cluster:

        def make(said: list[str]) -> Keeper:
            def note(result: Result) -> None:
                said.append(f"{result.node} {result.outcome.value}")

            return Keeper(cluster, nodes.server.clock, lambda: wanted, note, said.append)

        yield make


def times(number: int) -> "list[bool]":
    """So many rounds."""
    return [True] * number + [False]


def test_the_watch_puts_back_what_a_new_node_object_lost(nodes: Nodes, keeper: Make) -> None:
    """A node deleted and made anew during the watch has its count again before the period is over."""
    nodes.make("n1")
    said: list[str] = []
    rounds = times(1)

    def renew() -> None:
        nodes.server.cluster.delete("nodes", "n1")
        nodes.make("n1")

    # The second call is the watch: what happens from there on comes through it.
    nodes.server.faults = [Fault("GET", "/api/v1/nodes"), Fault("GET", "/api/v1/nodes", meddle=renew)]

    keeper(said).run(1, lambda: rounds.pop(0))

    assert ["n1 set", "n1 set"] == said
    assert "2" == nodes.shows("n1")[0]
    assert {NAME: 2} == nodes.marks("n1")


def test_a_watch_that_expired_begins_with_a_new_list(nodes: Nodes, keeper: Make) -> None:
    """410 during the watch is no event for people: the nodes are listed again."""
    nodes.make("n1")
    said: list[str] = []
    rounds = times(2)
    nodes.server.faults = [
        Fault("GET", "/api/v1/nodes"),
        Fault("GET", "/api/v1/nodes", meddle=nodes.server.cluster.compact),
    ]

    keeper(said).run(1, lambda: rounds.pop(0))

    assert ["n1 set"] == said
    assert 4 == len([call for call in nodes.server.calls if call == ("GET", "/api/v1/nodes")])


def test_a_dead_watch_is_given_up(nodes: Nodes, keeper: Make) -> None:
    """A connection that went dead without a word ends after the period; the list finds what it missed."""
    nodes.make("n1")
    said: list[str] = []
    rounds = times(2)

    def renew() -> None:
        nodes.server.cluster.delete("nodes", "n1")
        nodes.make("n1")

    nodes.server.faults = [
        Fault("GET", "/api/v1/nodes"),
        Fault("GET", "/api/v1/nodes", delay=1.5, cut="before"),
        Fault("GET", "/api/v1/nodes", meddle=renew),
    ]

    keeper(said).run(1, lambda: rounds.pop(0))

    assert ["n1 set", "n1 set"] == said


def test_a_watch_ends_also_when_there_is_always_news(nodes: Nodes, keeper: Make) -> None:
    """The period is over when it is over: the file is read again in a cluster whose nodes never rest."""
    nodes.make("n1", {NAME: "2"}, mark={NAME: 2})
    rounds = times(2)

    def news() -> None:
        nodes.server.clock.sleep(2)
        body = {"metadata": {"labels": {"changed": "yes"}}}
        nodes.server.cluster.patch_node("n1", "application/merge-patch+json", body, status=False)

    nodes.server.faults = [Fault("GET", "/api/v1/nodes"), Fault("GET", "/api/v1/nodes", meddle=news)]

    keeper([]).run(1, lambda: rounds.pop(0))

    assert 4 == len([call for call in nodes.server.calls if call == ("GET", "/api/v1/nodes")])


def test_the_loop_outlives_the_server_and_complains_once(nodes: Nodes, keeper: Make) -> None:
    """While the API server is away the delay grows to half a minute, and one line is enough."""
    nodes.make("n1")
    said: list[str] = []
    rounds = times(8)
    nodes.server.faults = [Fault("GET", "/api/v1/nodes", times=99, code=503)]
    began = nodes.server.clock.now()

    keeper(said).run(1, lambda: rounds.pop(0))

    assert 1 == len(said)
    assert "busy" in said[0]
    assert nodes.server.clock.now() - began > 1 + 2 + 4 + 8 + 16 + 30 + 30


def test_a_refusal_is_said_once(nodes: Nodes, keeper: Make) -> None:
    """What stands in the way is reported when it is news, and again when it has changed."""
    nodes.make("n1", {NAME: "5"})
    said: list[str] = []
    loop = keeper(said)

    for _ in range(3):
        loop.once()
    nodes.server.cluster.delete("nodes", "n1")
    nodes.make("n1", {NAME: "6"})
    loop.once()

    assert ["n1 refused", "n1 refused"] == said


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("rules: nonsense", "rules: must be a list of at least one rule"),
        ("rules: [{resources: {a.b/c: 2020-13-45}}]", "rules[0]: '2020-13-45' is not a count"),
    ],
)
def test_a_file_that_went_wrong_is_kept_as_it_was(
    nodes: Nodes, keeper: Make, tmp_path: Path, text: str, fault: str
) -> None:
    """The loop reads its file each period; a slip in it changes nothing and is said."""
    nodes.make("n1")
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text(text)
    said: list[str] = []
    loop = keeper(said)
    loop.once()
    loop.load = lambda: load_file(str(wrong), parse_wanted)
    nodes.server.cluster.delete("nodes", "n1")
    nodes.make("n1")

    loop.once()
    loop.once()

    ours, complaint, again = said
    assert ["n1 set", "n1 set"] == [ours, again]
    assert complaint.startswith(f"the file is wrong, its last good state is kept: {wrong}: {fault}")


def test_the_loop_ends_with_a_signal(run: Run, nodes: Nodes, tmp_path: Path) -> None:
    """A signal during the watch ends the loop with exit status 0; lines of JSON are for programs."""
    nodes.make("n1")
    nodes.stop_at_watch_or_lists(9)

    ran = run("keep", "-f", keep_file(tmp_path, f"rules: [{{resources: {{{NAME}: 2}}}}]"), "-o", "json")

    assert 0 == ran.code, ran.err
    assert "stopped" in ran.err
    assert Outcome.SET.value == json.loads(ran.out.splitlines()[0])["outcome"]


def test_a_signal_in_the_middle_of_a_change_leaves_it_told(nodes: Nodes, keeper: Make) -> None:
    """What was being done when the signal came is finished, and reported before the loop ends."""
    nodes.make("n1")
    said: list[str] = []
    nodes.server.faults = [Fault("PATCH", "/api/v1/nodes/n1/status", meddle=interrupt, delay=0.1)]

    with pytest.raises(Interrupted):
        keeper(said).run(1)

    assert ["n1 set"] == said
