"""`clean`: stale entries of stopped device plugins go, everything live stays."""

import json

import pytest

from kubernetes.extended_resource.conftest import Nodes, Run
from kubernetes.extended_resource.fake_cluster import DevicePlugin
from kubernetes.extended_resource.server_facts import NAME

OTHER = "example.com/other"


def test_clean_takes_stale_zeros_and_keeps_the_rest(run: Run, nodes: Nodes) -> None:
    """0/0 goes; a live entry, one in the grace of its plugin, a zero set on purpose and built-in names stay."""
    nodes.make(
        "n1",
        {NAME: "0", OTHER: "2", "a.b/leaving": "3", "a.b/ours": "0", "hugepages-2Mi": "0", "x.kubernetes.io/y": "0"},
        {NAME: "0", OTHER: "2", "a.b/leaving": "0", "a.b/ours": "0", "hugepages-2Mi": "0", "x.kubernetes.io/y": "0"},
        mark={"a.b/ours": 0},
        kubelet=False,
    )

    ran = run("clean", "--node", "n1", "-o", "json")

    assert 0 == ran.code, ran.out
    assert [(NAME, "removed")] == [(item["resource"], item["outcome"]) for item in ran.document["results"]]
    assert (None, None) == nodes.shows("n1")
    for name in (OTHER, "a.b/leaving", "a.b/ours", "hugepages-2Mi", "x.kubernetes.io/y"):
        assert nodes.shows("n1", name)[0] is not None


def test_clean_after_a_plugin_left_for_good(run: Run, nodes: Nodes) -> None:
    """Five minutes after its plugin left the entry is 0/0 for ever; `clean` ends that, and it does not come back."""
    nodes.make("n1")
    plugins = nodes.server.cluster.kubelets["n1"].plugins
    plugins[NAME] = DevicePlugin(4)
    nodes.server.clock.sleep(20)
    plugins[NAME].left = nodes.server.clock.now()
    nodes.server.clock.sleep(20)
    in_grace = run("clean", NAME, "--node", "n1")
    nodes.server.clock.sleep(400)
    stale = nodes.shows("n1")

    ran = run("clean", "--node", "n1")
    nodes.server.clock.sleep(60)

    assert 0 == in_grace.code
    assert "not stale" in in_grace.out
    assert ("0", "0") == stale
    assert 0 == ran.code, ran.out
    assert (None, None) == nodes.shows("n1")


def test_clean_tells_of_a_plugin_with_an_empty_list(run: Run, nodes: Nodes) -> None:
    """A live plugin without devices looks stale; the entry comes back and that is reported, not called done."""
    nodes.make("n1", {NAME: "0"})
    nodes.server.cluster.kubelets["n1"].plugins[NAME] = DevicePlugin(0)

    ran = run("clean", "--all")

    assert 1 == ran.code
    assert "came back" in ran.out


def test_clean_drops_a_mark_without_an_entry(run: Run, nodes: Nodes) -> None:
    """A mark whose entry somebody took away with kubectl is dropped."""
    nodes.make("n1", mark={NAME: 2})

    ran = run("clean", "--all")

    assert 0 == ran.code
    assert {} == nodes.marks("n1")


def test_clean_keeps_what_pods_hold(run: Run, nodes: Nodes) -> None:
    """An explicit 0 keeps further pods out while old ones hold the resource, so it stays, unless forced."""
    nodes.make("n1", {NAME: "0"})
    nodes.pod("w-one", {NAME: "1"}, "n1")

    refused = run("clean", "--all")
    forced = run("clean", "--all", "--force", "--no-verify")

    assert 1 == refused.code
    assert "default/w-one 1" in refused.out
    assert 0 == forced.code
    assert (None, None) == nodes.shows("n1")


def test_clean_forced_takes_a_zero_set_on_purpose(run: Run, nodes: Nodes) -> None:
    """--force is needed for a 0 that this tool set."""
    nodes.make("n1", {NAME: "0"}, mark={NAME: 0})

    kept = run("clean", NAME, "--all")
    forced = run("clean", NAME, "--all", "--force")

    assert (0, 0) == (kept.code, forced.code)
    assert "not stale" in kept.out
    assert (None, None) == nodes.shows("n1")


def test_a_dry_run_of_clean_changes_nothing(run: Run, nodes: Nodes) -> None:
    """--dry-run=client shows the patches of all stale entries."""
    nodes.make("n1", {NAME: "0", OTHER: "0"})

    ran = run("clean", "--all", "--dry-run=client")

    assert 0 == ran.code
    assert 2 == ran.out.count("kubectl patch node n1")
    assert ("0", "0") == nodes.shows("n1")


@pytest.mark.parametrize("text", ["[]", "nonsense", '{"a.b/c": "2"}', '{"a.b/c": true}', '{"a.b/c": -1}'])
def test_an_edited_annotation_is_not_overwritten(run: Run, nodes: Nodes, text: str) -> None:
    """A mark that nobody can read stops every change of its node, with the way out; other nodes are shown."""
    nodes.make("n1", {NAME: "0"})
    nodes.make("n2", {NAME: "2"})
    patch = [{"op": "add", "path": "/metadata/annotations", "value": {"resource-extend/extended-resources": text}}]
    nodes.server.cluster.patch_node("n1", "application/json-patch+json", patch, status=True)

    changes = [
        run("clean", "--node", "n1"),
        run("set", f"{NAME}=1", "--node", "n1"),
        run("unset", NAME, "--node", "n1"),
    ]
    shown = run("list", "-o", "json")

    assert [1, 1, 1] == [ran.code for ran in changes]
    assert all("kubectl annotate node n1 resource-extend/extended-resources-" in ran.out for ran in changes)
    assert 1 == shown.code
    assert ["n2"] == [row["node"] for row in json.loads(shown.out)["resources"]]
    assert "n1" in shown.document["errors"][0]
