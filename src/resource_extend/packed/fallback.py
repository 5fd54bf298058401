"""The ordinary road into a packed file: for interpreters without an image, and for `python3 file.pyz`.

Lies in the archive as `_bootstrap.fallback`, beside shiv's bootstrap, which it starts when there is a folder that the
bootstrap can unpack into and that nobody else can write. Otherwise a plugin runs from the archive itself, and a
program, which may need any number of compiled modules as files, from a temporary folder that goes when it ends.
"""

import os
import shutil
import stat
import sys
import zipfile
from pathlib import Path

SITE_PACKAGES = "site-packages/"
root = ""


def main(kind: str) -> None:
    """Run the archive named by `sys.argv[0]`, a `plugin` or a `program`."""
    global root  # noqa: PLW0603 - the bootstrap's settings ask for it
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            # The lowest free descriptor is this one. Reading 0 and writing 1 or 2 goes on failing, while no socket or
            # file opened later can become a standard stream.
            os.open(os.devnull, os.O_RDONLY if descriptor else os.O_WRONLY)
    import _bootstrap  # type: ignore[import-not-found]
    from _bootstrap.environment import Environment  # type: ignore[import-not-found]

    with zipfile.ZipFile(sys.argv[0]) as archive:
        environment = Environment.from_json(archive.read("environment.json").decode())
        if kind == "plugin":
            require_core(archive)
        root = cache_folder()
        if not root or not unpack(archive, site_packages(environment.build_id)):
            if kind == "plugin":
                run_from_archive(archive, environment.entry_point)
                return
            root = temporary_folder()
        Environment.root, Environment.folder = root, site_packages(environment.build_id)
    _bootstrap.bootstrap()


def site_packages(build_id: str) -> str:
    """Return the folder into which the bootstrap unpacks the packages."""
    return os.path.join(root, f"{os.path.basename(os.path.realpath(sys.argv[0]))}_{build_id}", "site-packages")


def cache_folder() -> str:
    """Return the folder for unpacked files, made if need be; empty when there is none to be had."""
    folder = os.environ.get("SHIV_ROOT", "")
    if not os.path.isabs(folder):
        home = os.environ.get("HOME", "")
        if not os.path.isabs(home):
            import pwd

            try:
                home = pwd.getpwuid(os.geteuid()).pw_dir
            except KeyError:
                return ""
        folder = os.path.join(home, ".shiv")
    try:
        os.makedirs(folder, 0o755, exist_ok=True)
        noexec = os.statvfs(folder).f_flag & os.ST_NOEXEC
    except OSError:
        return ""
    return "" if noexec or not os.access(folder, os.W_OK | os.X_OK) else folder


def unpack(archive: zipfile.ZipFile, folder: str) -> bool:
    """Have the packages unpacked and whole in a folder that only this user or root can change; False if that fails."""
    import _bootstrap

    target = os.path.dirname(folder)
    if not is_safe(root) or not is_safe(target):
        return False
    incomplete = is_incomplete(archive, folder)
    if os.path.lexists(target) and not incomplete:
        return True
    try:
        _bootstrap.extract_site_packages(archive, Path(target), force=incomplete)
    except OSError:
        shutil.rmtree(f"{target}.tmp", ignore_errors=True)
        return False
    return True


def is_safe(folder: str) -> bool:
    """Whether only this user or root can have put anything into a folder; one that is not there yet is."""
    try:
        status = os.lstat(folder)
    except FileNotFoundError:
        return True
    return stat.S_ISDIR(status.st_mode) and status.st_uid in (0, os.geteuid()) and not status.st_mode & 0o022


def is_incomplete(archive: zipfile.ZipFile, folder: str) -> bool:
    """Whether something of an unpacked folder was removed or cut since: it is then unpacked anew."""
    if not os.path.lexists(os.path.dirname(folder)):
        return False
    for member in archive.infolist():
        if member.filename.startswith(SITE_PACKAGES):
            try:
                size = os.stat(os.path.join(folder, member.filename[len(SITE_PACKAGES) :])).st_size
            except OSError:
                return True
            if size != member.file_size:
                return True
    return False


def temporary_folder() -> str:
    """Return a private folder that is removed when the program ends."""
    import atexit
    import tempfile

    folder = tempfile.mkdtemp(prefix="resource-extend-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def core_name() -> str:
    """Return the name of msgspec's compiled core for this interpreter in the archive."""
    import _imp

    return f"{SITE_PACKAGES}msgspec/_core{_imp.extension_suffixes()[0]}"


def require_core(archive: zipfile.ZipFile) -> None:
    """End the process with a clear text where msgspec's compiled core does not exist for this interpreter."""
    names = archive.namelist()
    if core_name() in names:
        return
    found = sorted(name.split("/_core.")[1] for name in names if name.startswith(f"{SITE_PACKAGES}msgspec/_core."))
    sys.stderr.write(
        f"{os.path.basename(sys.argv[0])} has no compiled part for this interpreter, {sys.executable} "
        f"({sys.implementation.name} {sys.version.split()[0]}, {core_name().split('/_core.')[1]}): it has "
        f"{', '.join(found)}\n"
    )
    sys.stderr.flush()
    os._exit(128)


def run_from_archive(archive: zipfile.ZipFile, entry_point: str) -> None:
    """Run a plugin without unpacking anything."""
    content = archive.read(core_name())
    descriptor = os.memfd_create("msgspec")
    with open(descriptor, "wb", closefd=False) as memory:
        memory.write(content)
    sys.path.insert(0, os.path.join(os.path.abspath(sys.argv[0]), SITE_PACKAGES.rstrip("/")))
    from importlib import import_module

    cold = import_module("resource_extend.packed.cold")
    cold.import_full(descriptor)
    module, _, function = entry_point.partition(":")
    getattr(import_module(module), function)()
