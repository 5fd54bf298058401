"""The command line of the device plugin, as a person types it."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from resource_extend.kubernetes.command_line import device_plugin
from resource_extend.kubernetes.fake_kubelet import FakeKubelet
from support.device_plugin import NAME, Ours, numbered, story, until
from support.device_tree import DeviceTree, needs_device_nodes

COUNTER = f"resources: [{{name: {NAME}, counter: 2}}]\n"
FIRST, SECOND = "f71ef937-0", "f71ef937-1"


def call(*words: str) -> Result:
    """Run a command in this process."""
    return CliRunner().invoke(device_plugin, list(words))


@pytest.fixture
def config(tmp_path: Path) -> str:
    """Write the smallest configuration."""
    path = tmp_path / "config.yaml"
    path.write_text(COUNTER)
    return str(path)


def test_check_of_a_good_configuration(config: str, tmp_path: Path) -> None:
    """A configuration that works says what it would offer, and ends with 0."""
    result = call("check", "--config", config, "--plugin-dir", str(tmp_path))
    assert (0, f"{NAME}: 2 devices, 2 healthy, list of 46 bytes\n") == (result.exit_code, result.stdout)


def test_check_of_a_missing_folder(config: str) -> None:
    """A plugin folder that is not there is an error with a question that helps, and ends with 1."""
    result = call("check", "--config", config, "--plugin-dir", "/no/such/folder")
    assert 1 == result.exit_code
    assert "does not exist: is the kubelet's folder mounted here?" in result.stdout
    assert f"{NAME}: 2 devices, 2 healthy" in result.stdout, "the devices are told all the same"
    assert f"device-plugin: {config}: 1 error\n" == result.stderr


def test_check_of_a_hook_that_would_never_run(tmp_path: Path) -> None:
    """A release hook without the pod resources socket is an error, and none with it."""
    path = tmp_path / "config.yaml"
    path.write_text(f"resources: [{{name: {NAME}, counter: 2, release: {{command: [sh]}}}}]")
    words = ("check", "--config", str(path), "--plugin-dir", str(tmp_path))
    assert f"error: {NAME}: 'release' never runs: it needs folders.podResources\n" in call(*words).stdout
    assert 0 == call(*words, "--pod-resources", "/run/pods.sock").exit_code


def test_a_mistake_is_one_line(tmp_path: Path) -> None:
    """A wrong configuration is one line with file and line for every command that reads it."""
    path = tmp_path / "config.yaml"
    path.write_text("resources: [{name: nodomain, counter: 2}]")
    for words in (("check",), ("list",), ("allocate", "a", "b"), ("run",)):
        result = call(words[0], "--config", str(path), *words[1:])
        assert 1 == result.exit_code
        assert result.stderr.startswith(f"device-plugin: {path}:1:")
        assert 1 == result.stderr.count("\n")


def test_an_address_on_the_command_line_is_checked(config: str) -> None:
    """An address that cannot be listened on is refused at the start, as it is in the file."""
    result = call("run", "--config", config, "--plugin-dir", "/no/such/folder", "--listen", "9100")
    assert (1, 1) == (result.exit_code, result.stderr.count("\n"))
    assert result.stderr.startswith("device-plugin: '9100' must be HOST:PORT")


def test_list(config: str) -> None:
    """Devices as tab separated lines when nobody watches, and as JSON."""
    result = call("list", "--config", config)
    lines = [line.split("\t") for line in result.stdout.splitlines()]
    assert ["RESOURCE", "DEVICE", "HEALTH", "NUMA", "NODES"] == lines[0]
    assert [NAME, FIRST, "healthy", "-", "-"] == lines[1]
    document = json.loads(call("list", "--config", config, "--json").stdout)
    assert [FIRST, SECOND] == [device["id"] for device in document[NAME]]


def test_allocate(config: str) -> None:
    """A dry run prints what a container would get; what is not there is named."""
    answer = json.loads(call("allocate", "--config", config, NAME, FIRST).stdout)
    assert FIRST in json.dumps(answer["env"])
    unknown = call("allocate", "--config", config, NAME, "nothing")
    assert (1, f"device-plugin: {NAME} has no device nothing; there are: {FIRST}, {SECOND}\n") == (
        unknown.exit_code,
        unknown.stderr,
    )
    twice = call("allocate", "--config", config, NAME, FIRST, SECOND, FIRST)
    assert (1, f"device-plugin: {FIRST} is named more than once: a container gets a device once\n") == (
        twice.exit_code,
        twice.stderr,
    )
    other = call("allocate", "--config", config, "example.com/other", FIRST)
    assert f"device-plugin: no resource 'example.com/other' is configured; there are: {NAME}\n" == other.stderr


@needs_device_nodes
def test_check_looks_at_nodes(tmp_path: Path) -> None:
    """Owner, group and mode of each node; who cannot open it; a node in two resources is an error (demands 21, 35)."""
    tree = DeviceTree(tmp_path / "host")
    tree.node("secret")
    tree.node("open")
    os.chmod(tree.dev / "secret", 0o600)
    os.chmod(tree.dev / "open", 0o666)
    tree.link("linked", "/dev/secret")
    path = tmp_path / "config.yaml"
    path.write_text(
        f"roots: {{dev: {tree.dev}, sys: {tree.sys}}}\nresources:\n"
        f"- {{name: {NAME}, paths: [{{path: /dev/secret}}]}}\n"
        "- {name: example.com/other, paths: [{path: '/dev/[slo]*'}]}\n"
    )
    result = call("check", "--config", str(path), "--plugin-dir", str(tmp_path))
    assert 1 == result.exit_code
    text = result.stdout
    assert "/dev/secret belongs to root:root, crw-------; only root can open it" in text
    assert "/dev/open belongs to root:root, crw-rw-rw-\n" in text
    assert "/dev/linked belongs to root:root, crw-------" in text, "an absolute link leads into the host's own tree"
    assert f"error: /dev/secret is offered by {NAME} and by example.com/other" in text


@story
async def test_status(tmp_path: Path) -> None:
    """Capacity, allocatable, in use by whom and free, as the kubelet has it (demand 26)."""
    pods = str(tmp_path / "pods.sock")
    async with FakeKubelet(tmp_path / "plugins", pod_resources=pods) as kubelet, Ours() as ours:
        await ours.start(str(tmp_path / "plugins"), numbered(3))
        await kubelet.wait_for(NAME, allocatable=3)
        pod = await kubelet.admit("pod", {NAME: 1})
        words = ("status", "--pod-resources", pods, "--plugin-dir", str(tmp_path))
        result = await asyncio.to_thread(call, *words)
        (held,) = pod.devices[NAME]
        head = "RESOURCE\tCAPACITY\tALLOCATABLE\tIN USE\tFREE"
        assert [head, f"{NAME}\t3\t3\t1\t2", f"{NAME} {held}: default/pod/main"] == result.stdout.splitlines()
        (one,) = json.loads((await asyncio.to_thread(call, *words, "--json")).stdout)
        assert (3, 1, {held: ["default/pod/main"]}) == (one["allocatable"], one["in_use"], one["holders"])


def test_status_without_a_kubelet(tmp_path: Path) -> None:
    """Nobody on the socket is one line that says what to look at."""
    result = call("status", "--pod-resources", str(tmp_path / "no.sock"))
    assert 1 == result.exit_code
    assert result.stderr.startswith("device-plugin: the pod resources socket")


@story
async def test_probe(tmp_path: Path) -> None:
    """The probe command ends with 0 for a well process and with 1, and its text, for another."""
    address = f"unix:{tmp_path}/probes.sock"
    async with Ours() as ours:
        await ours.start(str(tmp_path / "plugins"), numbered(1), listen=address)
        await until(lambda: ours.running.probes)
        well = await asyncio.to_thread(call, "probe", "livez", "--listen", address)
        assert (0, "ok\n") == (well.exit_code, well.stdout)
        unready = await asyncio.to_thread(call, "probe", "readyz", "--listen", address)
        assert (1, f"{NAME}: init\n") == (unready.exit_code, unready.stdout)


class Played:
    """The fake kubelet as a program."""

    def __init__(self, *words: str) -> None:
        self._words = (sys.executable, "-m", "resource_extend.kubernetes.cli", "fake-kubelet", *words)
        self.events: list[dict[str, object]] = []

    async def __aenter__(self) -> Played:
        pipe = asyncio.subprocess.PIPE
        self.process = await asyncio.create_subprocess_exec(*self._words, stdin=pipe, stdout=pipe)
        await self.read("event", "started")
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self.process.communicate(b"quit\n")

    async def read(self, key: str, value: object) -> dict[str, object]:
        """Read lines up to the one that has this."""
        assert self.process.stdout is not None
        while True:
            line = await asyncio.wait_for(self.process.stdout.readline(), 10)
            said: dict[str, object] = json.loads(line)
            self.events.append(said)
            if said.get(key) == value:
                return said

    async def do(self, line: str) -> dict[str, object]:
        """Give a command and get its answer."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{line}\n".encode())
        return await self.read("command", line.split(maxsplit=1)[0])


