"""`list` and `get`, and what the command line refuses before anything is sent."""

import pytest
import yaml

from kubernetes.extended_resource.conftest import Nodes, Run
from kubernetes.extended_resource.server_facts import NAME


def test_list_shows_every_extended_name(run: Run, nodes: Nodes) -> None:
    """Counts, what is requested, what is free, and who is behind it; built-in names are not shown."""
    counts = {NAME: "2", "a.b/hand": "1k", "a.b/stale": "0", "a.b/leaving": "3", "a.b/changed": "5"}
    mark = {NAME: 2, "a.b/changed": 4, "a.b/lost": 1}
    nodes.make("n1", {**counts, "x.kubernetes.io/y": "1"}, {**counts, "a.b/leaving": "0"}, mark=mark)
    nodes.pod("w-one", {NAME: "1"}, "n1")

    ran = run("list", "-o", "json")

    assert 0 == ran.code
    assert [
        ("a.b/changed", 5, 5, 0, 5, "tool-then-changed"),
        ("a.b/hand", 1000, 1000, 0, 1000, "by-hand-or-plugin"),
        ("a.b/leaving", 3, 0, 0, 0, "plugin-leaving"),
        ("a.b/lost", None, None, 0, 0, "tool-then-lost"),
        ("a.b/stale", 0, 0, 0, 0, "stale"),
        (NAME, 2, 2, 1, 1, "tool"),
    ] == [
        tuple(row[key] for key in ("resource", "capacity", "allocatable", "requested", "free", "owner"))
        for row in ran.document["resources"]
    ]


def test_a_lost_zero_is_shown(run: Run, nodes: Nodes) -> None:
    """A mark of 0 whose entry somebody took away is a trace of this tool like any other."""
    nodes.make("n1", mark={NAME: 0})

    ran = run("list", "-o", "json")

    assert [(NAME, None, 0)] == [(row["resource"], row["capacity"], row["marked"]) for row in ran.document["resources"]]


def test_the_table_is_never_cut(run: Run, nodes: Nodes) -> None:
    """Long names stay whole when the output goes to a program."""
    name, node = "a" * 60 + ".example.com/" + "b" * 63, "n" * 63 + ".example.com"
    nodes.make(node, {name: "2"})

    ran = run("list")

    assert ["NODE", "RESOURCE", "CAPACITY", "ALLOCATABLE", "REQUESTED", "FREE", "SET", "BY"] == ran.out.split()[:8]
    assert [node, name, "2", "2", "0", "2"] == ran.out.splitlines()[1].split()[:6]


def test_yaml_says_what_json_says(run: Run, nodes: Nodes) -> None:
    """Both documents are the same."""
    nodes.make("n1", {NAME: "2"})

    assert run("list", "-o", "json").document == yaml.safe_load(run("list", "-o", "yaml").out)


def test_get_shows_a_named_node_without_the_resource(run: Run, nodes: Nodes) -> None:
    """A node asked for by name has its line; nodes found by a selector only when they have the resource."""
    nodes.make("n1", labels={"pool": "a"})
    nodes.make("n2", {NAME: "2"}, labels={"pool": "a"})

    named = run("get", NAME, "--node", "n1", "-o", "json")
    selected = run("get", NAME, "-l", "pool=a", "-o", "json")

    assert [("n1", None)] == [(row["node"], row["capacity"]) for row in named.document["resources"]]
    assert [("n2", 2)] == [(row["node"], row["capacity"]) for row in selected.document["resources"]]


def test_get_of_a_missing_node_fails_beside_the_rest(run: Run, nodes: Nodes) -> None:
    """The nodes that are there are shown, the other one is an error."""
    nodes.make("n1", {NAME: "2"})

    ran = run("get", NAME, "--node", "n1", "--node", "n9")

    assert 1 == ran.code
    assert "n1" in ran.out
    assert 'nodes "n9" not found' in ran.err


def test_without_a_look_at_pods_the_rest_is_shown(run: Run, nodes: Nodes) -> None:
    """A user who may not list pods sees the counts, and which rule is missing."""
    nodes.make("n1", {NAME: "2"})
    nodes.server.grant("reader", ("", "nodes", "list"))

    ran = run("list", user="reader")

    assert 1 == ran.code
    assert "?" in ran.out
    assert 'missing RBAC rule {apiGroups: [""], resources: ["pods"], verbs: ["list"]}' in ran.err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["set", "widget=1", "--all"], "it has no domain"),
        (["set", "cpu=1", "--all"], "it is a built-in resource"),
        (["set", "hugepages-2Mi=1", "--all"], "it is a built-in resource"),
        (["unset", "memory", "--all", "--force"], "it is a built-in resource"),
        (["clean", "node.kubernetes.io/x", "--all", "--force"], "'kubernetes.io/' may not occur"),
        (["get", "Example.com/x"], "must be a DNS name"),
        (["set", "a.b/c", "--all"], "is not NAME=N"),
        (["set", "a.b/c=1.5", "--all"], "whole number"),
        (["set", "a.b/c=-1", "--all"], "whole number"),
        (["set", "a.b/c=2k", "--all"], "whole number"),
        (["set", "a.b/c=", "--all"], "whole number"),
        (["set", "a.b/c=1"], "say which nodes"),
        (["unset", "a.b/c"], "say which nodes"),
        (["clean"], "say which nodes"),
        (["set", "a.b/c=1", "--all", "--node", "n1"], "exclude each other"),
        (["set", "a.b/c=1", "-l", "pool in ("], "is not a label selector"),
        (["set", "a.b/c=1", "--node", "../pods/x"], "is not the name of an object"),
        (["set", "a.b/c=1", "--all", "--dry-run=maybe"], "is not one of"),
        (["set", "a.b/c=1", "--all", "--parallel", "0"], "--parallel"),
        (["explain", "a/b"], "is not the name of an object"),
        (["keep", "-f", "x", "--dry-run=client"], "add --once"),
        (["keep"], "--file"),
        (["frobnicate"], "No such command"),
    ],
)
def test_a_wrong_command_line_sends_nothing(run: Run, nodes: Nodes, words: list[str], says: str) -> None:
    """Exit status 2, the rule in the text, and no call of the API server."""
    nodes.make("n1")

    ran = run(*words)

    assert 2 == ran.code
    assert says in " ".join(ran.err.split())
    assert [] == nodes.server.calls


def test_no_node_is_not_success(run: Run, nodes: Nodes) -> None:
    """A change for a selector that matches nothing says so, with exit status 1."""
    nodes.make("n1")

    ran = run("set", f"{NAME}=1", "-l", "pool=none")

    assert 1 == ran.code
    assert "no node matches: nothing was done" in ran.err
