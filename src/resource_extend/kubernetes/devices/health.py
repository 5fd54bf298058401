"""From successive scans to the list that the kubelet should see.

A device that vanished stays listed as unhealthy for VANISHED_SHOWN seconds and as long as a pod holds it: the kubelet
tells a pod about a device that turned unhealthy, and not about one that left the list (specification, kubernetes 2.9).
"""

from __future__ import annotations

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
class _State:
    shown: Device
    signature: Signature
    gone_since: float | None = None
    good: int = 0  # scans in a row, while it recovers
    changed: bool = False


class Tracker:
    """Remembers what was shown. `recovery`: scans in a row that must find a device well after it was not."""

    def __init__(self, prefix: str, recovery: int = 1) -> None:
        """`prefix` begins every id of the resource: a pod may hold one that was gone before this process started."""
        self._prefix = prefix
        self._recovery = recovery
        self._states: dict[str, _State] = {}
        self._settled = False
        self._found: Sequence[Found] = ()
        self._held: frozenset[str] = frozenset()
        self._listed: list[Device] = []

    def update(self, found: Sequence[Found], held: frozenset[str], now: float) -> list[Device]:
        """Take the result of a scan and give the list to show, sorted by id.

        `held` are the ids that pods hold, `now` is in seconds of a monotonic clock. The same list object comes back
        when nothing changed.
        """
        if self._settled and found is self._found and held == self._held:
            return self._listed
        self._found, self._held = found, held
        for item in found:
            self._see(item, held)
        present = {item.device.id for item in found}
        for lost in [key for key in self._states if key not in present]:
            self._miss(lost, held, now)
        for name in held:
            if name.startswith(self._prefix) and name not in self._states:
                reason = "a pod holds it, but it is not on this node"
                self._states[name] = _State(Device(name, healthy=False, reason=reason), (), now)
        listed = [self._states[key].shown for key in sorted(self._states)]
        self._settled = all(s.gone_since is None and not s.changed and s.shown.healthy for s in self._states.values())
        if listed != self._listed:
            self._listed = listed
        return self._listed

    def _see(self, item: Found, held: frozenset[str]) -> None:
        device = item.device
        state = self._states.get(device.id)
        if state is None:
            self._states[device.id] = _State(device, item.signature if device.healthy else ())
            return
        returned, state.gone_since = state.gone_since is not None, None
        if not device.healthy:
            state.shown, state.good = device, 0
            return
        changed = bool(state.signature) and item.signature != state.signature
        # A container that holds the device has the old node, which leads to something else now or to nothing. The
        # change is shown for one scan at least, so that nobody misses it, unless its absence was seen anyway.
        if changed and (device.id in held or not (state.changed or returned)):
            state.changed, state.good = True, 0
            state.shown = replace(device, healthy=False, reason=_change(state.signature, item.signature))
            return
        state.changed, state.signature = False, item.signature
        state.good = self._recovery if state.shown.healthy else state.good + 1
        if state.good >= self._recovery:
            state.shown = device
        else:
            state.shown = replace(device, healthy=False, reason="it is back, but not for long enough yet")

    def _miss(self, name: str, held: frozenset[str], now: float) -> None:
        state = self._states[name]
        if state.gone_since is None:
            state.gone_since, state.good = now, 0
            state.shown = replace(state.shown, healthy=False, reason="it is not there any more")
        if now - state.gone_since >= VANISHED_SHOWN and name not in held:
            del self._states[name]


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
