"""The demands of users (specification, kubernetes 6) about devices: a made-up host, our daemon, and a kubelet.

Numbers are those of the table in section 6; each test goes the whole way from a file below /dev or /sys to the node
object.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from resource_extend.kubernetes.config import load_config
from resource_extend.kubernetes.fake_kubelet import AdmissionError, FakeKubelet, Pod
from resource_extend.kubernetes.model import ConfigError
from support.device_plugin import NAME, Ours, story, until
from support.device_tree import DeviceTree, needs_device_nodes

pytestmark = needs_device_nodes


class Host:
    """A made-up host with our daemon and a kubelet on it."""

    def __init__(self, base: Path) -> None:
        self.tree = DeviceTree(base / "host")
        self.plugins = base / "plugins"
        self.plugins.mkdir()
        self.kubelet = FakeKubelet(str(self.plugins))
        self.ours = Ours()
        self._config = base / "config.yaml"

    def configure(self, text: str) -> None:
        """Write the configuration."""
        roots = f"roots: {{dev: {self.tree.dev}, sys: {self.tree.sys}}}\n"
        self._config.write_text(f"{roots}folders: {{plugins: {self.plugins}}}\n{text}")

    async def start(self) -> None:
        """Start the daemon; the kubelet runs."""
        await self.ours.start_config(lambda: load_config(str(self._config)), str(self._config))

    async def restart(self) -> None:
        """Stop the daemon, and start another one."""
        await self.ours.stop()
        self.ours = Ours()
        await self.start()

    async def shows(self, capacity: int, allocatable: int, name: str = NAME) -> None:
        """Wait until the node shows the resource so."""
        await self.kubelet.wait_for(name, capacity=capacity, allocatable=allocatable, timeout=6)

    async def nodes(self, pod: str, count: int = 1, name: str = NAME) -> list[tuple[str, str]]:
        """Admit a pod; give the host path and container path of each device node that it gets."""
        admitted = await self.kubelet.admit(pod, {name: count})
        return [(node.host_path, node.container_path) for node in admitted.answers[name].devices]

    def ids(self, name: str = NAME) -> list[str]:
        """Give the ids that the kubelet has."""
        listed = self.kubelet.devices.listed[name]
        return sorted(listed.healthy | listed.unhealthy)


@asynccontextmanager
async def host(base: Path, text: str) -> AsyncIterator[Host]:
    """Give a host with a running kubelet; `text` is the configuration, and starts nothing yet."""
    made = Host(base)
    made.configure(text)
    async with made.kubelet:
        try:
            yield made
        finally:
            await made.ours.stop()


TTYS = f"resources: [{{name: {NAME}, paths: [{{path: /dev/ttyUSB*}}], scanInterval: 0.1}}]"
STICK = f"""
resources:
- name: {NAME}
  usb: [{{vendor: "0403", product: "6001", nodes: [tty], mountPath: /dev/modem}}]
  scanInterval: 0.1
