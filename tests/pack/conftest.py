"""Files built by the packer for these tests alone."""

from pathlib import Path

import pytest

import pyz
from resource_extend.pack import packer
from resource_extend.pack.packer import PluginFile
from support.packed import INTERPRETERS, this_python

TESTS = Path(__file__).parents[1]


@pytest.fixture(scope="session")
def oddities(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of the plugin `oddities` for every interpreter of this machine; its session runs next to nothing."""
    folder = tmp_path_factory.mktemp("oddities")
    session = folder / "session.jsonl"
    session.write_text('["get-most-idle-node",{"nodenames":["nothing"]}]\n')
    file = PluginFile(
        "resource-oddities.pyz",
        "oddities.plugin",
        "OdditiesPlugin",
        this_python(),
        tuple(each.minor for each in INTERPRETERS),
        ("x86_64", "aarch64"),
        pyz.ROOT / "requirements/plugin.txt",
        (str(TESTS), str(pyz.ROOT / "src")),
        session,
    )
    target = folder / file.name
    packer.pack(file, {each.minor: each for each in INTERPRETERS}, "none", pyz.CACHE / "wheels", target)
    (folder / "oddities.yaml").write_text("sqlite:\n  path: nodes.db\n")
    return target
