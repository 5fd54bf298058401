"""Health checks by a command: when they run, and how their results become a verdict."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from resource_extend.kubernetes.commands import CommandError, run_command
from resource_extend.kubernetes.devices.health import Found
from resource_extend.kubernetes.devices.match import fill

AT_ONCE = 4  # checks of one resource that run at the same time


@dataclass(frozen=True, slots=True)
class Check:
    """A command for each device; exit status 0 says that it is well.

    `command`: templates. It runs every `interval` seconds for at most `timeout` seconds. A device is unhealthy when
    `failures` of its last `window` checks failed, and well again after `recovery` good checks in a row. A check that
    cannot run counts as failed.
    """

    command: tuple[str, ...]
    interval: float = 30.0
    timeout: float = 5.0
    failures: int = 1
    window: int = 1
    recovery: int = 1


class Verdict:
    """What the checks of one device amount to. Well until they say otherwise."""

    def __init__(self, check: Check) -> None:
        self._check = check
        self._results: deque[bool] = deque(maxlen=max(check.window, check.recovery))
        self.healthy = True
        self.reason = ""

    def add(self, good: bool, reason: str = "") -> None:
        """Take the result of one check; `reason` says why it is not good."""
        check, results = self._check, self._results
        results.append(good)
        latest = list(results)
        if self.healthy:
            self.healthy = latest[-check.window :].count(False) < check.failures
        elif len(latest) >= check.recovery and all(latest[-check.recovery :]):
            self.healthy = True
            results.clear()  # old failures must not turn the very next one into a verdict
        if not good:
            self.reason = reason


@dataclass(slots=True)
class _Checked:
    verdict: Verdict
    due: float = float("-inf")
    task: asyncio.Task[None] | None = None


@dataclass(frozen=True, slots=True)
class Subject:
    """A device to check: the values of its template variables, among them its id."""

    id: str
    values: dict[str, str] = field(hash=False)


class Checker:
    """Runs the checks of one resource in the background: a slow check must not keep a scan from seeing the rest."""

    def __init__(self, check: Check) -> None:
        self._check = check
        self._checked: dict[str, _Checked] = {}
        self._slots = asyncio.Semaphore(AT_ONCE)
        self.results: Counter[str] = Counter()

    def start(self, subjects: Sequence[Subject], now: float) -> None:
        """Start the checks that are due; forget devices that are not among `subjects`."""
        present = {subject.id for subject in subjects}
        for lost in [name for name in self._checked if name not in present]:
            checked = self._checked.pop(lost)
            if checked.task:
                checked.task.cancel()
        for subject in subjects:
            checked = self._checked.setdefault(subject.id, _Checked(Verdict(self._check)))
            if checked.task is None and now >= checked.due:
                checked.due = now + self._check.interval
                checked.task = asyncio.create_task(self._run(subject, checked))

    async def _run(self, subject: Subject, checked: _Checked) -> None:
        command = tuple(fill(part, subject.values) for part in self._check.command)
        try:
            async with self._slots:
                await run_command(command, self._check.timeout)
            checked.verdict.add(True)
            self.results["ok"] += 1
        except CommandError as error:
            checked.verdict.add(False, str(error))
            self.results["failed"] += 1
        finally:
            checked.task = None

    def apply(self, found: Sequence[Found]) -> Sequence[Found]:
        """Mark the devices whose checks failed; the same object comes back when none did."""
        if all(checked.verdict.healthy for checked in self._checked.values()):
            return found
        return [self._judge(item) for item in found]

    def _judge(self, item: Found) -> Found:
        device = item.device
        checked = self._checked.get(device.physical or device.id)
        if checked is None or checked.verdict.healthy or not device.healthy:
            return item
        return replace(item, device=replace(device, healthy=False, reason=checked.verdict.reason))

    async def settle(self) -> None:
        """Wait until no check is running."""
        while tasks := [checked.task for checked in self._checked.values() if checked.task]:
            await asyncio.gather(*tasks, return_exceptions=True)

    async def close(self) -> None:
        """Stop all checks."""
        tasks = [checked.task for checked in self._checked.values() if checked.task]
        for task in tasks:
            task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.gather(*tasks, return_exceptions=True)
        self._checked.clear()
