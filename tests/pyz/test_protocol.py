"""The process contract on the built files, each call an exec as core makes it (specification, protocol 2, 3 and 8)."""

import json
import os
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from resource_extend import __version__
from resource_extend.verbs import listed
from support.calls import Outcome, call_program, plugin_class
from support.etcd import Etcd, free_ports

KINDS = ["gpu", "storage"]
NODE = "节点-1.example/naïve"

# The requests of one story in order: (verb, request). Every verb occurs.
RESOURCES: dict[str, tuple[Any, Any]] = {
    "gpu": ({"prod_count_map": {"naïve": 4}}, {"prod_count_map": {"naïve": 1}}),
    "storage": ({"volumes": ["/data0:100G"], "storage": "1T"}, {"volumes": ["AUTO:/d:rw:1G"], "storage": "1G"}),
}


def story(kind: str) -> list[tuple[str, Any]]:
    """Return calls of every verb that all succeed, as core writes them: keys are there, empty things are null."""
    node, workload = RESOURCES[kind]
    return [
        ("get-metrics-description", {}),
        ("add-node", {"nodename": NODE, "resource": node, "info": {"Type": "docker", "StorageTotal": 0}}),
        ("get-nodes-deploy-capacity", {"nodenames": [NODE, "unknown"], "workload_resource": workload}),
        ("calculate-deploy", {"nodename": NODE, "deploy_count": 2, "workload_resource_request": workload}),
        ("calculate-realloc", {"nodename": NODE, "workload_resource": None, "workload_resource_request": workload}),
        ("calculate-remap", {"nodename": NODE, "workloads_resource": {"id": {}, "older": None}}),
        (
            "set-node-resource-capacity",
            {"nodename": NODE, "resource": None, "resource_request": None, "delta": True, "incr": True},
        ),
        (
            "set-node-resource-usage",
            {
                "nodename": NODE,
                "workloads_resource": [None],
                "resource": None,
                "resource_request": None,
                "delta": True,
                "incr": True,
            },
        ),
        ("get-node-resource-info", {"nodename": NODE, "workloads_resource": None}),
        ("get-nodes-resource-info", {"nodenames": [NODE, "unknown"]}),
        ("fix-node-resource", {"nodename": NODE, "workloads_resource": []}),
        ("get-most-idle-node", {"nodenames": [NODE]}),
        ("get-metrics", {"nodes": [{"podname": "pod", "nodename": NODE}]}),
        ("set-node-resource-info", {"nodename": NODE, "capacity": None, "usage": None}),
        ("remove-node", {"nodename": NODE}),
        ("get-node-resource-info", {"nodename": NODE, "workloads_resource": None}),
    ]


@pytest.fixture(params=["sqlite", "etcd"])
def stored_in(request: pytest.FixtureRequest, etcd: Etcd, tmp_path: Path) -> str:
    """Return the configuration of each store in turn."""
    if request.param == "sqlite":
        return "sqlite: {path: ../records.db}\n"
    return f"etcd: {{machines: ['{etcd.url}'], prefix: /{tmp_path.name}}}\n"


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    """Return each kind in turn."""
    return str(request.param)


@pytest.fixture
def program(kind: str, plugin: Callable[[str], Path]) -> Path:
    """Return the built file of a kind in a plugin folder, with a SQLite file outside."""
    path = plugin(kind)
    (path.parent / f"{kind}.yaml").write_text("sqlite: {path: ../records.db}\n")
    return path


def fails(outcome: Outcome, line: str | None = None) -> str:
    """Check that a call failed as the contract says, and return its line."""
    assert (128, b"") == (outcome.status, outcome.stdout)
    text = outcome.stderr.decode()
    assert text.endswith("\n")
    assert 1 == text.count("\n")
    assert len(text) > 1
    assert not text.startswith("internal error")
    if line is not None:
        assert f"{line}\n" == text
    return text[:-1]


