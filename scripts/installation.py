"""Put built plugin files into core's plugin directory, so that core never meets half of one.

Core loads every regular file and symbolic link of the folder that has all three execute bits, and does not start when
one of them cannot answer `verbs`. So a file is written without execute bits into a subfolder, which core skips; there,
complete and on disk, it gets its mode, and one rename puts it into its place.
"""

import argparse
import hashlib
import os
import shlex
import shutil
import stat
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OLDEST_PYTHON = (3, 10)
EXECUTE = stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH
PLUGIN_MODE = 0o755
CONFIGURATION_MODE = 0o640


class InstallError(Exception):
    """Why nothing was installed: one line that names the thing and what to do."""


@dataclass(frozen=True)
class PluginFile:
    """A built plugin: where it is, what it holds, the kind it says it is, and its place in the plugin directory."""

    source: Path
    content: bytes
    kind: str
    target: Path

    def is_installed(self) -> bool:
        """Whether the very same file is in its place already."""
        status = self.target.lstat()
        return stat.S_IMODE(status.st_mode) == PLUGIN_MODE and self.target.read_bytes() == self.content


def main(arguments: list[str]) -> int:
    """Serve the command line; the exit status is 0, or 1 when nothing was installed."""
    parser = argparse.ArgumentParser(
        prog="scripts/install", description="Put the built plugins into core's plugin directory."
    )
    parser.add_argument("folder", metavar="DIR", help="core's resource_plugin.dir")
    parser.add_argument(
        "--replace", action="store_true", help="replace files that differ; the old ones are kept in DIR.replaced"
    )
    options = parser.parse_args(arguments)
    sources = sorted(Path(ROOT, "dist").glob("resource-*.pyz"))
    try:
        if not sources:
            raise InstallError("nothing is built: run scripts/build first")
        install(sources, Path(options.folder), options.replace)
    except InstallError as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)
    except OSError as error:
        print(f"{parser.prog}: {error.filename or options.folder}: {error.strerror}", file=sys.stderr)
    else:
        return 0
    return 1


def install(sources: list[Path], folder: Path, replace: bool) -> None:
    """Install plugin files under the names that core knows them by, say what was done and what else core would load.

    Everything is checked, and all files are written, before the first one is put into place.

    Raises:
        InstallError: something is wrong with a file or the folder; nothing was changed.
        OSError: the system refused something; files already reported are in place.
    """
    if not folder.is_dir():
        raise InstallError(f"{folder}: no such folder; make it, or give core's resource_plugin.dir")
    folder = folder.resolve()
    plugins = [_examined(source, folder) for source in sources]
    present = [plugin for plugin in plugins if os.path.lexists(plugin.target)]
    outdated = [plugin for plugin in present if not plugin.is_installed()]
    if outdated and not replace:
        names = ", ".join(str(plugin.target) for plugin in outdated)
        raise InstallError(f"{names}: exists and differs; --replace replaces it and keeps the old file")
    new = [plugin for plugin in plugins if plugin not in present]
    staging = Path(tempfile.mkdtemp(prefix=".install-", dir=folder))
    try:
        staged = {
            plugin: _staged(staging / plugin.target.name, plugin.content, PLUGIN_MODE) for plugin in new + outdated
        }
        kept = {plugin: _keep(plugin.target) for plugin in outdated}
        for plugin in plugins:
            if plugin in staged:
                os.replace(staged[plugin], plugin.target)
            _report(plugin, kept.get(plugin), plugin in staged)
            _configure(plugin, staging)
    finally:
        shutil.rmtree(staging)
    _flush(folder)
    _warn_of_others(folder, [plugin.target.name for plugin in plugins])


def _examined(source: Path, folder: Path) -> PluginFile:
    """Check that a file will run here as core runs it, and ask it its kind."""
    target = folder / source.stem
    if os.path.lexists(target) and not (target.is_symlink() or target.is_file()):
        what = "a folder" if target.is_dir() else "no file, and stands"
        raise InstallError(f"{target}: is {what} where the plugin file should go")
    content = source.read_bytes()
    _check_interpreter(source, content.partition(b"\n")[0])
    answers = []
    for verb in ("verbs", "name"):
        try:
            done = subprocess.run(
                [source, verb], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False
            )
        except OSError as error:
            raise InstallError(f"{source}: does not run: {error.strerror}; build it again with scripts/build") from None
        except subprocess.TimeoutExpired:
            raise InstallError(f"{source}: does not answer `{verb}` within a minute") from None
        if done.returncode:
            raise InstallError(f"{source}: cannot answer `{verb}`, so core would not start: {done.stderr.strip()}")
        answers.append(done.stdout)
    return PluginFile(source, content, answers[1].strip('"'), target)


