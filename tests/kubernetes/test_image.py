"""What the device plugin's image is made with."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

UNPACK = Path(__file__).parents[2] / "scripts/unpack"


def _unpack(*arguments: str) -> subprocess.CompletedProcess[str]:
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    command = [str(UNPACK), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, "PATH": path})


def test_unpacked_program_needs_no_writable_place(tmp_path: Path) -> None:
    """A program is unpacked with its modules compiled: they are used as they are, and nothing is written later."""
    program = tmp_path / "program.pyz"
    with zipfile.ZipFile(program, "w") as archive:
        archive.writestr("__main__.py", "raise SystemExit('the start of the packed file is not used')")
        archive.writestr("site-packages/tool/__init__.py", "")
        archive.writestr("site-packages/tool/cli.py", "print('it runs', __file__, __cached__)")
    folder = tmp_path / "folder"

    assert 0 == _unpack(str(program), str(folder)).returncode
    # An uncompiled start would notice this; a compiled one must not look.
    (folder / "tool/cli.py").write_text("print('compiled anew')")
    before = sorted(folder.rglob("*"))
    command = [sys.executable, "-c", "import tool.cli"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env={"PYTHONPATH": str(folder)})

    assert done.stdout.startswith("it runs")
    assert before == sorted(folder.rglob("*"))


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    """A folder that exists is left alone, and the mistake is told."""
    assert "exists" in _unpack("any.pyz", str(tmp_path)).stderr
    assert "scripts/unpack FILE FOLDER" in _unpack().stderr
