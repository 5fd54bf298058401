"""The examples of the device plugin: each loads, and finds what it is meant to find on a made-up host."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from resource_extend.kubernetes.config import load_config
from resource_extend.kubernetes.devices.allocation import combine
from resource_extend.kubernetes.devices.command import parse_line
from resource_extend.kubernetes.model import Device, DeviceAnswer
from support.device_tree import DeviceTree, needs_device_nodes

FOLDER = Path(__file__).parents[2] / "examples/device-plugin"
CONFIGURATIONS = sorted(FOLDER.glob("*.yaml"))

T4 = """Model: \t\t Tesla T4
IRQ:   \t\t 65
GPU UUID: \t GPU-6c1e2a8f-0f3b-4d1c-9a57-0d9b1c2e3f40
Bus Type: \t PCIe
Bus Location: \t 0000:3b:00.0
Device Minor: \t 1
"""


def _offered(name: str, tree: DeviceTree) -> dict[str, tuple[list[Device], DeviceAnswer]]:
    """Give the devices of each resource of an example, and what a container gets with the first of them."""
    config = load_config(str(FOLDER / name))
    offered = {}
    for resource in config.resources:
        source = resource.source.open(resource.name, tree.roots)
        devices = asyncio.run(source.scan(frozenset(), 0.0))
        offered[resource.name] = (devices, combine(resource, devices[:1]))
    return offered


@pytest.mark.parametrize("path", CONFIGURATIONS, ids=lambda path: path.name)
def test_loads(path: Path) -> None:
    """Every example is a good configuration."""
    assert load_config(str(path)).resources


def test_counter(tmp_path: Path) -> None:
    """The tutorial's resource has two devices."""
    devices, _ = _offered("counter.yaml", DeviceTree(tmp_path))["example.com/resource"]

    assert [True, True] == [device.healthy for device in devices]


@needs_device_nodes
def test_kvm_and_fuse(tmp_path: Path) -> None:
    """Each node is offered a hundred times; one that the host does not have is not offered."""
    tree = DeviceTree(tmp_path)
    tree.node("kvm", 10, 232)
    tree.node("fuse", 10, 229)

    offered = _offered("kvm-fuse.yaml", tree)

    assert [100, 100, 0] == [len(devices) for devices, _ in offered.values()]
    assert ["/dev/kvm"] == [node.container_path for node in offered["example.com/kvm"][1].nodes]


@needs_device_nodes
def test_usb_serial(tmp_path: Path) -> None:
    """A container finds each port under the name that does not change."""
    tree = DeviceTree(tmp_path)
    tree.usb_tty(tree.usb("1", "0403", "6001", "A50285BI", number=2), "ttyUSB3", 3)
    tree.node("ttyACM0", 166, 0)
    tree.link("serial/by-id/usb-Arduino__www.arduino.cc__0043_1-if00", "../../ttyACM0")
    tree.node("snd/pcmC1D0c", 116, 3)
    tree.node("snd/controlC1", 116, 4)

    offered = _offered("usb-serial.yaml", tree)

    modem, arduino, microphone = (answer for _, answer in offered.values())
    assert [("/dev/ttyUSB3", "/dev/modem")] == [(node.host_path, node.container_path) for node in modem.nodes]
    assert ["/dev/arduino"] == [node.container_path for node in arduino.nodes]
    assert ["/dev/snd/pcmC1D0c", "/dev/snd/controlC1"] == [node.host_path for node in microphone.nodes]


def _cards(product: str, tmp_path: Path) -> list[str]:
    program = [sys.executable, str(FOLDER / "nvidia_cards.py"), product, str(tmp_path / "proc"), str(tmp_path / "sys")]
    return subprocess.run(program, capture_output=True, text=True, check=True).stdout.splitlines()


def test_nvidia_cards_by_product(tmp_path: Path) -> None:
    """The listing program names the cards of one product with node, UUID and NUMA node, and nobody else's."""
    for address, text in (("0000:3b:00.0", T4), ("0000:af:00.0", T4.replace("Tesla T4", "NVIDIA A100-SXM4-40GB"))):
        folder = tmp_path / "proc/driver/nvidia/gpus" / address
        folder.mkdir(parents=True)
        (folder / "information").write_text(text)
        place = tmp_path / "sys/bus/pci/devices" / address
        place.mkdir(parents=True)
        (place / "numa_node").write_text("1\n")

    (line,) = _cards("Tesla T4", tmp_path)
    card = parse_line(line, "line")

    assert "GPU-6c1e2a8f-0f3b-4d1c-9a57-0d9b1c2e3f40" == card.text == card.identity.name
    assert (1,) == card.numa
    assert [("/dev/nvidia1", False), ("/dev/nvidiactl", True)] == [(n.host_path, n.shared) for n in card.nodes[:2]]
    assert [] == _cards("Tesla P4", tmp_path)


def test_nvidia_configuration_calls_the_program(tmp_path: Path) -> None:
    """Each product's command is the listing program with the product's name, and its answer tells the UUID."""
    text = yaml.safe_load((FOLDER / "nvidia.yaml").read_text())
    commands = [resource["command"]["command"] for resource in text["resources"]]
    line = tmp_path / "line"
    line.write_text(json.dumps({"id": "GPU-1", "match": "GPU-1"}))
    text["resources"][0]["command"]["command"] = ["cat", str(line)]
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(text))
    resource = load_config(str(tmp_path / "config.yaml")).resources[0]
    devices = asyncio.run(resource.source.open(resource.name, DeviceTree(tmp_path).roots).scan(frozenset(), 0.0))

    assert [["Tesla T4"], ["NVIDIA A100-SXM4-40GB"]] == [command[2:] for command in commands]
    assert {"nvidia_cards.py"} == {Path(command[1]).name for command in commands}
    assert ("NVIDIA_VISIBLE_DEVICES", "GPU-1") in combine(resource, devices).env


@pytest.mark.parametrize("path", sorted(FOLDER.glob("pods/*.yaml")), ids=lambda path: path.name)
def test_pods_ask_for_what_is_offered(path: Path) -> None:
    """The resource that an example pod asks for is in an example configuration."""
    names = {resource.name for each in CONFIGURATIONS for resource in load_config(str(each)).resources}
    pod = yaml.safe_load(path.read_text())

    assert set(pod["spec"]["containers"][0]["resources"]["limits"]) <= names
