"""Time as the commands see it, so that tests need not wait for it."""

import time
from typing import Protocol


class Clock(Protocol):
    """Seconds since some moment, and a way to let them pass."""

    def now(self) -> float:
        """Seconds; only differences mean something."""
        ...

    def sleep(self, seconds: float) -> None:
        """Come back when so many seconds have passed."""
        ...


class SystemClock:
    """The real time."""

    def now(self) -> float:
        """Seconds on the monotonic clock."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Wait."""
        time.sleep(seconds)
