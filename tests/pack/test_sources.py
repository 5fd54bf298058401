"""What the packer reads out of sources: reachable modules, and annotations that a packed msgspec does not take."""

from pathlib import Path

import pytest

import pyz
from resource_extend.pack import annotations, modules, packer
from resource_extend.pack.packer import PluginFile
from support.packed import INTERPRETERS


def package(folder: Path, **sources: str) -> str:
    """Write the modules of a package `thing`; return the folder to search."""
    (folder / "thing").mkdir()
    for name, source in {"__init__": "", **sources}.items():
        (folder / "thing" / f"{name}.py").write_text(source)
    return str(folder)


def test_reachable_modules(tmp_path: Path) -> None:
    """Imports count wherever they run: at the top, in functions, of names that are modules; not for type checkers."""
    path = package(
        tmp_path,
        entry="import json\nfrom thing import a\nfrom thing.b import x\nif TYPE_CHECKING:\n    import thing.unused\n",
        a="def f():\n    from thing.c import g\n    import thing.d\n",
        b="x = 1\nfrom . import e\n",
        c="try:\n    from thing.f import x\nexcept ImportError:\n    x = None\n",
        d="",
        e="",
        f="x = 1",
        unused="",
    )

    found = modules.reachable(["thing.entry"], [path])
    assert ["thing", *(f"thing.{name}" for name in ["a", "b", "c", "d", "e", "entry", "f"])] == list(found)
    assert "thing/__init__.py" == found["thing"].archive_path
    assert "thing/a.py" == found["thing.a"].archive_path


def test_missing_module(tmp_path: Path) -> None:
    """A module of ours that does not exist stops the build."""
    path = package(tmp_path, entry="def f():\n    import thing.nothing\n")

    with pytest.raises(ModuleNotFoundError, match=r"no module thing\.nothing"):
        modules.reachable(["thing.entry"], [path])


@pytest.fixture(scope="module")
def staged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A site-packages folder with msgspec and our modules."""
    folder = tmp_path_factory.mktemp("staged")
    name = "resource-gpu.pyz"
    file: PluginFile = pyz.plugin_file(name, pyz.read_recipes()["plugin"][name])
    packer.stage(file, {}, "none", pyz.CACHE / "wheels", folder)
    return folder


@pytest.mark.parametrize(
    ("field", "allowed"),
    [
        ("int", True),
        ("str | None", True),
        ("dict[str, list[int | float]]", True),
        ("tuple[int, ...]", True),
        ("Raw", True),
        ("int | UnsetType", True),
        ("object", True),
        ("Other", True),
        ("list[Other | None]", True),
        ('"Sequence[Other]"', True),  # for a type checker: nothing can decode it
        ('"int"', False),
        ("Annotated[int, Meta(ge=1)]", False),
        ("Optional[int]", False),
        ("list[Any]", False),
        ("Literal[1]", False),
        ("Decimal", False),
        ("Color", False),
    ],
)
def test_annotations(field: str, allowed: bool, staged: Path) -> None:
    """Fields are builtin types, unions, Structs, Raw and UNSET; everything else stops the build and is named."""
    (staged / "annotated.py").write_text(
        "from decimal import Decimal\nfrom enum import Enum\nfrom typing import Annotated, Any, Literal, Optional\n"
        "from msgspec import Meta, Raw, Struct, UnsetType\n"
        "class Color(Enum):\n    RED = 1\n"
        f"class Other(Struct):\n    x: int\nclass Value(Struct):\n    first: int\n    field: {field}\n"
    )
    interpreter = INTERPRETERS[-1]

    if allowed:
        annotations.check(interpreter, staged, ["annotated"])
    else:
        with pytest.raises(ValueError, match=r"annotated\.Value\.field: "):
            annotations.check(interpreter, staged, ["annotated"])


def test_slow_import_stops_the_build(tmp_path: Path) -> None:
    """A plugin that imports on its hot road what costs more than the whole call is refused, by verb and module."""
    source = Path(__file__).parents[1] / "oddities"
    folder = tmp_path / "oddities"
    folder.mkdir()
    for path in source.glob("*.py"):
        (folder / path.name).write_text(path.read_text().replace('"""The plugin', 'import json\n"""The plugin', 1))
    file = PluginFile(
        "x.pyz",
        "oddities.plugin",
        "OdditiesPlugin",
        "/usr/bin/python3",
        (INTERPRETERS[0].minor,),
        ("x86_64", "aarch64"),
        pyz.ROOT / "requirements/plugin.txt",
        (str(tmp_path), str(pyz.ROOT / "src")),
    )

    with pytest.raises(RuntimeError, match=r"OdditiesPlugin imports .*json.* in verbs: no hot module may"):
        packer.pack(file, {INTERPRETERS[0].minor: INTERPRETERS[0]}, "none", pyz.CACHE / "wheels", tmp_path / "x.pyz")
    assert not (tmp_path / "x.pyz").exists()