def test_every_verb_succeeds(kind: str, program: Path, stored_in: str) -> None:
    """Success is the compact JSON on stdout and nothing else: no newline, nothing on stderr, nothing in the folder."""
    (program.parent / f"{kind}.yaml").write_text(stored_in)
    assert {*listed(plugin_class(kind)), "calculate-remap"} == {verb for verb, _ in story(kind)}
    for verb, request in story(kind):
        outcome = call_program(program, [verb], json.dumps(request, ensure_ascii=False).encode())
        assert (0, b"") == (outcome.status, outcome.stderr), (verb, outcome)
        answer = json.loads(outcome.stdout)
        assert outcome.stdout == json.dumps(answer, ensure_ascii=False, separators=(",", ":")).encode(), verb
        assert b"null" not in outcome.stdout or outcome.stdout == b"null"
    assert b"null" == outcome.stdout
    assert {program.name, f"{kind}.yaml"} == set(os.listdir(program.parent))


def test_every_verb_fails(kind: str, program: Path) -> None:
    """Failure is one line on stderr, status 128 and nothing on stdout, for every verb and several reasons."""
    config = program.parent / f"{kind}.yaml"
    for verb in [*listed(plugin_class(kind)), "calculate-remap"]:
        config.write_text("sqlite: {path: /no/such/folder}")
        for request in (b"", b"[]", b'{"nodename":"n"', b'{"x":"\xff"}'):
            assert fails(call_program(program, [verb], request)).startswith("decode plugin input: "), verb
        fails(call_program(program, [verb, "extra"]), f"unexpected argument extra after the verb {verb}")
        config.write_text("etcd: {machines: []}\n")
        fails(call_program(program, [verb], b"[]"), "config invalid: etcd.machines is empty")
        config.unlink()
        fails(call_program(program, [verb]), f"open {kind}.yaml: no such file or directory")


def test_calls_that_need_nothing(kind: str, program: Path) -> None:
    """`name`, `verbs`, --version and --help work without configuration, with stdin closed, empty or broken."""
    (program.parent / f"{kind}.yaml").write_text("etcd: [")
    for name, answer in (("name", json.dumps(kind)), ("verbs", json.dumps(listed(plugin_class(kind))))):
        expected = Outcome(0, answer.replace(", ", ",").encode(), b"")
        for arguments in ([name], ["--config", "/nonexistent", name], ["--config=/nonexistent", name]):
            assert expected == call_program(program, arguments, b"")
        assert expected == call_program(program, [name], b"no JSON")
        assert expected == shell(program, f"$P {name} <&-")
        assert expected == shell(program, f"$P {name} </dev/full")
    for arguments in ([], ["--help"], ["-h"], ["--version"], ["-v"]):
        outcome = call_program(program, arguments, b"")
        assert (0, b"") == (outcome.status, outcome.stderr)
        assert outcome.stdout.endswith(b"\n")
    assert f"Version: {__version__}" == outcome.stdout.decode().splitlines()[0]


def test_command_line(kind: str, program: Path) -> None:
    """Wrong command lines are named; the configuration is given in both forms, or by the environment."""
    verbs = " ".join(["name", "verbs", *listed(plugin_class(kind))])
    for verb in ("bogus", "add_node", ""):
        fails(call_program(program, [verb]), f"unknown verb {verb}, the verbs are: {verbs}")
    options = "the options are: --config PATH, --help, --version"
    fails(call_program(program, ["--nope", "name"]), f"unknown option --nope, {options}")
    fails(call_program(program, ["name", "--config"]), "unexpected argument --config after the verb name")
    for arguments in (["--config"], ["--config="], ["--config", "", "name"]):
        fails(call_program(program, arguments), "--config needs a path")

    elsewhere = program.parent.parent / "elsewhere.yaml"
    elsewhere.write_text("etcd: {machines: []}\n")
    empty = "config invalid: etcd.machines is empty"
    environ = {"ERU_RESOURCE_CONFIG_PATH": str(elsewhere)}
    fails(call_program(program, ["--config", str(elsewhere), "get-metrics"]), empty)
    fails(call_program(program, [f"--config={elsewhere}", "get-metrics"]), empty)
    fails(call_program(program, ["get-metrics"], environ=environ), empty)
    here = ["--config", f"{kind}.yaml", "get-metrics"]
    assert Outcome(0, b"[]", b"") == call_program(program, here, environ=environ)
    assert Outcome(0, b"[]", b"") == call_program(program, ["get-metrics"], environ={"ERU_RESOURCE_CONFIG_PATH": ""})


