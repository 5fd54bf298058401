"""USB devices: which ones, with which nodes, under which identity."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from support.device_tree import DeviceTree, needs_device_nodes

pytestmark = needs_device_nodes
Scan = Callable[[str], Any]

FTDI = 'resources: [{name: example.com/a, usb: [{vendor: "0403", product: "6001"}]}]'
FTDI_TTY = (
    "resources: [{name: example.com/a, usb: [{vendor: 0403, product: 6001, nodes: [tty], mountPath: /dev/modem}]}]"
)


def paths(answer: Any) -> list[str]:
    """Give the host path of each node."""
    return [node.host_path for node in answer.nodes]


def identities(devices: list[Any]) -> list[str]:
    """Give the ids without the resource's hash."""
    return [device.id.partition("-")[2] for device in devices]


def test_device_comes_with_the_nodes_of_its_drivers(tree: DeviceTree, scanner: Scan) -> None:
    """Vendor and product select the raw USB node and the serial port that the driver made."""
    stick = tree.usb("1", "0403", "6001", "A50285BI", number=7)
    tree.usb_tty(stick, "ttyUSB0", 0)
    tree.usb("2", "1a86", "7523", number=8)
    one = scanner(FTDI)

    devices = one.scan()

    assert ["usb-0403-6001-A50285BI"] == identities(devices)
    assert ["/dev/bus/usb/001/007", "/dev/ttyUSB0"] == paths(one.answer(*devices))


def test_several_equal_sticks_are_several_devices(tree: DeviceTree, scanner: Scan) -> None:
    """Each stick is a device of its own, with its own nodes and a stable alias in the container."""
    for port, serial in (("1", "B"), ("2.4", "A")):
        stick = tree.usb(port, "0403", "6001", serial, number=int(port[0]) + 1)
        tree.usb_tty(stick, f"ttyUSB{port[0]}", int(port[0]))
    one = scanner(FTDI_TTY)

    devices = one.scan()

    assert ["usb-0403-6001-A", "usb-0403-6001-B"] == identities(devices)
    assert [["/dev/ttyUSB2"], ["/dev/ttyUSB1"]] == [paths(one.answer(device)) for device in devices]
    assert [["/dev/modem"]] * 2 == [[n.container_path for n in one.answer(device).nodes] for device in devices]
    both = one.answer(*devices)
    assert ["/dev/modem", "/dev/modem-1"] == [node.container_path for node in both.nodes]


def test_serial_number_selects(tree: DeviceTree, scanner: Scan) -> None:
    """With a serial number only that stick is meant; digits need no quotes."""
    tree.usb("1", "1209", "000f", "00000001", number=2)
    tree.usb("2", "1209", "000f", "00000002", number=3)
    one = scanner("resources: [{name: example.com/a, usb: [{vendor: 1209, product: 000F, serial: 00000002}]}]")

    assert ["usb-1209-000f-00000002"] == identities(one.scan())


def test_identity_survives_another_tty_number(tree: DeviceTree, scanner: Scan) -> None:
    """The id is the same after a reboot that gave the stick another number and another bus address."""
    stick = tree.usb("1", "0403", "6001", "A", number=2)
    tree.usb_tty(stick, "ttyUSB0", 0)
    before = scanner(FTDI).scan()
    by_path = scanner("resources: [{name: example.com/a, paths: [{path: /dev/ttyUSB*}]}]").scan()
    tree.unplug(stick)
    stick = tree.usb("1", "0403", "6001", "A", number=9)
    tree.usb_tty(stick, "ttyUSB4", 4)

    assert identities(before) == identities(scanner(FTDI).scan())
    again = scanner("resources: [{name: example.com/a, paths: [{path: /dev/ttyUSB*}]}]").scan()
    assert identities(by_path) == identities(again) == ["usb-0403-6001-A-if00-tty-0"]


def test_without_serial_number_the_port_identifies(tree: DeviceTree, scanner: Scan) -> None:
    """A stick without serial number is known by its controller and port, not by its bus number."""
    tree.usb("2.4", "0403", "6001", number=5)

    assert ["usb-0403-6001-0000-00-14.0-usb0-2.4"] == identities(scanner(FTDI).scan())


def test_equal_serial_numbers_are_told_apart(tree: DeviceTree, scanner: Scan) -> None:
    """Of two sticks with the same serial number the first keeps its id, whichever port the second is plugged into."""
    tree.usb("3", "0403", "6001", "0001", number=2)
    one = scanner(FTDI)
    first = one.scan()
    tree.usb("1", "0403", "6001", "0001", number=3)

    both = one.scan()

    assert ["usb-0403-6001-0001"] == identities(first)
    assert 2 == len({device.id for device in both})
    assert paths(one.answer(*first)) == paths(one.answer(next(d for d in both if d.id == first[0].id)))


