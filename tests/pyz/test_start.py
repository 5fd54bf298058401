"""What a start of the built files costs: nothing slow is imported, nothing fetched late; trimmed msgspec is msgspec."""

import contextlib
import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from resource_extend.pack.interpreters import Interpreter
from resource_extend.pack.profile import PLAIN, SURROUNDINGS
from resource_extend.pack.trace import FORBIDDEN
from support.calls import Outcome, call_program
from support.etcd_surroundings import configured
from support.packed import INTERPRETERS, call_with, session, watch

KINDS = ("gpu", "storage")
each_interpreter = pytest.mark.parametrize("interpreter", INTERPRETERS, ids=lambda each: each.version)
each_kind = pytest.mark.parametrize("kind", KINDS)


# A store's surroundings and an interpreter: all of them for what is common, the first one for what is rarer.
STORES = [(store, each) for store in ("sqlite", PLAIN) for each in INTERPRETERS]
STORES += [(store, INTERPRETERS[0]) for store in SURROUNDINGS if store != PLAIN]


@pytest.fixture(scope="module")
def configurations() -> Iterator[Callable[[str], str]]:
    """Return what gives the configuration that leads to a store, `{folder}` for what keeps clusters apart."""
    with contextlib.ExitStack() as stack:
        known = {"sqlite": "sqlite:\n  path: {folder}/nodes.db\n"}

        def of(store: str) -> str:
            if store not in known:
                known[store] = stack.enter_context(configured(store))
            return known[store]

        yield of


@pytest.mark.parametrize(("store", "interpreter"), STORES, ids=lambda each: getattr(each, "version", each))
@each_kind
def test_hot_verbs_import_nothing_slow(
    kind: str,
    store: str,
    interpreter: Interpreter,
    configurations: Callable[[str], str],
    built_for_all: Callable[[str], Path],
    tmp_path: Path,
) -> None:
    """After any verb that succeeds no slow module has been imported, and all that ran was there from the start."""
    configuration = tmp_path / "plugin.yaml"
    configuration.write_text(configurations(store).format(folder=tmp_path))
    call_with(interpreter.path, built_for_all(kind), ["name"], environ={"HOME": str(tmp_path)})  # fills the cache
    for verb, request in [("name", b""), ("verbs", b""), *session(kind)]:
        outcome, modules, fetched = watch(
            interpreter.path,
            built_for_all(kind),
            ["--config", str(configuration), verb],
            request,
            tmp_path / "report",
            {"HOME": str(tmp_path)},
        )

        assert (0, b"") == (outcome.status, outcome.stderr), verb
        assert set() == FORBIDDEN & set(modules), verb
        assert "msgspec._utils" not in modules, verb
        assert [] == fetched, verb


@each_interpreter
def test_trimmed_and_full_msgspec_decide_alike(interpreter: Interpreter, tmp_path: Path, site_packages: Path) -> None:
    """Every recorded request has the same answer, error and record with msgspec's core alone as with all of msgspec."""
    runs = []
    for mode in ("trimmed", "full"):
        script = Path(__file__).parents[1] / "support/recorded_in_one_process.py"
        folder = tmp_path / mode
        folder.mkdir()
        done = subprocess.run(
            [interpreter.path, "-I", "-S", str(script), mode, str(site_packages), str(folder)],
            capture_output=True,
            check=False,
            text=True,
        )
        assert (0, "") == (done.returncode, done.stderr)
        runs.append(json.loads(done.stdout))
    trimmed, full = runs

    assert len(full["outcomes"]) > 1000
    assert full["typing"]
    assert not trimmed["typing"]
    for with_core, with_all in zip(trimmed["outcomes"], full["outcomes"], strict=True):
        assert with_all == with_core


@each_interpreter
def test_core_that_refuses_stand_ins(interpreter: Interpreter, broken_trimming: Path, tmp_path: Path) -> None:
    """When the trimmed import fails, the whole msgspec is imported in the same process and the answers are the same."""
    (tmp_path / "gpu.yaml").write_text("sqlite:\n  path: nodes.db\n")
    environ = {"HOME": str(tmp_path)}
    request = b'{"nodename":"n","resource":{"prod_count_map":{"a":2}}}'
    for _ in range(2):
        outcome, modules, _ = watch(interpreter.path, broken_trimming, ["verbs"], b"", tmp_path / "report", environ)
        assert (0, b"") == (outcome.status, outcome.stderr)
        assert "msgspec._utils" in modules
    assert Outcome(0, b'{"capacity":{"prod_count_map":{"a":2}}}', b"") == call_with(
        interpreter.path, broken_trimming, ["add-node"], request, tmp_path, environ
    )
    wrong = call_with(interpreter.path, broken_trimming, ["add-node"], b'{"nodename":1}', tmp_path, environ)
    assert (128, b"decode plugin input: expected str, got int at $.nodename\n") == (wrong.status, wrong.stderr)


# The C module behind SQLite is not content with what stands for functools.
_REFUSED = """
import _imp
def refuse(module, run=_imp.exec_dynamic, seen=[]):
    if module.__name__ == "_sqlite3" and not seen:
        seen.append(module)
        raise AttributeError("functools")
    return run(module)
_imp.exec_dynamic = refuse
"""


@each_interpreter
def test_c_module_that_refuses_to_start(
    interpreter: Interpreter, built_for_all: Callable[[str], Path], tmp_path: Path
) -> None:
    """A C module whose initialisation fails is not left half made: the ordinary import gives another one."""
    plugin = built_for_all("gpu")
    (tmp_path / "gpu.yaml").write_text("sqlite:\n  path: nodes.db\n")
    environ = {"HOME": str(tmp_path)}
    assert 0 == call_with(interpreter.path, plugin, ["add-node"], b'{"nodename":"n"}', tmp_path, environ).status

    outcome = call_with(
        interpreter.path, plugin, ["get-nodes-resource-info"], b'{"nodenames":["n"]}', tmp_path, environ, _REFUSED
    )
    assert (0, b"") == (outcome.status, outcome.stderr)


@each_kind
def test_first_line_runs_the_same(kind: str, built_for_all: Callable[[str], Path], tmp_path: Path) -> None:
    """The kernel starts what these tests start by hand."""
    plugin = built_for_all(kind)
    environ = {"HOME": str(tmp_path)}
    python = plugin.read_bytes().split(b" ", 1)[0][2:].decode()

    assert call_with(python, plugin, ["verbs"], b"", tmp_path, environ) == call_program(
        plugin, ["verbs"], b"", tmp_path, environ
    )
