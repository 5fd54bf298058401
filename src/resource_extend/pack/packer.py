"""A plugin class becomes one file: the stages in their order."""

import json
import os
import shutil
import tempfile
import zipfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from resource_extend import __version__
from resource_extend.pack import annotations, archive, modules, profile, shiv, trace, wheels
from resource_extend.pack.image import build_image
from resource_extend.pack.interpreters import Interpreter
from resource_extend.pack.launcher import Image

_PACKED = [
    "resource_extend.packed.start",
    "resource_extend.packed.extension",
    "resource_extend.packed.cold",
    "resource_extend.packed.finder",
    "resource_extend.packed.late",
]
_ENTRY = "resource_extend._main"


@dataclass(frozen=True)
class PluginFile:
    """What to build: a plugin class, the file's name, whom it serves.

    `versions` are `3.10` and the like, `machines` as `uname -m` names them. `requirements` is a pip requirements file
    with hashes. `search_path` holds the folders with the plugin's packages and ours. `session` is a file of calls, one
    JSON array `[verb, request]` a line, that are run on SQLite to find what each verb needs; without one each verb runs
    once, with a request of the protocol's common members.
    """

    name: str
    plugin: str
    plugin_class: str
    interpreter: str
    versions: tuple[str, ...]
    machines: tuple[str, ...]
    requirements: Path
    search_path: tuple[str, ...]
    session: Path | None = None

    def suffixes(self, version: str) -> tuple[str, ...]:
        """The extension suffixes of a version on all machines."""
        number = version.replace(".", "")
        return tuple(f".cpython-{number}-{machine}-linux-gnu.so" for machine in self.machines)


def pack(file: PluginFile, interpreters: "dict[str, Interpreter]", commit: str, cache: Path, target: Path) -> None:
    """Build a plugin file.

    Args:
        file: what to build.
        interpreters: version -> interpreter that compiles its image; a version without one starts slowly.
        commit: what `--version` says beside the version.
        cache: a folder for fetched wheels.
        target: the file to write.

    Raises:
        RuntimeError: a stage failed; the text says which.
        ValueError: an annotation or the first line is not possible.
    """
    with tempfile.TemporaryDirectory() as folder:
        site_packages = Path(folder, "site-packages")
        site_packages.mkdir()
        own = stage(file, interpreters, commit, cache, site_packages)
        assemble(file, interpreters, site_packages, own, target)


def stage(
    file: PluginFile, interpreters: "dict[str, Interpreter]", commit: str, cache: Path, site_packages: Path
) -> "list[str]":
    """Lay out all that goes into the archive; return the names of our own modules."""
    found = modules.reachable(["resource_extend.process", file.plugin, *_PACKED], list(file.search_path))
    for module in found.values():
        target = site_packages / module.archive_path
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(module.source, target)
    names = [f"CPython {interpreters[v].version if v in interpreters else v + ' (slow start)'}" for v in file.versions]
    machines = ", ".join(file.machines)
    (site_packages / "resource_extend/_build.py").write_text(
        f'"""What this file was built from."""\n\nVERSION = {__version__!r}\nCOMMIT = {commit!r}\n'
        f"INTERPRETERS = {tuple(f'{name} on {machines}' for name in names)!r}\n",
        encoding="utf-8",
    )
    (site_packages / "resource_extend/_main.py").write_text(
        f'"""Starts the plugin on the ordinary road."""\n\n'
        f"from {file.plugin} import {file.plugin_class}\nfrom resource_extend.process import main\n\n\n"
        f"def run():\n    main({file.plugin_class})\n",
        encoding="utf-8",
    )
    targets = [(version, machine) for version in file.versions for machine in file.machines]
    suffixes = tuple(suffix for version in file.versions for suffix in file.suffixes(version))
    wheels.unpack(wheels.fetch(file.requirements, targets, cache), site_packages, suffixes)
    return [*found, "resource_extend._build", "resource_extend._main"]


def assemble(
    file: PluginFile,
    interpreters: "dict[str, Interpreter]",
    site_packages: Path,
    own: "list[str]",
    target: Path,
) -> None:
    """Make the file from a staged folder."""
    sources = {name: module.source for name in own if (module := modules.find(name, [str(site_packages)]))}
    names = trace.function_names(sources)
    session = read_session(file.session) if file.session else []
    sqlite = "sqlite:\n  path: {folder}/nodes.db\n"
    etcd = profile.read()

    def traced(interpreter: Interpreter) -> dict[str, trace.VerbSet]:
        plugin = (file.plugin, file.plugin_class)
        embedded = trace.trace(interpreter, site_packages, names, plugin, session, sqlite)
        return trace.sets(embedded, etcd, profile.PLAIN)

    def compiled(interpreter: Interpreter, verbs: dict[str, trace.VerbSet]) -> Image:
        suffixes = file.suffixes(interpreter.minor)
        plugin = (file.plugin, file.plugin_class)
        return build_image(interpreter, suffixes, file.name, site_packages, own, verbs, plugin)

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        verbs = list(pool.map(traced, interpreters.values()))
        hot = {name for sets in verbs for wanted in sets.values() for name in wanted.run.modules}
        annotations.check(next(iter(interpreters.values())), site_packages, sorted(hot))
        images = list(pool.map(compiled, interpreters.values(), verbs))
    with tempfile.TemporaryDirectory() as folder:
        plain = Path(folder, file.name)
        shiv.make_archive(site_packages, f"{_ENTRY}:run", plain)
        with zipfile.ZipFile(plain) as members:
            content = shiv.members(members, file.name, "plugin")
    archive.write_plugin(target, file.interpreter, content, images)


def read_session(path: Path) -> "list[tuple[str, object]]":
    """Read a file of calls."""
    return [tuple(json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
