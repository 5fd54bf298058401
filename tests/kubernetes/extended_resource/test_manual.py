"""The manual page and the manifests: what they show is what happens."""

import json
import re
import shlex
from pathlib import Path
from typing import Any

import click
import yaml

from kubernetes.extended_resource.conftest import Nodes, Ran, Run
from kubernetes.extended_resource.server_facts import NAME
from kubernetes.extended_resource.test_rights import roles
from resource_extend.kubernetes.extended_resource.changing import Outcome
from resource_extend.kubernetes.extended_resource.cli import main
from resource_extend.kubernetes.extended_resource.entries import Owner
from resource_extend.kubernetes.extended_resource.wanted import parse_wanted

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "extended-resource.md").read_text(encoding="utf-8")
MANIFESTS = ROOT / "build" / "manifests" / "extended-resource"


def session(page: str) -> list[tuple[str, str]]:
    """(command, output) of the page's terminal session."""
    (block,) = re.findall(r"^```text\n(\$ .*?)^```", page, re.MULTILINE | re.DOTALL)
    parts = re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]
    return [(part.partition("\n")[0], part.partition("\n")[2]) for part in parts]


def pend(nodes: Nodes) -> None:
    """Two pods, one of which finds no room, and the scheduler's event."""
    nodes.pod("w-one", {NAME: "1"}, "n1")
    nodes.pod("w-two", {NAME: "2"})
    uid = nodes.server.cluster.get("pods", "default/w-two")["metadata"]["uid"]
    text = f"0/1 nodes are available: 1 Insufficient {NAME}. preemption: 0/1 nodes are available."
    nodes.server.cluster.create(
        "events",
        {
            "metadata": {"name": "w-two.1", "namespace": "default"},
            "involvedObject": {"kind": "Pod", "name": "w-two", "uid": uid},
            "reason": "FailedScheduling",
            "message": text,
        },
    )


def shown(ran: Ran) -> str:
    """Both streams as the page shows them: standard error first."""
    return ran.err + ran.out


def test_the_first_session_is_what_happens(run: Run, nodes: Nodes) -> None:
    """Every command of the page's session prints what the page shows."""
    nodes.make("n1")
    for place, (command, expected) in enumerate(session(PAGE)):
        ran = run(*shlex.split(command)[1:])
        pattern = ".*".join(re.escape(part) for part in expected.split("…"))
        assert re.fullmatch(pattern, shown(ran), re.DOTALL), f"$ {command}\n{shown(ran)}"
        if not place:
            pend(nodes)


def test_the_page_knows_every_outcome_and_owner() -> None:
    """The tables of outcomes and owners are complete."""
    words = re.findall(r"`([^`]+)`", re.sub(r"^```.*?^```", "", PAGE, flags=re.MULTILINE | re.DOTALL))

    assert [] == [outcome.value for outcome in Outcome if outcome.value not in words]
    assert [] == [owner.value for owner in Owner if owner is not Owner.NONE and owner.value not in words]


def test_the_page_names_only_options_that_exist() -> None:
    """Every option in the page is one of the program's, and every command has its heading or stands in one."""
    known = {
        name
        for command in main.commands.values()
        for item in command.params
        for name in item.opts + item.secondary_opts
    }
    known |= {name for item in main.params for name in item.opts} | {"--subresource", "--type"}

    assert [] == [word for word in re.findall(r"--[a-z][a-z-]*[a-z]", PAGE) if word not in known]
    headings = " ".join(re.findall(r"^### (.*)$", PAGE, re.MULTILINE)).replace(",", "").split()
    assert [] == [name for name in main.commands if name not in headings]


def test_every_option_has_a_help_text() -> None:
    """No option is without a word of explanation."""
    found = [(name, item.name) for name, command in main.commands.items() for item in command.params]
    silent = [
        (name, item.name)
        for name, command in main.commands.items()
        for item in command.params
        if isinstance(item, click.Option) and not item.help
    ]

    assert found
    assert [] == silent


def test_the_files_of_keep_are_read(run: Run, nodes: Nodes, tmp_path: Path) -> None:
    """The page's keep file and the manifest's are accepted."""
    (text,) = re.findall(r"^```yaml\n(rules:.*?)^```", PAGE, re.MULTILINE | re.DOTALL)

    assert 2 == len(parse_wanted(text).rules)
    assert 1 == len(parse_wanted(manifest("ConfigMap")["data"]["keep.yaml"]).rules)


def manifest(kind: str) -> Any:
    """The object of a kind in the manifest of keep."""
    (found,) = (
        document for document in yaml.safe_load_all((MANIFESTS / "keep.yaml").read_text()) if document["kind"] == kind
    )
    return found


def test_the_deployment_fits_the_program_and_the_roles(run: Run, nodes: Nodes, tmp_path: Path) -> None:
    """Its arguments are the program's, its account is bound to the role of keep, its volume holds the file."""
    pod = manifest("Deployment")["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    words = [str(word) for word in container["args"]]
    file = tmp_path / "keep.yaml"
    file.write_text(manifest("ConfigMap")["data"]["keep.yaml"])
    nodes.make("n1", labels={"pool": "licences"})

    place = words.index("--file") + 1
    mounts = {mount["mountPath"]: mount["name"] for mount in container["volumeMounts"]}
    ran = run(*words[:place], str(file), *words[place + 1 :], "--once")

    assert 0 == ran.code, ran.err
    assert "set" == json.loads(ran.out)["results"][0]["outcome"]
    assert "file" == mounts[str(Path(words[place]).parent)]
    assert pod["serviceAccountName"] == manifest("ServiceAccount")["metadata"]["name"]
    binding = manifest("ClusterRoleBinding")
    assert "extended-resource-keep" == binding["roleRef"]["name"]
    assert binding["subjects"][0]["name"] == pod["serviceAccountName"]
    assert "keep" in roles()
