"""The ordinary part: a site-packages folder becomes a shiv archive, whose bootstrap then loses its overrides."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

# A time that a zip entry can hold and that says "none": the same tree gives the same bytes.
TIMESTAMP = 315532800
_PACKED = Path(__file__).parent.parent / "packed"

# Runs under every Python that is likely to be found, so that a too old one is told.
_MAIN = """\
import sys

if sys.version_info < (3, 10):
    sys.stderr.write(
        "{label} needs CPython 3.10 or newer, and this is %s (%s)\\n" % (sys.version.split()[0], sys.executable)
    )
    sys.stderr.flush()
    sys.exit(128)
from _bootstrap.fallback import main

main("{kind}")
"""


def make_archive(site_packages: Path, entry_point: str, target: Path) -> None:
    """Make a plain shiv archive.

    Args:
        site_packages: what goes into it.
        entry_point: `module:function`.
        target: the file to write.

    Raises:
        RuntimeError: shiv failed.
    """
    command = [sys.executable, "-W", "ignore", "-m", "shiv", "--reproducible", "--entry-point", entry_point]
    command += ["--python", "/usr/bin/python3 -I", "--output-file", str(target)]
    command += ["--site-packages", str(site_packages)]
    for path in [site_packages, *site_packages.rglob("*")]:
        path.chmod(0o755 if path.is_dir() else 0o644)  # shiv records modes, which the umask would decide
    environment = {**os.environ, "SOURCE_DATE_EPOCH": str(TIMESTAMP)}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    if done.returncode:
        raise RuntimeError(f"shiv failed:\n{done.stdout}{done.stderr}".strip())


def members(archive: zipfile.ZipFile, label: str, kind: str) -> "dict[str, bytes]":
    """Return the members of a shiv archive as they are packed: with our settings module and entry.

    Args:
        archive: what `make_archive` made.
        label: the file's name.
        kind: `plugin` or `program`.
    """
    content = {info.filename: archive.read(info) for info in archive.infolist()}
    content["__main__.py"] = _MAIN.format(label=label, kind=kind).encode()
    for name in ("environment.py", "fallback.py"):
        content[f"_bootstrap/{name}"] = (_PACKED / name).read_bytes()
    return content
