"""Devices by path: globs, expressions, links; what is there, what is not, what it is called."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from resource_extend.errors import InputError
from resource_extend.kubernetes.devices.groups import Group
from resource_extend.kubernetes.devices.match import Match
from resource_extend.kubernetes.devices.paths import PathMember
from resource_extend.kubernetes.devices.pattern import GLOB, REGEX, PathPattern
from resource_extend.kubernetes.devices.source import GroupsConfig
from resource_extend.kubernetes.devices.tree import Tree
from resource_extend.kubernetes.model import Roots
from support.device_tree import DeviceTree, needs_device_nodes

pytestmark = needs_device_nodes
Scan = Callable[[str], Any]

TTYS = "resources: [{name: example.com/tty, paths: [{path: /dev/ttyUSB*}]}]"


def nodes(answer: Any) -> list[tuple[str, str, str]]:
    """Give (host path, container path, permissions) of each node."""
    return [(node.host_path, node.container_path, node.permissions) for node in answer.nodes]


def test_each_match_of_a_glob_is_a_device(tree: DeviceTree, scanner: Scan) -> None:
    """Each device node that a glob matches is a device; it is handed out read-write under its own path."""
    for minor in (0, 1, 10):
        tree.node(f"ttyUSB{minor}", 188, minor)
    tree.node("ttyACM0", 166, 0)
    one = scanner(TTYS)

    devices = one.scan()

    paths = [f"/dev/ttyUSB{minor}" for minor in (0, 1, 10)]
    assert [(path, path, "rw") for path in paths] == sorted(nodes(one.answer(*devices)))
    assert [True] * 3 == [device.healthy for device in devices]
    assert [device.id for device in devices] == sorted(device.id for device in devices)


def test_plugged_after_the_start_is_offered(tree: DeviceTree, scanner: Scan) -> None:
    """Nothing there at first is an empty list; what comes later is found by the next scan."""
    one = scanner(TTYS)

    assert [] == one.scan()
    tree.node("ttyUSB0")
    assert [True] == [device.healthy for device in one.scan()]


def test_unplugged_turns_unhealthy_with_the_next_scan(tree: DeviceTree, scanner: Scan) -> None:
    """A device whose node is gone is listed as unhealthy for a minute, then not at all."""
    tree.node("ttyUSB0")
    one = scanner(TTYS)
    first = one.scan()[0]
    tree.remove("ttyUSB0")

    gone = one.scan()
    later = one.scan(wait=59)
    much_later = one.scan(wait=2)

    assert [(first.id, False, "it is not there any more")] == [(d.id, d.healthy, d.reason) for d in gone]
    assert gone == later
    assert [] == much_later


def test_expression_is_anchored(tree: DeviceTree, scanner: Scan) -> None:
    """A regular expression has to match the whole path: video1 does not mean video10."""
    tree.node("video1", 81, 1)
    tree.node("video10", 81, 10)
    one = scanner("resources: [{name: example.com/video, paths: [{regex: /dev/video1}]}]")
    many = scanner(
        "resources: [{name: example.com/video, paths: [{regex: '/dev/video([0-9]+)', mountPath: '/dev/cam{match}'}]}]"
    )

    assert ["/dev/video1"] == [node[0] for node in nodes(one.answer(*one.scan()))]
    assert ["/dev/cam1", "/dev/cam10"] == sorted(node[1] for node in nodes(many.answer(*many.scan())))


@pytest.mark.parametrize(
    ("kind", "pattern", "found"),
    [
        (GLOB, "/dev/tty*", [("/dev/ttyS0", "S0"), ("/dev/ttyUSB0", "USB0"), ("/dev/ttyUSB1", "USB1")]),
        (GLOB, "/dev/ttyUSB?", [("/dev/ttyUSB0", "0"), ("/dev/ttyUSB1", "1")]),
        (GLOB, "/dev/ttyUSB[1-9]", [("/dev/ttyUSB1", "1")]),
        (GLOB, "/dev/ttyUSB[!1]", [("/dev/ttyUSB0", "0")]),
        (GLOB, "/dev/ttyUSB[^1]", [("/dev/ttyUSB0", "0")]),
        (GLOB, "/dev/*/by-id/*", [("/dev/serial/by-id/usb-A", "serial")]),
        (GLOB, "/dev/serial/by-id/usb-*", [("/dev/serial/by-id/usb-A", "A")]),
        (GLOB, "/dev/ttyS0", [("/dev/ttyS0", "")]),
        (GLOB, "/dev/nothing*", []),
        (GLOB, "/dev/no/such/folder/*", []),
        (GLOB, "/dev/tty.USB0", []),
        (REGEX, "/dev/tty(S|USB)0", [("/dev/ttyS0", "S"), ("/dev/ttyUSB0", "USB")]),
        (REGEX, "/dev/tty.USB0", []),
        (REGEX, "/dev/serial/by-(?:id|path)/.*-(?P<which>.)", [("/dev/serial/by-id/usb-A", "A")]),
    ],
)
def test_patterns(tree: DeviceTree, kind: str, pattern: str, found: list[tuple[str, str]]) -> None:
    """A pattern finds the host's paths, sorted, with what its first wildcard or group stands for."""
    for name in ("ttyS0", "ttyUSB0", "ttyUSB1"):
        tree.node(name)
    tree.link("serial/by-id/usb-A", "../../ttyUSB0")

    one = PathPattern(pattern, kind).check()

    assert found == [(path, one.match(path)) for path in one.find(Tree(tree.roots))]


