"""How the tool finds its cluster, and what it says when it cannot; its standard output as a process."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kubernetes.extended_resource.conftest import Nodes, Run
from kubernetes.extended_resource.fake_api_server import FakeApiServer
from kubernetes.extended_resource.server_facts import NAME


def program(*words: str, stdout: Any = subprocess.PIPE, **environment: str) -> "subprocess.CompletedProcess[str]":
    """The program as a process, in an environment with these variables."""
    command = [sys.executable, "-m", "resource_extend.kubernetes.extended_resource", *words]
    env = {**os.environ, **environment}
    return subprocess.run(command, check=False, stdout=stdout, stderr=subprocess.PIPE, text=True, timeout=60, env=env)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "kubeconfig"),
        ("a: [", "kubeconfig"),
        ("{}", "kubeconfig"),
        ("clusters: []\ncontexts: []\ncurrent-context: x\n", "Context 'x' not found"),
        (None, "not found"),
    ],
)
def test_an_unusable_kubeconfig_is_named(run: Run, tmp_path: Path, text: str | None, says: str) -> None:
    """A kubeconfig that is missing or wrong is one line, exit status 1."""
    if text is not None:
        (tmp_path / "bad").write_text(text)

    ran = run("--kubeconfig", str(tmp_path / "bad"), "list")

    assert 1 == ran.code
    assert says in ran.err
    assert 1 == len(ran.err.splitlines())


@pytest.mark.parametrize(
    ("part", "credentials", "says"),
    [
        ("", {}, "is no kubeconfig: a mapping with clusters, contexts and users"),
        ("a", {}, "is no kubeconfig: a mapping with clusters, contexts and users"),
        ("{clusters: []}", {}, "there are no `contexts`"),
        ("{clusters: [1], contexts: []}", {}, "is no kubeconfig: a mapping with clusters, contexts and users"),
        (None, {"client-certificate": "no.crt", "client-key": "no.key"}, "no.crt: No such file or directory"),
    ],
)
def test_what_is_wrong_with_a_kubeconfig_is_said(
    run: Run, server: FakeApiServer, tmp_path: Path, part: str | None, credentials: dict[str, str], says: str
) -> None:
    """The text names the file and its fault, not a Python object."""
    path = tmp_path / "bad"
    path.write_text(Path(server.kubeconfig(tmp_path, **credentials)).read_text() if part is None else part)

    ran = run("--kubeconfig", str(path), "list")

    assert 1 == ran.code
    assert f"kubeconfig {path}: " in ran.err
    assert says in ran.err
    assert "object" not in ran.err


def test_a_missing_authority_is_named(run: Run, server: FakeApiServer, tmp_path: Path) -> None:
    """The file with the cluster's certificates is part of what is named."""
    config = json.loads(Path(server.kubeconfig(tmp_path)).read_text())
    config["clusters"][0]["cluster"] = {"server": "https://127.0.0.1:9", "certificate-authority": "no-ca.crt"}
    (tmp_path / "bad").write_text(json.dumps(config))

    ran = run("--kubeconfig", str(tmp_path / "bad"), "list")

    assert 1 == ran.code
    assert "no-ca.crt: No such file or directory" in ran.err


def test_no_kubeconfig_at_all_says_what_to_do(tmp_path: Path) -> None:
    """Outside a pod, without any file: the ways to give one are named."""
    ran = program("list", HOME=str(tmp_path), KUBECONFIG="")

    assert 1 == ran.returncode
    assert "~/.kube/config not found: name one with --kubeconfig or $KUBECONFIG" in ran.stderr


def test_several_kubeconfigs_are_not_taken_for_one(server: FakeApiServer, tmp_path: Path) -> None:
    """The tool does not merge them as kubectl does, and says so."""
    first = server.kubeconfig(tmp_path)

    ran = program("list", KUBECONFIG=f"{first}:{tmp_path / 'b'}")

    assert 1 == ran.returncode
    assert "$KUBECONFIG names several files, which is not supported: name one with --kubeconfig" in ran.stderr


def test_output_that_cannot_be_written_is_one_line(server: FakeApiServer, tmp_path: Path) -> None:
    """A full disk under standard output is said in one line, with exit status 1."""
    for form in ("table", "json"):
        with Path("/dev/full").open("w") as full:
            ran = program("list", "-o", form, stdout=full, KUBECONFIG=server.kubeconfig(tmp_path))

        assert 1 == ran.returncode
        assert "extended-resource: standard output: No space left on device\n" == ran.stderr


def test_a_credential_program_of_version_v1_is_run(run: Run, nodes: Nodes) -> None:
    """The kubeconfig of a cloud names a program that prints a token; it is told the version it was asked for."""
    nodes.make("n1", {NAME: "2"})
    code = (
        "import json, os; told = json.loads(os.environ['KUBERNETES_EXEC_INFO'])['apiVersion']; "
        "print(json.dumps({'apiVersion': told, 'kind': 'ExecCredential', 'status': {'token': 'admin-token'}}))"
    )
    program = {"apiVersion": "client.authentication.k8s.io/v1", "command": sys.executable, "args": ["-c", code]}

    assert 0 == run("list", exec=program).code


@pytest.mark.parametrize(
    ("command", "arguments", "says"),
    [
        ("no-such-program", [], "no-such-program"),
        ("false", [], "false returned 1"),
        ("echo", ["{}"], "the credential program's answer is no ExecCredential with a token"),
    ],
)
def test_a_credential_program_that_fails_is_named(
    run: Run, nodes: Nodes, command: str, arguments: list[str], says: str
) -> None:
    """A program that is missing, fails or prints something else ends as one line, at once and before any call."""
    nodes.make("n1")
    began = nodes.server.clock.now()
    program = {"apiVersion": "client.authentication.k8s.io/v1beta1", "command": command, "args": arguments}

    ran = run("list", exec=program)

    assert 1 == ran.code
    assert says in ran.err
    assert 1 == len(ran.err.splitlines())
    assert began == nodes.server.clock.now()
    assert [] == nodes.server.calls