def test_relative_database_follows_the_configuration(kind: str, program: Path, tmp_path: Path) -> None:
    """A relative sqlite.path is relative to the configuration file, wherever the call is made."""
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc" / "config.yaml").write_text("sqlite: {path: here.db}\n")
    arguments = ["--config", "../etc/config.yaml", "add-node"]
    assert 0 == call_program(program, arguments, b'{"nodename":"n"}').status

    assert {"config.yaml", "here.db"} == set(os.listdir(tmp_path / "etc"))


def shell(program: Path, command: str) -> Outcome:
    """Run a shell command line in the program's folder; `$P` is the program."""
    environ = {"P": str(program), "PATH": "/usr/bin:/bin"}
    return call_program(Path("/bin/sh"), ["-c", command], b"", program.parent, environ)


def test_streams_that_are_closed_or_full(program: Path) -> None:
    """Closed and full streams are failures that tell what they can, and never reach the wrong file."""
    request = """printf '{"nodename":"n"}'"""
    assert 0 == shell(program, f"{request} | $P add-node").status
    fails(shell(program, "$P get-metrics <&-"))
    fails(
        shell(program, f"{request} | $P get-node-resource-info >&-"), "stdout is closed: the answer has no place to go"
    )
    fails(shell(program, f"{request} | $P get-node-resource-info >/dev/full"), "write stdout: no space left on device")
    fails(shell(program, "$P name >/dev/full"), "write stdout: no space left on device")
    for streams in ("2>&-", "2>/dev/full", "2>/dev/full <&-", ">&- 2>&-", "<&- >&- 2>&-"):
        assert Outcome(128, b"", b"") == shell(program, f"{request} | $P add-node {streams}"), streams
    assert 0 == shell(program, f"{request} | $P get-node-resource-info 2>&-").status
    broken = shell(program, f"(sleep 0.2; {request} | $P get-node-resource-info; echo $? >&2) | true")
    assert b"write stdout: broken pipe\n128\n" == broken.stderr
    # The records are as they were.
    assert b"null" not in shell(program, f"{request} | $P get-node-resource-info").stdout


def test_bytes_that_are_no_text(program: Path) -> None:
    """Whatever bytes stand in the request or on the command line, the failure is one line."""
    for request in (b"\xff", b'{"nodename":"\xff"}', b'{"\xc3":1}', b'{"x":"\xed\xa0\x80"}'):
        assert fails(call_program(program, ["remove-node"], request)).startswith("decode plugin input: invalid UTF-8")
    assert fails(call_program(program, ["remove-node"], rb'{"nodename":"\ud800"}')).startswith("decode plugin input: ")
    assert r"unknown verb \udcff\x1b" in fails(call_program(program, [b"\xff\x1b"]))
    name = 'a\nb\r\x00\x1b[31m\x85\u2028 "节\\'
    line = r'key: a\nb\r\x00\x1b[31m\x85\u2028 "节\: node not exists'
    fails(call_program(program, ["fix-node-resource"], json.dumps({"nodename": name}).encode()), line)


@pytest.mark.parametrize(
    "environ", [{"LC_ALL": "C", "PYTHONUTF8": "0"}, {"LANG": "POSIX"}, {"PYTHONIOENCODING": "ascii"}]
)
def test_any_locale(environ: dict[str, str], kind: str, program: Path) -> None:
    """Names outside ASCII are stored and answered the same under every locale."""
    node, _ = RESOURCES[kind]
    name = "节点-😀"
    added = {"nodename": name, "resource": node}
    assert 0 == call_program(program, ["add-node"], json.dumps(added).encode(), environ=environ).status
    for request in (json.dumps({"nodenames": [name]}), json.dumps({"nodenames": [name]}, ensure_ascii=False)):
        outcome = call_program(program, ["get-nodes-resource-info"], request.encode(), environ=environ)
        assert [name] == list(json.loads(outcome.stdout)["node_resource_info_map"])
        assert name in outcome.stdout.decode()