@pytest.mark.parametrize("pattern", ["dev/x", "", "/dev/../etc/x", "/dev/./x"])
def test_refused_patterns(pattern: str) -> None:
    """A pattern is an absolute path without dots as folders."""
    with pytest.raises(InputError):
        PathPattern(pattern).check()


def test_link_keeps_its_name_and_is_followed_by_the_runtime(tree: DeviceTree, scanner: Scan) -> None:
    """A link is handed out as it is: a container that restarts after a replug gets the new target."""
    tree.node("ttyUSB3", 188, 3)
    tree.link("serial/by-id/usb-A", "../../ttyUSB3")
    one = scanner("resources: [{name: example.com/a, paths: [{path: /dev/serial/by-id/*}]}]")

    assert [("/dev/serial/by-id/usb-A",) * 2 + ("rw",)] == nodes(one.answer(*one.scan()))


def test_link_resolved_now_hands_out_its_target(tree: DeviceTree, scanner: Scan) -> None:
    """With `resolve: now` the host path is the link's target, and the container still sees the pretty name."""
    tree.node("video7", 81, 7)
    tree.link("video-front", "/dev/video7")
    one = scanner("resources: [{name: example.com/a, paths: [{path: /dev/video-front, resolve: now}]}]")

    assert [("/dev/video7", "/dev/video-front", "rw")] == nodes(one.answer(*one.scan()))


def test_changed_target_of_a_link_is_noticed(tree: DeviceTree, scanner: Scan) -> None:
    """A link that leads to another node shows as unhealthy, longer while a pod holds the old one."""
    tree.node("video7", 81, 7)
    tree.node("video8", 81, 8)
    tree.link("video-front", "video7")
    one = scanner("resources: [{name: example.com/a, paths: [{path: /dev/video-front}]}]")
    first = one.scan()[0]
    tree.link("video-front", "video8")

    changed = one.scan(first.id)[0]
    still = one.scan(first.id)[0]
    free = one.scan()[0]

    assert "/dev/video-front was 81:7 and is 81:8 now" == changed.reason
    assert (False, False, True) == (changed.healthy, still.healthy, free.healthy)


def test_dangling_link_is_unhealthy(tree: DeviceTree, scanner: Scan) -> None:
    """A link that leads nowhere is a device that is not well, with the reason."""
    tree.link("video-front", "video7")
    one = scanner("resources: [{name: example.com/a, paths: [{path: /dev/video-front}]}]")

    assert ["/dev/video-front leads to /dev/video7, which does not exist"] == [d.reason for d in one.scan()]
    tree.node("video7", 81, 7)
    assert [True] == [device.healthy for device in one.scan()]


def test_links_that_loop_end(tree: DeviceTree) -> None:
    """Links in a circle are no endless loop."""
    tree.link("a", "b")
    tree.link("b", "a")

    assert None is Tree(tree.roots).status("/dev/a")


def test_ordinary_file_is_no_device(tree: DeviceTree, scanner: Scan) -> None:
    """A file where a device node should be is not offered as well: the type is checked."""
    tree.file("ttyUSB0")
    one = scanner(TTYS)

    assert [(False, "/dev/ttyUSB0 is no device node")] == [(d.healthy, d.reason) for d in one.scan()]


