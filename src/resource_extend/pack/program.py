"""Programs that run long: plain shiv files for the interpreter that builds them, without shiv's overrides."""

import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from resource_extend import __version__
from resource_extend.pack import archive, modules, shiv


def build(
    name: str, entry: str, interpreter: str, requirements: Path, search_path: "list[str]", commit: str, target: Path
) -> None:
    """Build a program.

    Args:
        name: the file's name.
        entry: `module:function`.
        interpreter: absolute path, or `env`.
        requirements: a pip requirements file with hashes.
        search_path: folders with our packages.
        commit: what the program can say of its build.
        target: the file to write.

    Raises:
        RuntimeError: pip or shiv failed.
    """
    with tempfile.TemporaryDirectory() as folder:
        site_packages = Path(folder, "site-packages")
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--require-hashes", "--no-compile"]
        command += ["--only-binary", ":all:", "--requirement", str(requirements), "--target", str(site_packages)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"pip cannot install {requirements}:\n{done.stderr.strip()}")
        # What pip writes of its own run differs from place to place.
        for needless in [site_packages / "bin", *site_packages.rglob("__pycache__")]:
            shutil.rmtree(needless, ignore_errors=True)
        for pattern in ("RECORD", "INSTALLER", "REQUESTED", "direct_url.json"):
            for file in site_packages.glob(f"*.dist-info/{pattern}"):
                file.unlink()
        for module in modules.reachable([entry.partition(":")[0]], search_path).values():
            to = site_packages / module.archive_path
            to.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(module.source, to)
        (site_packages / "resource_extend/_build.py").write_text(
            f'"""What this file was built from."""\n\nVERSION = {__version__!r}\nCOMMIT = {commit!r}\n'
            f"INTERPRETERS = {(f'CPython {sys.version.split()[0]}',)!r}\n",
            encoding="utf-8",
        )
        plain = Path(folder, name)
        shiv.make_archive(site_packages, entry, plain)
        with zipfile.ZipFile(plain) as members:
            content = shiv.members(members, name, "program")
        archive.write_program(target, interpreter, content)
