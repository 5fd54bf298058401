"""The configuration, described once: its keys, what their values may be, what they are for, what holds without them.

Words of squat/generic-device-plugin (`groups`, `paths`, `usb`, `count`, `mountPath`, `limit`, ...) mean here what they
mean there (specification, kubernetes 5), with three differences: `permissions` is `rw` unless told otherwise, mounts
are read-only, and several equal USB devices are several devices.
"""

from __future__ import annotations

from resource_extend.kubernetes.config import checks
from resource_extend.kubernetes.config.kinds import Choice, Count, Flag, Hex, Key, ListOf, MapOf, Seconds, Section, Text
from resource_extend.kubernetes.devices.allocation import LISTINGS, POLICIES
from resource_extend.kubernetes.devices.identity import REPLICA_LIMIT
from resource_extend.kubernetes.devices.paths import DEVICE, MOUNT, NOW, RUNTIME

ABSOLUTE = Text(checks.absolute, "^/")
TEMPLATE = Text(checks.template, number=True)
ALIAS = Text(checks.alias, "^/")
COMMAND = ListOf(Text(checks.word, number=True), 1)
PERMISSIONS = Text(checks.permissions, "^[rwm]{1,3}$")

_MEMBER = {
    "mountPath": Key(ALIAS, "Path in the container; a template. The host's own path when left out.", ""),
    "permissions": Key(PERMISSIONS, "What the container may do with the node: r(ead), w(rite), m(knod).", "rw"),
    "limit": Key(Count(1, REPLICA_LIMIT), "In how many devices of the group one match may be used."),
    "optional": Key(Flag(), "Devices are complete without it.", False),
}
_NODES = {
    "nodes": Key(
        ListOf(Text(checks.word)),
        "Kernel classes (tty, video4linux, hidraw, input, sound, usb, ...) of the device nodes to hand out. All when "
        "left out.",
    ),
}

PATH = Section(
    {
        "path": Key(Text(checks.glob, "^/"), "Path or glob of the host."),
        "regex": Key(Text(checks.regex, "^/"), "Regular expression that the whole path of the host must match."),
        "type": Key(Choice((DEVICE, MOUNT)), "A device node, or a file or folder to mount.", DEVICE),
        "readOnly": Key(Flag(), "Mount it read-only.", True),
        "resolve": Key(
            Choice((RUNTIME, NOW)),
            "Who follows a link: the container runtime at each start of a container, or the plugin at each scan.",
            RUNTIME,
        ),
        "shared": Key(Flag(), "The node is handed out by other resources too, on purpose.", False),
        **_MEMBER,
    },
    one_of=("path", "regex"),
)
USB = Section(
    {
        "vendor": Key(Hex((4,)), "USB vendor id."),
        "product": Key(Hex((4,)), "USB product id. Any when left out.", ""),
        "serial": Key(Text(checks.word, number=True), "Serial number. Any when left out.", ""),
        **_NODES,
        **_MEMBER,
    },
    required=("vendor",),
)
PCI = Section(
    {
        "vendor": Key(Hex((4,)), "PCI vendor id.", ""),
        "device": Key(Hex((4,)), "PCI device id.", ""),
        "class": Key(Hex((2, 4, 6)), "PCI class, with or without its last two or four digits.", ""),
        "driver": Key(Text(checks.word), "Kernel driver that the function is bound to, such as vfio-pci.", ""),
        "address": Key(Text(checks.word), "Glob of the address, as in 0000:3b:*.", ""),
        **_NODES,
        **_MEMBER,
    },
    some_of=("vendor", "device", "class", "driver", "address"),
)
SYSFS = Section(
    {
        "subsystem": Key(Text(checks.folder), "Kernel class or bus, such as tty."),
        "name": Key(Text(checks.word), "Glob of the kernel's name of the device.", ""),
        "attributes": Key(
            MapOf(Text(checks.attribute), Text(checks.word, number=True)),
            "sysfs attributes of the device or of one above it, with globs of their values.",
            (),
        ),
        **_NODES,
        **_MEMBER,
    },
    required=("subsystem",),
)
SOURCE_COMMAND = Section(
    {
        "command": Key(COMMAND, "Program and arguments. It prints one JSON object a line for each device."),
        "timeout": Key(Seconds(0.1, 300), "When it is killed.", 10.0),
    },
    required=("command",),
)
OVERRIDE = Section(
    {
        "device": Key(Text(checks.word), "Glob of the device's identity, path or match."),
        "count": Key(Count(0, REPLICA_LIMIT), "Replicas of these devices."),
    },
    required=("device", "count"),
)

