"""The copy of msgspec's core that a first call leaves in the cache folder, and what may be wrong with it."""

import hashlib
import os
import shutil
import subprocess
import zipfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from resource_extend.pack.interpreters import examine
from support.calls import Outcome, call_program
from support.packed import this_python

GPU = Outcome(0, b'"gpu"', b"")


@pytest.fixture
def gpu(plugin: Callable[[str], Path]) -> Path:
    """The gpu plugin in a plugin folder of its own."""
    return plugin("gpu")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """An empty home."""
    path = tmp_path / "home"
    path.mkdir()
    return path


def call(gpu: Path, home: Path | str, **environ: str) -> Outcome:
    """Call `name`, and check that the plugin folder, which is the working directory, stays as it is."""
    before = sorted(os.listdir(gpu.parent))
    outcome = call_program(gpu, ["name"], b"", environ={"HOME": str(home), **environ})
    assert before == sorted(os.listdir(gpu.parent))
    return outcome


def core_of(gpu: Path) -> bytes:
    """Return msgspec's core for this interpreter out of the archive."""
    interpreter = examine(this_python())
    assert interpreter is not None
    with zipfile.ZipFile(gpu) as archive:
        return archive.read(f"site-packages/msgspec/_core{interpreter.suffix}")


def copies(folder: Path) -> list[Path]:
    """Return what lies in a cache folder."""
    return sorted(folder.iterdir())


def test_first_call_leaves_one_file(gpu: Path, home: Path) -> None:
    """It is the core, named by its SHA-256, readable for all, written by nobody, and core would not load it."""
    assert GPU == call(gpu, home)
    (copy,) = copies(home / ".shiv")
    content = core_of(gpu)
    assert content == copy.read_bytes()
    assert hashlib.sha256(content).hexdigest() == copy.name
    assert 0o100444 == copy.stat().st_mode

    inode = copy.stat().st_ino
    assert GPU == call(gpu, home)
    assert [copy] == copies(home / ".shiv")
    assert inode == copy.stat().st_ino


def test_plugins_share_the_copy(gpu: Path, home: Path, plugin: Callable[[str], Path], tmp_path: Path) -> None:
    """One file for each core: other plugins, other builds and other names of a file use the same."""
    again = tmp_path / "another name"
    shutil.copy(gpu, again)

    for path in (gpu, plugin("storage"), again):
        assert 0 == call_program(path, ["verbs"], b"", environ={"HOME": str(home)}).status
    assert 1 == len(copies(home / ".shiv"))


def test_many_first_calls_at_once(gpu: Path, home: Path) -> None:
    """Forty calls on an empty cache all answer, and leave the one file."""
    with ThreadPoolExecutor(40) as pool:
        outcomes = list(pool.map(lambda _: call(gpu, home), range(40)))

    assert [GPU] * 40 == outcomes
    (copy,) = copies(home / ".shiv")
    assert core_of(gpu) == copy.read_bytes()


@pytest.mark.parametrize("fault", ["cut", "empty", "zeros", "other bytes", "world-writable", "group-writable"])
def test_copy_is_replaced(fault: str, gpu: Path, home: Path) -> None:
    """A copy that is damaged, or that others could have written, is not used but replaced by a good one."""
    call(gpu, home)
    (copy,) = copies(home / ".shiv")
    good = copy.read_bytes()
    copy.chmod(0o644)
    if fault == "cut":
        os.truncate(copy, 1000)
    elif fault == "empty":
        os.truncate(copy, 0)
    elif fault == "zeros":
        copy.write_bytes(bytes(len(good)))
    elif fault == "other bytes":
        copy.write_bytes(b"\x7fELF" + good[:3:-1])
    copy.chmod({"world-writable": 0o646, "group-writable": 0o664}.get(fault, 0o444))

    for _ in range(2):
        assert GPU == call(gpu, home)
    assert [copy] == copies(home / ".shiv")
    assert (good, 0o100444) == (copy.read_bytes(), copy.stat().st_mode)


@pytest.mark.parametrize("fault", ["symbolic link", "dangling link", "fifo", "folder"])
def test_something_else_has_the_name(fault: str, gpu: Path, home: Path, tmp_path: Path) -> None:
    """A link, a FIFO or a folder of the copy's name is never opened as the copy; the call answers and does not hang."""
    call(gpu, home)
    (copy,) = copies(home / ".shiv")
    elsewhere = tmp_path / "elsewhere"
    shutil.move(copy, elsewhere)
    if fault == "symbolic link":
        copy.symlink_to(elsewhere)
    elif fault == "dangling link":
        copy.symlink_to(tmp_path / "nothing")
    elif fault == "fifo":
        os.mkfifo(copy)
    else:
        copy.mkdir()

    for _ in range(2):
        assert GPU == call(gpu, home)
    assert [copy] == copies(home / ".shiv")
    assert copy.is_dir() if fault == "folder" else copy.is_file() and not copy.is_symlink()


def test_home_that_is_none(gpu: Path, home: Path, tmp_path: Path) -> None:
    """An empty HOME, a relative, missing or impossible one: the answer is the same, the folder stays as it is."""
    file = tmp_path / "file"
    file.write_text("")
    for value in ("", ".", "home", "~", "$HOME", "/dev/null", str(file), str(tmp_path / "missing" / "deep")):
        assert GPU == call(gpu, value), value
    assert "" == file.read_text()
    # A relative folder counts as none, so the password database's was used for those.
    assert [] == copies(home)


def test_cache_root_is_absolute_or_ignored(gpu: Path, home: Path, tmp_path: Path) -> None:
    """SHIV_ROOT names the folder when it is absolute; a relative one would lie among the plugins."""
    root = tmp_path / "a" / "b"
    assert GPU == call(gpu, home, SHIV_ROOT=str(root))
    assert 1 == len(copies(root))
    assert [] == copies(home)
    for value in (".", "cache", "~/x", "$HOME", ""):
        assert GPU == call(gpu, home, SHIV_ROOT=value)
    assert [home / ".shiv"] == copies(home)
    assert 1 == len(copies(home / ".shiv"))


@pytest.mark.parametrize("verb", ["name", "verbs"])
def test_damaged_archive(verb: str, gpu: Path, home: Path, tmp_path: Path) -> None:
    """A file whose core is damaged says so, and leaves nothing in the cache."""
    damaged = tmp_path / "damaged"
    content = bytearray(gpu.read_bytes())
    position = content.index(core_of(gpu))
    content[position + 100_000 : position + 100_100] = bytes(100)
    damaged.write_bytes(content)
    damaged.chmod(0o755)

    outcome = call_program(damaged, [verb], b"", environ={"HOME": str(home)})
    assert (128, b"") == (outcome.status, outcome.stdout)
    assert f"internal error: RuntimeError: the file {damaged} is damaged: replace it\n" == outcome.stderr.decode()
    assert [] == copies(home / ".shiv")


def test_killed_first_calls(gpu: Path, home: Path) -> None:
    """First calls that are killed at any moment leave a cache that the next call can use."""
    for delay in range(12):
        process = subprocess.Popen(
            [gpu, "name"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, env={"HOME": str(home)}
        )
        try:
            process.wait(0.004 * delay)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        assert GPU == call(gpu, home)
        shutil.rmtree(home / ".shiv")
