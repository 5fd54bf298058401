"""`keep`: nodes as a file wants them, also after a node object was made anew."""

from pathlib import Path

from kubernetes.extended_resource.conftest import Nodes, Run
from kubernetes.extended_resource.server_facts import NAME

OTHER = "example.com/other"


def rules(folder: Path, text: str) -> str:
    """A keep file; its path."""
    (folder / "keep.yaml").write_text(text)
    return str(folder / "keep.yaml")


def test_keep_sets_what_its_rules_want(run: Run, nodes: Nodes, tmp_path: Path) -> None:
    """Each node gets the counts of the rules that concern it, and nothing else."""
    nodes.make("n1", labels={"pool": "a"})
    nodes.make("n2")
    nodes.make("n3")
    file = rules(
        tmp_path,
        f"""
        rules:
          - selector: pool in (a, b)
            resources: {{{NAME}: 2}}
          - nodes: [n1, n2]
            resources: {{{OTHER}: 3}}
        """,
    )

    ran = run("keep", "-f", file, "--once", "-o", "json")

    assert 0 == ran.code, ran.out + ran.err
    assert [("2", "3"), (None, "3"), (None, None)] == [
        (nodes.shows(node)[0], nodes.shows(node, OTHER)[0]) for node in ("n1", "n2", "n3")
    ]
    assert {NAME: 2, OTHER: 3} == nodes.marks("n1")


def test_keep_that_finds_all_well_sends_nothing(run: Run, nodes: Nodes, tmp_path: Path) -> None:
    """A node as wanted costs one list and no more."""
    nodes.make("n1", {NAME: "2"}, mark={NAME: 2})
    file = rules(tmp_path, f"rules: [{{resources: {{{NAME}: 2}}}}]")

    ran = run("keep", "-f", file, "--once")

    assert 0 == ran.code
    assert "nothing to do" in ran.err
    assert [("GET", "/api/v1/nodes")] == nodes.server.calls


def test_keep_puts_back_what_a_kubelet_zeroed(run: Run, nodes: Nodes, tmp_path: Path) -> None:
    """Some kubelets set extended resources to 0 at their start; the mark says that it was ours."""
    nodes.make("n1", {NAME: "0"}, mark={NAME: 2})
    file = rules(tmp_path, f"rules: [{{resources: {{{NAME}: 2}}}}]")

    assert 0 == run("keep", "-f", file, "--once").code
    assert "2" == nodes.shows("n1")[0]


def test_keep_leaves_alone_what_is_not_ours(run: Run, nodes: Nodes, tmp_path: Path) -> None:
    """An entry without our mark is refused, unless it is as wanted or the user forces it."""
    nodes.make("n1", {NAME: "5"})
    nodes.make("n2", {NAME: "2"})
    file = rules(tmp_path, f"rules: [{{resources: {{{NAME}: 2}}}}]")

    ran = run("keep", "-f", file, "--once", "-o", "json")
    forced = run("keep", "-f", file, "--once", "--force")

    assert 1 == ran.code
    assert [("n1", "refused")] == [(item["node"], item["outcome"]) for item in ran.document["results"]]
    assert 0 == forced.code
    assert "2" == nodes.shows("n1")[0]


def test_keep_prunes_own_names_only_when_asked(run: Run, nodes: Nodes, tmp_path: Path) -> None:
    """--prune takes away what this tool set and no rule wants; the rest stays."""
    nodes.make("n1", {NAME: "2", OTHER: "3", "a.b/hand": "1"}, mark={NAME: 2, OTHER: 3})
    file = rules(tmp_path, f"rules: [{{resources: {{{NAME}: 2}}}}]")

    run("keep", "-f", file, "--once")
    before = nodes.shows("n1", OTHER)
    ran = run("keep", "-f", file, "--once", "--prune")

    assert ("3", "3") == before
    assert 0 == ran.code
    assert (None, None) == nodes.shows("n1", OTHER)
    assert ("1", "1") == nodes.shows("n1", "a.b/hand")


def test_a_mark_of_a_built_in_resource_is_refused(run: Run, nodes: Nodes, tmp_path: Path) -> None:
    """Whoever edits the annotation cannot make --prune take a node's cpu away."""
    nodes.make("n1", mark={"cpu": 4})
    file = rules(tmp_path, f"rules: [{{nodes: [n2], resources: {{{NAME}: 2}}}}]")

    ran = run("keep", "-f", file, "--once", "--prune", "--force")

    assert 1 == ran.code
    assert "annotation resource-extend/extended-resources of node n1" in ran.out
    assert ("4", "4") == nodes.shows("n1", "cpu")


def test_keep_does_not_cut_what_pods_hold(run: Run, nodes: Nodes, tmp_path: Path) -> None:
    """Lowering below what pods hold is refused here as in `set`."""
    nodes.make("n1", {NAME: "5"}, mark={NAME: 5})
    nodes.pod("w-one", {NAME: "4"}, "n1")

    ran = run("keep", "-f", rules(tmp_path, f"rules: [{{resources: {{{NAME}: 2}}}}]"), "--once")

    assert 1 == ran.code
    assert "pods on the node hold 4" in ran.out


def test_rules_that_contradict_each_other_touch_nothing(run: Run, nodes: Nodes, tmp_path: Path) -> None:
    """Two counts of one name for a node are an error of that node; the others are kept."""
    nodes.make("n1")
    nodes.make("n2")
    file = rules(tmp_path, f"rules: [{{resources: {{{NAME}: 2}}}}, {{nodes: [n1], resources: {{{NAME}: 3}}}}]")

    ran = run("keep", "-f", file, "--once")

    assert 1 == ran.code
    assert "node n1: one rule wants 2 and another 3" in ran.out
    assert [None, "2"] == [nodes.shows("n1")[0], nodes.shows("n2")[0]]
