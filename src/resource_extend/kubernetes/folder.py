"""One look at the kubelet's device plugin folder every half second, for all resources together.

No inotify: it has limits that other programs use up, its queue overflows, and a watch does not survive the folder's own
removal (faults met with it are many). A stat and a list of a small folder cost next to nothing.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable

from resource_extend.kubernetes import sockets
from resource_extend.kubernetes.api import KUBELET_SOCKET

PERIOD = 0.5  # seconds


class PluginFolder:
    """What is in the folder now: the kubelet's socket (None while there is none) and the names of its entries.

    Sockets of this program that nobody listens on are not among the names.
    """

    def __init__(self, path: str, period: float = PERIOD) -> None:
        self.path = path
        self.kubelet: sockets.Identity | None = None
        self.names: frozenset[str] = frozenset()
        self._period = period
        self._watchers: dict[Callable[[], None], str] = {}

    @property
    def kubelet_socket(self) -> str:
        """The path of the kubelet's registration socket."""
        return os.path.join(self.path, KUBELET_SOCKET)

    def watch(self, changed: Callable[[], None], own_name: str = "") -> None:
        """Have `changed` called when the folder changes, and as long as `own_name` is missing from it."""
        self._watchers[changed] = own_name

    def unwatch(self, changed: Callable[[], None]) -> None:
        """Stop calling `changed`."""
        self._watchers.pop(changed, None)

    def look(self) -> None:
        """Read the folder once and call those who have to know."""
        kubelet = sockets.identity(self.kubelet_socket)
        own = set(self._watchers.values())
        try:
            # An instance that was killed leaves its socket, and is gone all the same.
            names = frozenset(n for n in os.listdir(self.path) if n in own or not sockets.is_left_behind(self.path, n))
        except OSError:
            names = frozenset()
        changed = kubelet != self.kubelet or names != self.names
        self.kubelet, self.names = kubelet, names
        for call, own_name in list(self._watchers.items()):
            if changed or (own_name and own_name not in names):
                call()

    async def run(self) -> None:
        """Look again and again, until cancelled."""
        while True:
            self.look()
            await asyncio.sleep(self._period)
