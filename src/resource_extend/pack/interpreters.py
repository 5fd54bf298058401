"""The interpreters of this machine that code images can be made with."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

_QUESTION = """
import _imp, json, sys
print(json.dumps([sys.version.split()[0], sys.implementation.name,
    sys.modules["_frozen_importlib_external"].MAGIC_NUMBER.hex(), _imp.extension_suffixes()[0]]))
"""


@dataclass(frozen=True)
class Interpreter:
    """One CPython: its path, full version, bytecode magic, and the suffix of its extension modules."""

    path: str
    version: str
    magic: bytes
    suffix: str

    @property
    def minor(self) -> str:
        """The version without its last part, `3.11`."""
        return ".".join(self.version.split(".")[:2])


def examine(path: str) -> Interpreter | None:
    """Ask a program what interpreter it is; None when it is no CPython that runs."""
    try:
        done = subprocess.run(
            [path, "-I", "-S", "-c", _QUESTION], capture_output=True, check=True, timeout=60, stdin=subprocess.DEVNULL
        )
        version, name, magic, suffix = json.loads(done.stdout)
    except (OSError, subprocess.SubprocessError, ValueError):
        return None
    return Interpreter(path, version, bytes.fromhex(magic), suffix) if name == "cpython" else None


def discover(versions: "tuple[str, ...]", first: "tuple[str, ...]" = ()) -> dict[str, Interpreter]:
    """Find one interpreter for each version that this machine has.

    Args:
        versions: `3.10` and the like.
        first: paths to prefer; the rest comes from /usr/bin, pyenv's versions and PATH, in this order.

    Returns:
        version -> interpreter, without those that are missing.
    """
    found: dict[str, Interpreter] = {}
    for path in first:
        interpreter = examine(path)
        if interpreter is not None and interpreter.minor in versions:
            found.setdefault(interpreter.minor, interpreter)
    for version in versions:
        for path in () if version in found else _candidates(version):
            interpreter = examine(path)
            if interpreter is not None and interpreter.minor == version:
                found[version] = interpreter
                break
    return {version: found[version] for version in versions if version in found}


def _candidates(version: str) -> list[str]:
    """Return the places where the interpreter of a version may be, best first."""
    name = f"python{version}"
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv", "versions")
    folders = ["/usr/bin", "/usr/local/bin"]
    folders += [str(folder / "bin") for folder in sorted(pyenv.glob(f"{version}.*"), reverse=True)]
    # A shim of a version manager answers for whatever version is chosen at the moment, and slowly.
    folders += [folder for folder in os.get_exec_path() if "shims" not in folder]
    base = getattr(sys, "_base_executable", sys.executable)
    candidates = [str(Path(folder, name)) for folder in folders]
    if f"{sys.version_info[0]}.{sys.version_info[1]}" == version:
        candidates.append(base)
    return [path for path in dict.fromkeys(candidates) if os.access(path, os.X_OK)]
