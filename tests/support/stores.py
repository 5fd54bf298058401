"""Etcd stores for tests."""

import time
from collections.abc import Mapping
from typing import Any

from resource_extend.settings import Settings
from resource_extend.store.client import LIMITS, Limits
from resource_extend.store.etcd import EtcdStore

# For tests that wait for the end of it. Other tests must not depend on how fast a machine is.
SHORT = (0.05, 0.2, 1.0)


# Nobody's home: no token is kept.
NOWHERE = {b"HOME": b"/dev/null"}


def store_at(
    *machines: str,
    seconds: float = 20.0,
    limits: Limits = LIMITS,
    environ: Mapping[bytes, bytes] = NOWHERE,
    **keys: Any,
) -> EtcdStore:
    """Return a store of the kind gpu at these endpoints, whose call ends after that time."""
    return EtcdStore(Settings(list(machines), **keys), "gpu", time.monotonic() + seconds, limits, environ)


def hasty_store_at(*machines: str, **keys: Any) -> EtcdStore:
    """Return a store that does not wait as long as specified."""
    return store_at(*machines, limits=SHORT, **keys)
