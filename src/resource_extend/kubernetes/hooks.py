"""Commands that people configure for a resource's devices: before a container starts, after a pod let go.

They are started through asyncio (which does not fork a process that has gRPC threads: `vfork` and `exec`), as a process
group of their own that is killed as a whole when the time is up.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Iterable

from resource_extend.errors import PluginError
from resource_extend.kubernetes.model import Hook

OUTPUT_SHOWN = 300  # characters of a failed command's output that its error repeats


class HookError(PluginError):
    """A configured command failed or took too long."""


async def run_hook(hook: Hook, resource: str, ids: Iterable[str], **more: str) -> None:
    """Run a hook's command with RESOURCE_NAME and DEVICE_IDS (comma separated) in its environment.

    `more` are further environment variables. Raises HookError when the command cannot start, fails, or is still running
    after `hook.timeout` seconds.
    """
    environment = {**os.environ, "RESOURCE_NAME": resource, "DEVICE_IDS": ",".join(sorted(ids)), **more}
    name = hook.command[0]
    try:
        process = await asyncio.create_subprocess_exec(
            *hook.command,
            env=environment,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,
        )
    except OSError as error:
        raise HookError(f"hook {name!r} of {resource} did not start: {error.strerror}") from error
    try:
        output, _ = await asyncio.wait_for(process.communicate(), hook.timeout)
    except asyncio.TimeoutError:
        raise HookError(f"hook {name!r} of {resource} was killed after {hook.timeout:g} s") from None
    finally:
        # The whole group: a child of the command may still hold the pipe.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()
    if process.returncode:
        said = " ".join(output.decode("utf-8", "replace").split())[:OUTPUT_SHOWN]
        raise HookError(f"hook {name!r} of {resource} failed with status {process.returncode}: {said}")
