"""The third-party packages of a plugin file, fetched as wheels for every interpreter and machine that it serves.

pip fetches them from whatever index it is set up for, by the versions and hashes of the requirements file.
"""

import hashlib
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from resource_extend.pack.elf import without_library

# The pure Python part of a wheel is the same for all; taking it from one makes the file the same wherever it is built.
PURE_FROM = ("3.11", "x86_64")
_COMPILED = ".so"
_NEEDLESS = ("/tests/", ".pyi", "/py.typed", ".pyx", ".c", ".h", "/RECORD", "/INSTALLER", "/WHEEL", "/top_level.txt")


def fetch(requirements: Path, targets: "list[tuple[str, str]]", cache: Path) -> "list[Path]":
    """Return the wheels of a requirements file: all for `PURE_FROM`, then msgspec's for each target.

    Args:
        requirements: pinned, with hashes.
        targets: (version, machine) of each interpreter to serve.
        cache: a folder for what was fetched before.

    Raises:
        RuntimeError: pip could not fetch a wheel that was asked for.
    """
    text = requirements.read_text(encoding="utf-8")
    core_only = "".join(block for block in _blocks(text) if block.startswith("msgspec"))
    wheels = _download(text, *PURE_FROM, cache)
    for version, machine in targets:
        if (version, machine) != PURE_FROM:
            wheels += _download(core_only, version, machine, cache)
    return wheels


def unpack(wheels: "list[Path]", folder: Path, suffixes: "tuple[str, ...]") -> None:
    """Lay the packages of the wheels into a folder, without what a running plugin does not need.

    Licences stay. Of the compiled modules only msgspec's for the given suffixes do: PyYAML's is an optional accelerator
    that the packed file would have to unpack first.
    """
    for wheel in wheels:
        with zipfile.ZipFile(wheel) as archive:
            for name in archive.namelist():
                compiled = name.endswith(_COMPILED)
                wanted = name.startswith("msgspec/_core") and name.endswith(suffixes) if compiled else _is_needed(name)
                if not wanted or name.endswith("/"):
                    continue
                target = folder / name
                target.parent.mkdir(parents=True, exist_ok=True)
                content = archive.read(name)
                target.write_bytes(without_library(content, "libpthread.so.0") if compiled else content)


def _is_needed(name: str) -> bool:
    """Whether a file that is no compiled module belongs into the archive."""
    return not any(needless in name if needless.endswith("/") else name.endswith(needless) for needless in _NEEDLESS)


def _blocks(text: str) -> "list[str]":
    """Split a requirements file into its requirements, continuation lines included."""
    blocks: list[str] = []
    for line in text.splitlines(keepends=True):
        if line.startswith((" ", "\t")) and blocks:
            blocks[-1] += line
        elif line.strip() and not line.startswith("#"):
            blocks.append(line)
    return blocks


def _download(text: str, version: str, machine: str, cache: Path) -> "list[Path]":
    """Return the wheels of a requirements text for one interpreter and machine."""
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    folder = cache / f"{digest}-{version}-{machine}"
    if not folder.is_dir():
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache) as temporary:
            requirements = Path(temporary, "requirements.txt")
            requirements.write_text(text, encoding="utf-8")
            target = Path(temporary, "wheels")
            number = version.replace(".", "")
            command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:"]
            command += ["--require-hashes", "--requirement", str(requirements), "--dest", str(target)]
            command += ["--implementation", "cp", "--python-version", version, "--abi", f"cp{number}", "--abi", "none"]
            command += ["--platform", f"manylinux2014_{machine}", "--platform", "any"]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                raise RuntimeError(f"pip found no wheels for CPython {version} on {machine}:\n{done.stderr.strip()}")
            shutil.move(target, folder)
    return sorted(folder.glob("*.whl"))
