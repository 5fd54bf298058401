"""Built plugin files, started in other ways than by the kernel: by another interpreter, as a script, watched."""

import json
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from resource_extend.pack.interpreters import Interpreter, discover
from support.calls import Outcome

VERSIONS = ("3.10", "3.11", "3.12", "3.13")
# Those of this machine; .ci/run refuses to run where one is missing.
INTERPRETERS: list[Interpreter] = list(discover(VERSIONS).values())

# Runs before the code of the first line, in the same interpreter with the same flags, and reports when the call ends.
_WATCH = """
import posix
def leave(status, leave=posix._exit):
    import sys
    parts = sys.modules.get("resource_extend.packed.late")
    late = ["something"] if parts or "resource_extend.packed.finder" in sys.modules else []
    if parts and parts.functions:
        late = ["%s.%s" % (each.__module__, each.__code__.co_name) for each in parts.functions.values()]
    report = repr((sorted(sys.modules), late)).encode()
    file = posix.open(posix.environ[b"REPORT"], posix.O_WRONLY | posix.O_CREAT | posix.O_TRUNC)
    posix.write(file, report)
    leave(status)
posix._exit = leave
"""


def launcher(plugin: Path) -> str:
    """Return the code in the first line of a built file."""
    with plugin.open("rb") as file:
        found = re.fullmatch(r"#!\S+ -ISc(\S+)\n", file.readline().decode())
    assert found
    return found[1]


def call_with(
    python: str,
    plugin: Path,
    arguments: Sequence[str],
    request: bytes = b"{}",
    folder: Path | None = None,
    environ: Mapping[str, str] | None = None,
    before: str = "",
) -> Outcome:
    """Start a built file as its first line would, if it named another interpreter; `before` runs first."""
    command = [python, f"-ISc{before}{launcher(plugin)}", str(plugin), *arguments]
    return _run(command, request, folder or plugin.parent, environ)


def call_as_script(
    python: str,
    plugin: Path,
    arguments: Sequence[str],
    request: bytes = b"{}",
    folder: Path | None = None,
    environ: Mapping[str, str] | None = None,
) -> Outcome:
    """Start a built file as `python3 file.pyz verb` does: on the ordinary road."""
    return _run([python, str(plugin), *arguments], request, folder or plugin.parent, environ)


def watch(
    python: str, plugin: Path, arguments: Sequence[str], request: bytes, report: Path, environ: Mapping[str, str]
) -> tuple[Outcome, list[str], list[str]]:
    """Call a built file and tell what was in sys.modules at the end, and what was fetched late."""
    outcome = call_with(python, plugin, arguments, request, environ={**environ, "REPORT": str(report)}, before=_WATCH)
    modules, fetched = eval(report.read_text())  # a repr of ours
    return outcome, modules, fetched


def _run(command: list[str], request: bytes, folder: Path, environ: Mapping[str, str] | None) -> Outcome:
    done = subprocess.run(
        command,
        input=request,
        capture_output=True,
        cwd=folder,
        env={"PATH": "/usr/bin:/bin"} if environ is None else dict(environ),
        timeout=120,
        check=False,
    )
    return Outcome(done.returncode, done.stdout, done.stderr)


def session(kind: str) -> list[tuple[str, bytes]]:
    """Return the calls that the build runs to see what verbs need: verb and request, in their order."""
    lines = (Path(__file__).parents[2] / f"build/sessions/{kind}.jsonl").read_text().splitlines()
    calls: list[tuple[str, Any]] = [tuple(json.loads(line)) for line in lines]
    return [(verb, json.dumps(request).encode()) for verb, request in calls]


def this_python() -> str:
    """Return the interpreter of these tests, outside its virtual environment."""
    return str(getattr(sys, "_base_executable", sys.executable))