"""


@story
async def test_demand_05_an_unhealthy_device_comes_back(tmp_path: Path) -> None:
    """A device whose check fails is unhealthy, and healthy again when the check is, without a restart."""
    flag = tmp_path / "fine"
    flag.write_text("")
    check = f"health: {{command: [test, -e, {flag}], interval: 1}}"
    text = f"resources: [{{name: {NAME}, counter: 2, {check}, scanInterval: 0.1}}]"
    async with host(tmp_path, text) as one:
        await one.start()
        await one.shows(2, 2)
        flag.unlink()
        await one.shows(2, 0)
        flag.write_text("")
        await one.shows(2, 2)
        assert 1 == len(one.kubelet.registrations)


@story
async def test_demand_06_an_unplugged_device_is_not_offered(tmp_path: Path) -> None:
    """A removed node is Unhealthy at the next scan, and still listed for a while; pods get the other one."""
    async with host(tmp_path, TTYS) as one:
        one.tree.node("ttyUSB0")
        one.tree.node("ttyUSB1", minor=1)
        await one.start()
        await one.shows(2, 2)
        one.tree.remove("ttyUSB0")
        await one.shows(2, 1)
        assert [("/dev/ttyUSB1", "/dev/ttyUSB1")] == await one.nodes("pod")
        one.tree.node("ttyUSB0")
        await one.shows(2, 2)


@story
async def test_demand_06_a_held_device_shows_in_the_pod_status(tmp_path: Path) -> None:
    """A pod whose device vanished is told so in its status, since the device stays listed."""
    async with host(tmp_path, TTYS) as one:
        one.tree.node("ttyUSB0")
        await one.start()
        await one.shows(1, 1)
        pod: Pod = await one.kubelet.admit("pod", {NAME: 1})
        one.tree.remove("ttyUSB0")
        await one.shows(1, 0)
        assert ["Unhealthy"] == list(one.kubelet.pods.health(pod).values())


@story
async def test_demand_07_hot_plug_and_23_empty_at_the_start(tmp_path: Path) -> None:
    """Nothing there at the start is an empty list, registered; what is plugged in later is offered."""
    async with host(tmp_path, TTYS) as one:
        await one.start()
        await one.shows(0, 0)
        one.tree.node("ttyUSB3", minor=3)
        await one.shows(1, 1)
        assert 1 == len(one.kubelet.registrations)


@story
async def test_demand_08_usb_stick_with_its_serial_port(tmp_path: Path) -> None:
    """A stick by vendor and product is its serial port under a stable name, also with another number after a replug."""
    async with host(tmp_path, STICK) as one:
        stick = one.tree.usb("1", "0403", "6001", "A1", number=7)
        one.tree.usb_tty(stick, "ttyUSB0", 0)
        await one.start()
        await one.shows(1, 1)
        before = one.ids()
        assert [("/dev/ttyUSB0", "/dev/modem")] == await one.nodes("first")
        one.kubelet.pods.delete("first")
        one.tree.unplug(stick)
        await one.shows(1, 0)
        stick = one.tree.usb("1", "0403", "6001", "A1", number=9)
        one.tree.usb_tty(stick, "ttyUSB4", 4)
        await one.shows(1, 1)
        assert [("/dev/ttyUSB4", "/dev/modem")] == await one.nodes("second")
        assert before == one.ids()


@story
async def test_demand_08_equal_sticks_are_several_devices(tmp_path: Path) -> None:
    """Three sticks of one kind are three devices."""
    async with host(tmp_path, STICK) as one:
        for number in (1, 2, 3):
            stick = one.tree.usb(str(number), "0403", "6001", f"S{number}", number=number + 1)
            one.tree.usb_tty(stick, f"ttyUSB{number}", number)
        await one.start()
        await one.shows(3, 3)


@story
async def test_demand_09_links_by_id(tmp_path: Path) -> None:
    """A link in a subfolder is a device of its own name; a link that moves is noticed."""
    text = f"resources: [{{name: {NAME}, paths: [{{path: /dev/serial/by-id/*, resolve: now}}], scanInterval: 0.1}}]"
    async with host(tmp_path, text) as one:
        one.tree.node("ttyUSB0")
        one.tree.node("ttyUSB1", minor=1)
        one.tree.link("serial/by-id/modem", "../../ttyUSB0")
        await one.start()
        await one.shows(1, 1)
        assert "/dev/ttyUSB0" == (await one.nodes("first"))[0][0]
        one.kubelet.pods.delete("first")
        one.tree.link("serial/by-id/modem", "../../ttyUSB1")
        (identity,) = one.ids()

        def moved() -> bool:
            device = one.ours.running.runners[0].table.devices[identity]
            return device.healthy and device.answer.nodes[0].host_path == "/dev/ttyUSB1"

        await until(moved)
        await one.shows(1, 1)
        assert "/dev/ttyUSB1" == (await one.nodes("second"))[0][0]


@story
async def test_demand_24_ids_survive_everything(tmp_path: Path) -> None:
    """A restart, another order, one more resource, another ttyUSB number: the same hardware keeps its id."""
    other = "{name: example.com/other, counter: 2}"
    async with host(tmp_path, STICK) as one:
        first = one.tree.usb("1", "0403", "6001", "A1", number=3)
        one.tree.usb_tty(first, "ttyUSB0", 0)
        second = one.tree.usb("2", "0403", "6001", "B2", number=4)
        one.tree.usb_tty(second, "ttyUSB1", 1)
        await one.start()
        await one.shows(2, 2)
        before = one.ids()
        await one.ours.stop()
        await one.shows(2, 0)
        for stick in (first, second):
            one.tree.unplug(stick)
        for port, serial, number in (("4", "B2", 0), ("3", "A1", 1)):
            stick = one.tree.usb(port, "0403", "6001", serial, number=number + 8)
            one.tree.usb_tty(stick, f"ttyUSB{number}", number)
        one.configure(f"resources:\n- {other}\n" + STICK.partition("resources:\n")[2])
        await one.restart()
        await one.shows(2, 2)
        assert before == one.ids()


@story
async def test_demand_29_numa_minus_one_is_left_out(tmp_path: Path) -> None:
    """A NUMA node of -1 is no topology; real nodes are passed on."""
    text = f"""
