"""Sets the marks of `phases`: run in the interpreter of a plugin, before the plugin. `marks` and `report` are given."""

import _imp
import _socket
import posix
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    marks: "list[tuple[str, float]]" = []
    report = ""

clock = time.perf_counter
real_exec, real_open, real_read = _imp.exec_dynamic, posix.open, posix.read
real_write, real_exit = posix.write, posix._exit


def note(name: str) -> None:
    """Note that something is reached."""
    marks.append((name, clock()))


def exec_dynamic(module: "Any") -> int:
    """Mark the end of loading an extension."""
    done = real_exec(module)
    note("loaded")
    return done


def open_file(path: "Any", *arguments: "Any", **keywords: "Any") -> int:
    """Mark the opening of the core's copy, and that of /dev/null, with which `process.main` begins."""
    note("main" if path == "/dev/null" else "core" if isinstance(path, bytes) else "open")
    return real_open(path, *arguments, **keywords)


def read(descriptor: int, size: int) -> bytes:
    """Mark the reading of the request."""
    if descriptor == 0:
        note("request")
    return real_read(descriptor, size)


def leave(status: int) -> None:
    """Mark the end and write the report."""
    note("end")
    text = ",".join([f'["{name}",{when!r}]' for name, when in marks])
    real_write(real_open(report, posix.O_WRONLY | posix.O_CREAT | posix.O_TRUNC, 0o600), f"[{text}]".encode())
    real_exit(status)


class Socket(_socket.socket):
    """Marks the way to the store and the arrival of what it says."""

    def __init__(self, *arguments: "Any", **keywords: "Any") -> None:
        note("connect")
        super().__init__(*arguments, **keywords)

    def recv(self, *arguments: "Any") -> bytes:
        """Mark that something has come."""
        done = super().recv(*arguments)
        note("received")
        return done


_imp.exec_dynamic = exec_dynamic
posix.open = open_file
posix.read = read
posix._exit = leave  # type: ignore[assignment]
_socket.socket = Socket  # type: ignore[misc]
note("marked")
