"""What the device plugin costs: beside a minimal gRPC server that does nothing, and against the promised limits.

The plugin runs as a process of its own; the kubelet is the package's fake one, in this process, so that a time is from
the start of the process, the return of `kubelet.sock` or the change of a file to the list that the kubelet gets. The
minimal server registers the same way with as many devices and has no more than grpc.aio needs: what is left above it is
ours. Exit status 1 when a limit is missed.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import gc
import os
import shlex
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests")]

from resource_extend.kubernetes import api, rpc  # noqa: E402
from resource_extend.kubernetes.api import device_plugin  # noqa: E402
from resource_extend.kubernetes.ask import ask_probe  # noqa: E402
from resource_extend.kubernetes.fake_kubelet import FakeKubelet  # noqa: E402
from support.device_plugin import NAME, Ours, numbered, plugin_sockets, until  # noqa: E402
from support.device_tree import DeviceTree  # noqa: E402

DEFAULT_COMMAND = f"{sys.executable} -m resource_extend.kubernetes.cli"
MIB = 1024 * 1024


@dataclass
class Figure:
    """One line of the result; `limit` None: told beside the others, promised to nobody."""

    what: str
    value: float
    unit: str
    limit: float | None = None

    @property
    def met(self) -> bool:
        """Whether the promise holds."""
        return self.limit is None or self.value <= self.limit

    def line(self) -> str:
        """Write the figure for people."""
        promise = "" if self.limit is None else f"{'within' if self.met else 'MISSED:'} {self.limit:g} {self.unit}"
        return f"{self.what:<64} {self.value:>9.3f} {self.unit:<4} {promise}"


class Process:
    """A device plugin as a process."""

    def __init__(self, *command: str) -> None:
        self._command = command

    async def __aenter__(self) -> Process:
        environment = {key: text for key, text in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
        environment.setdefault("PYTHONPYCACHEPREFIX", str(Path(tempfile.gettempdir()) / "device-plugin-bench-pycache"))
        self.began = time.monotonic()
        self.process = await asyncio.create_subprocess_exec(
            *self._command, env=environment, stderr=asyncio.subprocess.DEVNULL
        )
        return self

    async def __aexit__(self, *_error: object) -> None:
        with contextlib.suppress(ProcessLookupError):
            self.process.terminate()
        await self.process.wait()

    @property
    def resident(self) -> float:
        """Resident memory in MiB."""
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGESIZE") / MIB

    @property
    def cpu(self) -> float:
        """Seconds of CPU so far."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    @property
    def descriptors(self) -> int:
        """Open file descriptors."""
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    @property
    def threads(self) -> int:
        """Threads."""
        return len(os.listdir(f"/proc/{self.process.pid}/task"))


