"""What a test can make the fake kubelet do wrong, the limits it keeps, and a clock that a test can move."""

from __future__ import annotations

import time
from dataclasses import dataclass

from resource_extend.kubernetes.api import MESSAGE_LIMIT


class FakeClock:
    """Seconds that pass as time does, and as much more as a test says."""

    def __init__(self) -> None:
        self._ahead = 0.0

    def __call__(self) -> float:
        """Give the time in seconds."""
        return time.monotonic() + self._ahead

    def advance(self, seconds: float) -> None:
        """Let `seconds` pass at once."""
        self._ahead += seconds


@dataclass(frozen=True)
class Limits:
    """The kubelet's own limits, in seconds and bytes. Tests shorten what they would have to wait for."""

    dial: float = 10.0
    pre_start: float = 30.0
    get_info: float = 1.0
    notify: float = 5.0
    grace: float = 300.0
    message: int = MESSAGE_LIMIT
    watch_period: float = 0.5
    watch_retry: float = 0.5


@dataclass
class Faults:
    """Switches; all off at first. They may be changed at any time and act from the next call on.

    `slow_dial`: seconds before the kubelet dials back. `hang_register`: it never returns from Register after the
    options were asked. `refuse`: so many registrations are refused with `refusal`. `late_end`: seconds until the end
    of a stream is dealt with, which lets a newer registration come first. `no_stream`: it registers but never calls
    ListAndWatch. `authority`: what it dials with; `{path}` stands for the socket's path. `no_checkpoint`: it forgets
    everything at its next start.
    """

    slow_dial: float = 0.0
    hang_register: bool = False
    refuse: int = 0
    refusal: str = "the kubelet is not in the mood"
    late_end: float = 0.0
    no_stream: bool = False
    authority: str = "localhost"
    no_checkpoint: bool = False
