"""Where a built file lies, how it is started, what the environment says: the answer is the same."""

import os
import shutil
import subprocess
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from support.calls import Outcome, call_program
from support.packed import call_as_script, call_with, this_python

GPU = Outcome(0, b'"gpu"', b"")
OLD_PYTHONS = sorted((Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions").glob("3.[6-9].*"))
# A module of each of these names would be imported by a start that looks into the working directory or PYTHONPATH.
HOSTILE = (
    "msgspec",
    "_socket",
    "_datetime",
    "_sqlite3",
    "_ssl",
    "posix",
    "time",
    "json",
    "re",
    "typing",
    "resource_extend",
    "sitecustomize",
    "usercustomize",
)


@pytest.fixture
def gpu(plugin: Callable[[str], Path]) -> Path:
    """The gpu plugin, with a SQLite file outside of its folder."""
    path = plugin("gpu")
    (path.parent / "gpu.yaml").write_text("sqlite: {path: ../records.db}\n")
    return path


@pytest.fixture
def home(tmp_path: Path) -> dict[str, str]:
    """The environment of a call: a home of its own."""
    (tmp_path / "home").mkdir()
    return {"HOME": str(tmp_path / "home"), "PATH": "/usr/bin:/bin"}


def hostile_folder(folder: Path) -> Path:
    """Fill a folder with modules that say something when they are imported."""
    for name in HOSTILE:
        (folder / f"{name}.py").write_text("import sys\nsys.stdout.write('hostile')\nsys.stderr.write('hostile')\n")
    return folder


def test_names_and_places(gpu: Path, home: dict[str, str], tmp_path: Path) -> None:
    """Renamed, linked twice, in a folder with blanks, in UTF-8, in bytes that are none, relative, from PATH."""
    odd = tmp_path / "a folder with blanks" / "节点 😀"
    odd.mkdir(parents=True)
    for name in ("resource-gpu", "gpu", "no suffix", "weird.name.pyz", "-c", "节点"):
        shutil.copy(gpu, odd / name)
        assert GPU == call_program(odd / name, ["name"], b"", tmp_path, home)
    (odd / "link").symlink_to(odd / "gpu")
    (tmp_path / "link to link").symlink_to(odd / "link")
    assert GPU == call_program(tmp_path / "link to link", ["name"], b"", odd, home)
    undecodable = os.fsencode(odd) + b"/\xff\xfe"
    os.link(odd / "gpu", undecodable)
    for environ in (home, {**home, "LC_ALL": "C"}, {**home, "PYTHONUTF8": "0", "LC_ALL": "POSIX"}):
        done = subprocess.run([undecodable, "name"], capture_output=True, env=environ, check=False)
        assert GPU == (done.returncode, done.stdout, done.stderr)
    assert GPU == call_program(Path("/bin/sh"), ["-c", "./gpu name"], b"", odd, home)
    assert GPU == call_program(Path("/usr/bin/env"), ["gpu", "name"], b"", tmp_path, {**home, "PATH": f"{odd}:/bin"})
    for argv0 in ("", "x", "python3"):
        done = subprocess.run([argv0, "name"], executable=gpu, capture_output=True, env=home, check=False)
        assert GPU == (done.returncode, done.stdout, done.stderr)
    descriptor = os.open(gpu, os.O_RDONLY)
    done = subprocess.run(
        [f"/proc/self/fd/{descriptor}", "name"], capture_output=True, env=home, check=False, pass_fds=[descriptor]
    )
    os.close(descriptor)
    assert GPU == (done.returncode, done.stdout, done.stderr)


def test_environment_does_not_reach_in(gpu: Path, home: dict[str, str], tmp_path: Path) -> None:
    """Variables that steer Python or shiv change neither what runs nor what is printed."""
    hostile = str(hostile_folder(tmp_path))
    request = b'{"nodename":"n"}'
    expected = Outcome(0, b"null", b"")
    for environ in (
        {"PYTHONPATH": hostile, "PYTHONHOME": "/nonexistent", "PYTHONSTARTUP": f"{hostile}/json.py"},
        {"PYTHONVERBOSE": "1", "PYTHONDEVMODE": "1", "PYTHONWARNINGS": "error", "PYTHONINSPECT": "1"},
        {"PYTHONDONTWRITEBYTECODE": "1", "PYTHONPROFILEIMPORTTIME": "1", "PYTHONDEBUG": "1", "PYTHONOPTIMIZE": "2"},
        {"PYTHONHASHSEED": "nonsense", "PYTHONMALLOC": "nonsense", "PYTHONIOENCODING": "nonsense"},
        {"PYTHONUSERBASE": hostile, "PYTHONPLATLIBDIR": "/nonexistent", "PYTHONSAFEPATH": "", "PYTHONUTF8": "7"},
        {"SHIV_INTERPRETER": "1"},
        {"SHIV_ENTRY_POINT": "json:x", "SHIV_MODULE": "json:x", "SHIV_CONSOLE_SCRIPT": "x"},
        {"SHIV_FORCE_EXTRACT": "1", "SHIV_PREPEND_PYTHONPATH": hostile, "SHIV_EXTEND_PYTHONPATH": "1"},
        {"SHIV_COMPILE_PYC": "1", "SHIV_COMPILE_WORKERS": "x", "SHIV_ROOT": "relative"},
        {"RESOURCE_EXTEND_DEBUG": "", "http_proxy": "http://127.0.0.1:1", "LD_BIND_NOW": "1", "MALLOC_PERTURB_": "1"},
    ):
        assert expected == call_program(gpu, ["get-node-resource-info"], request, environ={**home, **environ}), environ
    assert expected == call_program(gpu, ["get-node-resource-info"], request, environ={})
    assert {"gpu.yaml", "resource-gpu"} == set(os.listdir(gpu.parent))


def test_hostile_working_directory(gpu: Path, home: dict[str, str]) -> None:
    """Modules that lie in the plugin folder, which is the working directory, are not imported."""
    hostile_folder(gpu.parent)
    assert Outcome(0, b"null", b"") == call_program(gpu, ["get-node-resource-info"], b'{"nodename":"n"}', environ=home)
    assert not (gpu.parent / "__pycache__").exists()


def test_few_descriptors(gpu: Path, home: dict[str, str]) -> None:
    """However few files a call may open, it answers, or says in one line that there are too many."""
    for limit in range(4, 12):
        outcome = call_program(Path("/bin/sh"), ["-c", f"ulimit -n {limit}; {gpu} name"], b"", gpu.parent, home)
        if outcome.status:
            assert (128, b"", 1) == (outcome.status, outcome.stdout, outcome.stderr.count(b"\n")), limit
            assert b"too many open files" in outcome.stderr.lower(), limit
        else:
            assert GPU == outcome, limit


def test_it_is_a_shiv_archive(gpu: Path, tmp_path: Path) -> None:
    """It opens as a zip file, its members are whole, and shiv's own parts are where shiv puts them."""
    with zipfile.ZipFile(gpu) as archive:
        names = archive.namelist()
        assert None is archive.testzip()
        assert "_hot" == names[0]
        assert zipfile.ZIP_STORED == archive.getinfo("_hot").compress_type
        assert {"__main__.py", "environment.json", "_bootstrap/__init__.py"} <= set(names)
        assert {"site-packages/msgspec/__init__.py", "site-packages/yaml/__init__.py"} <= set(names)
        licences = [name for name in names if "licen" in name.lower()]
        assert {"msgspec", "hpack"} <= {name.split("/")[1].partition("-")[0] for name in licences}
    if shutil.which("unzip"):
        subprocess.run(["unzip", "-q", gpu, "-d", tmp_path / "unzipped"], check=True)
        assert (tmp_path / "unzipped/site-packages/resource_extend/process.py").exists()
    assert 0o755 == gpu.resolve().stat().st_mode & 0o7777


def test_first_line_fits_the_kernel(gpu: Path) -> None:
    """Kernels before 5.1 cut it at 127 characters and run the rest."""
    with gpu.open("rb") as file:
        assert len(file.readline().rstrip(b"\n")) <= 127


@pytest.mark.parametrize("folder", OLD_PYTHONS, ids=lambda folder: folder.name)
def test_too_old_interpreter(folder: Path, gpu: Path, home: dict[str, str]) -> None:
    """A Python before 3.10 is told so in one line, by the first line's code and as a script."""
    python = str(folder / "bin/python3")
    line = f"{gpu.name} needs CPython 3.10 or newer, and this is {folder.name} ({python})\n".replace(
        gpu.name, "resource-gpu.pyz"
    )
    expected = Outcome(128, b"", line.encode())

    assert expected == call_with(python, gpu, ["name"], b"", None, home)
    assert expected == call_as_script(python, gpu, ["name"], b"", None, home)


def test_interpreter_of_another_kind(gpu: Path, home: dict[str, str]) -> None:
    """An interpreter for which msgspec has no compiled part is told which there are, on the road that it takes."""
    # As a build of another ABI would look to the launcher and to the bootstrap.
    other = "import _imp;s=_imp.extension_suffixes();_imp.extension_suffixes=lambda:['.cpython-399-other.so',*s];"
    outcome = call_with(this_python(), gpu, ["name"], b"", None, home, before=other)

    assert (128, b"") == (outcome.status, outcome.stdout)
    line = outcome.stderr.decode()
    assert line.startswith("resource-gpu has no compiled part for this interpreter, ")
    assert ", cpython-399-other.so): it has cpython-3" in line
    assert 1 == line.count("\n")