resources:
- {{name: {NAME}, pci: [{{vendor: "10de"}}], scanInterval: 0.1}}
- {{name: example.com/flat, pci: [{{vendor: "8086"}}], scanInterval: 0.1}}
"""
    async with host(tmp_path, text) as one:
        kind = {"device": "0x1234", "class": "0x030200"}
        one.tree.pci("0000:3b:00.0", {"vendor": "0x10de", "numa_node": "0", **kind}, driver="vfio-pci", group="1")
        one.tree.pci("0000:5e:00.0", {"vendor": "0x10de", "numa_node": "1", **kind}, driver="vfio-pci", group="2")
        one.tree.pci("0000:00:02.0", {"vendor": "0x8086", "numa_node": "-1", **kind}, driver="vfio-pci", group="3")
        await one.start()
        await one.shows(2, 2)
        await one.shows(1, 1, "example.com/flat")
        listed = one.kubelet.devices.listed
        assert [(0,), (1,)] == sorted(listed[NAME].numa.values())
        assert [()] == list(listed["example.com/flat"].numa.values())


@story
async def test_demand_30_several_nodes_are_one_device(tmp_path: Path) -> None:
    """A group is one device with all its nodes; an optional member may miss, a required one makes it unhealthy."""
    text = f"""
resources:
- name: {NAME}
  groups:
  - paths:
    - path: /dev/snd/pcm
    - path: /dev/snd/control
    - {{path: /dev/snd/seq, optional: true}}
  scanInterval: 0.1
"""
    async with host(tmp_path, text) as one:
        one.tree.node("snd/pcm", 116, 2)
        one.tree.node("snd/control", 116, 3)
        await one.start()
        await one.shows(1, 1)
        assert ["/dev/snd/control", "/dev/snd/pcm"] == sorted(path for path, _ in await one.nodes("first"))
        one.kubelet.pods.delete("first")
        one.tree.node("snd/seq", 116, 1)

        async def three() -> bool:
            got = await one.nodes("second")
            one.kubelet.pods.delete("second")
            return len(got) == 3

        for _ in range(50):
            if await three():
                break
            await asyncio.sleep(0.1)
        else:
            raise AssertionError("the optional member was not picked up")
        one.tree.remove("snd/control")
        await one.shows(1, 0)
        with pytest.raises(AdmissionError, match="no healthy devices present"):
            await one.nodes("third")


def test_demand_10_a_list_too_large_is_refused_by_check(tmp_path: Path) -> None:
    """A counter beyond the kubelet's limit is refused with its size and the largest number that fits."""
    path = tmp_path / "config.yaml"
    path.write_text(f"folders: {{plugins: {tmp_path}}}\nresources: [{{name: {NAME}, counter: 200000}}]\n")
    with pytest.raises(ConfigError, match=r"200000 devices make a list of up to 5600000 bytes.*at most 146051 devices"):
        load_config(str(path))