class Bench:
    """All measurements of one command."""

    def __init__(self, command: str, rounds: int) -> None:
        self._command = shlex.split(command)
        self._rounds = rounds
        self.figures: list[Figure] = []

    def tell(self, what: str, value: float, unit: str, limit: float | None = None) -> None:
        """Note a figure and print it."""
        figure = Figure(what, value, unit, limit)
        self.figures.append(figure)
        sys.stdout.write(figure.line() + "\n")
        sys.stdout.flush()

    def plugin(self, base: Path, source: str, more: str = "") -> Process:
        """Make a process that offers NAME from `source`, a line of YAML."""
        config = base / "config.yaml"
        config.write_text(
            f"folders: {{plugins: {base / 'plugins'}}}\n{more}\nresources:\n- {{name: {NAME}, {source}}}\n"
        )
        return Process(*self._command, "run", "--config", str(config))

    @contextlib.asynccontextmanager
    async def offered(
        self, base: Path, count: int, source: str = "", more: str = ""
    ) -> AsyncIterator[tuple[FakeKubelet, Process]]:
        """Give a kubelet, and a process that offers `count` devices."""
        plugin = self.plugin(base, source or f"counter: {count}", more)
        async with FakeKubelet(base / "plugins") as kubelet, plugin as process:
            await kubelet.wait_for(NAME, allocatable=count, timeout=30)
            yield kubelet, process

    async def start(self, base: Path) -> None:
        """From the start of the process to the first list, beside the minimal server in the same rounds."""
        for count, limit in ((100, 0.5), (5000, 1.5)):
            ours: list[float] = []
            minimal: list[float] = []
            spent: list[float] = []
            for _ in range(self._rounds + 1):
                for times, make in ((ours, self._ours(base, count)), (minimal, self._minimal(base, count))):
                    async with FakeKubelet(base / "plugins") as kubelet, make() as process:
                        await kubelet.wait_for(NAME, allocatable=count, timeout=30)
                        times.append(time.monotonic() - process.began)
                        if times is ours:
                            spent.append(process.cpu)
            # The first round compiles, as an installed program has been.
            self.tell(f"start to first list, {count} devices, median", statistics.median(ours[1:]), "s", limit)
            self.tell(f"start to first list, {count} devices, worst", max(ours[1:]), "s", limit)
            self.tell(f"  the CPU time in it, {count} devices, median", statistics.median(spent[1:]), "s")
            self.tell(f"  the minimal server beside it, {count} devices, median", statistics.median(minimal[1:]), "s")

    def _ours(self, base: Path, count: int) -> Callable[[], Process]:
        return lambda: self.plugin(base, f"counter: {count}")

    @staticmethod
    def _minimal(base: Path, count: int) -> Callable[[], Process]:
        program = Path(__file__).with_name("minimal_device_plugin.py")
        return lambda: Process(sys.executable, str(program), str(base / "plugins"), str(count))

    async def memory(self, base: Path) -> None:
        """Resident memory after five seconds, probes and one scrape of the metrics included."""
        listen = f"unix:{base}/probes.sock"
        # The first one compiles, as an installed program has been, which takes memory that it would not need.
        for count, limit, told in ((100, None, False), (100, None, True), (5000, 48.0, True)):
            async with self.offered(base, count, more=f"listen: {listen}") as (_, process):
                await until(Path(f"{base}/probes.sock").exists)
                await asyncio.sleep(5)
                await asyncio.to_thread(ask_probe, listen, "/metrics", 5.0)
                if not told:
                    continue
                self.tell(f"resident, {count} devices, probes and metrics on", process.resident, "MiB", limit)
            async with self.offered(base, count) as (_, process):
                await asyncio.sleep(5)
                self.tell(f"resident, {count} devices", process.resident, "MiB", limit)
            async with FakeKubelet(base / "plugins") as kubelet, self._minimal(base, count)() as process:
                await kubelet.wait_for(NAME, allocatable=count, timeout=30)
                self.tell(f"  the minimal server beside it, {count} devices", process.resident, "MiB")

    async def restarts(self, base: Path) -> None:
        """From the return of kubelet.sock to being offered again, ten times in a row, and what that leaves."""
        async with self.offered(base, 100) as (kubelet, process):
            times: list[float] = []
            before = (0, 0, 0)
            for turn in range(10):
                await kubelet.stop()
                await asyncio.sleep(1.5)
                await kubelet.start()
                began = time.monotonic()
                await kubelet.wait_for(NAME, allocatable=100, timeout=30)
                times.append(time.monotonic() - began)
                await asyncio.sleep(0.5)
                if turn == 0:
                    before = self._left(process, base)
            # A connection of the last restart may be closing still; what leaks stays.
            with contextlib.suppress(AssertionError):
                await until(lambda: process.descriptors <= before[0], 5)
            after = self._left(process, base)
        self.tell("offered again after kubelet.sock is back, worst of 10", max(times), "s", 2.0)
        for what, one, ten in zip(("descriptors", "threads", "sockets"), before, after, strict=True):
            self.tell(f"  more {what} after ten restarts than after one", ten - one, "", 0)

    @staticmethod
    def _left(process: Process, base: Path) -> tuple[int, int, int]:
        return process.descriptors, process.threads, len(plugin_sockets(str(base / "plugins")))

    async def lost_streams(self, base: Path) -> None:
        """From the loss of a stream, no file changed, to being offered again."""
        times = []
        async with self.offered(base, 100) as (kubelet, _):
            for _ in range(5):
                await asyncio.sleep(2)
                began = time.monotonic()
                await kubelet.plugins.drop_streams(NAME)
                await kubelet.wait_for(NAME, allocatable=0)
                await kubelet.wait_for(NAME, allocatable=100, timeout=30)
                times.append(time.monotonic() - began)
        self.tell("lost stream to offered again, worst of 5", max(times), "s", 3.0)

    async def vanished(self, base: Path) -> None:
        """From the removal of a device node to Unhealthy on the stream, with the scan interval as it is by itself."""
        tree = DeviceTree(base / "host")
        times = []
        source = "paths: [{path: /dev/ttyUSB*}]"
        for minor in range(10):
            tree.node(f"ttyUSB{minor}", minor=minor)
        async with self.offered(base, 10, source, f"roots: {{dev: {tree.dev}, sys: {tree.sys}}}") as (kubelet, _):
            for minor in range(5):
                await asyncio.sleep(0.7)
                began = time.monotonic()
                tree.remove(f"ttyUSB{minor}")
                await kubelet.wait_for(NAME, capacity=10, allocatable=9 - minor, timeout=30)
                times.append(time.monotonic() - began)
        self.tell("device vanished to Unhealthy on the stream, worst of 5", max(times), "s", 6.0)

    async def allocations(self, base: Path) -> None:
        """1,000 Allocate calls one after the other, as seen by the caller."""
        async with self.offered(base, 100) as (kubelet, _):
            ids = sorted(kubelet.devices.listed[NAME].healthy)
            client = kubelet.devices.endpoints[NAME].client
            times = []
            for number in range(1100):
                began = time.perf_counter()
                await client.allocate([ids[number % 100]])
                times.append((time.perf_counter() - began) * 1000)
        times = sorted(times[100:])
        self.tell("Allocate, p50 of 1,000", times[500], "ms")
        self.tell("Allocate, p99 of 1,000", times[990], "ms", 5.0)

    async def growth(self, base: Path) -> None:
        """10,000 re-scans that change something, and 100 streams that come and go."""
        words = (sys.executable, __file__, "--growth", str(base / "plugins"))
        async with FakeKubelet(base / "plugins"):
            process = await asyncio.create_subprocess_exec(*words, stdout=asyncio.subprocess.PIPE)
            output, _ = await process.communicate()
        self.tell("growth over 10,000 re-scans and 100 reconnects", float(output), "MiB", 1.0)

    async def idle(self, base: Path) -> None:
        """CPU of a process that has nothing to do but look: 100 devices by path, at the usual interval."""
        tree = DeviceTree(base / "host100")
        for minor in range(100):
            tree.node(f"ttyUSB{minor}", minor=minor)
        more = f"roots: {{dev: {tree.dev}, sys: {tree.sys}}}"
        for what, source in (("counted", "counter: 100"), ("found by path", "paths: [{path: /dev/ttyUSB*}]")):
            async with self.offered(base, 100, source, more) as (_, process):
                await asyncio.sleep(3)
                began, before = time.monotonic(), process.cpu
                await asyncio.sleep(30)
                share = (process.cpu - before) / (time.monotonic() - began) * 100
            self.tell(f"idle CPU, 100 devices {what}", share, "%", 0.5)