LEADERS = ("usb", "pci", "sysfs", "counter", "command")
SOURCES = ("paths", *LEADERS)
_OUTPUT = {
    "count": Key(Count(1, REPLICA_LIMIT), "Replicas: how many containers may have one device at the same time."),
    "counts": Key(ListOf(OVERRIDE), "Other numbers of replicas for some devices; the first that matches counts."),
    "env": Key(MapOf(Text(checks.env_key, checks.ENV_KEY), TEMPLATE), "Environment variables; templates.", ()),
    "annotations": Key(MapOf(Text(checks.word), TEMPLATE), "Annotations for the container runtime; templates.", ()),
    "cdiNames": Key(ListOf(Text(checks.template)), "CDI names to add to the answer; templates.", ()),
}
_SOURCES = {
    "paths": Key(ListOf(PATH, 1), "Device nodes and mounts by path."),
    "usb": Key(ListOf(USB, 1), "USB devices by vendor, product and serial number."),
    "pci": Key(ListOf(PCI, 1), "PCI functions by vendor, device and class; with vfio-pci by IOMMU group."),
    "sysfs": Key(ListOf(SYSFS, 1), "Devices by kernel class and sysfs attributes."),
    "counter": Key(Count(1, 1_000_000), "This many devices with nothing behind them."),
    "command": Key(SOURCE_COMMAND, "Devices that a command lists."),
}
GROUP = Section({**_SOURCES, **_OUTPUT}, some_of=SOURCES)

HEALTH = Section(
    {
        "command": Key(COMMAND, "Program and arguments (templates) for each device; exit status 0: it is well."),
        "interval": Key(Seconds(1, 86400), "Time between two checks of a device.", 30.0),
        "timeout": Key(Seconds(0.1, 300), "When a check is killed and counts as failed.", 5.0),
        "failures": Key(Count(1, 100), "So many failed checks among the last `window` make a device unhealthy.", 1),
        "window": Key(Count(1, 100), "The number of checks looked at; `failures` when left out."),
        "recovery": Key(Count(1, 100), "So many good checks, or scans, in a row make it healthy again.", 1),
    }
)
PRE_START = Section(
    {
        "command": Key(COMMAND, "Program and arguments, run before each start of a container."),
        "timeout": Key(Seconds(0.1, 25), "When it is killed; the kubelet gives up after 30s.", 10.0),
    },
    required=("command",),
)
RELEASE = Section(
    {
        "command": Key(COMMAND, "Program and arguments, run once after a pod let go of a device."),
        "timeout": Key(Seconds(0.1, 300), "When it is killed.", 10.0),
    },
    required=("command",),
)

RESOURCE = Section(
    {
        "name": Key(Text(checks.word), "DOMAIN/NAME, or NAME when `domain` is set."),
        "groups": Key(
            ListOf(GROUP, 1), "Kinds of devices of this resource, when one kind written directly here is not enough."
        ),
        **_SOURCES,
        **_OUTPUT,
        "allocationPolicy": Key(
            Choice(POLICIES), "Which devices the kubelet is advised to take. `spread` with replicas, else `none`."
        ),
        "single": Key(Flag(), "A container may not have two replicas of one device.", False),
        "nameSuffix": Key(Text(checks.suffix), "Added to the name, as in .shared.", ""),
        "shared": Key(Flag(), "Its devices are in other resources too, on purpose.", False),
        "numa": Key(Flag(), "Tell the kubelet the NUMA nodes.", True),
        "envListing": Key(
            Choice(LISTINGS), "How the environment lists the devices of a container, in keys made of the name.", "list"
        ),
        "cdiSpec": Key(Flag(), "Write a CDI spec file, and answer with its names instead of nodes and mounts.", False),
        "scanInterval": Key(Seconds(0.1, 3600), "Time between two scans. 3s; 30s with a `command`."),
        "health": Key(HEALTH, "Health checks beyond being there."),
        "preStart": Key(PRE_START, "Hook before each start of a container."),
        "release": Key(RELEASE, "Hook after a pod let go of a device; needs `folders.podResources`."),
    },
    required=("name",),
    some_of=("groups", *SOURCES),
)

ROOTS = Section(
    {
        "dev": Key(ABSOLUTE, "Where the host's /dev is seen.", "/dev"),
        "sys": Key(ABSOLUTE, "Where the host's /sys is seen.", "/sys"),
    }
)
FOLDERS = Section(
    {
        "plugins": Key(ABSOLUTE, "The kubelet's device plugin folder.", "/var/lib/kubelet/device-plugins"),
        "registry": Key(ABSOLUTE, "The kubelet's plugins_registry, to be found there instead of registering.", ""),
        "registryHost": Key(ABSOLUTE, "The same folder as the kubelet sees it; `registry` when left out.", ""),
        "podResources": Key(ABSOLUTE, "The kubelet's pod resources socket, to know which devices pods hold.", ""),
        "cdi": Key(ABSOLUTE, "Folder of CDI spec files.", "/var/run/cdi"),
        "state": Key(ABSOLUTE, "File that remembers held devices for `release`; in `plugins` when left out.", ""),
    }
)
TOP = Section(
    {
        "domain": Key(Text(checks.domain), "Domain of names written without one.", ""),
        "resources": Key(ListOf(RESOURCE, 1), "The extended resources to offer."),
        "devices": Key(ListOf(RESOURCE, 1), "Another word for `resources`."),
        "roots": Key(ROOTS, "Where the host's folders are seen."),
        "folders": Key(FOLDERS, "Folders that differ between clusters."),
        "listen": Key(Text(checks.listen), "HOST:PORT or unix:/PATH of metrics and probes; none when left out.", ""),
        "logFormat": Key(Choice(("text", "json")), "How log lines look.", "text"),
    },
    one_of=("resources", "devices"),
)