@story
async def test_fake_kubelet_as_a_program(tmp_path: Path) -> None:
    """Users' tests can drive the fake kubelet by lines: wait, admit, drop, restart, faults, age."""
    async with Played(str(tmp_path), "--generation", "le136") as kubelet, Ours() as ours:
        await ours.start(str(tmp_path), numbered(2))
        expected: dict[str, object] = {"capacity": 2, "allocatable": 2}
        assert expected == (await kubelet.do(f"wait {NAME} 2"))["result"]
        pod = await kubelet.do(f"admit pod {NAME}=1")
        assert pod["ok"]
        refused = await kubelet.do(f"admit more {NAME}=2")
        assert not refused["ok"]
        assert f"requested number of devices unavailable for {NAME}. Requested: 2" in str(refused["error"])
        assert (await kubelet.do("start pod"))["ok"]
        assert (await kubelet.do("delete pod"))["ok"]
        assert [] == (await kubelet.do("pods"))["result"]
        assert (await kubelet.do("fault refuse 1"))["ok"]
        assert (await kubelet.do(f"drop {NAME}"))["ok"]
        assert (await kubelet.do(f"wait {NAME} 0"))["ok"]
        assert (await kubelet.do(f"wait {NAME} 2"))["ok"]
        assert (await kubelet.do("restart"))["ok"]
        assert (await kubelet.do(f"wait {NAME} 2"))["ok"]
        await ours.stop()
        assert (await kubelet.do(f"wait {NAME} 0"))["ok"]
        assert {NAME: {"capacity": 0, "allocatable": 0}} == (await kubelet.do("age 301"))["result"]
        assert "see `help`" in str((await kubelet.do("nonsense"))["error"])
        assert "see `help`" in str((await kubelet.do("fault nonsense 1"))["error"])
        helped = (await kubelet.do("help"))["result"]
        assert isinstance(helped, list)
        assert len(helped) > 10
        assert [True] == [bool(e["error"]) for e in kubelet.events if e.get("event") == "register" and e["error"]]
    assert 0 == kubelet.process.returncode