def test_unplugged_and_plugged_again(tree: DeviceTree, scanner: Scan) -> None:
    """Unplugged is unhealthy at the next scan; plugged again is well, for a pod that held it only once it let go."""
    stick = tree.usb("1", "0403", "6001", "A", number=2)
    one = scanner(FTDI)
    device = one.scan()[0]
    tree.unplug(stick)
    gone = one.scan(device.id)[0]
    tree.usb("1", "0403", "6001", "A", number=3)
    held = one.scan(device.id)[0]
    free = one.scan()[0]

    assert [(False, device.id), (False, device.id), (True, device.id)] == [
        (each.healthy, each.id) for each in (gone, held, free)
    ]
    assert "/dev/bus/usb/001/002 was 189:1 and is not among its nodes now" == held.reason


def test_driver_that_is_not_there_yet(tree: DeviceTree, scanner: Scan) -> None:
    """A stick whose wanted node has not come yet is not well, and gets well when the driver made it."""
    stick = tree.usb("1", "0403", "6001", "A")
    one = scanner(FTDI_TTY)

    assert ["it has no node of class tty"] == [device.reason for device in one.scan()]
    tree.usb_tty(stick, "ttyUSB0", 0, missing=True)
    assert ["/dev/ttyUSB0 does not exist"] == [device.reason for device in one.scan()]
    tree.node("ttyUSB0", 188, 0)
    assert [""] == [device.reason for device in one.scan()]


def test_two_interfaces_are_told_apart(tree: DeviceTree, scanner: Scan) -> None:
    """The two ports of one adapter have ids of their own when they are selected by path."""
    stick = tree.usb("1", "0403", "6010", "A")
    tree.usb_tty(stick, "ttyUSB1", 1, interface="01")
    tree.usb_tty(stick, "ttyUSB0", 0, interface="00")
    one = scanner("resources: [{name: example.com/a, paths: [{path: /dev/ttyUSB*}]}]")

    assert ["usb-0403-6010-A-if00-tty-0", "usb-0403-6010-A-if01-tty-0"] == identities(one.scan())


def test_hub_does_not_take_the_nodes_of_what_is_plugged_into_it(tree: DeviceTree, scanner: Scan) -> None:
    """The nodes of a device behind a hub are not the hub's."""
    tree.usb("2", "05e3", "0610", number=2)
    tree.usb_tty(tree.usb("2.1", "0403", "6001", number=3), "ttyUSB0", 0)
    one = scanner('resources: [{name: example.com/a, usb: [{vendor: "05e3"}]}]')

    assert ["/dev/bus/usb/001/002"] == paths(one.answer(*one.scan()))


def test_numa_node_of_the_controller(tree: DeviceTree, scanner: Scan) -> None:
    """A USB device is near the NUMA node of its controller; -1 means that nobody knows and is left out."""
    tree.usb("1", "0403", "6001", "A", number=2, numa="1")
    tree.usb("1", "0403", "6001", "B", number=3, bus=2, controller="pci0000:00/0000:00:1a.0", numa="-1")
    one = scanner(FTDI)
    off = scanner(FTDI.replace("usb:", "numa: false, usb:"))

    assert [(1,), ()] == [device.numa for device in one.scan()]
    assert [(), ()] == [device.numa for device in off.scan()]


def test_sysfs_is_read_again_only_after_a_device_event(tree: DeviceTree, scanner: Scan) -> None:
    """Without a device event nothing in sysfs is read again; nodes are looked at in any case."""
    stick = tree.usb("1", "0403", "6001", "A")
    one = scanner(FTDI)
    first = one.scan()
    (tree.sys / "devices" / stick / "serial").write_text("B\n")

    assert first is one.scan()
    tree.count_event()
    assert "usb-0403-6001-B" in identities(one.scan())


def test_serial_number_that_is_no_text(tree: DeviceTree, scanner: Scan) -> None:
    """A serial number with odd bytes makes an id of plain characters."""
    stick = tree.usb("1", "0403", "6001", "x")
    (tree.sys / "devices" / stick / "serial").write_bytes(b"\xff A/1\n")
    tree.count_event()

    (device,) = scanner(FTDI).scan()

    assert device.id.isascii()
    assert not set(device.id) - set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")


def test_serial_number_does_not_lead_out_of_a_folder(tree: DeviceTree, scanner: Scan) -> None:
    """A stick whose serial number looks like a path gets a harmless place in the container."""
    tree.usb("1", "0403", "6001", "../../etc/x")
    one = scanner("resources: [{name: example.com/a, usb: [{vendor: 0403, mountPath: '/dev/{match}'}]}]")

    assert ["/dev/______etc_x"] == [node.container_path for node in one.answer(*one.scan()).nodes]


def test_members_of_a_group_are_paired(tree: DeviceTree, scanner: Scan) -> None:
    """Two USB entries in one group make one device of both; without one of them there is none."""
    tree.usb("1", "0403", "6001", "A", number=2)
    text = "resources: [{name: example.com/a, groups: [{usb: [{vendor: 0403, product: 6001}, {vendor: 1a86}]}]}]"
    one = scanner(text)

    assert [] == one.scan()
    tree.usb("2", "1a86", "7523", number=3)
    devices = one.scan()
    assert [["/dev/bus/usb/001/002", "/dev/bus/usb/001/003"]] == [paths(one.answer(device)) for device in devices]
