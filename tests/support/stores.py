"""Etcd stores for tests, with short waiting times where a test waits for their end."""

import time
from collections.abc import Mapping
from typing import Any

from resource_extend.settings import EtcdSettings
from resource_extend.store.client import Limits
from resource_extend.store.etcd import EtcdStore

# A tenth of the specified times.
SHORT = Limits(stagger=0.025, connect=0.2, answer=0.5)


# Nobody's home: no token is kept.
NOWHERE = {b"HOME": b"/dev/null"}


def store_at(
    *machines: str,
    seconds: float = 20.0,
    limits: Limits | None = SHORT,
    environ: Mapping[bytes, bytes] = NOWHERE,
    **keys: Any,
) -> EtcdStore:
    """Return a store of the kind gpu at these endpoints, whose call ends after that time."""
    return EtcdStore(EtcdSettings(list(machines), **keys), "gpu", time.monotonic() + seconds, limits, environ)
