"""Leaving OpenSSL out of the daemon: 5 of its 50 MiB, for a process that speaks over unix sockets and plain HTTP only.

asyncio and hashlib take OpenSSL along where it is there and do without where it is not; `None` in `sys.modules` is the
interpreter's own way of saying that it is not. The metrics library only wants the names of types for a TLS server
that is never started. Nothing here acts unless `leave_out_tls` was called, first thing in the process.
"""

from __future__ import annotations

import contextlib
import sys
import types
from collections.abc import Iterator
from typing import Any, cast

OPENSSL = ("ssl", "_hashlib")


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
