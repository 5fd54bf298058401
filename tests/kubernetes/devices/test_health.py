"""From scans to the list that the kubelet sees: what vanished, what came back, what changed, what a check said."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resource_extend.kubernetes.devices.check import Check, Verdict
from resource_extend.kubernetes.devices.health import Found, Tracker
from resource_extend.kubernetes.model import Device
from support.device_tree import DeviceTree, needs_device_nodes

NOBODY: frozenset[str] = frozenset()
Scan = Callable[[str], Any]


def _found(*names: str, number: int = 1) -> list[Found]:
    return [Found(Device(f"h-{name}"), ((f"/dev/{name}", number),)) for name in names]


def _shown(devices: Sequence[Device]) -> dict[str, bool]:
    return {device.id: device.healthy for device in devices}


def test_vanished_device_is_shown_for_a_minute() -> None:
    """It is unhealthy at once, still there just before 60 s, and gone after."""
    tracker = Tracker("h-")
    tracker.update(_found("a", "b"), NOBODY, 0)

    assert {"h-a": True, "h-b": False} == _shown(tracker.update(_found("a"), NOBODY, 10))
    assert {"h-a": True, "h-b": False} == _shown(tracker.update(_found("a"), NOBODY, 69.9))
    assert {"h-a": True} == _shown(tracker.update(_found("a"), NOBODY, 70))


def test_held_device_is_shown_as_long_as_it_is_held() -> None:
    """A pod that holds a vanished device keeps it listed, hours later as well; then it goes."""
    tracker, held = Tracker("h-"), frozenset({"h-b"})
    tracker.update(_found("a", "b"), held, 0)

    assert {"h-a": True, "h-b": False} == _shown(tracker.update(_found("a"), held, 10))
    assert {"h-a": True, "h-b": False} == _shown(tracker.update(_found("a"), held, 7200))
    assert {"h-a": True} == _shown(tracker.update(_found("a"), NOBODY, 7203))


def test_device_that_a_pod_held_before_this_process_started() -> None:
    """An id that a pod holds and that no scan found is shown as unhealthy; ids of other resources are not."""
    tracker = Tracker("h-")

    assert {"h-a": True, "h-old": False} == _shown(tracker.update(_found("a"), frozenset({"h-old", "x-1"}), 0))
    assert {"h-a": True, "h-old": True} == _shown(tracker.update(_found("a", "old"), frozenset({"h-old"}), 3))
    assert {"h-a": True, "h-old": False} == _shown(tracker.update(_found("a"), NOBODY, 6))
    assert {"h-a": True} == _shown(tracker.update(_found("a"), NOBODY, 66))


def test_device_comes_back() -> None:
    """Unhealthy is no final state: found again is healthy again, with the same id."""
    tracker = Tracker("h-")
    for now, names, healthy in ((0, "a", True), (3, "", False), (6, "a", True), (9, "", False), (12, "a", True)):
        assert {"h-a": healthy} == _shown(tracker.update(_found(*names), NOBODY, now))


def test_recovery_takes_as_many_good_scans_as_told() -> None:
    """With a recovery of three, a device that flaps stays unhealthy until it was found three times in a row."""
    tracker = Tracker("h-", recovery=3)
    seen = [
        tracker.update(_found(*names), NOBODY, i)[0].healthy
        for i, names in enumerate(["a", "", "a", "a", "", "a", "a", "a"])
    ]

    assert [True, False, False, False, False, False, False, True] == seen


def test_unhealthy_reason_is_shown() -> None:
    """What a source says about a device is what is shown."""
    tracker = Tracker("h-")
    sick = Device("h-a", healthy=False, reason="too hot")

    assert [sick] == list(tracker.update([Found(sick)], NOBODY, 0))
    assert [Device("h-a")] == list(tracker.update([Found(Device("h-a"))], NOBODY, 3))


def test_changed_node_is_unhealthy_while_it_is_held() -> None:
    """A pod has the node that was there when it started: another device number is no good to it."""
    tracker, held = Tracker("h-"), frozenset({"h-a"})
    tracker.update(_found("a", number=1), held, 0)

    for now in (3, 6, 600):
        assert {"h-a": False} == _shown(tracker.update(_found("a", number=2), held, now))
    assert {"h-a": True} == _shown(tracker.update(_found("a", number=2), NOBODY, 603))


def test_change_back_to_the_held_node_is_good_again() -> None:
    """When the old node is back, the pod that holds the device can use it again."""
    tracker, held = Tracker("h-"), frozenset({"h-a"})
    tracker.update(_found("a", number=1), held, 0)
    tracker.update(_found("a", number=2), held, 3)

    assert {"h-a": True} == _shown(tracker.update(_found("a", number=1), held, 6))


def test_nothing_new_is_the_same_list() -> None:
    """The same result gives the same list object, without a look at each device."""
    tracker, found = Tracker("h-"), _found("a", "b")
    first = tracker.update(found, NOBODY, 0)

    assert first is tracker.update(found, NOBODY, 3)
    assert first is tracker.update(list(found), NOBODY, 6)


@given(st.lists(st.tuples(st.sets(st.sampled_from("abc")), st.sets(st.sampled_from(["h-a", "h-b"]))), max_size=12))
def test_list_follows_the_scans(rounds: list[tuple[set[str], set[str]]]) -> None:
    """Whatever comes and goes: sorted, no id twice, what is found is healthy, what is held is listed."""
    tracker = Tracker("h-")
    for i, (names, held) in enumerate(rounds):
        listed = tracker.update(_found(*sorted(names)), frozenset(held), 40.0 * i)
        ids = [device.id for device in listed]
        assert sorted(set(ids)) == ids
        assert {f"h-{name}" for name in names} == {device.id for device in listed if device.healthy}
        assert held <= set(ids)


@pytest.mark.parametrize(
    ("check", "results", "healthy"),
    [
        (Check(()), "gbgb", "1010"),
        (Check((), failures=2, window=2), "bgbbgg", "111011"),
        (Check((), failures=2, window=3), "bgbggg", "110111"),
        (Check((), failures=3, window=3, recovery=2), "bbbgbgg", "1100001"),
        # After recovery the count of failures starts afresh.
        (Check((), failures=2, window=4), "bbgbb", "10110"),
    ],
)
def test_debounce(check: Check, results: str, healthy: str) -> None:
    """A device is unhealthy after N failed checks of M, and healthy again after as many good ones as told."""
    verdict, seen = Verdict(check), ""
    for result in results:
        verdict.add(result == "g", "bad")
        seen += str(int(verdict.healthy))

    assert healthy == seen


@needs_device_nodes
def test_check_command_decides(tree: DeviceTree, scanner: Scan, tmp_path: Path) -> None:
    """A failing check makes the device unhealthy with the command's words; a good one makes it well again."""
    tree.node("gpu0", 195, 0)
    tree.node("gpu1", 195, 1)
    trouble = tmp_path / "trouble"
    script = tmp_path / "check"
    script.write_text(f'#!/bin/sh\nif [ "$1" = "$(cat {trouble})" ]; then echo "$1 too hot" >&2; exit 3; fi\n')
    script.chmod(0o755)
    trouble.write_text("/dev/gpu1")
    one = scanner(f"""
resources:
  - name: example.com/gpu
    paths: [{{path: "/dev/gpu*"}}]
    health: {{command: [{script}, "{{path}}"], interval: 1s}}
""")

    assert [True, True] == _rounds(one, 1)
    assert [True, False] == _rounds(one, 2)
    assert f"command '{script}' failed with status 3: /dev/gpu1 too hot" == one.scan(wait=0)[1].reason
    trouble.write_text("")
    assert [True, True] == _rounds(one, 3)
    assert {"ok": 9, "failed": 3} == one.source.checks


