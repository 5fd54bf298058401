"""PCI functions, devices by sysfs attributes, disks: selection, nodes, identity, NUMA."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from support.device_tree import DeviceTree, needs_device_nodes

pytestmark = needs_device_nodes
Scan = Callable[[str], Any]

GPU = {"vendor": "0x10de", "device": "0x1eb8", "class": "0x030200", "numa_node": "1"}
NIC = {"vendor": "0x8086", "device": "0x1572", "class": "0x020000", "numa_node": "-1"}


def paths(answer: Any) -> list[str]:
    """Give the host path of each node."""
    return [node.host_path for node in answer.nodes]


def test_pci_functions_by_vendor_device_and_class(tree: DeviceTree, scanner: Scan) -> None:
    """Vendor, device and class select; the address identifies; a function without nodes can still be counted."""
    tree.pci("0000:00:05.0", GPU)
    tree.pci("0000:00:06.0", GPU | {"class": "0x030000"})
    tree.pci("0000:00:07.0", NIC)
    one = scanner(
        'resources: [{name: example.com/gpu, pci: [{vendor: "0x10DE", class: "0302"}], env: {CARD: "{match}"}}]'
    )

    (device,) = one.scan()

    assert "pci-0000-00-05.0" == device.id.partition("-")[2]
    assert (1,) == device.numa
    assert ("CARD", "0000:00:05.0") in one.answer(device).env


def test_pci_function_with_nodes_of_its_driver(tree: DeviceTree, scanner: Scan) -> None:
    """What a driver made in /dev is handed out; kernel classes limit it."""
    path = tree.pci("0000:00:05.0", GPU, driver="i915")
    tree.class_node(f"{path}/drm/card0", "drm", "dri/card0", 226, 0)
    tree.class_node(f"{path}/drm/renderD128", "drm", "dri/renderD128", 226, 128)
    one = scanner("resources: [{name: example.com/gpu, pci: [{driver: i915}]}]")
    by_path = scanner("resources: [{name: example.com/gpu, paths: [{path: '/dev/dri/renderD*'}]}]")

    assert ["/dev/dri/card0", "/dev/dri/renderD128"] == paths(one.answer(*one.scan()))
    assert ["pci-0000-00-05.0-drm-1"] == [device.id.partition("-")[2] for device in by_path.scan()]
    assert [(1,)] == [device.numa for device in by_path.scan()]


def test_vfio_group_is_handed_out_as_a_whole(tree: DeviceTree, scanner: Scan) -> None:
    """Two functions of one IOMMU group are one device with the group's node and the common one."""
    for function in ("0", "1"):
        tree.pci(f"0000:00:05.{function}", NIC, driver="vfio-pci", group="17")
    tree.pci("0000:00:06.0", NIC, driver="vfio-pci", group="18")
    one = scanner("resources: [{name: example.com/nic, pci: [{vendor: 8086, device: 1572}]}]")

    devices = one.scan()

    assert [["/dev/vfio/17", "/dev/vfio/vfio"], ["/dev/vfio/18", "/dev/vfio/vfio"]] == [
        paths(one.answer(device)) for device in devices
    ]
    assert ["/dev/vfio/17", "/dev/vfio/18", "/dev/vfio/vfio"] == sorted(paths(one.answer(*devices)))
    assert [(), ()] == [device.numa for device in devices]


def test_vfio_group_with_a_function_of_another_driver(tree: DeviceTree, scanner: Scan) -> None:
    """A group that another driver uses a part of cannot be used: unhealthy, and the reason names the driver."""
    tree.pci("0000:00:05.0", NIC, driver="vfio-pci", group="17")
    tree.pci("0000:00:05.1", NIC, driver="i40e", group="17")
    one = scanner("resources: [{name: example.com/nic, pci: [{driver: vfio-pci}]}]")

    assert ["0000:00:05.1 of its IOMMU group 17 is bound to i40e"] == [device.reason for device in one.scan()]
    tree.pci("0000:00:05.1", NIC, driver="pci-stub", group="17")
    assert [True] == [device.healthy for device in one.scan()]


