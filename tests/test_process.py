"""The edge: command line, streams and exit status (specification, protocol 2 and 8).

What needs no descriptors is driven through `respond` in this process; the rest runs the plugin from source as core
would run the file.
"""

import json
import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, NoReturn

import pytest

from resource_extend import __version__
from resource_extend.errors import InputError, PluginError, UsageError
from resource_extend.gpu.plugin import GpuPlugin
from resource_extend.plugin import Plugin
from resource_extend.process import respond
from resource_extend.verbs import listed
from support.calls import SOURCES, Outcome, call_here, call_program, source_program

SQLITE = "sqlite: {path: records.db}\n"
VERBS_WITH_REQUEST = [*listed(GpuPlugin), "calculate-remap"]


def no_stdin() -> NoReturn:
    """Stand in for a stdin that must not be read."""
    raise AssertionError("stdin was read")


def answer(arguments: list[str], environ: dict[bytes, bytes] | None = None, plugin: type[Plugin] = GpuPlugin) -> bytes:
    """Answer a call that reads no stdin."""
    return respond(plugin, arguments, environ or {}, no_stdin, time.monotonic())


def refusal(call: Callable[[], object], error: type[PluginError] = PluginError) -> str:
    """Return the text of a call that fails."""
    with pytest.raises(error) as caught:
        call()
    return str(caught.value)


@pytest.fixture
def config(tmp_path: Path) -> str:
    """Give the path of a configuration with an embedded store."""
    (tmp_path / "gpu.yaml").write_text(SQLITE)
    return str(tmp_path / "gpu.yaml")


# --- the command line


@pytest.mark.parametrize("before", [[], ["--config", "/nonexistent"], ["--config=/nonexistent"]])
def test_name_and_verbs_need_nothing(before: list[str]) -> None:
    """`name` and `verbs` answer without configuration, stdin or store."""
    assert b'"gpu"' == answer([*before, "name"])
    assert listed(GpuPlugin) == json.loads(answer([*before, "verbs"]))
    assert b'["get-metrics-description","get-metrics","add-node"' == answer([*before, "verbs"])[:51]


@pytest.mark.parametrize("arguments", [["--version"], ["-v"], ["--config", "x", "--version"]])
def test_version(arguments: list[str]) -> None:
    """The version is on the first line."""
    assert f"Version: {__version__}" == answer(arguments).decode().splitlines()[0]


@pytest.mark.parametrize("arguments", [[], ["--help"], ["-h"], ["--config", "x"], ["--config=x", "-h"]])
def test_help(arguments: list[str]) -> None:
    """Help, or no argument at all, says how to call the plugin and lists every verb."""
    usage, verbs = answer(arguments).decode().split("verbs:\n")

    assert "usage: " in usage
    assert ["name", "verbs", *listed(GpuPlugin)] == verbs.split()


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--config"], "--config needs a path"),
        (["--config="], "--config needs a path"),
        (["--config", "", "name"], "--config needs a path"),
        (["--verbose", "name"], "unknown option --verbose, the options are: --config PATH, --help, --version"),
        (["-c", "x"], "unknown option -c, the options are: --config PATH, --help, --version"),
        (["--configx", "name"], "unknown option --configx, the options are: --config PATH, --help, --version"),
        (["name", "x"], "unexpected argument x after the verb name"),
        (["add-node", "--config", "x"], "unexpected argument --config after the verb add-node"),
        (["verbs", ""], "unexpected argument  after the verb verbs"),
    ],
)
def test_wrong_command_line(arguments: list[str], text: str) -> None:
    """A wrong command line is refused before anything is read, by a line that names the argument."""
    assert text == refusal(lambda: answer(arguments), UsageError)


@pytest.mark.parametrize("verb", ["bogus", "add_node", "Name", "", "get-node", "add-node "])
def test_unknown_verb(verb: str) -> None:
    """An unknown verb is refused with the list of all verbs."""
    expected = f"unknown verb {verb}, the verbs are: name verbs {' '.join(listed(GpuPlugin))}"

    assert expected == refusal(lambda: answer([verb]), UsageError)


def test_a_verb_that_the_class_leaves_out() -> None:
    """A class without get_nodes_resource_info does not know the verb; calculate-remap is answered by every class."""

    class Minimal(Plugin):
        name = "minimal"
        NodeResource = NodeRequest = WorkloadResource = WorkloadRequest = GpuPlugin.NodeResource

    assert refusal(lambda: answer(["get-nodes-resource-info"], plugin=Minimal)).startswith("unknown verb ")