def _rounds(one: Any, number: int) -> list[bool]:
    """Scan with a look at the checks' results in between; the first list is there before any check."""

    async def rounds() -> list[bool]:
        for _ in range(number):
            one.now += 1
            devices = await one.source.scan(NOBODY, one.now)
            await one.source.settle()
        return [device.healthy for device in devices]

    return asyncio.run(rounds())


@needs_device_nodes
@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ("[/no/such/program]", "command '/no/such/program' did not start"),
        ("[sleep, 60]", "command 'sleep' was killed after 0.2 s"),
        ("[sh, -c, 'sleep 60 & wait']", "command 'sh' was killed after 0.2 s"),
    ],
)
def test_check_that_cannot_tell_is_a_failed_check(tree: DeviceTree, scanner: Scan, command: str, reason: str) -> None:
    """A check that does not start or hangs makes the device unhealthy, and is no error of the scan."""
    tree.node("gpu0", 195, 0)
    one = scanner(
        "resources: [{name: example.com/gpu, paths: [{path: /dev/gpu0}], "
        f"health: {{command: {command}, timeout: 0.2s}}}}]"
    )

    assert [False] == _rounds(one, 2)
    assert one.scan(wait=0)[0].reason.startswith(reason)


@needs_device_nodes
def test_closing_stops_the_checks(tree: DeviceTree, scanner: Scan) -> None:
    """After `close` no check is left running."""
    tree.node("gpu0", 195, 0)
    one = scanner("resources: [{name: example.com/gpu, paths: [{path: /dev/gpu0}], health: {command: [sleep, 60]}}]")

    async def live() -> set[Any]:
        await one.source.scan(NOBODY, 0.0)
        await one.source.close()
        return asyncio.all_tasks() - {asyncio.current_task()}

    assert set() == asyncio.run(live())
