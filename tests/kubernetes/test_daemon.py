"""The device plugin as a process: many resources, reload, signals, a clean stop."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from resource_extend.kubernetes.config import load_config
from resource_extend.kubernetes.fake_kubelet import Amounts, FakeKubelet
from resource_extend.kubernetes.model import Config, Device, DeviceSource, Folders, Resource, Roots
from support.device_plugin import NAME, Listed, Ours, numbered, plugin_sockets, story, until

OTHER = "example.com/other"


def write(path: Path, folder: Path, *resources: str, more: str = "") -> None:
    """Write a configuration at once, as an editor with a rename does."""
    lines = "".join(f"- {resource}\n" for resource in resources)
    fresh = path.with_suffix(".new")
    fresh.write_text(f"folders: {{plugins: {folder}}}\n{more}\nresources:\n{lines}")
    os.replace(fresh, path)


@asynccontextmanager
async def configured(base: Path, *resources: str) -> AsyncIterator[tuple[FakeKubelet, Ours, Path]]:
    """Give a kubelet, and our daemon on a configuration file with `resources`."""
    path, folder = base / "config.yaml", base / "plugins"
    write(path, folder, *resources)
    async with FakeKubelet(folder) as kubelet, Ours() as ours:
        await ours.start_config(lambda: load_config(str(path)), str(path))
        yield kubelet, ours, path


@story
async def test_many_resources(tmp_path: Path) -> None:
    """Forty resources in one process, each on its own socket, all back after a restart of the kubelet."""
    names = [f"example.com/r{number}" for number in range(40)]
    resources = tuple(Resource(name, Listed(numbered(2, f"{name[12:]}-"), version=1)) for name in names)
    config = Config(resources, folders=Folders(plugins=str(tmp_path)))
    async with FakeKubelet(tmp_path) as kubelet, Ours() as ours:
        await ours.start_config(lambda: config)
        for _ in range(2):
            for name in names:
                await kubelet.wait_for(name, allocatable=2)
            assert 40 == len(plugin_sockets(str(tmp_path)))
            await kubelet.restart()
        for name in names:
            await kubelet.wait_for(name, allocatable=2)


@story
async def test_trouble_of_one_resource_stays_there(tmp_path: Path) -> None:
    """A source that fails, one that hangs and one too large leave the fourth resource alone, and show in readiness."""

    class Failing(Listed):
        async def scan(self, held: frozenset[str], now: float) -> list[Device]:
            raise OSError("the driver is not loaded")

    class Hanging(Listed):
        async def scan(self, held: frozenset[str], now: float) -> list[Device]:
            await asyncio.Event().wait()
            return []

    sources: dict[str, DeviceSource] = {
        "failing": Failing(),
        "hanging": Hanging(),
        "large": Listed([Device(f"{number:063}") for number in range(60_000)]),
        "good": Listed(numbered(2)),
    }
    resources = tuple(Resource(f"example.com/{name}", source) for name, source in sources.items())  # type: ignore[arg-type]
    config = Config(resources, folders=Folders(plugins=str(tmp_path)))
    async with FakeKubelet(tmp_path) as kubelet, Ours() as ours:
        await ours.start_config(lambda: config)
        await kubelet.wait_for("example.com/good", allocatable=2)
        await kubelet.wait_for("example.com/failing", capacity=0)
        await kubelet.wait_for("example.com/large", capacity=0)
        await until(lambda: len(ours.running.ready_faults()) == 3)
        failing, hanging, large = ours.running.ready_faults()
        assert "example.com/failing: scan failed: the driver is not loaded" == failing
        assert "example.com/hanging: init" == hanging
        assert "60000 devices make a message of" in large


@story
async def test_reload_registers_only_what_changed(tmp_path: Path) -> None:
    """A resource that did not change keeps its stream; changed, new and removed ones are dealt with."""
    one, two = f"{{name: {NAME}, counter: 2}}", f"{{name: {OTHER}, counter: 1}}"
    async with configured(tmp_path, one, two) as (kubelet, ours, path):
        await kubelet.wait_for(NAME, allocatable=2)
        await kubelet.wait_for(OTHER, allocatable=1)
        write(path, tmp_path / "plugins", one, f"{{name: {OTHER}, counter: 3}}", "{name: example.com/new, counter: 1}")
        await kubelet.wait_for(OTHER, allocatable=3)
        await kubelet.wait_for("example.com/new", allocatable=1)
        assert 1 == sum(name == NAME for name, _, _ in kubelet.registrations)
        write(path, tmp_path / "plugins", two)
        await kubelet.wait_for(NAME, capacity=2, allocatable=0)
        await kubelet.wait_for(OTHER, allocatable=1)
        assert [OTHER] == [runner.resource.name for runner in ours.running.runners]
        assert 3 == ours.running.generation


@story
async def test_wrong_configuration_keeps_the_old_one(tmp_path: Path) -> None:
    """A mistake in the new file shows in readiness with file and line, and the old resources go on; a fix clears it."""
    one = f"{{name: {NAME}, counter: 2}}"
    async with configured(tmp_path, one) as (kubelet, ours, path):
        await kubelet.wait_for(NAME, allocatable=2)
        write(path, tmp_path / "plugins", f"{{name: {NAME}, conter: 3}}")
        await until(lambda: ours.running.config_error)
        (fault,) = ours.running.ready_faults()
        assert fault.startswith(f"configuration: {path}:4:")
        assert "conter" in fault
        assert Amounts(2, 2) == kubelet.node()[NAME]
        write(path, tmp_path / "plugins", one)
        await until(lambda: not ours.running.config_error)
        assert 1 == len(kubelet.registrations)


@story
async def test_config_map_swap(tmp_path: Path) -> None:
    """The swap of a ConfigMap's `..data` link is noticed, though the configured path itself never changes."""
    folder = tmp_path / "plugins"
    volume = tmp_path / "volume"
    for version, count in (("..1", 2), ("..2", 5)):
        (volume / version).mkdir(parents=True)
        write(volume / version / "config.yaml", folder, f"{{name: {NAME}, counter: {count}}}")
    (volume / "..data").symlink_to("..1")
    path = volume / "config.yaml"
    path.symlink_to("..data/config.yaml")
    async with FakeKubelet(folder) as kubelet, Ours() as ours:
        await ours.start_config(lambda: load_config(str(path)), str(path))
        await kubelet.wait_for(NAME, allocatable=2)
        (volume / "..tmp").symlink_to("..2")
        os.replace(volume / "..tmp", volume / "..data")
        await kubelet.wait_for(NAME, allocatable=5)