def test_other_device_number_under_the_same_path_is_noticed(tree: DeviceTree, scanner: Scan) -> None:
    """A node that has another device number is another device: shown as unhealthy first, then taken."""
    tree.node("ttyUSB0", 188, 0)
    one = scanner(TTYS)
    one.scan()
    tree.node("ttyUSB0", 188, 5)

    changed, later = one.scan()[0], one.scan()[0]

    assert (False, "/dev/ttyUSB0 was 188:0 and is 188:5 now") == (changed.healthy, changed.reason)
    assert later.healthy


def test_folder_can_be_handed_out_whole(tree: DeviceTree, scanner: Scan) -> None:
    """A folder of nodes, as /dev/snd, is a device: the runtime expands it."""
    tree.node("snd/controlC0", 116, 0)
    one = scanner("resources: [{name: example.com/audio, count: 2, paths: [{path: /dev/snd, permissions: mrw}]}]")

    devices = one.scan()

    assert 2 == len(devices)
    assert [("/dev/snd", "/dev/snd", "rwm")] == nodes(one.answer(devices[0]))


def test_paths_elsewhere_are_taken_as_they_are(tree: DeviceTree, scanner: Scan) -> None:
    """With the host's folders mounted elsewhere, a mount source outside cannot be looked at and is not checked."""
    tree.node("fuse", 10, 229)
    one = scanner(
        "resources: [{name: example.com/a, paths: "
        "[{path: /dev/fuse}, {path: /opt/firmware, type: Mount, mountPath: /fw}]}]"
    )

    answer = one.answer(*one.scan())

    assert [("/opt/firmware", "/fw", True, "")] == [
        (mount.host_path, mount.container_path, mount.read_only, mount.seen_path) for mount in answer.mounts
    ]


def test_on_the_host_itself_every_path_is_seen() -> None:
    """With the host's own folders, other paths are looked at as well."""
    assert "/usr" == Tree(Roots()).seen("/usr")
    assert "" == Tree(Roots("/host/dev", "/host/sys")).seen("/usr")
    assert "/host/dev/x" == Tree(Roots("/host/dev", "/host/sys")).seen("/dev/x")
    assert "" == Tree(Roots("/host/dev", "/host/sys")).seen("/devices/x")


def test_unchanged_scan_gives_the_same_list(tree: DeviceTree, scanner: Scan) -> None:
    """Nothing is made anew when nothing changed: the very same list comes back."""
    for minor in range(5):
        tree.node(f"ttyUSB{minor}", 188, minor)
    one = scanner(TTYS)

    assert one.scan() is one.scan()


class Moody:
    """A member that cannot be looked at while `failing`; it never finds anything."""

    optional, limit, failing = False, 1, False

    def open(self, _tree: Tree) -> Moody:
        """Be the finder as well."""
        return self

    def look(self) -> bool:
        """Look, when possible."""
        if self.failing:
            raise OSError("the driver is gone")
        return False

    def matches(self) -> list[Match]:
        """Find nothing."""
        return []


def test_failed_scan_loses_no_change(tree: DeviceTree) -> None:
    """When one member cannot be looked at, what another one saw is told by the next scan that succeeds."""
    moody = Moody()
    groups = (Group((PathMember(PathPattern("/dev/ttyUSB*")),)), Group((moody,)))
    source = GroupsConfig(groups).open("example.com/a", tree.roots)
    held: frozenset[str] = frozenset()
    assert [] == asyncio.run(source.scan(held, 0.0))
    tree.node("ttyUSB0")
    moody.failing = True
    with pytest.raises(OSError, match="driver"):
        asyncio.run(source.scan(held, 3.0))
    moody.failing = False

    assert 1 == len(asyncio.run(source.scan(held, 6.0)))


def test_names_that_are_no_text_are_left_out(tree: DeviceTree, scanner: Scan) -> None:
    """A node whose name is no UTF-8 would make the kubelet refuse the whole list; it is not offered."""
    tree.node("ttyUSB\udcff", 188, 1)
    tree.node("ttyUSB0", 188, 0)
    one = scanner(TTYS)

    assert ["/dev/ttyUSB0"] == [node[0] for node in nodes(one.answer(*one.scan()))]