def test_deep_and_long_input(program: Path) -> None:
    """Very deep nesting, very long numbers and names are decided in an instant."""
    deep = b"[" * 100_000 + b"]" * 100_000
    text = fails(call_program(program, ["remove-node"], b'{"nodename":"n","x":' + deep + b"}"))
    assert "decode plugin input: nested too deeply" == text
    for number in (b"9" * 100_000, b"1e999999999", b"1e" + b"9" * 100_000, b"0.1e-999999999"):
        request = b'{"nodename":"n","x":%s}' % number
        assert Outcome(0, b"{}", b"") == call_program(program, ["remove-node"], request)
    for number in (b"9" * 100_000, b"1e999999999"):
        request = b'{"nodename":"n","deploy_count":%s}' % number
        expected = "decode plugin input: integer out of range at $.deploy_count"
        fails(call_program(program, ["calculate-deploy"], request), expected)
    name = "n" * 1_000_000
    fails(
        call_program(program, ["fix-node-resource"], b'{"nodename":"%s"}' % name.encode()),
        f"key: {name}: node not exists",
    )


# --- the whole of stdin is read, whatever else is wrong


MEGABYTES = 50
PIECE = b"x" * (1 << 20)


def send(program: Path, verb: str, beginning: bytes, end: bytes) -> tuple[Outcome, bool]:
    """Send a request of 50 MB in pieces; tell what came of it, and whether all of it was taken."""
    call = subprocess.Popen(
        [program, verb], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=program.parent
    )
    assert call.stdin
    taken = True
    try:
        for piece in (beginning, *[PIECE] * MEGABYTES, end):
            call.stdin.write(piece)
        call.stdin.flush()
    except BrokenPipeError:
        taken = False
    out, err = call.communicate()
    return Outcome(call.returncode, out, err), taken


@pytest.fixture
def verbs(kind: str) -> list[str]:
    """Return the verbs of a kind that take a request."""
    return [*listed(plugin_class(kind)), "calculate-remap"]


def test_large_request_with_a_broken_configuration(kind: str, program: Path, verbs: list[str]) -> None:
    """A configuration error does not leave the writer of the request with a closed pipe."""
    (program.parent / f"{kind}.yaml").write_text("etcd: {machines: []}\n")
    for verb in verbs:
        outcome, taken = send(program, verb, b'{"x":"', b'"}')
        assert taken, verb
        fails(outcome, "config invalid: etcd.machines is empty")


def test_large_request_without_etcd(kind: str, program: Path, verbs: list[str]) -> None:
    """Neither does an etcd that is down: the verbs that need it say which endpoint, the others answer."""
    (port,) = free_ports(1)
    text = f"etcd: {{machines: ['http://127.0.0.1:{port}']}}\nresource_plugin: {{call_timeout: 1s}}\n"
    (program.parent / f"{kind}.yaml").write_text(text)
    without = {"get-metrics-description", "calculate-remap", *(["get-most-idle-node"] if kind == "storage" else [])}
    names = b'"nodename":"n","nodenames":["n"],"nodes":[{"nodename":"n"}]'
    beginnings = dict.fromkeys(verbs, b'{%s,"deploy_count":1,"x":"' % names) | {"calculate-remap": b'{"x":"'}
    with ThreadPoolExecutor(4) as threads:
        results = list(threads.map(lambda verb: send(program, verb, beginnings[verb], b'"}'), verbs))
    for verb, (outcome, taken) in zip(verbs, results, strict=True):
        assert taken, verb
        if verb in without:
            assert (0, b"") == (outcome.status, outcome.stderr), verb
        else:
            assert fails(outcome).startswith(f"etcd unreachable: http://127.0.0.1:{port}: "), verb


