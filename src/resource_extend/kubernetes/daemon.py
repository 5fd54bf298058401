"""The device plugin as a process: many resources, signals, reload of the configuration, a clean stop."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Callable

from resource_extend.errors import PluginError
from resource_extend.kubernetes import sockets
from resource_extend.kubernetes.counts import Counts
from resource_extend.kubernetes.folder import PluginFolder
from resource_extend.kubernetes.held import NEVER_RELEASED, HeldDevices, never_released, state_path
from resource_extend.kubernetes.logs import note, warn
from resource_extend.kubernetes.loss import Delay
from resource_extend.kubernetes.model import Config, Folders, Resource
from resource_extend.kubernetes.probes import ProbeServer
from resource_extend.kubernetes.runner import Rules, Runner

CONFIG_PERIOD = 2.0  # seconds between looks at the configuration file
SELF_DIAL_LIMIT = 1.5  # seconds
PROBES_AFTER = 1.0  # seconds that probes and metrics wait at most for the first registrations

Load = Callable[[], Config]


def _stamp(path: str) -> tuple[int, ...]:
    """Tell one version of a file from the next, also when a ConfigMap's `..data` link is swapped under it."""
    try:
        found = os.stat(path)
    except OSError:
        return ()
    return found.st_dev, found.st_ino, found.st_mtime_ns, found.st_size


