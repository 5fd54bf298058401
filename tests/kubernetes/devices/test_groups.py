"""Groups: several nodes and mounts as one device, and what holds when a part of it is missing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from resource_extend.kubernetes.devices.groups import Group, pair
from resource_extend.kubernetes.devices.identity import Identity
from resource_extend.kubernetes.devices.match import Match
from resource_extend.kubernetes.devices.paths import PathMember
from resource_extend.kubernetes.devices.pattern import PathPattern
from support.device_tree import DeviceTree, needs_device_nodes

Scan = Callable[[str], Any]


def paths(answer: Any) -> list[str]:
    """Give the host path of each node."""
    return [node.host_path for node in answer.nodes]


@needs_device_nodes
def test_all_members_are_one_device(tree: DeviceTree, scanner: Scan) -> None:
    """A capture device is its stream and the controller of its card; both are handed out."""
    tree.node("snd/pcmC0D0c", 116, 1)
    tree.node("snd/controlC0", 116, 2)
    one = scanner(
        "resources: [{name: example.com/mic, groups: "
        "[{paths: [{path: /dev/snd/pcmC0D0c}, {path: /dev/snd/controlC0}]}]}]"
    )

    (device,) = one.scan()

    assert ["/dev/snd/pcmC0D0c", "/dev/snd/controlC0"] == paths(one.answer(device))


@needs_device_nodes
def test_missing_required_member_makes_the_group_unhealthy(tree: DeviceTree, scanner: Scan) -> None:
    """Without a required member the device is listed as unhealthy and names it; it recovers when that is back."""
    tree.node("snd/pcmC0D0c", 116, 1)
    tree.node("snd/controlC0", 116, 2)
    one = scanner(
        "resources: [{name: example.com/mic, paths: [{path: /dev/snd/pcmC0D0c}, {path: /dev/snd/controlC0}]}]"
    )
    before = one.scan()[0]
    tree.remove("snd/controlC0")
    without = one.scan()[0]
    tree.node("snd/controlC0", 116, 2)
    after = one.scan()[0]

    assert (before.id, False, "/dev/snd/controlC0 does not exist") == (without.id, without.healthy, without.reason)
    assert before == after


@needs_device_nodes
def test_missing_first_member_makes_the_group_unhealthy(tree: DeviceTree, scanner: Scan) -> None:
    """Without the member that names it, the device counts as vanished: unhealthy under the same id."""
    tree.node("a", 1, 1)
    tree.node("b", 1, 2)
    one = scanner("resources: [{name: example.com/x, paths: [{path: /dev/a}, {path: /dev/b}]}]")
    before = one.scan()[0]
    tree.remove("a")

    assert [(before.id, False)] == [(device.id, device.healthy) for device in one.scan()]


@needs_device_nodes
def test_optional_member_may_be_missing(tree: DeviceTree, scanner: Scan) -> None:
    """An optional member is handed out when it is there, and nobody minds when it is not."""
    tree.node("a", 1, 1)
    one = scanner("resources: [{name: example.com/x, paths: [{path: /dev/b, optional: true}, {path: /dev/a}]}]")

    (without,) = one.scan()
    tree.node("b", 1, 2)
    (with_it,) = one.scan()

    assert (True, ["/dev/a"]) == (without.healthy, paths(one.answer(without)))
    assert without.id == with_it.id
    assert ["/dev/a", "/dev/b"] == paths(one.answer(with_it))


@needs_device_nodes
def test_match_of_the_first_member_is_put_into_the_others(tree: DeviceTree, scanner: Scan) -> None:
    """`{match}` ties members together, and names things in the container."""
    for card in (0, 3):
        tree.node(f"snd/pcmC{card}D0c", 116, card)
        tree.node(f"snd/controlC{card}", 116, 32 + card)
    tree.remove("snd/controlC3")
    one = scanner("""
resources:
  - name: example.com/mic
    paths:
      - {path: "/dev/snd/pcmC*D0c", mountPath: /dev/snd/mic}
      - {path: "/dev/snd/controlC{match}"}
    env: {CARD: "card {match}", NODE: "{path} {name}"}
    annotations: {example.com/id: "{id}"}