def test_large_request_that_counts(kind: str, program: Path) -> None:
    """Tens of megabytes of workloads are added up."""
    node, workload = RESOURCES[kind]
    if kind == "storage":
        node = {"volumes": ["/data0:1000T"]}
    assert 0 == call_program(program, ["add-node"], json.dumps({"nodename": "n", "resource": node}).encode()).status
    deploy = {"nodename": "n", "deploy_count": 1, "workload_resource_request": workload}
    placed = json.loads(call_program(program, ["calculate-deploy"], json.dumps(deploy).encode()).stdout)
    one = json.dumps(placed["workloads_resource"][0]).encode()
    count = 20_000_000 // len(one)
    request = b'{"nodename":"n","delta":true,"incr":true,"workloads_resource":[' + b",".join([one] * count) + b"]}"
    after = json.loads(call_program(program, ["set-node-resource-usage"], request).stdout)["after"]

    if kind == "gpu":
        assert {"naïve": count} == after["prod_count_map"]
    else:
        assert count * 2 * 2**30 == after["storage"]
        assert {"/data0": count * 2**30} == after["volumes"]


# --- secrets


SECRET = "s3cret"


@pytest.fixture
def silent_port() -> Iterator[int]:
    """Return a port that takes connections, says something that no etcd says, and hangs up."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                with connection:
                    connection.recv(100)
                    connection.sendall(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield int(server.getsockname()[1])
        server.shutdown(socket.SHUT_RDWR)
    thread.join()


@pytest.mark.parametrize(
    "text",
    [
        "etcd: {machines: ['http://root:s3cret@127.0.0.1:1']}",
        "etcd: {machines: ['https://root:s3cret@127.0.0.1:1']}",
        "etcd: {machines: ['http://root:s3cret@host']}",
        "etcd: {machines: ['root:s3cret@host']}",
        "etcd: {machines: ['ftp://root:s3cret@host:1']}",
        "etcd: {machines: ['http://root:s3cret@[::1:1']}",
        "etcd: {machines: ['http://root:s3cret@127.0.0.1:PORT']}",
        "etcd: {machines: ['http://127.0.0.1:PORT'], auth: {username: root, password: s3cret}}",
        "etcd: {machines: ['https://127.0.0.1:PORT'], auth: {username: root, password: s3cret}}",
        "etcd: {machines: ['http://127.0.0.1:1'], auth: {username: root, password: s3cret}}",
        "etcd: {machines: ['ETCD'], auth: {username: root, password: [s3cret]}}",
        "etcd: {machines: ['ETCD'], auth: s3cret}",
        "etcd: {machines: ['https://127.0.0.1:1'], ca: /etc/hostname, auth: {username: u, password: s3cret}}",
        "etcd: {machines: ['https://127.0.0.1:1'], ca: /nonexistent, auth: {username: u, password: s3cret}}",
        "etcd: {machines: ['h:1'], auth: {password: *s3cret}}",
        "etcd: {machines: ['h:1'], auth: {password: 's3cret}}",
        "etcd: {machines: ['h:1'], auth: {password: !s3cret!x y}}",
        "etcd: {machines: ['h:1'], auth: {password: s3cret}, prefix: ''}",
        "etcd: {machines: ['h:1'], auth: {password: s3cret}}\nscheduler: {max_deploy_count: x}",
        "etcd: {machines: ['h:1'], auth: {password: s3cret}}\nsqlite: {path: x}",
    ],
)
def test_secrets_stay_secret(
    text: str, plugin: Callable[[str], Path], etcd: Etcd, silent_port: int, tmp_path: Path
) -> None:
    """No failure shows a password or an endpoint with credentials, nor does anything that is left in the folder."""
    program = plugin("gpu")
    limit = "" if "scheduler" in text else "\nresource_plugin: {call_timeout: 1500ms}"
    config = text.replace("PORT", str(silent_port)).replace("ETCD", etcd.url) + limit
    (program.parent / "gpu.yaml").write_text(config)
    trace = tmp_path / "trace"
    environ = {"RESOURCE_EXTEND_DEBUG": str(trace), "PATH": "/usr/bin:/bin"}
    line = fails(call_program(program, ["get-node-resource-info"], b'{"nodename":"n"}', environ=environ))

    assert SECRET not in line
    assert not trace.exists()


def test_request_is_not_repeated(program: Path) -> None:
    """A failure does not show more of the request than the place of the fault."""
    request = json.dumps({"nodename": "n", "resource": "s3cret", "info": {"token": "s3cret"}}).encode()
    assert "s3cret" not in fails(call_program(program, ["add-node"], request))
    assert "s3cret" not in fails(call_program(program, ["add-node"], request[:-5]))