async def grow(folder: str) -> None:
    """Scan and reconnect in this process, and print by how many MiB it grew after the warm-up."""

    def resident() -> float:
        gc.collect()
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE") / MIB

    devices = numbered(100)
    async with Ours() as ours:
        await ours.start(folder, devices)
        await until(lambda: ours.running.runners and ours.running.runners[0].ready)
        (path,) = (path for path in plugin_sockets(folder))

        async def turn(scans: int, reconnects: int) -> None:
            for number in range(scans):
                await ours.rescan(devices[number % 2 :])
                if number % 100 == 0:
                    await asyncio.sleep(0.01)
            for _ in range(reconnects):
                async with rpc.open_channel(path) as channel:
                    stream = rpc.Client(channel, api.DEVICE_PLUGIN).ListAndWatch(device_plugin.Empty())
                    await stream.read()
                    stream.cancel()

        await turn(2000, 50)
        before = resident()
        await turn(10_000, 100)
        sys.stdout.write(f"{max(0.0, resident() - before):.3f}\n")


async def measure(command: str, rounds: int, only: str) -> int:
    """Run the measurements whose name contains `only`."""
    bench = Bench(command, rounds)
    parts = (
        bench.start, bench.memory, bench.restarts, bench.lost_streams, bench.vanished, bench.allocations, bench.growth,
        bench.idle,
    )  # fmt: skip
    for part in parts:
        if only in part.__name__:
            with tempfile.TemporaryDirectory(prefix="dp-") as base:
                (Path(base) / "plugins").mkdir()
                await part(Path(base))
    missed = [figure for figure in bench.figures if not figure.met]
    sys.stdout.write(f"{len(missed)} of {sum(f.limit is not None for f in bench.figures)} limits missed\n")
    return 1 if missed else 0


def main(argv: list[str]) -> int:
    """Measure; `--growth` is the part that runs as a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--command", default=DEFAULT_COMMAND, help="the device plugin, such as dist/device-plugin.pyz")
    parser.add_argument("--rounds", type=int, default=7, help="rounds of the start-up times")
    parser.add_argument("--only", default="", help="only measurements whose name contains this")
    parser.add_argument("--growth", metavar="FOLDER", help=argparse.SUPPRESS)
    chosen = parser.parse_args(argv)
    with contextlib.suppress(KeyboardInterrupt):
        if chosen.growth:
            asyncio.run(grow(chosen.growth))
        else:
            return asyncio.run(measure(chosen.command, chosen.rounds, chosen.only))
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
