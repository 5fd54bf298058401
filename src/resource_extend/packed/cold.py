"""The rare roads to msgspec's core: a first call, no usable cache folder, a core that refuses stand-ins."""

import posix
import sys
import time
from _frozen_importlib import ModuleSpec
from _imp import create_dynamic, exec_dynamic

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any, BinaryIO

# Set before the full import: the descriptor that holds the core.
core_descriptor = -1


def load_without_copy(
    archive: "BinaryIO",
    place: "tuple[int, int, int, bytes]",
    root: bytes,
    descriptor: int,
    open_checked: "Callable[[bytes, int], int]",
    create_trimmed: "Callable[[int], ModuleType]",
) -> "ModuleType | None":
    """Create the core when no good copy lies in the cache folder; leave one there if possible.

    Args:
        archive: the plugin file, which holds the core uncompressed.
        place: where the core lies in it: offset, size, CRC-32, SHA-256.
        root: the cache folder, empty when the environment names none.
        descriptor: a copy that was found and did not load, or -1.
        open_checked: `extension.open_checked`.
        create_trimmed: `extension.create_trimmed`.

    Returns:
        The core, or None when the whole `msgspec` was imported instead.
    """
    offset, size, checksum, digest = place
    root = root or home_folder()
    path = root + b"/" + digest
    # A good copy that does not load lies on a file system without exec, or the core refuses the stand-ins.
    if root and (descriptor < 0 or crc32(posix.pread(descriptor, size, 0)) != checksum):
        try:
            copy(posix.pread(archive.fileno(), size, offset), checksum, root, path)
        except OSError:
            pass
        else:
            descriptor = open_checked(path, size)
            if descriptor >= 0:
                try:
                    return create_trimmed(descriptor)
                except Exception:  # the next road
                    pass
    descriptor = in_memory(archive.fileno(), offset, size)
    try:
        return create_trimmed(descriptor)
    except Exception:
        import_full(descriptor)
    return None


def home_folder() -> bytes:
    """Return the cache folder of the user's entry in the password database, empty without one."""
    try:
        import pwd

        home = pwd.getpwuid(posix.geteuid()).pw_dir
    except (ImportError, KeyError):
        return b""
    return home.encode("utf-8", "surrogateescape") + b"/.shiv" if home.startswith("/") else b""


def crc32(content: bytes) -> int:
    """Return the checksum that tells a damaged copy or archive."""
    from zlib import crc32

    return crc32(content)


def copy(content: bytes, checksum: int, root: bytes, path: bytes) -> None:
    """Write the copy so that others see all of it or nothing. Raises OSError where that is not possible.

    The name ends in no `.so` and the mode has no execute bit: core loads such files where it looks for plugins.
    Everybody may read it, so that the first call may be another user's.
    """
    make_folder(root)
    temporary = b"%b.%d.%d" % (path, posix.getpid(), time.time_ns())
    descriptor = posix.open(temporary, posix.O_WRONLY | posix.O_CREAT | posix.O_EXCL | posix.O_CLOEXEC, 0o600)
    try:
        try:
            if crc32(content) != checksum:
                raise RuntimeError(f"the file {sys.argv[0]} is damaged: replace it")
            written = 0
            while written < len(content):
                written += posix.write(descriptor, memoryview(content)[written:])
            posix.fchmod(descriptor, 0o444)
            posix.fsync(descriptor)
        finally:
            posix.close(descriptor)
        posix.rename(temporary, path)
    except BaseException:
        posix.unlink(temporary)
        raise


def make_folder(path: bytes) -> None:
    """Make the cache folder and what leads to it."""
    try:
        posix.mkdir(path, 0o755)
    except FileExistsError:
        pass
    except FileNotFoundError:
        make_folder(path.rpartition(b"/")[0])
        posix.mkdir(path, 0o755)


def in_memory(archive: int, offset: int, size: int) -> int:
    """Copy the core into a file without a name and return its descriptor."""
    descriptor = posix.memfd_create("msgspec", posix.MFD_CLOEXEC)
    done = 0
    while done < size:
        sent = posix.sendfile(descriptor, archive, offset + done, size - done)
        if not sent:
            raise RuntimeError(f"the file {sys.argv[0]} is damaged: replace it")
        done += sent
    return descriptor


def import_full(descriptor: int) -> None:
    """Import the whole of msgspec, with the core in `descriptor`."""
    global core_descriptor  # noqa: PLW0603 - the import hook has no other place to look
    core_descriptor = descriptor
    sys.meta_path.insert(0, sys.modules[__name__])
    import msgspec
    import msgspec.json  # noqa: F401 - hot modules find it in sys.modules


def find_spec(name: str, path: object = None, target: object = None) -> "Any":  # noqa: ARG001 - the import protocol
    """Find the core (import hook)."""
    if name != "msgspec._core":
        return None
    return ModuleSpec(name, sys.modules[__name__], origin=f"/proc/self/fd/{core_descriptor}")  # type: ignore[arg-type]


def create_module(spec: "Any") -> "ModuleType":
    """Create the core from its descriptor (import hook)."""
    return create_dynamic(spec)


def exec_module(module: "ModuleType") -> None:
    """Initialise the core (import hook)."""
    exec_dynamic(module)
