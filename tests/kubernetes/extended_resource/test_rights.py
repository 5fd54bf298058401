"""The manifests hold the least rights for each command: all of them are enough, and each of them is needed."""

from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from kubernetes.extended_resource.conftest import Nodes, Ran, Run
from kubernetes.extended_resource.fake_requests import Right
from kubernetes.extended_resource.server_facts import NAME

ROLES = Path(__file__).parents[3] / "build" / "manifests" / "extended-resource" / "roles.yaml"


def roles() -> dict[str, list[Right]]:
    """Command -> the rights that its ClusterRole gives."""
    found = {}
    for document in yaml.safe_load_all(ROLES.read_text()):
        rights = [
            (group, resource, verb)
            for rule in document["rules"]
            for group in rule["apiGroups"]
            for resource in rule["resources"]
            for verb in rule["verbs"]
        ]
        found[document["metadata"]["name"].removeprefix("extended-resource-")] = rights
    return found


def list_(run: Run, nodes: Nodes, _: Path) -> list[Ran]:
    """All nodes, then one by name."""
    nodes.make("n1", {NAME: "2"}, mark={NAME: 2})
    return [run("list", user="robot"), run("get", NAME, "--node", "n1", user="robot")]


def set_(run: Run, nodes: Nodes, _: Path) -> list[Ran]:
    """A count made smaller on selected nodes."""
    nodes.make("n1", {NAME: "2"}, mark={NAME: 2}, labels={"pool": "a"})
    return [run("set", f"{NAME}=1", "--selector", "pool=a", user="robot")]


def unset(run: Run, nodes: Nodes, _: Path) -> list[Ran]:
    """A name taken off all nodes."""
    nodes.make("n1", {NAME: "2"}, mark={NAME: 2})
    return [run("unset", NAME, "--all", user="robot")]


def clean(run: Run, nodes: Nodes, _: Path) -> list[Ran]:
    """A stale entry taken off all nodes."""
    nodes.make("n1", {NAME: "0"})
    return [run("clean", "--all", user="robot")]


def keep(run: Run, nodes: Nodes, folder: Path) -> list[Ran]:
    """A count made smaller by the loop, which then watches until it loses the right to list."""
    nodes.make("n1", {NAME: "2"}, mark={NAME: 2})
    (folder / "keep.yaml").write_text(f"rules: [{{resources: {{{NAME}: 1}}}}]")
    ran = run("keep", "-f", str(folder / "keep.yaml"), "--once", user="robot")
    return [ran, watched(run, nodes, folder)]


def watched(run: Run, nodes: Nodes, folder: Path) -> Ran:
    """One period of the loop, stopped by a signal when the server sees the watch, or its third list."""
    nodes.stop_at_watch_or_lists(3)
    return run("keep", "-f", str(folder / "keep.yaml"), user="robot")


def explain(run: Run, nodes: Nodes, _: Path) -> list[Ran]:
    """A pending pod, on all nodes and on one."""
    nodes.make("n1")
    nodes.pod("w-two", {NAME: "2"})
    return [run("explain", "w-two", user="robot"), run("explain", "w-two", "--node", "n1", user="robot")]


SCENES: dict[str, Callable[[Run, Nodes, Path], list[Ran]]] = {
    "list": list_,
    "set": set_,
    "unset": unset,
    "clean": clean,
    "keep": keep,
    "explain": explain,
}


@pytest.mark.parametrize("command", SCENES)
def test_the_role_is_enough(command: str, run: Run, nodes: Nodes, tmp_path: Path) -> None:
    """With the rights of its role a command does all it can do, without a word about rights."""
    nodes.server.grant("robot", *roles()[command])

    for ran in SCENES[command](run, nodes, tmp_path):
        assert 0 == ran.code, ran.out + ran.err
        assert "RBAC" not in ran.out + ran.err


@pytest.mark.parametrize(("command", "right"), [(name, right) for name, rights in roles().items() for right in rights])
def test_each_right_is_needed_and_named(command: str, right: Right, run: Run, nodes: Nodes, tmp_path: Path) -> None:
    """Without one of its rights a command says which rule is missing."""
    group, resource, verb = right
    nodes.server.grant("robot", *(other for other in roles()[command] if other != right))

    said = "".join(ran.out + ran.err for ran in SCENES[command](run, nodes, tmp_path))

    rule = f'{{apiGroups: ["{group}"], resources: ["{resource}"], verbs: ["{verb}"]}}'
    assert f"missing RBAC rule {rule}" in said
