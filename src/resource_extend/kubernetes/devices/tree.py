"""The host's `/dev` and `/sys`, wherever this process sees them.

In a pod the host's folders are mounted elsewhere, in a test they are made up. Everything outside this module speaks of
the host's own paths, which are also what goes into answers (specification, kubernetes 8.1-13).
"""

from __future__ import annotations

import os
import stat

from resource_extend.kubernetes.model import Roots

LINK_LIMIT = 40  # links followed before a path counts as a loop, as Linux does


class Tree:
    """Host paths and how to look at them.

    Paths below `/dev` and `/sys` are looked up below `roots`. Other paths can only be seen by a process that runs on
    the host itself, which is taken to be so when both roots are the host's own.
    """

    def __init__(self, roots: Roots) -> None:
        self.sys = os.path.realpath(roots.sys)
        self._places = (("/dev", os.path.abspath(roots.dev)), ("/sys", self.sys))
        self._on_host = roots == Roots()

    def seen(self, host_path: str) -> str:
        """Give the path under which this process sees `host_path`, "" when it cannot."""
        for host, here in self._places:
            if host_path == host or host_path.startswith(host + "/"):
                return here + host_path[len(host) :]
        return host_path if self._on_host else ""

    def resolve(self, host_path: str) -> str:
        """Follow the links of a host path inside the host's tree. A loop or a dangling link ends where it leads to."""
        done, rest, links = "/", host_path.strip("/").split("/"), 0
        while rest:
            part = rest.pop(0)
            if part in {"", "."}:
                continue
            if part == "..":
                done = os.path.dirname(done)
                continue
            path = os.path.join(done, part)
            target = self._link(path) if links < LINK_LIMIT else None
            if target is None:
                done = path
                continue
            links += 1
            rest[:0] = target.split("/")
            if target.startswith("/"):
                done = "/"
        return done

    def _link(self, host_path: str) -> str | None:
        seen = self.seen(host_path)
        try:
            return os.readlink(seen) if seen else None
        except OSError:
            return None

    def status(self, host_path: str) -> os.stat_result | None:
        """Look at what a host path leads to, links followed inside the host's tree. None: nothing is there."""
        seen = self.seen(self.resolve(host_path))
        try:
            status = os.lstat(seen) if seen else None
        except OSError:
            return None
        return None if status is None or stat.S_ISLNK(status.st_mode) else status
