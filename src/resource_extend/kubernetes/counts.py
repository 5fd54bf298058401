"""What happened to one resource since the start, as plain numbers. `metrics` shows them, nothing else reads them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field


@dataclass
class Counts:
    """Counters of one resource.

    `registrations`: by result (`ok`, `refused`, `unreachable`, `no_stream`, ...). `hooks`: by hook or
    `check`, and result. `scan_seconds`: how long the latest scan took. `snapshot_refused`: the latest list was too
    large to be sent.
    """

    allocations: int = 0
    allocation_failures: int = 0
    preferred: int = 0
    streams: int = 0
    scans: int = 0
    scan_failures: int = 0
    scan_seconds: float = 0.0
    snapshot_refused: bool = False
    registrations: Counter[str] = field(default_factory=Counter)
    hooks: Counter[tuple[str, str]] = field(default_factory=Counter)
