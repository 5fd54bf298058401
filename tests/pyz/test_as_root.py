"""Surroundings that only root can make: file systems that are full, read-only or without exec, other users."""

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from resource_extend.pack.interpreters import examine
from support.packed import VERSIONS, launcher, this_python

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("unshare") is None or shutil.which("setpriv") is None,
    reason="needs root, unshare and setpriv: other users, and file systems of its own",
)
NOBODY = 54321


def common_python() -> str | None:
    """Return an interpreter that a user without rights can run; that of the tests may lie in somebody's home."""
    for python in ("/usr/bin/python3", this_python()):
        interpreter = examine(python)
        command = ["setpriv", f"--reuid={NOBODY}", "--clear-groups", "sh", "-c", f"{python} -c pass"]
        if (
            interpreter is not None
            and interpreter.minor in VERSIONS
            and 0 == subprocess.run(command, check=False, capture_output=True).returncode
        ):
            return python
    return None


@pytest.fixture
def place(built_for_all: Callable[[str], Path]) -> Iterator[Path]:
    """A folder that every user can enter, with the plugin file in it, and a script that starts it as its line does."""
    python = common_python()
    if python is None:
        pytest.skip("there is no interpreter for all users")
    folder = Path("/var/tmp") / f"resource-extend-{os.getpid()}"
    folder.mkdir()
    folder.chmod(0o755)
    plugin = folder / "resource-gpu"
    shutil.copy(built_for_all("gpu"), plugin)
    content = plugin.read_bytes()
    (folder / "fast").write_text(f"#!/bin/sh\nexec {python} '-ISc{launcher(plugin)}' {plugin} \"$@\"\n")
    (folder / "slow").write_text(f'#!/bin/sh\nexec {python} {plugin} "$@"\n')
    for name in ("fast", "slow"):
        (folder / name).chmod(0o755)
    yield folder
    assert content == plugin.read_bytes()
    shutil.rmtree(folder)


def run(script: str, folder: Path) -> str:
    """Run a shell script in a mount namespace of its own; return what it prints on both streams."""
    done = subprocess.run(
        ["unshare", "--mount", "bash", "-euc", script],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        cwd=folder,
        env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HERE": str(folder)},
        check=False,
        text=True,
    )
    return done.stdout


ANSWER = '"gpu"'
TWICE = ANSWER * 2


@pytest.mark.parametrize(
    "options",
    ["noexec", "noexec,size=10m", "ro", "size=100k", "size=100k,noexec", "size=100k,nr_inodes=1"],
)
@pytest.mark.parametrize("road", ["fast", "slow"])
def test_cache_on_a_file_system_of_its_own(options: str, road: str, place: Path) -> None:
    """On a cache that is full, read-only or without exec a call answers all the same, and leaves nothing half-made."""
    (place / "cache").mkdir()
    script = f"""
        mount -t tmpfs -o mode=755,{options} none cache
        for i in 1 2; do SHIV_ROOT=$PWD/cache $HERE/{road} name; done
        ls cache
    """

    output = run(script, place)

    assert TWICE == output[: len(TWICE)], output
    # Where there is room the fast road leaves its copy, though it cannot be executed there.
    left = "[0-9a-f]{64}\n" if road == "fast" and options.startswith("noexec") else ""
    assert re.fullmatch(left, output[len(TWICE) :])


def test_read_only_everything(place: Path) -> None:
    """With every file system read-only both roads answer."""
    script = """
        mount --make-rprivate / && mount -o remount,bind,ro / && mount -t tmpfs -o ro none /tmp
        export HOME=/root
        $HERE/fast name; $HERE/slow name
    """

    assert TWICE == run(script, place)


@pytest.mark.parametrize("road", ["fast", "slow"])
def test_user_without_name_or_home(road: str, place: Path) -> None:
    """A user that the password database does not know, without HOME, gets the answer."""
    script = f"setpriv --reuid={NOBODY} --clear-groups env -i PATH=/usr/bin:/bin $HERE/{road} name"

    assert ANSWER == run(script, place)


def test_cache_of_root(place: Path) -> None:
    """What root has put into a cache under a strict umask another user reads, and cannot replace."""
    script = f"""
        mkdir cache; chmod 755 cache; export SHIV_ROOT=$PWD/cache
        umask 077; $HERE/fast name
        stat -c '%i' cache/* > before
        setpriv --reuid={NOBODY} --clear-groups $HERE/fast name
        stat -c '%i' cache/* > after
        cmp before after; ls cache | wc -l
    """

    assert f"{TWICE}1\n" == run(script, place)


def test_cache_of_somebody_else(place: Path) -> None:
    """A core that another user than root owns is not loaded, whatever it holds."""
    script = f"""
        mkdir cache; chmod 1777 cache; export SHIV_ROOT=$PWD/cache
        setpriv --reuid={NOBODY} --clear-groups $HERE/fast name
        $HERE/fast name
        stat -c '%u' cache/*
    """
    output = run(script, place)

    # Root replaces it; nobody else could.
    assert f"{TWICE}0\n" == output
