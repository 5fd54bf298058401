"""One call of a plugin as core makes it: in this process through `respond`, or as a process of its own."""

import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from resource_extend.errors import PluginError
from resource_extend.plugin import Plugin
from resource_extend.process import respond

SOURCES = Path(__file__).parents[2] / "src"

CLASSES = {
    "gpu": ("resource_extend.gpu.plugin", "GpuPlugin"),
    "storage": ("resource_extend.storage.plugin", "StoragePlugin"),
}


class Outcome(NamedTuple):
    """What a call left behind: exit status and both streams."""

    status: int
    stdout: bytes
    stderr: bytes


def source_files() -> Iterator[Path]:
    """Give every file that the built plugin files depend on."""
    for folder in ("src", "build", "requirements"):
        for path in (SOURCES.parent / folder).rglob("*"):
            if path.is_file() and "__pycache__" not in path.parts and ".egg-info" not in str(path):
                yield path


def plugin_class(kind: str) -> type[Plugin]:
    """Return the plugin class of a kind."""
    module, name = CLASSES[kind]
    found: type[Plugin] = getattr(__import__(module, fromlist=[name]), name)
    return found


def call_here(plugin: type[Plugin], arguments: Sequence[str], request: bytes = b"{}") -> Outcome:
    """Answer a call in this process; stderr is the text of the failure, before the edge escapes it."""
    try:
        answer = respond(plugin, list(arguments), {}, lambda: request, time.monotonic())
    except PluginError as error:
        return Outcome(128, b"", str(error).encode("utf-8", "backslashreplace") + b"\n")
    return Outcome(0, answer, b"")


def call_program(
    program: Path,
    arguments: Sequence[str | bytes],
    request: bytes = b"{}",
    folder: Path | None = None,
    environ: Mapping[str, str] | None = None,
) -> Outcome:
    """Execute a plugin file with a request on stdin, in a folder, with an environment (default: PATH alone)."""
    done = subprocess.run(
        [program, *arguments],
        input=request,
        capture_output=True,
        cwd=folder or program.parent,
        env={"PATH": "/usr/bin:/bin"} if environ is None else dict(environ),
        timeout=60,
        check=False,
    )
    return Outcome(done.returncode, done.stdout, done.stderr)


def source_program(path: Path, kind: str) -> Path:
    """Make an executable that serves a plugin straight from the source tree, with the Python of the tests."""
    module, name = CLASSES[kind]
    path.write_text(
        f"#!{sys.executable} -I\n"
        "import sys\n"
        f"sys.path.insert(0, {str(SOURCES)!r})\n"
        f"from resource_extend.process import main\nfrom {module} import {name}\nmain({name})\n"
    )
    path.chmod(0o755)
    return path
