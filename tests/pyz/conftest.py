"""The built plugin files that these tests execute."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from support.calls import source_files
from support.etcd import Etcd
from support.etcd_client import EtcdClient

ROOT = Path(__file__).parents[2]
# Not dist/: what lies there is for release, and its build serves more interpreters than a test needs.
BUILT_FOR_TESTS = ROOT / ".cache" / "tests"


def _fresh(path: Path) -> bool:
    """Tell whether a file was built after the last change of what it is built from, and can run here."""
    if not path.exists():
        return False
    with path.open("rb") as file:
        interpreter = file.readline()[2:].split()[0].decode()
    newest = max(source.stat().st_mtime for source in source_files())
    return Path(interpreter).exists() and path.stat().st_mtime > newest


@pytest.fixture(scope="session")
def built() -> Callable[[str], Path]:
    """Return what gives the built file of a kind: that of dist/ when it is up to date, else one built now."""
    files: dict[str, Path] = {}

    def of(kind: str) -> Path:
        name = f"resource-{kind}.pyz"
        if kind not in files:
            fresh = [path for path in (ROOT / "dist" / name, BUILT_FOR_TESTS / name) if _fresh(path)]
            if not fresh:
                command = [sys.executable, "build/pyz.py", "--interpreter", "this", "--one"]
                subprocess.run([*command, "--output", str(BUILT_FOR_TESTS), name], cwd=ROOT, check=True)
                fresh = [BUILT_FOR_TESTS / name]
            files[kind] = fresh[0]
        return files[kind]

    return of


@pytest.fixture
def plugin(built: Callable[[str], Path], tmp_path: Path) -> Callable[[str], Path]:
    """Return what installs the built file of a kind in a fresh plugin folder, under the name that core knows."""
    folder = tmp_path / "plugins"
    folder.mkdir()

    def install(kind: str) -> Path:
        path = folder / f"resource-{kind}"
        if not path.exists():
            path.symlink_to(built(kind))
        return path

    return install


@pytest.fixture(scope="session")
def etcd_client(etcd: Etcd) -> Iterator[EtcdClient]:
    """Return another client of the etcd that tests share."""
    client = EtcdClient(etcd.endpoint)
    yield client
    client.close()
