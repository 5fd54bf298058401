"""Commands that people configure for a resource's devices: before a container starts, after a pod let go."""

from __future__ import annotations

import os
from collections.abc import Iterable

from resource_extend.errors import PluginError
from resource_extend.kubernetes.commands import CommandError, run_command
from resource_extend.kubernetes.model import Hook


class HookError(PluginError):
    """A configured command failed or took too long."""


async def run_hook(hook: Hook, resource: str, ids: Iterable[str], **more: str) -> None:
    """Run a hook's command with RESOURCE_NAME and DEVICE_IDS (comma separated) in its environment.

    `more` are further environment variables. Raises HookError when the command cannot start, fails, or is still running
    after `hook.timeout` seconds.
    """
    environment = {**os.environ, "RESOURCE_NAME": resource, "DEVICE_IDS": ",".join(sorted(ids)), **more}
    try:
        await run_command(hook.command, hook.timeout, environment, f"hook {hook.command[0]!r} of {resource}")
    except CommandError as error:
        raise HookError(str(error)) from error
