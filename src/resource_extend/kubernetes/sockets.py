"""The plugin's sockets: names that are never used twice, checks before a bind, removal of what a dead process left.

gRPC's own bind errors all look alike, it takes over another process's live socket silently, and its server removes the
path at its stop whoever it belongs to by then (specification, kubernetes 7.1). Fresh names make an end of all that.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import os
import re
import socket
import stat
import time

from resource_extend.errors import PluginError

PREFIX = "rex"  # every socket of this program begins so
BIND_TO_LISTEN = 0.02  # seconds that a socket may exist before its owner listens
PATH_LIMIT = 107  # bytes of a unix socket's path on Linux
_OWN = re.compile(rf"{PREFIX}-[0-9a-f]{{8}}-[0-9a-z]+-[0-9a-z]+-[0-9a-z]+\.sock")
_COUNTER = itertools.count()
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"

Identity = tuple[int, int, int]


class SocketError(PluginError):
    """A socket cannot be made here; the text says why and what to do."""


def _base36(number: int) -> str:
    text = ""
    while number:
        number, digit = divmod(number, 36)
        text = _DIGITS[digit] + text
    return text or "0"


def resource_prefix(resource: str) -> str:
    """Give what the socket names of `resource` begin with: short, and without the name's slash."""
    return f"{PREFIX}-{hashlib.sha256(resource.encode()).hexdigest()[:8]}-"


def fresh_name(resource: str) -> str:
    """Make a socket file name for `resource` that was never used before and never will be."""
    moment = _base36(time.time_ns() // 1_000_000)
    return f"{resource_prefix(resource)}{_base36(os.getpid())}-{moment}-{_base36(next(_COUNTER))}.sock"


def check_bindable(path: str) -> None:
    """Check that a unix socket can be made at `path`. Raises SocketError, in better words than a failed bind has."""
    folder = os.path.dirname(path)
    length = len(os.fsencode(path))
    if length > PATH_LIMIT:
        raise SocketError(
            f"the socket path {path!r} has {length} bytes and Linux allows {PATH_LIMIT}: use a shorter plugin folder"
        )
    if not os.path.isdir(folder):
        raise SocketError(f"the folder {folder!r} does not exist: is the kubelet's folder mounted here?")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise SocketError(f"the folder {folder!r} is not writable: run as root and mount it without readOnly")
    if os.path.lexists(path):
        raise SocketError(f"there is something at {path!r} already")


def identity(path: str) -> Identity | None:
    """Tell one socket file from its successor: device, inode and ctime (the inode alone is often used again)."""
    try:
        found = os.stat(path, follow_symlinks=False)
    except OSError:
        return None
    return (found.st_dev, found.st_ino, found.st_ctime_ns) if stat.S_ISSOCK(found.st_mode) else None


def is_dead(path: str) -> bool:
    """Tell whether nobody listens on the socket at `path` any more."""
    with socket.socket(socket.AF_UNIX) as probe:
        probe.setblocking(False)
        try:
            probe.connect(path)
        except ConnectionRefusedError:
            return True
        except OSError:  # in use and busy, gone, or not ours to judge
            return False
    return False


def is_left_behind(folder: str, name: str) -> bool:
    """Tell whether the entry `name` of `folder` is a socket of this program that nobody listens on."""
    path = os.path.join(folder, name)
    return _OWN.fullmatch(name) is not None and identity(path) is not None and is_dead(path)


def remove_dead(folder: str) -> list[str]:
    """Remove sockets in `folder` that an earlier process of this program left; no live one, no foreign one."""
    removed = []
    with contextlib.suppress(OSError):
        for name in sorted(os.listdir(folder)):
            if not is_left_behind(folder, name):
                continue
            time.sleep(BIND_TO_LISTEN)
            if is_left_behind(folder, name):
                os.unlink(os.path.join(folder, name))
                removed.append(name)
    return removed