def test_address_is_a_glob(tree: DeviceTree, scanner: Scan) -> None:
    """Functions can be selected by where they are."""
    tree.pci("0000:00:05.0", NIC)
    tree.pci("0000:00:06.0", NIC)
    one = scanner('resources: [{name: example.com/nic, pci: [{address: "0000:00:06.*"}]}]')

    assert ["pci-0000-00-06.0"] == [device.id.partition("-")[2] for device in one.scan()]


def test_devices_by_sysfs_attributes(tree: DeviceTree, scanner: Scan) -> None:
    """Attributes may be the device's own or those of one above it, and are globs."""
    for port, product in (("1", "FT232R USB UART"), ("2", "Other")):
        stick = tree.usb(port, "0403", "6001", f"S{port}", number=int(port) + 1)
        tree.device(stick, "", {"product": product})
        tree.usb_tty(stick, f"ttyUSB{port}", int(port))
    one = scanner("""
resources:
  - name: example.com/a
    sysfs:
      - subsystem: tty
        name: "ttyUSB*"
        attributes: {product: "FT232R*", idVendor: 0403}
        mountPath: "/dev/{match}-serial"
""")

    (device,) = one.scan()

    assert "usb-0403-6001-S1-if00-tty-0" == device.id.partition("-")[2]
    assert [("/dev/ttyUSB1", "/dev/ttyUSB1-serial")] == [
        (n.host_path, n.container_path) for n in one.answer(device).nodes
    ]


def test_class_that_does_not_exist(tree: DeviceTree, scanner: Scan) -> None:
    """A kernel class without devices is an empty list."""
    assert [] == scanner("resources: [{name: example.com/a, sysfs: [{subsystem: nvme}]}]").scan()
    assert [] == scanner("resources: [{name: example.com/a, pci: [{vendor: 8086}]}]").scan()
    assert [] == scanner("resources: [{name: example.com/a, usb: [{vendor: 8086}]}]").scan()


def test_disks_are_identified_by_their_own_name(tree: DeviceTree, scanner: Scan) -> None:
    """A disk is known by its world wide name, a partition by its disk's, whatever letter the kernel gave it."""
    path = tree.pci("0000:00:05.0", {"vendor": "0x8086", "device": "0x0001", "class": "0x010601"})
    disk = f"{path}/ata1/host0/target0:0:0/0:0:0:0/block/sdb"
    tree.class_node(disk, "block", "sdb", 8, 16, block=True)
    tree.device(f"{path}/ata1/host0/target0:0:0/0:0:0:0", "", {"wwid": "naa.5000c500a1b2c3d4"})
    folder = tree.class_node(f"{disk}/sdb1", "block", "sdb1", 8, 17, block=True)
    (folder / "partition").write_text("1\n")
    (tree.sys / "devices" / disk / "device").symlink_to("../..")
    one = scanner("resources: [{name: example.com/disk, paths: [{path: '/dev/sd*'}]}]")

    assert ["disk-naa.5000c500a1b2c3d4", "disk-naa.5000c500a1b2c3d4-part1"] == [
        device.id.partition("-")[2] for device in one.scan()
    ]


def test_virtual_devices_are_identified_by_their_path(tree: DeviceTree, scanner: Scan) -> None:
    """What has no hardware, as /dev/net/tun, is known by its path."""
    tree.class_node("virtual/misc/tun", "misc", "net/tun", 10, 200)
    one = scanner("resources: [{name: example.com/tun, paths: [{path: /dev/net/tun}]}]")

    assert ["net.tun"] == [device.id.partition("-")[2] for device in one.scan()]


def test_two_parents_are_two_numa_nodes(tree: DeviceTree, scanner: Scan) -> None:
    """A group whose members are near two NUMA nodes is near both."""
    tree.pci("0000:00:05.0", GPU | {"numa_node": "1"})
    tree.pci("0000:00:06.0", NIC | {"numa_node": "0"})
    one = scanner('resources: [{name: example.com/a, pci: [{vendor: "10de"}, {vendor: "8086"}]}]')

    assert [(0, 1)] == [device.numa for device in one.scan()]
