"""Running the commands that people configure: sources and health checks.

Commands are started through asyncio, which does not fork a process that has gRPC threads, and as a process group of
their own, which is killed as a whole when the time is up.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal

from resource_extend.errors import PluginError

OUTPUT_LIMIT = 8 * 1024 * 1024  # bytes of standard output; twice what a snapshot may have
SHOWN = 200  # characters of a failed command's words that its error repeats


class CommandError(PluginError):
    """A configured command did not start, failed, took too long or said too much."""


async def run_command(command: tuple[str, ...], timeout: float) -> bytes:
    """Run a command for at most `timeout` seconds and return its standard output. Raises CommandError."""
    name = command[0]
    try:
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        raise CommandError(f"command {name!r} did not start: {error}") from error
    try:
        output, said = await asyncio.wait_for(_finish(process, name), timeout)
    except asyncio.TimeoutError:
        raise CommandError(f"command {name!r} was killed after {timeout:g} s") from None
    finally:
        # The whole group: a child of the command may still hold the pipes.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()
    if process.returncode:
        raise CommandError(f"command {name!r} failed with status {process.returncode}{_words(said or output)}")
    return output


async def _finish(process: asyncio.subprocess.Process, name: str) -> tuple[bytes, bytes]:
    assert process.stdout is not None
    assert process.stderr is not None
    output, said = await asyncio.gather(_read(process.stdout, name), _read(process.stderr, name))
    await process.wait()
    return output, said


async def _read(stream: asyncio.StreamReader, name: str) -> bytes:
    out = bytearray()
    while piece := await stream.read(65536):
        out += piece
        if len(out) > OUTPUT_LIMIT:
            raise CommandError(f"command {name!r} printed more than {OUTPUT_LIMIT} bytes")
    return bytes(out)


def _words(said: bytes) -> str:
    text = " ".join(said.decode("utf-8", "replace").split())
    return f": {text[:SHOWN]}" if text else ""