def _check_interpreter(source: Path, first_line: bytes) -> None:
    words = os.fsdecode(first_line).removeprefix("#!").split()
    if not first_line.startswith(b"#!") or not words:
        raise InstallError(f"{source}: its first line names no interpreter; build it again with scripts/build")
    interpreter = words[0]
    if Path(interpreter).name == "env":
        interpreter = next((word for word in words[1:] if not word.startswith("-") and "=" not in word), interpreter)
    command = [interpreter, "-S", "-c", "import sys; sys.stdout.write('%d %d %d' % sys.version_info[:3])"]
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True)
        version = tuple(map(int, done.stdout.split()))
    except (OSError, subprocess.CalledProcessError, ValueError):
        raise InstallError(
            f"{source}: its first line names {interpreter}, which is no Python that runs here; "
            "install it, or build for another interpreter (docs/installing.md)"
        ) from None
    if version < OLDEST_PYTHON:
        found = ".".join(map(str, version))
        raise InstallError(
            f"{source}: its first line names {interpreter}, which is Python {found}; 3.10 or newer is needed"
        )


def _staged(path: Path, content: bytes, mode: int) -> Path:
    """Write a file that nobody can execute before all of it is on disk."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(descriptor)
        os.fchmod(descriptor, mode)
    return path


def _keep(target: Path) -> Path:
    """Keep an installed file outside the folder, as it is, and return its new path."""
    folder = target.parent.with_name(target.parent.name + ".replaced")
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise InstallError(f"{folder}: {error.strerror}; make this folder, the old file is kept there") from None
    is_link = target.is_symlink()
    identity = os.fsencode(target.readlink()) if is_link else target.read_bytes()
    kept = folder / f"{target.name}.{hashlib.sha256(identity).hexdigest()[:12]}"
    if os.path.lexists(kept):
        return kept
    if is_link:
        kept.symlink_to(target.parent / target.readlink())
        return kept
    try:
        os.link(target, kept)
    except OSError:  # another file system, one without links, or somebody else's file
        copy = kept.with_name(kept.name + ".part")
        shutil.copy2(target, copy)
        copy.replace(kept)
    _flush(folder)
    return kept


def _report(plugin: PluginFile, kept: Path | None, changed: bool) -> None:
    if kept:
        print(f"{plugin.target}: replaced; to go back: {shlex.join(['mv', str(kept), str(plugin.target)])}")
    else:
        print(f"{plugin.target}: {'installed' if changed else 'already there, unchanged'}")


def _configure(plugin: PluginFile, staging: Path) -> None:
    """Give the plugin an example configuration when there is none."""
    target = plugin.target.with_name(f"{plugin.kind}.yaml")
    example = Path(ROOT, "examples", f"{plugin.kind}.yaml")
    if os.path.lexists(target):
        print(f"{target}: kept as it is")
    elif example.is_file():
        os.replace(_staged(staging / target.name, example.read_bytes(), CONFIGURATION_MODE), target)
        print(f"{target}: an example; edit it, and see that core's user can read it")
    else:
        print(f"{target}: missing, and there is no example of it")


def _warn_of_others(folder: Path, installed: list[str]) -> None:
    """Say what else core would try to load when it starts."""
    for path in sorted(folder.iterdir()):
        mode = path.lstat().st_mode
        if path.name in installed or not (stat.S_ISREG(mode) or stat.S_ISLNK(mode)):
            continue
        if path.name.endswith(".so"):
            print(f"{path}: core loads this too, as a shared object")
        elif stat.S_ISLNK(mode):
            print(f"{path}: core runs this too: a symbolic link counts as executable, whatever it points to")
        elif mode & EXECUTE == EXECUTE:
            print(f"{path}: core runs this too, and does not start if it cannot answer `verbs`")


def _flush(folder: Path) -> None:
    """Have the folder's entries on disk."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