@story
async def test_another_folder(tmp_path: Path) -> None:
    """A reload may change the folder: everything moves to the kubelet there."""
    one = f"{{name: {NAME}, counter: 2}}"
    async with configured(tmp_path, one) as (kubelet, _ours, path), FakeKubelet(tmp_path / "other") as other:
        await kubelet.wait_for(NAME, allocatable=2)
        write(path, tmp_path / "other", one)
        await other.wait_for(NAME, allocatable=2)
        await kubelet.wait_for(NAME, allocatable=0)


@story
async def test_probes_move(tmp_path: Path) -> None:
    """A reload may change where probes are served; an address that cannot be used is no end of the daemon."""
    one = f"{{name: {NAME}, counter: 2}}"
    async with configured(tmp_path, one) as (kubelet, ours, path):
        await kubelet.wait_for(NAME, allocatable=2)
        assert ours.running.probes is None
        write(path, tmp_path / "plugins", one, more=f"listen: unix:{tmp_path}/probes.sock")
        await until((tmp_path / "probes.sock").exists)
        write(path, tmp_path / "plugins", one, more="listen: 192.0.2.1:1")
        await until(lambda: not (tmp_path / "probes.sock").exists())
        write(path, tmp_path / "plugins", one)
        await until(lambda: ours.running.generation == 4)
        assert Amounts(2, 2) == kubelet.node()[NAME]
        assert 1 == len(kubelet.registrations)


def told(caplog: pytest.LogCaptureFixture, event: str) -> list[dict[str, object]]:
    """Give the fields of all lines of an event."""
    return [vars(record)["fields"] for record in caplog.records if record.getMessage() == event]