# --- configuration, request, answer


def test_configuration_comes_first(tmp_path: Path) -> None:
    """A configuration error wins over an input error, and stdin is read to its end all the same."""
    reads = []

    def read() -> bytes:
        reads.append(1)
        return b"no JSON"

    path = str(tmp_path / "missing.yaml")
    for verb in VERBS_WITH_REQUEST:
        text = refusal(lambda verb=verb: respond(GpuPlugin, ["--config", path, verb], {}, read, time.monotonic()))  # type: ignore[misc]
        assert f"open {path}: no such file or directory" == text
    assert len(VERBS_WITH_REQUEST) == len(reads)


@pytest.mark.parametrize("verb", VERBS_WITH_REQUEST)
def test_input_comes_before_records(verb: str, tmp_path: Path) -> None:
    """A wrong request is reported before any record is read: here the store would fail."""
    (tmp_path / "gpu.yaml").write_text("sqlite: {path: no/such/folder.db}\n")

    outcome = call_here(GpuPlugin, ["--config", str(tmp_path / "gpu.yaml"), verb], b"[]")

    assert Outcome(128, b"", b"decode plugin input: expected object, got array at $\n") == outcome


@pytest.mark.parametrize("verb", ["get-metrics-description", "get-metrics", "calculate-remap"])
def test_calls_without_records_need_no_store(verb: str, tmp_path: Path) -> None:
    """A call that asks for no record opens no store: here one that would fail."""
    (tmp_path / "gpu.yaml").write_text("sqlite: {path: no/such/folder.db}\n")

    assert 0 == call_here(GpuPlugin, ["--config", str(tmp_path / "gpu.yaml"), verb], b"{}").status


def test_configuration_from_the_environment(config: str) -> None:
    """The environment names the file when the command line does not; its empty value counts as not set."""
    environ = {b"ERU_RESOURCE_CONFIG_PATH": config.encode()}

    def call(arguments: list[str], environ: dict[bytes, bytes]) -> bytes:
        return respond(GpuPlugin, arguments, environ, lambda: b"{}", time.monotonic())

    assert b"[]" == call(["get-metrics"], environ)
    environ[b"ERU_RESOURCE_CONFIG_PATH"] = b"/nonexistent/\xff.yaml"
    assert "open /nonexistent/\udcff.yaml: no such file or directory" == refusal(lambda: call(["get-metrics"], environ))
    assert b"[]" == call(["--config", config, "get-metrics"], environ)
    environ[b"ERU_RESOURCE_CONFIG_PATH"] = b""
    assert "open gpu.yaml: no such file or directory" == refusal(lambda: call(["get-metrics"], environ))


def test_unreadable_stdin(config: str) -> None:
    """A stdin that cannot be read is an error of the input."""

    def read() -> NoReturn:
        raise OSError(5, "Input/output error")

    text = refusal(lambda: respond(GpuPlugin, ["--config", config, "get-metrics"], {}, read, 0.0), InputError)
    assert "decode plugin input: read stdin: input/output error" == text


def test_answers(config: str) -> None:
    """A method without an answer gives `{}`, an unknown node `null`, and an unasked remap the empty map."""
    assert b"{}" == call_here(GpuPlugin, ["--config", config, "remove-node"], b'{"nodename":"x"}').stdout
    assert b"null" == call_here(GpuPlugin, ["--config", config, "get-node-resource-info"], b'{"nodename":"x"}').stdout
    for request in (b"{}", b"null", b'{"nodename":"x","workloads_resource":{"w":{"prod_count_map":{"a":1}},"v":null}}'):
        remap = call_here(GpuPlugin, ["--config", config, "calculate-remap"], request)
        assert Outcome(0, b'{"engine_params_map":{}}', b"") == remap


def test_an_unasked_remap_still_decodes(config: str) -> None:
    """calculate-remap is a verb like any other: a request of a wrong shape is an error."""
    remap = call_here(GpuPlugin, ["--config", config, "calculate-remap"], b'{"workloads_resource":[]}')

    assert b"decode plugin input: expected object, got array at $.workloads_resource\n" == remap.stderr


