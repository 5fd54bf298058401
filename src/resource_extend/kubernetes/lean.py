"""Leaving OpenSSL out of the daemon: 5 of its 50 MiB, for a process that speaks over unix sockets and plain HTTP only.

asyncio and hashlib take OpenSSL along where it is there and do without where it is not; `None` in `sys.modules` is the
interpreter's own way of saying that it is not. The metrics library only wants the names of types for a TLS server that
is never started. Nothing here acts unless the `run` command asks for it, first thing in its process.
"""

from __future__ import annotations

import contextlib
import os
import sys
import types
from collections.abc import Iterator
from typing import Any, cast

OPENSSL = ("ssl", "_hashlib")
AGAIN = "DEVICE_PLUGIN_STARTED_AGAIN"


def start_again_without_tls() -> None:
    """Start this very process again when what unpacked the program has loaded OpenSSL; returns when that is not so.

    A program that was unpacked to a temporary folder goes on as it is: whoever unpacked it has to remove that folder.
    """
    if os.environ.pop(AGAIN, "") or not any(sys.modules.get(name) for name in OPENSSL):
        return
    here = os.path.realpath(__file__)
    if here.startswith(tuple(_unpacked_for_one_run())):
        return
    os.environ[AGAIN] = "1"
    code = f"import sys; sys.path[:] = {sys.path!r}; from resource_extend.kubernetes.cli import main; main()"
    os.execv(sys.executable, [sys.executable, "-I", "-c", code, *sys.argv[1:]])  # noqa: S606 - our own program


def _unpacked_for_one_run() -> list[str]:
    """Return how the folders begin that `packed.fallback` makes where no cache can be written."""
    folders = [os.environ.get("TMPDIR") or "/tmp", "/tmp", "/var/tmp"]  # noqa: S108 - looked at, not used
    return [os.path.join(os.path.realpath(folder), "resource-extend-") for folder in folders]


def leave_out_tls() -> None:
    """Have `asyncio` and `hashlib` do without OpenSSL; what is loaded already stays."""
    modules = cast("dict[str, Any]", sys.modules)
    for name in OPENSSL:
        modules.setdefault(name, None)
    import hashlib

    if not hasattr(hashlib, "sha256"):
        # An interpreter built without hashes of its own.
        for name in ("_hashlib", "hashlib"):
            del modules[name]


@contextlib.contextmanager
def names_of_tls() -> Iterator[None]:
    """Let a library that mentions TLS types be imported while TLS is left out."""
    modules = cast("dict[str, Any]", sys.modules)
    if modules.get("ssl", ...) is not None:
        yield
        return
    names: Any = types.ModuleType("ssl", "Names only.")
    names.SSLContext = names.TLSVersion = object
    names.PROTOCOL_TLS_SERVER = names.PROTOCOL_TLS_CLIENT = None
    modules["ssl"] = names
    try:
        yield
    finally:
        modules["ssl"] = None