@story
async def test_busy_address_is_tried_again(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """An address that is taken at the start is told once and tried again until it is free."""
    caplog.set_level("INFO", "resource_extend.device_plugin")
    path = tmp_path / "probes.sock"
    config = tmp_path / "config.yaml"
    write(config, tmp_path / "plugins", f"{{name: {NAME}, counter: 2}}", more=f"listen: unix:{path}")
    async with FakeKubelet(tmp_path / "plugins") as kubelet, Ours() as ours:
        with socket.socket(socket.AF_UNIX) as owner:
            owner.bind(str(path))
            owner.listen()
            await ours.start_config(lambda: load_config(str(config)), str(config))
            await kubelet.wait_for(NAME, allocatable=2)
            await until(lambda: told(caplog, "no probes"))
            await asyncio.sleep(0.5)
            assert ours.running.probes is None
        await until(lambda: ours.running.probes)
        assert [{"address": f"unix:{path}"}] == told(caplog, "probes")
        assert 1 == len(told(caplog, "no probes"))


@story
async def test_hook_that_never_runs_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A release hook without the pod resources socket is a line in the log, once for each resource that has one."""
    hooked = f"{{name: {NAME}, counter: 2, release: {{command: [sh]}}}}"
    async with configured(tmp_path, hooked, f"{{name: {OTHER}, counter: 1}}") as (kubelet, ours, path):
        await kubelet.wait_for(NAME, allocatable=2)
        reason = "'release' never runs: it needs folders.podResources"
        assert [{"resource": NAME, "reason": reason}] == told(caplog, "hook without use")
        write(path, tmp_path / "plugins", hooked)
        await until(lambda: ours.running.generation == 2)
        assert 1 == len(told(caplog, "hook without use"))


@story
async def test_stop_in_any_state(tmp_path: Path) -> None:
    """Told to stop while it waits for a kubelet, or hangs in Register, the daemon stops and leaves nothing."""
    async with Ours() as waiting:
        await waiting.start(str(tmp_path), numbered(1))
        await until(lambda: waiting.running.runners)
    async with FakeKubelet(tmp_path) as kubelet:
        kubelet.faults.hang_register = True
        async with Ours() as hanging:
            await hanging.start(str(tmp_path), numbered(1))
            await until(lambda: plugin_sockets(str(tmp_path)))
            await asyncio.sleep(0.2)
        assert [] == plugin_sockets(str(tmp_path))


@story
async def test_no_task_survives(tmp_path: Path) -> None:
    """After the stop only the test's own task is left."""
    async with FakeKubelet(tmp_path) as kubelet, Ours() as ours:
        await ours.start(str(tmp_path), numbered(1), listen=f"unix:{tmp_path}/p.sock", pod_resources=f"{tmp_path}/no")
        await kubelet.wait_for(NAME, allocatable=1)
        await ours.stop()
        await kubelet.stop()
        await until(lambda: len(asyncio.all_tasks()) == 1)


class Process:
    """The command line program in a process of its own."""

    def __init__(self, config: Path, *more: str) -> None:
        self._command = (sys.executable, "-m", "resource_extend.kubernetes.cli", "run", "--config", str(config), *more)

    async def __aenter__(self) -> asyncio.subprocess.Process:
        self.process = await asyncio.create_subprocess_exec(*self._command, stderr=asyncio.subprocess.PIPE)
        return self.process

    async def __aexit__(self, *_error: object) -> None:
        if self.process.returncode is None:
            self.process.kill()
        await self.process.communicate()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@story
async def test_signal_stops_the_process(number: signal.Signals, tmp_path: Path) -> None:
    """SIGTERM and SIGINT end the process with status 0, its stream first, no socket left."""
    config = tmp_path / "config.yaml"
    write(config, tmp_path / "plugins", f"{{name: {NAME}, counter: 2}}")
    async with FakeKubelet(tmp_path / "plugins") as kubelet, Process(config) as process:
        await kubelet.wait_for(NAME, allocatable=2)
        process.send_signal(number)
        _, log = await asyncio.wait_for(process.communicate(), 10)
        assert 0 == process.returncode
        await kubelet.wait_for(NAME, capacity=2, allocatable=0)
        assert [] == plugin_sockets(str(tmp_path / "plugins"))
        events = [line.split(" ", 2)[2].partition(":")[0] for line in log.decode().splitlines()]
        assert ["start", "devices", "serving", "registering"] == events[:4]
        # The kubelet may ask for the list before it answers Register.
        assert ["list sent", "wait_stream"] == sorted(events[4:6])
        assert ["active", "stopped", "stop"] == [events[6], *events[-2:]]


@story
async def test_sighup_reads_the_configuration(tmp_path: Path) -> None:
    """SIGHUP makes a change count at once."""
    config = tmp_path / "config.yaml"
    write(config, tmp_path / "plugins", f"{{name: {NAME}, counter: 2}}")
    async with FakeKubelet(tmp_path / "plugins") as kubelet, Process(config, "--log-format", "json") as process:
        await kubelet.wait_for(NAME, allocatable=2)
        write(config, tmp_path / "plugins", f"{{name: {NAME}, counter: 4}}")
        process.send_signal(signal.SIGHUP)
        await kubelet.wait_for(NAME, allocatable=4)
        assert process.returncode is None
        await kubelet.restart()
        await kubelet.wait_for(NAME, allocatable=4)
        process.terminate()
        _, log = await process.communicate()
        events = [json.loads(line)["event"] for line in log.decode().splitlines()]
        assert "configuration taken" in events, "every line of the log is JSON"


# Sends itself a signal in the middle of its imports, when it comes to one module, and goes on.
EARLY = """
import os, signal, sys
sys.argv[1:] = ["run", "--config", {config!r}]
from resource_extend.kubernetes import cli
{more}
class Now:
    def find_spec(self, name, *_):
        if name == {module!r}:
            os.kill(os.getpid(), {number})
sys.meta_path.insert(0, Now())
cli.main()
"""


@pytest.mark.parametrize(
    ("module", "more"), [("click", ""), ("grpc", ""), ("resource_extend.kubernetes.lean", "import hashlib, ssl")]
)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@story
async def test_signal_while_it_comes_up_stops_it(
    number: signal.Signals, more: str, module: str, tmp_path: Path
) -> None:
    """A stop before the daemon is up is a clean one, also over the start again; the kubelet hears nothing."""
    config = tmp_path / "config.yaml"
    write(config, tmp_path / "plugins", f"{{name: {NAME}, counter: 2}}")
    code = EARLY.format(config=str(config), more=more, module=module, number=int(number))
    async with FakeKubelet(tmp_path / "plugins") as kubelet:
        process = await asyncio.create_subprocess_exec(sys.executable, "-c", code, stderr=asyncio.subprocess.PIPE)
        _, log = await asyncio.wait_for(process.communicate(), 30)
        assert 0 == process.returncode, log.decode()
        assert [] == kubelet.registrations


@story
async def test_sighup_while_it_comes_up_is_kept(tmp_path: Path) -> None:
    """SIGHUP before the daemon is up does not kill it: the configuration is read again once it runs."""
    config = tmp_path / "config.yaml"
    write(config, tmp_path / "plugins", f"{{name: {NAME}, counter: 2}}")
    code = EARLY.format(config=str(config), more="", module="click", number=int(signal.SIGHUP))
    async with FakeKubelet(tmp_path / "plugins") as kubelet:
        process = await asyncio.create_subprocess_exec(sys.executable, "-c", code, stderr=asyncio.subprocess.PIPE)
        await kubelet.wait_for(NAME, allocatable=2)
        assert process.stderr is not None
        async for line in process.stderr:
            if b"configuration taken: generation=2" in line:
                break
        # Commands that it runs get this mask: nothing may stay kept back.
        assert "SigBlk:\t0000000000000000" in Path(f"/proc/{process.pid}/status").read_text()
        process.terminate()
        await asyncio.wait_for(process.communicate(), 10)
        assert 0 == process.returncode


@story
async def test_killed_process_is_followed_by_the_next(tmp_path: Path) -> None:
    """A SIGKILL leaves a socket; the next process removes it and offers the same ids again."""
    config = tmp_path / "config.yaml"
    write(config, tmp_path / "plugins", f"{{name: {NAME}, counter: 2}}")
    async with FakeKubelet(tmp_path / "plugins") as kubelet:
        async with Process(config) as process:
            await kubelet.wait_for(NAME, allocatable=2)
            ids = sorted(kubelet.devices.listed[NAME].healthy)
            process.kill()
        await kubelet.wait_for(NAME, allocatable=0)
        (left,) = plugin_sockets(str(tmp_path / "plugins"))
        async with Process(config):
            await kubelet.wait_for(NAME, allocatable=2)
            assert ids == sorted(kubelet.devices.listed[NAME].healthy)
            assert [left] != plugin_sockets(str(tmp_path / "plugins"))
            assert 1 == len(plugin_sockets(str(tmp_path / "plugins")))


@story
async def test_program_that_was_unpacked_with_tls_starts_again_without(tmp_path: Path) -> None:
    """What loaded OpenSSL before the command began is left behind: the same process, with none of it mapped."""
    config = tmp_path / "config.yaml"
    write(config, tmp_path / "plugins", f"{{name: {NAME}, counter: 2}}")
    code = "import hashlib, ssl; from resource_extend.kubernetes.cli import main; main()"
    command = (sys.executable, "-c", code, "run", "--config", str(config), "--listen", f"unix:{tmp_path}/p.sock")
    async with FakeKubelet(tmp_path / "plugins") as kubelet:
        process = await asyncio.create_subprocess_exec(*command, stderr=asyncio.subprocess.PIPE)
        await kubelet.wait_for(NAME, allocatable=2)
        await until((tmp_path / "p.sock").exists)
        mapped = Path(f"/proc/{process.pid}/maps").read_text()
        process.terminate()
        _, log = await process.communicate()
    assert 0 == process.returncode
    assert f"pid={process.pid} " in log.decode()
    assert "cygrpc" in mapped
    assert "_ssl." not in mapped
    assert "_hashlib." not in mapped


@story
async def test_wrong_configuration_at_the_start(tmp_path: Path) -> None:
    """A configuration that is wrong at the start ends the process with one line that names file and line."""
    config = tmp_path / "config.yaml"
    config.write_text("resources:\n- {name: widget, counter: 2}\n")
    async with Process(config) as process:
        _, log = await process.communicate()
    assert 1 == process.returncode
    (line,) = log.decode().splitlines()
    assert line.startswith(f"device-plugin: {config}:2:")


def test_roots_have_defaults() -> None:
    """Without options the daemon looks at the host's own folders."""
    config = Config(())
    assert (Roots("/dev", "/sys"), "/var/lib/kubelet/device-plugins") == (config.roots, config.folders.plugins)
