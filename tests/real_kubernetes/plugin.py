"""The device plugin as a process, for checks on real Kubernetes, and what can be done to it from outside."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
import shlex
import signal
import socket
import sys
from pathlib import Path

SYS_PIDFD_GETFD = 438
DEVICE_PLUGIN = shlex.split(os.environ.get("DEVICE_PLUGIN", "")) or [
    sys.executable,
    "-m",
    "resource_extend.kubernetes.cli",
]


class PluginProcess:
    """`device-plugin run` on a configuration file, its log in a file beside it."""

    def __init__(self, config: Path, *words: str) -> None:
        self.config = config
        self.log = config.with_suffix(".log")
        self._words = words

    async def __aenter__(self) -> PluginProcess:
        """Start."""
        await self.start()
        return self

    async def __aexit__(self, *_error: object) -> None:
        """Stop, if it still runs."""
        if self.process.returncode is None:
            await self.end(signal.SIGTERM)

    async def start(self) -> None:
        """Start the process."""
        with self.log.open("ab") as log:
            self.process = await asyncio.create_subprocess_exec(
                *DEVICE_PLUGIN, "run", "--config", str(self.config), *self._words, stderr=log
            )

    async def end(self, number: signal.Signals) -> None:
        """End the process by a signal; SIGTERM has to be enough for it within ten seconds."""
        self.process.send_signal(number)
        code = await asyncio.wait_for(self.process.wait(), 10)
        assert code == (0 if number is signal.SIGTERM else -number), f"status {code}; {self.log}"

    async def command(self, name: str, *words: str) -> str:
        """Run another command of the program and give what it prints."""
        process = await asyncio.create_subprocess_exec(*DEVICE_PLUGIN, name, *words, stdout=asyncio.subprocess.PIPE)
        output, _ = await process.communicate()
        assert 0 == process.returncode
        return output.decode()

    @property
    def resident(self) -> float:
        """Resident memory in MiB."""
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGESIZE") / 1024 / 1024

    def drop_connections(self) -> int:
        """Break every connection to our own sockets from outside, no file touched; give how many there were."""
        dropped = 0
        pidfd = os.pidfd_open(self.process.pid)
        try:
            for name in os.listdir(f"/proc/{self.process.pid}/fd"):
                with contextlib.suppress(OSError):
                    if os.readlink(f"/proc/{self.process.pid}/fd/{name}").startswith("socket:"):
                        dropped += _drop(pidfd, int(name))
        finally:
            os.close(pidfd)
        return dropped


def _drop(pidfd: int, number: int) -> bool:
    """Shut a connection of another process down, if it is one that the kubelet made to our socket."""
    libc = ctypes.CDLL(None, use_errno=True)
    copy = libc.syscall(SYS_PIDFD_GETFD, pidfd, number, 0)
    if copy < 0:
        raise OSError(ctypes.get_errno(), "pidfd_getfd")
    with socket.socket(fileno=copy) as one:
        if one.family != socket.AF_UNIX or one.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
            return False
        own = one.getsockname()
        if not isinstance(own, str) or not os.path.basename(own).startswith("rex-"):
            return False
        one.shutdown(socket.SHUT_RDWR)
        return True
