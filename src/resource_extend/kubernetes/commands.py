"""Running the commands that people configure.

Commands are started through asyncio, which does not fork a process that has gRPC threads, and as a process group of
their own, which is killed as a whole at the end: nothing that a command started outlives it.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Mapping

from resource_extend.errors import PluginError

OUTPUT_LIMIT = 8 * 1024 * 1024  # bytes on standard output or error; twice what a snapshot may have
DEATH_LIMIT = 1.0  # seconds to wait for a killed command
SHOWN = 200  # characters of a failed command's words that its error repeats


class CommandError(PluginError):
    """A configured command did not start, failed, took too long or said too much."""


async def run_command(
    command: tuple[str, ...], timeout: float, env: Mapping[str, str] | None = None, name: str = ""
) -> bytes:
    """Run a command for at most `timeout` seconds and return its standard output.

    `env` is its whole environment, by default that of this process; `name` is what errors call it. Raises CommandError.
    """
    name = name or f"command {command[0]!r}"
    loop = asyncio.get_running_loop()
    try:
        transport, run = await loop.subprocess_exec(
            lambda: _Run(name), *command, stdin=asyncio.subprocess.DEVNULL, start_new_session=True, env=env
        )
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise CommandError(f"{name} did not start: {reason}") from error
    run.group = transport.get_pid()
    try:
        await asyncio.wait_for(run.finished, timeout)
    except asyncio.TimeoutError:
        raise CommandError(f"{name} was killed after {timeout:g} s") from None
    finally:
        run.kill()
        # Closing before asyncio knows of the end would take the exit status away from it. A process that hangs in the
        # kernel is not waited for without end, nor are the pipes: a child in a session of its own may hold them.
        await asyncio.wait([run.exited], timeout=DEATH_LIMIT)
        transport.close()
    status = transport.get_returncode()
    if status:
        raise CommandError(f"{name} failed with status {status}{_words(bytes(run.said or run.output))}")
    return bytes(run.output)


class _Run(asyncio.SubprocessProtocol):
    """Collects what a command prints. `finished` is done when it ended and its pipes are at their end."""

    def __init__(self, name: str) -> None:
        self.finished: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.exited: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.output = bytearray()
        self.said = bytearray()
        self.group = 0
        self._name = name

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        buffer = self.output if fd == 1 else self.said
        if len(buffer) + len(data) <= OUTPUT_LIMIT:
            buffer += data
        elif not self.finished.done():
            self.finished.set_exception(CommandError(f"{self._name} printed more than {OUTPUT_LIMIT} bytes"))

    def process_exited(self) -> None:
        self.kill()
        self.group = 0
        self.exited.set_result(None)

    def connection_lost(self, _error: Exception | None) -> None:
        if not self.finished.done():
            self.finished.set_result(None)

    def kill(self) -> None:
        """Kill the command and what it started."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if self.group:
                os.killpg(self.group, signal.SIGKILL)


def _words(said: bytes) -> str:
    text = " ".join(said.decode("utf-8", "replace").split())
    return f": {text[:SHOWN]}" if text else ""
