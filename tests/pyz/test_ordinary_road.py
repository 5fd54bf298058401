"""`python3 file.pyz verb`, also the road of interpreters without an image: shiv's bootstrap, without its traps."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from resource_extend.pack.interpreters import Interpreter
from support.calls import Outcome, call_program
from support.packed import INTERPRETERS, call_as_script, call_with, session, this_python

GPU = Outcome(0, b'"gpu"', b"")
# What an unknown bytecode magic does to the launcher.
NO_IMAGE = "import _frozen_importlib_external as e;e.MAGIC_NUMBER=b'none';"


@pytest.fixture
def gpu(plugin: Callable[[str], Path]) -> Path:
    """The gpu plugin in a plugin folder of its own."""
    return plugin("gpu")


@pytest.fixture
def home(tmp_path: Path) -> dict[str, str]:
    """The environment of a call: a home of its own, and a temporary folder that stays empty."""
    for name in ("home", "tmp"):
        (tmp_path / name).mkdir()
    return {"HOME": str(tmp_path / "home"), "TMPDIR": str(tmp_path / "tmp"), "PATH": "/usr/bin:/bin"}


@pytest.mark.parametrize("interpreter", INTERPRETERS, ids=lambda each: each.version)
@pytest.mark.parametrize("kind", ["gpu", "storage"])
def test_same_answers(
    kind: str, interpreter: Interpreter, built_for_all: Callable[[str], Path], home: dict[str, str], tmp_path: Path
) -> None:
    """Every verb answers on the ordinary road, by its two ways in, as it does on the fast one."""
    plugin = built_for_all(kind)
    answers = []
    for number in range(3):
        path = tmp_path / f"{number}.yaml"
        path.write_text(f"sqlite:\n  path: {tmp_path}/{number}.db\n")
        found = []
        for verb, request in [("name", b""), ("verbs", b""), ("--version", b""), ("bogus", b""), *session(kind)]:
            arguments = ["--config", str(path), verb]
            if number == 0:
                found.append(call_with(interpreter.path, plugin, arguments, request, tmp_path, home))
            elif number == 1:
                found.append(call_as_script(interpreter.path, plugin, arguments, request, tmp_path, home))
            else:
                found.append(call_with(interpreter.path, plugin, arguments, request, tmp_path, home, before=NO_IMAGE))
        answers.append(found)

    assert answers[0] == answers[1] == answers[2]
    assert [] == os.listdir(home["TMPDIR"])


@pytest.mark.parametrize(
    "environ",
    [
        {"SHIV_INTERPRETER": "1"},
        {"SHIV_ENTRY_POINT": "json:x", "SHIV_MODULE": "json:x", "SHIV_CONSOLE_SCRIPT": "x"},
        {"SHIV_FORCE_EXTRACT": "1", "SHIV_PREPEND_PYTHONPATH": "/nonexistent", "SHIV_EXTEND_PYTHONPATH": "1"},
        {"SHIV_COMPILE_PYC": "1", "SHIV_COMPILE_WORKERS": "x"},
        {"SHIV_ROOT": "."},
        {"SHIV_ROOT": "$HOME"},
        {"HOME": ""},
        {"HOME": "relative"},
        {"HOME": "/dev/null"},
        {"HOME": "/proc"},
    ],
    ids=str,
)
def test_environment_does_not_reach_in(environ: dict[str, str], gpu: Path, home: dict[str, str]) -> None:
    """Shiv's variables mean nothing, but an absolute SHIV_ROOT; a home that cannot be written is done without."""
    before = os.listdir(gpu.parent)
    for number in range(2):
        assert GPU == call_as_script(this_python(), gpu, ["name"], b"import os; print(1)", None, {**home, **environ}), (
            number
        )
    assert before == os.listdir(gpu.parent)
    assert [] == os.listdir(home["TMPDIR"])


def test_msgspec_of_somebody_else(gpu: Path, home: dict[str, str], tmp_path: Path) -> None:
    """A msgspec on PYTHONPATH does not take the place of the packed one."""
    (tmp_path / "msgspec.py").write_text("raise SystemExit('hostile')\n")

    for environ in (home, {**home, "HOME": "/proc"}):
        assert GPU == call_as_script(this_python(), gpu, ["name"], b"", None, {**environ, "PYTHONPATH": str(tmp_path)})


def unpacked(home: dict[str, str]) -> Path:
    """Return the folder that the bootstrap unpacked into."""
    (folder,) = [path for path in Path(home["HOME"], ".shiv").iterdir() if path.is_dir()]
    return folder / "site-packages"


@pytest.mark.parametrize("fault", ["removed", "emptied", "all removed", "world-writable"])
def test_unpacked_files_are_checked(fault: str, gpu: Path, home: dict[str, str]) -> None:
    """Unpacked files that a cleaner took are unpacked again; a folder that others can write is not used."""
    assert GPU == call_as_script(this_python(), gpu, ["name"], b"", None, home)
    folder = unpacked(home)
    file = folder / "resource_extend/errors.py"
    if fault == "removed":
        file.unlink()
    elif fault == "emptied":
        file.write_text("")
    elif fault == "all removed":
        for path in sorted(folder.rglob("*"), reverse=True):
            path.rmdir() if path.is_dir() else path.unlink()
        folder.rmdir()
    else:
        file.write_text("raise SystemExit('hostile')\n")
        folder.parent.chmod(0o777)

    for _ in range(2):
        assert GPU == call_as_script(this_python(), gpu, ["name"], b"", None, home)
    if fault != "world-writable":
        assert file.stat().st_size > 100


def test_closed_streams(gpu: Path, home: dict[str, str], tmp_path: Path) -> None:
    """With its standard streams closed a call fails as it does on the fast road, and writes into no other file."""
    (gpu.parent / "gpu.yaml").write_text("sqlite: {path: ../records.db}\n")
    for streams in ("<&-", ">&-", "2>&-", "<&- >&- 2>&-"):
        command = f"printf '{{}}' | {this_python()} {gpu} get-metrics {streams}"
        slow = call_program(Path("/bin/sh"), ["-c", command], b"", gpu.parent, home)
        fast = call_program(
            Path("/bin/sh"), ["-c", f"printf '{{}}' | {gpu} get-metrics {streams}"], b"", gpu.parent, home
        )
        assert fast == slow, streams


def test_version_names_the_build(gpu: Path, home: dict[str, str]) -> None:
    """--version says version, commit, and each interpreter that starts fast."""
    lines = call_program(gpu, ["--version"], b"", None, home).stdout.decode().splitlines()

    keys = [line.partition(": ")[0] for line in lines]
    assert ["Version", "Commit"] == keys[:2]
    assert {"Interpreter"} == set(keys[2:])
    assert json.dumps(lines) == json.dumps(
        call_as_script(this_python(), gpu, ["--version"], b"", None, home).stdout.decode().splitlines()
    )
