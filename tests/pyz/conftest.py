"""The built plugin files that these tests execute."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import pyz
from resource_extend.pack import packer
from support.calls import source_files
from support.etcd import Etcd
from support.etcd_client import EtcdClient
from support.packed import INTERPRETERS

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


@pytest.fixture(scope="session")
def built_for_all() -> Callable[[str], Path]:
    """Return what gives the built file of a kind with images for every interpreter of this machine."""
    folder = BUILT_FOR_TESTS / "all"

    def of(kind: str) -> Path:
        path = folder / f"resource-{kind}.pyz"
        if not _fresh(path):
            command = [sys.executable, "build/pyz.py", "--interpreter", "this", "--output", str(folder), path.name]
            subprocess.run(command, cwd=ROOT, check=True)
        return path

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


@pytest.fixture(scope="session")
def site_packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What goes into both plugin files, laid out on disk."""
    folder = tmp_path_factory.mktemp("staged") / "site-packages"
    folder.mkdir()
    recipes = pyz.read_recipes()["plugin"]
    for kind in ("gpu", "storage"):
        name = f"resource-{kind}.pyz"
        packer.stage(pyz.plugin_file(name, recipes[name]), {}, "none", pyz.CACHE / "wheels", folder)
    return folder


@pytest.fixture(scope="session")
def broken_trimming(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A built gpu plugin whose stand-ins lack a name that msgspec's core wants."""
    folder = tmp_path_factory.mktemp("broken")
    name = "resource-gpu.pyz"
    file = pyz.plugin_file(name, pyz.read_recipes()["plugin"][name], pyz.base_python())
    interpreters = {each.minor: each for each in INTERPRETERS}
    own = packer.stage(file, interpreters, "none", pyz.CACHE / "wheels", folder)
    extension = folder / "resource_extend/packed/extension.py"
    whole = extension.read_text()
    # The build runs the verbs on the trimmed msgspec too; there it stays as it is.
    broken = whole.replace(
        "    modules = sys.modules\n",
        '    modules = sys.modules\n    if "resource_extend.packed.start" in modules:\n        del stand_in.EnumMeta\n',
    )
    assert whole != broken
    extension.write_text(broken)
    packer.assemble(file, interpreters, folder, own, folder.parent / name)
    return folder.parent / name
