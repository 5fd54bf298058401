"""Code images: the compiled modules of a plugin for one bytecode, in the order in which the launcher wants them."""

import json
import subprocess
import tempfile
from pathlib import Path

from resource_extend.pack.interpreters import Interpreter
from resource_extend.pack.launcher import Image
from resource_extend.pack.trace import VerbSet

START = "resource_extend.packed.start"
EXTENSION = "resource_extend.packed.extension"
RARE = {"finder": "resource_extend.packed.finder", "late": "resource_extend.packed.late"}
_ROOT = Path(__file__).parents[2]
# At the end of the path, behind the standard library: other packages may lie there too.
_COMPILE = f"import sys; sys.path.append({str(_ROOT)!r}); from resource_extend.pack.compiler.main import main; main()"


def build_image(
    interpreter: Interpreter,
    suffixes: "tuple[str, ...]",
    label: str,
    site_packages: Path,
    own: "list[str]",
    verbs: "dict[str, VerbSet]",
    plugin: tuple[str, str],
) -> Image:
    """Compile all modules of a site-packages folder with one interpreter.

    Args:
        interpreter: whose bytecode the image is for.
        suffixes: extension suffixes of the interpreters that may run it: the same version on several machines.
        label: the file's name, for tracebacks.
        site_packages: our own and the third-party packages.
        own: our own modules, which are compiled function by function.
        verbs: what each verb runs (`trace.trace`).
        plugin: the plugin's module and class.

    Raises:
        RuntimeError: the interpreter cannot compile a module.
    """
    request = {
        "label": label,
        "modules": _modules(site_packages, own),
        "start": START,
        "extension": EXTENSION,
        "rare": RARE,
        "verbs": {verb: wanted.as_json() for verb, wanted in verbs.items()},
        "plugin": plugin[0],
        "plugin_class": plugin[1],
    }
    with tempfile.TemporaryDirectory() as empty:
        done = subprocess.run(
            # A fixed hash seed: the order of a frozenset constant is part of the bytes. No columns in tracebacks: they
            # are a third of the code.
            [interpreter.path, "-s", "-S", "-B", "-c", _COMPILE],
            input=json.dumps(request).encode(),
            capture_output=True,
            check=False,
            cwd=empty,
            env={"PYTHONHASHSEED": "0", "PYTHONUTF8": "1", "PYTHONNODEBUGRANGES": "1"},
        )
    if done.returncode:
        raise RuntimeError(f"{interpreter.path} cannot compile the modules:\n{done.stderr.decode().strip()}")
    boot, head = int.from_bytes(done.stdout[:8], "big"), int.from_bytes(done.stdout[8:16], "big")
    parts = done.stdout[16:]
    return Image(interpreter.magic, suffixes, parts[:boot], parts[boot : boot + head], parts[boot + head :])


def _modules(site_packages: Path, own: "list[str]") -> "list[tuple[str, bool, str, str, bool]]":
    """List (name, is a package, path, source, is our own) of all modules."""
    modules = []
    for path in site_packages.rglob("*.py"):
        relative = path.relative_to(site_packages)
        parts = relative.with_suffix("").parts
        is_package = parts[-1] == "__init__"
        name = ".".join(parts[:-1] if is_package else parts)
        modules.append((name, is_package, str(relative), path.read_text(encoding="utf-8"), name in own))
    return sorted(modules)