@pytest.mark.parametrize(
    ("call_timeout", "seconds"), [("30s", 20.0), ("15s", 10.0), ("90ms", 0.06), ("10m", 20.0), ("30001ms", 20.0)]
)
def test_time_limit(call_timeout: str, seconds: float, tmp_path: Path) -> None:
    """The store is given two thirds of core's limit for a call, at most 20 s, from the start of the process."""
    (tmp_path / "gpu.yaml").write_text(f"{SQLITE}resource_plugin: {{call_timeout: {call_timeout}}}\n")

    class Telling(GpuPlugin):
        def get_metrics(self, nodes: object) -> Any:
            return vars(self.store)["_deadline"]

    answer = respond(Telling, ["--config", str(tmp_path / "gpu.yaml"), "get-metrics"], {}, lambda: b"{}", 1000.0)
    assert 1000.0 + seconds == pytest.approx(float(answer))


# --- as a process


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give an executable of the gpu plugin in a folder with a configuration."""
    folder = tmp_path_factory.mktemp("plugins")
    (folder / "gpu.yaml").write_text(SQLITE)
    return source_program(folder / "resource-gpu", "gpu")


def made_up(tmp_path: Path, body: str) -> Path:
    """Make an executable of a plugin class whose get_metrics_description has the given body."""
    path = tmp_path / "resource-gpu"
    path.write_text(
        f"#!{sys.executable} -I\nimport sys\nsys.path.insert(0, {str(SOURCES)!r})\n"
        "from resource_extend.gpu.plugin import GpuPlugin\nfrom resource_extend.process import main\n"
        f"class MadeUp(GpuPlugin):\n    def get_metrics_description(self):\n        {body}\nmain(MadeUp)\n"
    )
    path.chmod(0o755)
    (tmp_path / "gpu.yaml").write_text(SQLITE)
    return path


def test_success_and_failure(program: Path) -> None:
    """Success: the answer without a newline, nothing on stderr, 0. Failure: nothing, one line, 128."""
    assert Outcome(0, b'"gpu"', b"") == call_program(program, ["name"])
    assert Outcome(0, b"[]", b"") == call_program(program, ["get-metrics"])
    assert Outcome(128, b"", b"node name is empty\n") == call_program(program, ["add-node"])


def test_control_characters_stay_in_the_line(program: Path) -> None:
    """Line breaks and other control characters of the input are written as escapes; letters stay."""
    nodename = 'a\nb\r\x00\x1b[31m\x7f\x85\u2028節\U0001f600 "\\'
    outcome = call_program(program, ["fix-node-resource"], json.dumps({"nodename": nodename}).encode())

    assert r"""key: a\nb\r\x00\x1b[31m\x7f\x85\u2028節😀 "\: node not exists""" + "\n" == outcome.stderr.decode()


def test_arguments_that_are_no_text(program: Path) -> None:
    """Bytes of the command line that are no UTF-8 are shown as escapes."""
    outcome = call_program(program, [b"\xff\n"])

    assert (128, b"") == outcome[:2]
    assert outcome.stderr.startswith(rb"unknown verb \udcff\n, the verbs are: name verbs ")
    assert 1 == outcome.stderr.count(b"\n")


def test_any_locale(program: Path) -> None:
    """Text is UTF-8 whatever the locale says."""
    for environ in ({"LC_ALL": "C", "PYTHONUTF8": "0"}, {"LC_ALL": "POSIX"}, {"PYTHONIOENCODING": "ascii"}):
        outcome = call_program(program, ["fix-node-resource"], '{"nodename":"节点-1"}'.encode(), environ=environ)
        assert "key: 节点-1: node not exists\n" == outcome.stderr.decode()
        request = json.dumps({"nodes": [{"podname": "p", "nodename": "节点-1"}]}).encode()
        assert Outcome(0, b"[]", b"") == call_program(program, ["get-metrics"], request, environ=environ)


def shell(program: Path, command: str) -> Outcome:
    """Run a shell command line in the program's folder; `$P` is the program."""
    return call_program(
        Path("/bin/sh"), ["-c", command], b"", program.parent, {"P": str(program), "PATH": "/usr/bin:/bin"}
    )


def test_closed_stdin(program: Path) -> None:
    """Calls that need nothing work with stdin closed; others find no request."""
    assert Outcome(0, b'"gpu"', b"") == shell(program, "$P name <&-")
    assert 0 == shell(program, "$P --version <&-").status
    outcome = shell(program, "$P get-metrics <&-")
    assert (128, b"") == outcome[:2]
    assert outcome.stderr.startswith(b"decode plugin input: ")
    assert 1 == outcome.stderr.count(b"\n")


def test_stdout_that_takes_nothing(program: Path) -> None:
    """A stdout that is closed, full, or a pipe without a reader is a failure like any other."""
    closed = shell(program, "$P name >&-")
    assert Outcome(128, b"", b"stdout is closed: the answer has no place to go\n") == closed
    full = shell(program, "$P name > /dev/full")
    assert Outcome(128, b"", b"write stdout: no space left on device\n") == full
    broken = shell(program, "(sleep 0.5; $P name; echo $? >&2) | true")
    assert Outcome(0, b"", b"write stdout: broken pipe\n128\n") == broken


def test_nothing_is_done_without_a_stdout(program: Path) -> None:
    """A call whose answer has no place to go changes nothing."""
    add = """echo '{"nodename":"lost","resource":{"prod_count_map":{"a":1}}}' | $P add-node >&-"""
    assert 128 == shell(program, add).status
    assert Outcome(0, b"null", b"") == shell(program, """echo '{"nodename":"lost"}' | $P get-node-resource-info""")


def test_stderr_that_takes_nothing(program: Path) -> None:
    """Without a stderr the status tells, and nothing of the message reaches stdout."""
    assert Outcome(128, b"", b"") == shell(program, "$P add-node 2>&- </dev/null")
    assert Outcome(128, b"", b"") == shell(program, "$P add-node 2>/dev/full </dev/null")
    assert Outcome(0, b'"gpu"', b"") == shell(program, "$P name 2>&-")
    assert Outcome(128, b"", b"") == shell(program, "$P name <&- >&- 2>&-")


def test_stdout_is_never_half_of_another_file(program: Path) -> None:
    """With the standard streams closed nothing that is opened in their place is written to."""
    request = b'{"nodename":"closed","resource":{"prod_count_map":{"a":1}}}'
    assert 0 == call_program(program, ["add-node"], request).status
    assert 128 == shell(program, "$P get-node-resource-info <&- >&- 2>&-").status
    stored = call_program(program, ["get-nodes-resource-info"], b'{"nodenames":["closed"]}').stdout
    assert {"a": 1} == json.loads(stored)["node_resource_info_map"]["closed"]["capacity"]["prod_count_map"]


@pytest.mark.parametrize("blocking", [True, False])
def test_slow_reader(program: Path, blocking: bool) -> None:
    """An answer of many megabytes arrives whole, however slowly it is read, also through a non-blocking pipe."""
    reader, writer = os.pipe()
    os.set_blocking(writer, blocking)
    request = b'{"nodename":"x","deploy_count":300000}'
    with subprocess.Popen(
        [program, "calculate-deploy"], stdin=subprocess.PIPE, stdout=writer, cwd=program.parent
    ) as process:
        os.close(writer)
        assert process.stdin
        process.stdin.write(request)
        process.stdin.close()
        time.sleep(0.2)
        chunks = []
        while chunk := os.read(reader, 1 << 16):
            chunks.append(chunk)
        os.close(reader)

    assert 0 == process.returncode
    assert 300_000 == len(json.loads(b"".join(chunks))["engines_params"])


@pytest.mark.parametrize("blocking", [True, False])
def test_slow_writer(program: Path, blocking: bool) -> None:
    """A request is read to its end however slowly it comes, also through a non-blocking pipe."""
    reader, writer = os.pipe()
    os.set_blocking(reader, blocking)
    with subprocess.Popen(
        [program, "get-metrics"], stdin=reader, stdout=subprocess.PIPE, cwd=program.parent
    ) as process:
        os.close(reader)
        for piece in (b'{"no', b"des", b'":[]', b"}"):
            os.write(writer, piece)
            time.sleep(0.1)
        os.close(writer)
        assert process.stdout
        assert b"[]" == process.stdout.read()

    assert 0 == process.returncode


def test_a_lock_that_is_held(program: Path, tmp_path: Path) -> None:
    """A call that waits for another writer ends itself within core's limit, with the reason."""
    config, database = tmp_path / "gpu.yaml", tmp_path / "records.db"
    config.write_text(f"{SQLITE}resource_plugin: {{call_timeout: 600ms}}\n")
    assert 0 == call_program(program, ["--config", str(config), "add-node"], b'{"nodename":"n"}').status
    with closing(sqlite3.connect(database, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        outcome = call_program(program, ["--config", str(config), "get-node-resource-info"], b'{"nodename":"n"}')

    reason = "database is locked: another writer held it until the time limit of this call"
    assert Outcome(128, b"", f"sqlite {database}: {reason}\n".encode()) == outcome


def test_nothing_else_reaches_the_streams(tmp_path: Path) -> None:
    """What a plugin or a library prints goes nowhere: the streams belong to the answer and the error."""
    body = (
        "import os, sys, warnings; print('noise'); sys.stderr.write('noise'); os.write(1, b'noise');"
        " os.write(2, b'noise'); os.system('echo noise; echo noise >&2'); warnings.warn('noise'); return []"
    )
    program = made_up(tmp_path, body)

    assert Outcome(0, b"[]", b"") == call_program(program, ["get-metrics-description"])


@pytest.mark.parametrize(
    ("body", "line"),
    [
        ("raise ValueError('first\\nsecond')", b"internal error: ValueError: first\\nsecond\n"),
        ("return 1 / 0", b"internal error: ZeroDivisionError: division by zero\n"),
        ("return object()", b"internal error: TypeError: Encoding objects of type object is unsupported\n"),
        ("sys.exit(0)", b"internal error: SystemExit: 0\n"),
        ("return (lambda f: f(f))(lambda f: f(f))", b"internal error: RecursionError: "),
    ],
)
def test_a_bug_is_a_failure_like_any_other(body: str, line: bytes, tmp_path: Path) -> None:
    """An unexpected failure is one line and status 128; its traceback goes to a file, and only when asked for."""
    program = made_up(tmp_path, body)
    outcome = call_program(program, ["get-metrics-description"])
    assert (128, b"", line) == (outcome.status, outcome.stdout, outcome.stderr[: len(line)])
    assert 1 == outcome.stderr.count(b"\n")

    trace = tmp_path / "trace"
    for calls in (1, 2):
        call_program(program, ["get-metrics-description"], environ={"RESOURCE_EXTEND_DEBUG": str(trace)})
        assert calls == trace.read_text().count("Traceback (most recent call last)")
    assert 0o600 == trace.stat().st_mode & 0o777
    nowhere = {"RESOURCE_EXTEND_DEBUG": str(tmp_path / "no" / "folder")}
    assert outcome == call_program(program, ["get-metrics-description"], environ=nowhere)


def test_interruption(tmp_path: Path) -> None:
    """Somebody who interrupts a call by hand has found no bug."""
    program = made_up(tmp_path, "raise KeyboardInterrupt")
    environ = {"RESOURCE_EXTEND_DEBUG": str(tmp_path / "trace")}

    assert Outcome(128, b"", b"interrupted\n") == call_program(program, ["get-metrics-description"], environ=environ)
    assert not (tmp_path / "trace").exists()


def test_an_expected_failure_leaves_no_trace(program: Path, tmp_path: Path) -> None:
    """Only bugs are written to the debug file."""
    call_program(program, ["add-node"], environ={"RESOURCE_EXTEND_DEBUG": str(tmp_path / "trace")})

    assert not (tmp_path / "trace").exists()


def test_nothing_is_left_in_the_working_directory(program: Path, tmp_path: Path) -> None:
    """A call writes nothing into its working directory, whatever the verb."""
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "plugins").mkdir()
    (tmp_path / "plugins" / "gpu.yaml").write_text("sqlite: {path: ../elsewhere/records.db}\n")
    request: dict[str, Any] = {"nodename": "n", "nodenames": ["n"], "resource": {"prod_count_map": {"a": 1}}}
    for verb in VERBS_WITH_REQUEST:
        sent = request if verb != "calculate-remap" else {}
        assert 0 == call_program(program, [verb], json.dumps(sent).encode(), tmp_path / "plugins").status, verb

    assert ["gpu.yaml"] == [path.name for path in (tmp_path / "plugins").iterdir()]
    assert ["records.db"] == [path.name for path in (tmp_path / "elsewhere").iterdir()]
