"""Made-up `/dev` and `/sys` trees with real device nodes, for tests of device discovery."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Mapping
from pathlib import Path

import pytest

from resource_extend.kubernetes.model import Roots


def _can_make_nodes() -> bool:
    path = Path("/dev/shm") / f"resource-extend-probe-{os.getpid()}"
    try:
        os.mknod(path, 0o600 | stat.S_IFCHR, os.makedev(1, 3))
    except OSError:
        return False
    path.unlink()
    return True


needs_device_nodes = pytest.mark.skipif(not _can_make_nodes(), reason="needs the right to make device nodes (root)")

CONTROLLER = "pci0000:00/0000:00:14.0"


class DeviceTree:
    """A host's `/dev` and `/sys` below a temporary folder."""

    def __init__(self, base: Path) -> None:
        self.dev = base / "dev"
        self.sys = base / "sys"
        for folder in (self.dev, self.sys / "devices", self.sys / "dev/char", self.sys / "dev/block"):
            folder.mkdir(parents=True, exist_ok=True)

    @property
    def roots(self) -> Roots:
        """Where the tree is."""
        return Roots(str(self.dev), str(self.sys))

    def node(self, name: str, major: int = 188, minor: int = 0, *, block: bool = False) -> None:
        """Make a device node, in place of what is there."""
        path = self.dev / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        os.mknod(path, 0o660 | (stat.S_IFBLK if block else stat.S_IFCHR), os.makedev(major, minor))

    def link(self, name: str, target: str) -> None:
        """Make a link below /dev, in place of what is there."""
        path = self.dev / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        path.symlink_to(target)

    def file(self, name: str) -> None:
        """Make an ordinary file below /dev."""
        path = self.dev / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")

    def remove(self, name: str) -> None:
        """Remove something below /dev."""
        (self.dev / name).unlink()

    def count_event(self) -> None:
        """Count a device event, as the kernel does for each that comes or goes."""
        path = self.sys / "kernel/uevent_seqnum"
        path.parent.mkdir(parents=True, exist_ok=True)
        number = int(path.read_text()) if path.exists() else 0
        path.write_text(f"{number + 1}\n")

    def device(self, path: str, subsystem: str = "", attributes: Mapping[str, str] | None = None) -> Path:
        """Make the folder of a device in sysfs, `path` below `/sys/devices`."""
        folder = self.sys / "devices" / path
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in (attributes or {}).items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(f"{text}\n")
        if subsystem:
            for place in (self.sys / "class" / subsystem, self.sys / "bus" / subsystem / "devices"):
                place.mkdir(parents=True, exist_ok=True)
            self._link(folder / "subsystem", self.sys / "class" / subsystem)
        return folder

    def class_node(
        self,
        path: str,
        subsystem: str,
        name: str,
        major: int,
        minor: int,
        *,
        block: bool = False,
        missing: bool = False,
    ) -> Path:
        """Make a device with a node, in sysfs and (unless `missing`) in `/dev`."""
        folder = self.device(path, subsystem, {"dev": f"{major}:{minor}"})
        (folder / "uevent").write_text(f"MAJOR={major}\nMINOR={minor}\nDEVNAME={name}\n")
        self._link(self.sys / "class" / subsystem / folder.name, folder)
        self._link(self.sys / "dev" / ("block" if block else "char") / f"{major}:{minor}", folder)
        if not missing:
            self.node(name, major, minor, block=block)
        return folder

    def usb(
        self,
        port: str,
        vendor: str,
        product: str,
        serial: str = "",
        *,
        number: int = 2,
        bus: int = 1,
        controller: str = CONTROLLER,
        numa: str = "",
    ) -> str:
        """Plug a USB device into `port` (as in "1" or "2.4"). Gives its path below `/sys/devices`."""
        if numa:
            self.device(controller, "", {"numa_node": numa})
        self.device(f"{controller}/usb{bus}", "", {"idVendor": "1d6b", "idProduct": "0002"})
        path = f"{controller}/usb{bus}"
        for hub in range(1, len(port.split("."))):
            path += f"/{bus}-{'.'.join(port.split('.')[:hub])}"
        path += f"/{bus}-{port}"
        attributes = {"idVendor": vendor, "idProduct": product, "devpath": port}
        attributes |= {"busnum": str(bus), "devnum": str(number)} | ({"serial": serial} if serial else {})
        minor = (bus - 1) * 128 + number - 1
        folder = self.class_node(path, "usb", f"bus/usb/{bus:03}/{number:03}", 189, minor)
        for name, text in attributes.items():
            (folder / name).write_text(f"{text}\n")
        self._link(self.sys / "bus/usb/devices" / folder.name, folder)
        self.count_event()
        return path

    def usb_tty(self, device: str, name: str, minor: int, *, interface: str = "00", missing: bool = False) -> None:
        """Give a USB device a serial port."""
        port = device.rpartition("/")[2]
        at = f"{device}/{port}:1.{int(interface, 16)}"
        self.device(at, "usb", {"bInterfaceNumber": interface})
        self.class_node(f"{at}/{name}/tty/{name}", "tty", name, 188, minor, missing=missing)
        self.count_event()

    def unplug(self, device: str) -> None:
        """Take a device out of sysfs and its nodes out of `/dev`."""
        folder = self.sys / "devices" / device
        for event in folder.rglob("uevent"):
            name = next((line[8:] for line in event.read_text().splitlines() if line.startswith("DEVNAME=")), "")
            (self.dev / name).unlink(missing_ok=True)
        shutil.rmtree(folder)
        (self.sys / "bus/usb/devices" / folder.name).unlink(missing_ok=True)
        self.count_event()

    def pci(self, address: str, attributes: Mapping[str, str], *, driver: str = "", group: str = "") -> str:
        """Make a PCI function. Gives its path below `/sys/devices`."""
        path = f"pci0000:00/{address}"
        folder = self.device(path, "", attributes)
        (self.sys / "bus/pci/devices").mkdir(parents=True, exist_ok=True)
        self._link(self.sys / "bus/pci/devices" / address, folder)
        if driver:
            place = self.sys / "bus/pci/drivers" / driver
            place.mkdir(parents=True, exist_ok=True)
            self._link(folder / "driver", place)
        if group:
            place = self.sys / "kernel/iommu_groups" / group / "devices"
            place.mkdir(parents=True, exist_ok=True)
            self._link(place / address, folder)
            self._link(folder / "iommu_group", place.parent)
            self.node(f"vfio/{group}", 240, int(group))
            self.node("vfio/vfio", 10, 196)
        self.count_event()
        return path

    def _link(self, link: Path, target: Path) -> None:
        """Make a relative link, as sysfs does."""
        link.unlink(missing_ok=True)
        link.symlink_to(os.path.relpath(target, link.parent))
