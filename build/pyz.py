"""Reads the recipes and calls the packer: `scripts/build [options] [NAME ...]`."""

import argparse
import hashlib
import os
import platform
import subprocess
import sys
import zlib
from pathlib import Path
from typing import Any

from resource_extend.pack import program
from resource_extend.pack.interpreters import Interpreter, discover
from resource_extend.pack.launcher import first_line_fits
from resource_extend.pack.packer import PluginFile, pack

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # type: ignore[import-not-found]

ROOT = Path(__file__).resolve().parent.parent
RECIPES = ROOT / "build/artefacts.toml"
CACHE = ROOT / ".cache/build"
# What the built files depend on. A change elsewhere, a test's output say, does not make a build "modified".
SOURCES = ("src", "build", "requirements")


def main(arguments: "list[str]") -> int:
    """Build the named artefacts, or all plugins."""
    recipes = read_recipes()
    plugins, programs = recipes["plugin"], recipes["program"]
    options = _parse(arguments, [*plugins, *programs])
    names = options.names or list(plugins)
    output: Path = options.output
    output.mkdir(parents=True, exist_ok=True)
    commit = _commit()
    print(f"commit {commit}, CPython {platform.python_version()}, zlib {zlib.ZLIB_RUNTIME_VERSION}")
    try:
        for name in names:
            line = _interpreter(options.interpreter)
            if name in plugins:
                _build_plugin(plugin_file(name, plugins[name], line, options.one), options.one, commit, output)
            else:
                recipe = programs[name]
                program.build(
                    name,
                    recipe["entry"],
                    line or recipe["interpreter"],
                    ROOT / recipe["requirements"],
                    [str(ROOT / "src")],
                    commit,
                    output / name,
                )
            print(f"built {output / name}, {(output / name).stat().st_size} bytes")
    except (RuntimeError, ValueError, ModuleNotFoundError) as error:
        print(f"{name}: {error}", file=sys.stderr)
        return 1
    _write_sums(output, [*plugins, *programs])
    return 0


def read_recipes() -> "dict[str, Any]":
    """Read artefacts.toml."""
    recipes: dict[str, Any] = tomllib.loads(RECIPES.read_text(encoding="utf-8"))
    return recipes


def _parse(arguments: "list[str]", known: "list[str]") -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/build", description="Build plugin files and programs into dist/.")
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"what to build, of {', '.join(known)}; default plugins"
    )
    parser.add_argument(
        "--interpreter",
        metavar="PATH",
        help="the interpreter in the first line instead of the recipe's: an absolute path, `env` for python3 on PATH, "
        "`this` for the Python that builds",
    )
    parser.add_argument("--one", action="store_true", help="serve the building Python and this machine only")
    parser.add_argument("--output", type=Path, default=ROOT / "dist", metavar="DIR", help="where to put the files")
    options = parser.parse_args(arguments)
    unknown = [name for name in options.names if name not in known]
    if unknown:
        parser.error(f"no recipe for {', '.join(unknown)}; there are {', '.join(known)}")
    return options


def plugin_file(name: str, recipe: "dict[str, Any]", line: "str | None" = None, one: bool = False) -> PluginFile:
    """Return what the packer shall build for a recipe.

    Args:
        name: the file's name.
        recipe: a table of artefacts.toml.
        line: the interpreter of the first line, if not the recipe's.
        one: serve the building Python and this machine only.
    """
    module, _, plugin_class = recipe["class"].partition(":")
    this = f"{sys.version_info[0]}.{sys.version_info[1]}"
    return PluginFile(
        name,
        module,
        plugin_class,
        line or recipe["interpreter"],
        (this,) if one else tuple(recipe["versions"]),
        (platform.machine(),) if one else tuple(recipe["machines"]),
        ROOT / recipe["requirements"],
        (str(ROOT / "src"),),
        ROOT / recipe["session"] if "session" in recipe else None,
    )


def _build_plugin(file: PluginFile, one: bool, commit: str, output: Path) -> None:
    """Build one plugin file and say which interpreters it starts fast on."""
    found = discover(file.versions, (base_python(),) if one else (file.interpreter,))
    # Another C library or build has other extension modules, and there is no msgspec for it in the file.
    interpreters = {version: each for version, each in found.items() if each.suffix in file.suffixes(version)}
    if not interpreters:
        raise RuntimeError(f"there is none of CPython {', '.join(file.versions)} on this machine")
    for version in file.versions:
        print(f"  CPython {version}: {_found(interpreters.get(version))}")
    target = output / file.name
    inputs = f"{file} {interpreters} {commit} {zlib.ZLIB_RUNTIME_VERSION} {sys.version} {_sources()}"
    # Beside the caches, not beside the file: people copy all of dist/ into plugin directories.
    stamp = CACHE / "stamps" / hashlib.sha256(str(target.resolve()).encode()).hexdigest()
    if _is_stamped(target, inputs, stamp):
        return
    pack(file, interpreters, commit, CACHE / "wheels", target)
    stamp.parent.mkdir(parents=True, exist_ok=True)
    stamp.write_text(f"{hashlib.sha256(target.read_bytes()).hexdigest()} {inputs}", encoding="utf-8")


def _is_stamped(target: Path, inputs: str, stamp: Path) -> bool:
    """Whether a file is what the same inputs gave before."""
    if not target.exists() or not stamp.exists():
        return False
    digest = hashlib.sha256(target.read_bytes()).hexdigest()
    return stamp.read_text(encoding="utf-8") == f"{digest} {inputs}" and os.access(target, os.X_OK)


def _sources() -> str:
    """Return a digest of everything that is built from."""
    digest = hashlib.sha256()
    for folder in SOURCES:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts and not path.parent.name.endswith(".egg-info"):
                digest.update(f"{path.relative_to(ROOT)} {path.stat().st_size} ".encode())
                digest.update(path.read_bytes())
    return digest.hexdigest()


def _found(interpreter: Interpreter | None) -> str:
    return f"{interpreter.version}, {interpreter.path}" if interpreter else "no interpreter here, starts slowly there"


def _interpreter(asked: "str | None") -> "str | None":
    """Return what stands in the first line instead of the recipe's interpreter."""
    if asked != "this":
        return asked
    path = base_python()
    # A path that is too long for the line is that of the python3 on PATH all the same.
    return path if first_line_fits(path) else "env"


def base_python() -> str:
    """Return the Python that runs this, outside its virtual environment."""
    return str(getattr(sys, "_base_executable", sys.executable))


def _commit() -> str:
    """Return the commit that is built, `unknown` without git, with a mark when its sources were changed."""
    git = ["git", "-C", str(ROOT)]
    environment = {
        **os.environ,
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "safe.directory",
        "GIT_CONFIG_VALUE_0": "*",
    }
    try:
        head = subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, text=True, check=True, env=environment)
        status = [*git, "status", "--porcelain", "--", *SOURCES]
        changes = subprocess.run(status, capture_output=True, text=True, check=True, env=environment)
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return head.stdout.strip() + (" with changes" if changes.stdout.strip() else "")


def _write_sums(output: Path, known: "list[str]") -> None:
    """Write SHA256SUMS for what lies in the folder, as sha256sum reads it."""
    lines = [
        f"{hashlib.sha256((output / name).read_bytes()).hexdigest()}  {name}\n"
        for name in sorted(known)
        if (output / name).exists()
    ]
    (output / "SHA256SUMS").write_text("".join(lines), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