class Daemon:
    """Offers what `load` says until it is told to stop; `path` is the file behind it, looked at for changes.

    A configuration that cannot be taken leaves the old one running and shows in /readyz and the metrics. Only resources
    that changed are registered anew.
    """

    def __init__(self, load: Load, rules: Rules, path: str = "", config_period: float = CONFIG_PERIOD) -> None:
        self.config = load()
        self.generation = 1
        self.config_error = ""
        self.held: HeldDevices | None = None
        self.probes: ProbeServer | None = None
        self._load = load
        self._rules = rules
        self._path = path
        self._config_period = config_period
        self._seen = _stamp(path)
        self._runners: dict[str, Runner] = {}
        self._folder = PluginFolder(self.config.folders.plugins)
        self._watchers: list[asyncio.Task[None]] = []
        self._stop = asyncio.Event()
        self._reload = asyncio.Event()
        self._listen_error = ""
        self._listen_delay = Delay(config_period)
        self._listen_again = 0.0

    @property
    def runners(self) -> list[Runner]:
        """The resources that are offered now, by name."""
        return [self._runners[name] for name in sorted(self._runners)]

    # Life

    def stop(self) -> None:
        """Ask `run` to end."""
        self._stop.set()
        self._reload.set()

    def reload(self) -> None:
        """Ask for the configuration to be read again."""
        self._reload.set()

    async def run(self) -> None:
        """Run until `stop`, SIGTERM or SIGINT; SIGHUP reads the configuration again.

        Signals that the kernel kept back while this process came up count as well.
        """
        loop = asyncio.get_running_loop()
        handlers = {signal.SIGTERM: self.stop, signal.SIGINT: self.stop, signal.SIGHUP: self.reload}
        for number, handler in handlers.items():
            loop.add_signal_handler(number, handler)
        if signal.sigpending() & {signal.SIGTERM, signal.SIGINT}:
            self.stop()
        signal.pthread_sigmask(signal.SIG_UNBLOCK, handlers)
        note("start", pid=os.getpid(), resources=[resource.name for resource in self.config.resources])
        try:
            if not self._stop.is_set():
                self._begin(self.config.folders)
                await self._take(self.config)
            await self._wait_ready(PROBES_AFTER)
            await self._listen(self.config.listen)
            await self._follow_config()
        finally:
            await self._end()
            for number in handlers:
                loop.remove_signal_handler(number)
            note("stop")

    def _begin(self, folders: Folders) -> None:
        """Start what all resources share; what a killed run left is removed."""
        for folder in filter(None, (folders.plugins, folders.registry)):
            for name in sockets.remove_dead(folder):
                note("dead socket removed", folder=folder, name=name)
        self._folder = PluginFolder(folders.plugins)
        self._folder.look()
        self.held = HeldDevices(folders.pod_resources, state_path(folders), self._hooked)
        self._watchers = [asyncio.ensure_future(self._folder.run()), asyncio.ensure_future(self.held.run())]

    def _hooked(self) -> dict[str, tuple[Resource, Counts]]:
        """Give the resources with a release hook."""
        return {r.resource.name: (r.resource, r.counts) for r in self.runners if r.resource.release}

    async def _end(self) -> None:
        for task in self._watchers:
            task.cancel()
        await asyncio.gather(*(runner.stop() for runner in self.runners), *self._watchers, return_exceptions=True)
        self._runners.clear()
        if self.probes is not None:
            await asyncio.to_thread(self.probes.close)
            self.probes = None

    async def _wait_ready(self, limit: float) -> None:
        """Let the first lists go out before anything else costs time."""
        end = asyncio.get_running_loop().time() + limit
        while not self._stop.is_set() and asyncio.get_running_loop().time() < end:
            if all(runner.ready for runner in self.runners):
                return
            await asyncio.sleep(0.05)

    # Configuration

    async def _follow_config(self) -> None:
        while not self._stop.is_set():
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._reload.wait(), self._config_period)
            changed = bool(self._path) and _stamp(self._path) != self._seen
            if not self._stop.is_set() and (changed or self._reload.is_set()):
                self._reload.clear()
                await self._read_again()
            if asyncio.get_running_loop().time() >= self._listen_again:
                await self._listen(self.config.listen)

    async def _read_again(self) -> None:
        self._seen = _stamp(self._path)
        try:
            config = self._load()
        except Exception as error:
            text = str(error) if isinstance(error, PluginError) else repr(error)
            if self.config_error != text:
                warn("configuration refused, the old one goes on", reason=text)
            self.config_error = text
            return
        self.config_error = ""
        self.generation += 1
        note("configuration taken", generation=self.generation)
        await self._take(config)
        await self._listen(config.listen)

    async def _take(self, config: Config) -> None:
        """Go from what is offered to what `config` says; resources that did not change stay as they are."""
        old, self.config = self.config, config
        wanted = {resource.name: resource for resource in config.resources}
        common = (config.roots, config.folders) == (old.roots, old.folders)
        gone = [r for r in self.runners if not common or wanted.get(r.resource.name) != r.resource]
        await asyncio.gather(*(runner.stop() for runner in gone))
        for runner in gone:
            del self._runners[runner.resource.name]
        if config.folders != old.folders:
            for task in self._watchers:
                task.cancel()
            await asyncio.gather(*self._watchers, return_exceptions=True)
            self._begin(config.folders)
        if self.held is None:
            raise AssertionError("_begin comes first")
        for name, resource in wanted.items():
            if name not in self._runners:
                runner = Runner(resource, config.roots, config.folders, self._rules, self._folder, self.held)
                self._runners[name] = runner
                if never_released(resource, config.folders):
                    warn("hook without use", resource=name, reason=NEVER_RELEASED)
                runner.start()

    async def _listen(self, address: str) -> None:
        """Serve probes and metrics on `address`; a failure is told once, and tried again after a pause."""
        if self.probes is not None:
            if self.probes.address == address:
                return
            await asyncio.to_thread(self.probes.close)
            self.probes = None
        error = ""
        if address and not self._stop.is_set():
            try:
                self.probes = ProbeServer(self, address, asyncio.get_running_loop())
                self._listen_delay.reset()
            except PluginError as problem:
                error = str(problem)
                self._listen_again = asyncio.get_running_loop().time() + self._listen_delay.take()
        if error and error != self._listen_error:
            warn("no probes", reason=error)
        self._listen_error = error

    # What the probes ask

    async def live_faults(self) -> list[str]:
        """Say why this process should be restarted: one of its own sockets does not answer it."""
        lives = [(runner.life, runner.life.endpoint) for runner in self.runners]
        served = [(life, endpoint) for life, endpoint in lives if endpoint is not None and endpoint.exists]
        dials = (endpoint.self_dial(SELF_DIAL_LIMIT) for _, endpoint in served)
        results = await asyncio.gather(*dials, return_exceptions=True)
        # A socket that was given up meanwhile is no fault.
        return [
            str(result)
            for (life, endpoint), result in zip(served, results, strict=True)
            if isinstance(result, PluginError) and life.endpoint is endpoint and endpoint.exists
        ]

    def ready_faults(self) -> list[str]:
        """Say what is not offered as configured."""
        faults = [f"configuration: {self.config_error}"] if self.config_error else []
        for runner in self.runners:
            if not runner.ready:
                state = runner.problem or runner.life.reason or runner.life.state.value
                faults.append(f"{runner.resource.name}: {state}")
        return faults