""")

    devices = {one.answer(device).env[0]: device for device in one.scan()}
    good, bad = devices["CARD", "card 0"], devices["CARD", "card 3"]

    assert [("/dev/snd/pcmC0D0c", "/dev/snd/mic"), ("/dev/snd/controlC0", "/dev/snd/controlC0")] == [
        (node.host_path, node.container_path) for node in one.answer(good).nodes
    ]
    assert ("NODE", "/dev/snd/pcmC0D0c pcmC0D0c") in one.answer(good).env
    assert (("example.com/id", good.id),) == one.answer(good).annotations
    assert (False, "/dev/snd/controlC3 does not exist") == (bad.healthy, bad.reason)


@needs_device_nodes
def test_match_stands_for_itself(tree: DeviceTree, scanner: Scan) -> None:
    """Characters that mean something in a pattern mean themselves in a match."""
    for name, minor in (("a[x]", 0), ("ax", 1), ("b[x]", 2), ("bx", 3)):
        tree.node(name, 1, minor)
    globs = scanner("resources: [{name: example.com/x, paths: [{path: '/dev/a*'}, {path: '/dev/b{match}'}]}]")
    expressions = scanner("resources: [{name: example.com/x, paths: [{path: '/dev/a*'}, {regex: '/dev/b{match}'}]}]")

    for one in (globs, expressions):
        assert [["/dev/a[x]", "/dev/b[x]"], ["/dev/ax", "/dev/bx"]] == sorted(paths(one.answer(d)) for d in one.scan())


@needs_device_nodes
def test_globs_are_paired_by_position(tree: DeviceTree, scanner: Scan) -> None:
    """The first match of one glob goes with the first of the other; what is left over is no device."""
    for name, major in (("a0", 1), ("a1", 1), ("a2", 1), ("b5", 2), ("b7", 2)):
        tree.node(name, major, int(name[1:]))
    one = scanner("resources: [{name: example.com/x, paths: [{path: '/dev/a*'}, {path: '/dev/b*'}]}]")

    assert [["/dev/a0", "/dev/b5"], ["/dev/a1", "/dev/b7"]] == [paths(one.answer(device)) for device in one.scan()]


@needs_device_nodes
def test_limit_lets_devices_share_a_member(tree: DeviceTree, scanner: Scan) -> None:
    """One node that may be used twice goes with two of the three matches of the other member."""
    for name, minor in (("a0", 0), ("a1", 1), ("a2", 2), ("common", 9)):
        tree.node(name, 1, minor)
    one = scanner("resources: [{name: example.com/x, paths: [{path: /dev/common, limit: 2}, {path: '/dev/a*'}]}]")

    devices = one.scan()

    assert [["/dev/a0", "/dev/common"], ["/dev/a1", "/dev/common"]] == [paths(one.answer(d)) for d in devices]
    assert ["/dev/a0", "/dev/a1", "/dev/common"] == sorted(paths(one.answer(*devices)))


@needs_device_nodes
def test_paths_beside_hardware_go_with_each_device(tree: DeviceTree, scanner: Scan) -> None:
    """Nodes and mounts beside a USB entry are part of every stick's device."""
    for number in (1, 2):
        tree.usb(str(number), "0403", "6001", f"S{number}", number=number + 1)
    tree.node("fuse", 10, 229)
    one = scanner("""
resources:
  - name: example.com/x
    usb: [{vendor: 0403, nodes: []}]
    paths: [{path: /dev/fuse}, {path: /opt/x, type: Mount, readOnly: false, mountPath: "/x/{match}"}]
""")

    devices = one.scan()

    assert [["/dev/fuse"]] * 2 == [paths(one.answer(device)) for device in devices]
    assert [("/opt/x", "/x/S1", False), ("/opt/x", "/x/S2", False)] == [
        (mount.host_path, mount.container_path, mount.read_only) for mount in one.answer(*devices).mounts
    ]


@needs_device_nodes
def test_same_node_found_twice_is_one_device(tree: DeviceTree, scanner: Scan) -> None:
    """Patterns of one resource that overlap do not offer a device twice."""
    tree.node("ttyUSB0")
    one = scanner(
        "resources: [{name: example.com/x, groups: [{paths: [{path: /dev/ttyUSB0}]}, {paths: [{path: '/dev/tty*'}]}]}]"
    )

    assert 1 == len(one.scan())


@needs_device_nodes
def test_order_and_other_resources_do_not_change_ids(tree: DeviceTree, scanner: Scan) -> None:
    """The ids stay when groups change places and when another resource is put in front."""
    tree.node("a", 1, 1)
    tree.node("b", 1, 2)
    groups = ["{paths: [{path: /dev/a}]}", "{paths: [{path: /dev/b}]}"]
    one = scanner(f"resources: [{{name: example.com/x, groups: [{', '.join(groups)}]}}]")
    other = scanner(f"resources: [{{name: example.com/x, groups: [{', '.join(reversed(groups))}]}}]")

    assert [device.id for device in one.scan()] == [device.id for device in other.scan()]


def _matches(name: str, number: int) -> list[Match]:
    return [Match(Identity(f"{name}{i}", f"{name}{i}"), str(i)) for i in range(number)]


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(1, 4), st.booleans()), min_size=1, max_size=4))
def test_pairing_uses_no_match_more_often_than_allowed(parts: list[tuple[int, int, bool]]) -> None:
    """Whatever the members find: names are unique, each required member is in each device, limits are kept."""
    parts[0] = (parts[0][0], parts[0][1], False)
    members = tuple(
        PathMember(PathPattern(f"/dev/{i}*"), limit=limit, optional=optional)
        for i, (_, limit, optional) in enumerate(parts)
    )
    found = [_matches(f"m{i}-", number) for i, (number, _, _) in enumerate(parts)]
    required = [i for i, part in enumerate(parts) if not part[2]]

    drafts = list(pair(Group(members), found, lambda *_: []))

    assert min(parts[i][0] * parts[i][1] for i in required) == len(drafts)
    assert len(drafts) == len({draft.identity.name for draft in drafts})
    used = [match.identity.name for draft in drafts for match in draft.matches]
    for i, (_, limit, _) in enumerate(parts):
        assert all(limit >= used.count(match.identity.name) for match in found[i])
    for draft in drafts:
        of = {match.identity.name.partition("-")[0] for match in draft.matches}
        assert {f"m{i}" for i in required} <= of
