"""From successive scans to the list that the kubelet should see.

A device that vanished stays listed as unhealthy for VANISHED_SHOWN seconds and as long as a pod holds it: the kubelet
tells a pod about a device that turned unhealthy, and not about one that left the list (specification, kubernetes 2.9).
"""

from __future__ import annotations

import operator
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace

from resource_extend.kubernetes.model import Device

VANISHED_SHOWN = 60.0  # seconds

Signature = tuple[tuple[str, int], ...]  # path and device number of each node


@dataclass(frozen=True, slots=True)
class Found:
    """A device as one scan found it, with what tells whether its nodes are still the same ones."""

    device: Device
    signature: Signature = ()


@dataclass(slots=True)
class _Trouble:
    """What is shown for a device that is not well. `good`: scans in a row, while it recovers."""

    shown: Device
    gone_since: float | None = None
    good: int = 0
    changed: bool = False


class Tracker:
    """Remembers what was shown. `recovery`: scans in a row that must find a device well after it was not."""

    def __init__(self, prefix: str, recovery: int = 1) -> None:
        """`prefix` begins every id of the resource: a pod may hold one that was gone before this process started."""
        self._prefix = prefix
        self._recovery = recovery
        self._good: dict[str, Found] = {}  # as they were when they were last well
        self._troubles: dict[str, _Trouble] = {}
        self._found: Sequence[Found] | None = None
        self._held: frozenset[str] = frozenset()
        self._listed: list[Device] = []

    def update(self, found: Sequence[Found], held: frozenset[str], now: float) -> list[Device]:
        """Take the result of a scan and give the list to show, sorted by id.

        `held` are the ids that pods hold, `now` is in seconds of a monotonic clock. The same list object comes back
        when nothing changed.
        """
        if found is self._found and held == self._held and not self._troubles:
            return self._listed
        self._found, self._held = found, held
        for item in found:
            self._see(item, held)
        present = {item.device.id for item in found}
        for lost in [name for name in (self._good | self._troubles) if name not in present]:
            self._miss(lost, held, now)
        for name in held:
            if name.startswith(self._prefix) and name not in self._good and name not in self._troubles:
                reason = "a pod holds it, but it is not on this node"
                self._troubles[name] = _Trouble(Device(name, healthy=False, reason=reason), now)
        good = [item.device for name, item in self._good.items() if name not in self._troubles]
        shown = good + [trouble.shown for trouble in self._troubles.values()]
        shown.sort(key=_id)
        if shown != self._listed:
            self._listed = shown
        return self._listed

    def _see(self, item: Found, held: frozenset[str]) -> None:
        device, name = item.device, item.device.id
        trouble, before = self._troubles.get(name), self._good.get(name)
        returned = trouble is not None and trouble.gone_since is not None
        if not device.healthy:
            self._troubles[name] = _Trouble(device)
            return
        changed = before is not None and before.signature != item.signature
        # A container that holds the device has the old node, which leads to something else now or to nothing. The
        # change is shown for one scan at least, so that nobody misses it, unless its absence was seen anyway.
        noticed = returned or (trouble is not None and trouble.changed)
        if before and changed and (name in held or not noticed):
            reason = _change(before.signature, item.signature)
            self._troubles[name] = _Trouble(replace(device, healthy=False, reason=reason), changed=True)
            return
        self._good[name] = item
        if trouble is None:
            return
        good = trouble.good + 1
        if good >= self._recovery:
            del self._troubles[name]
        else:
            reason = "it is back, but not for long enough yet"
            self._troubles[name] = _Trouble(replace(device, healthy=False, reason=reason), good=good)

    def _miss(self, name: str, held: frozenset[str], now: float) -> None:
        trouble = self._troubles.get(name)
        if trouble is None or trouble.gone_since is None:
            last = trouble.shown if trouble else self._good[name].device
            shown = replace(last, healthy=False, reason="it is not there any more")
            trouble = self._troubles[name] = _Trouble(shown, now)
        if trouble.gone_since is not None and now - trouble.gone_since >= VANISHED_SHOWN and name not in held:
            del self._troubles[name]
            self._good.pop(name, None)


_id = operator.attrgetter("id")


def _change(old: Signature, new: Signature) -> str:
    before, after = dict(old), dict(new)
    for path in sorted(set(before) | set(after)):
        if before.get(path) != after.get(path):
            return f"{path} was {_number(before.get(path))} and is {_number(after.get(path))} now"
    return "its nodes changed"


def _number(number: int | None) -> str:
    if number is None:
        return "not among its nodes"
    return f"{os.major(number)}:{os.minor(number)}"
