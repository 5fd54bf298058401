"""The answers to the kubelet, over a table of devices, without a socket."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resource_extend.kubernetes.api import MESSAGE_LIMIT, device_plugin
from resource_extend.kubernetes.counts import Counts
from resource_extend.kubernetes.model import (
    AllocationError,
    Device,
    DeviceAnswer,
    DeviceNode,
    Hook,
    Mount,
    Resource,
)
from resource_extend.kubernetes.service import Service, legal_choice, options
from resource_extend.kubernetes.table import SNAPSHOT_LIMIT, DeviceTable, SnapshotTooLarge, build_snapshot
from support.device_plugin import NAME, RULES, Listed, numbered, story


def service(devices: list[Device], **fields: Any) -> Service:
    """Make a service over `devices`."""
    table = DeviceTable()
    table.publish(devices)
    return Service(Resource(NAME, Listed(), **fields), table, Counts(), RULES.combine, RULES.prefer)


def allocate(made: Service, *containers: list[str]) -> Any:
    """Ask for one answer a container."""
    request = device_plugin.AllocateRequest(container_requests=[{"devices_ids": ids} for ids in containers])
    return asyncio.run(made.allocate(request, None)).container_responses


def test_options_follow_the_configuration() -> None:
    """Optional calls are asked for where a policy and a hook are configured, and only there."""
    plain = options(Resource(NAME, Listed()))
    full = options(Resource(NAME, Listed(), allocation_policy="numa", pre_start=Hook(("true",))))
    assert (False, False) == (plain.pre_start_required, plain.get_preferred_allocation_available)
    assert (True, True) == (full.pre_start_required, full.get_preferred_allocation_available)


def test_answers_have_everything() -> None:
    """Nodes, mounts, environment, annotations and CDI names of the devices reach the message."""
    answer = DeviceAnswer(
        nodes=(DeviceNode("/dev/a", "/dev/b", "rwm"),),
        mounts=(Mount("/host", "/container", read_only=False),),
        env=(("KEY", "value"),),
        annotations=(("note", "text"),),
        cdi_names=("vendor.example/class=name",),
    )
    (one,) = allocate(service([Device("d", answer=answer)]), ["d"])
    assert ("/dev/a", "/dev/b", "rwm") == (
        one.devices[0].host_path,
        one.devices[0].container_path,
        one.devices[0].permissions,
    )
    assert ("/host", "/container", False) == (
        one.mounts[0].host_path,
        one.mounts[0].container_path,
        one.mounts[0].read_only,
    )
    assert ("value", {"note": "text"}) == (one.envs["KEY"], dict(one.annotations))
    assert ["vendor.example/class=name"] == [device.name for device in one.cdi_devices]


def test_as_many_answers_as_requests_in_their_order() -> None:
    """Three containers get three answers, each for its own devices."""
    devices = [Device(name, answer=DeviceAnswer(env=(("WHO", name),))) for name in "abc"]
    assert ["c", "a", "b"] == [one.envs["WHO"] for one in allocate(service(devices), ["c"], ["a"], ["b"])]


def test_allocate_is_idempotent() -> None:
    """The same request gets the same bytes each time."""
    made = service(numbered(4))
    first, second = (allocate(made, ["d00002", "d00000"]) for _ in range(2))
    assert first == second


def test_unhealthy_devices_are_answered_for() -> None:
    """The kubelet decides about health; a listed device is answered for."""
    assert 1 == len(allocate(service([Device("sick", healthy=False)]), ["sick"]))


def test_unknown_devices_are_named() -> None:
    """A device that is not listed fails the Allocate, with the resource and the id in the text."""
    with pytest.raises(AllocationError, match=r"example\.com/resource has no device 'gone'"):
        allocate(service(numbered(2)), ["d00000", "gone"])


def test_mount_sources_are_looked_at(tmp_path: Path) -> None:
    """A missing mount source fails the Allocate; an optional one is left out; one that cannot be seen is trusted."""
    mounts = {
        "required": Mount("/h", "/c", seen_path=str(tmp_path / "no")),
        "optional": Mount("/h", "/c", seen_path=str(tmp_path / "no"), optional=True),
        "there": Mount("/h", "/c", seen_path=str(tmp_path)),
        "unseen": Mount("/h", "/c"),
    }
    made = service([Device(name, answer=DeviceAnswer(mounts=(mount,))) for name, mount in mounts.items()])
    assert [0, 1, 1] == [len(one.mounts) for one in allocate(made, ["optional"], ["there"], ["unseen"])]
    with pytest.raises(AllocationError, match="mount source '/h' does not exist"):
        allocate(made, ["required"])


@given(
    wanted=st.lists(st.sampled_from("abcdefg")),
    available=st.lists(st.sampled_from("abcdef")),
    must=st.lists(st.sampled_from("abcxyz")),
    size=st.integers(-2, 12),
)
def test_any_wish_becomes_a_legal_choice(wanted: list[str], available: list[str], must: list[str], size: int) -> None:
    """Must-include first, only what is available beside it, no double, exactly the size wherever it is possible."""
    chosen = legal_choice(wanted, available, must, size)
    assert len(set(chosen)) == len(chosen)
    assert set(must) <= set(chosen) <= set(must) | set(available)
    assert len(chosen) == max(len(set(must)), min(size, len(set(must) | set(available))))
    room = len(chosen) - len(set(must))
    own = [name for name in dict.fromkeys(wanted) if name in available and name not in must][:room]
    assert own == chosen[len(set(must)) :][: len(own)]


@story
async def test_a_policy_that_fails_is_no_error() -> None:
    """Should the policy raise, the pod still gets devices."""

    def broken(policy: str, available: list[Device], must: list[str], size: int) -> list[str]:
        raise ZeroDivisionError

    table = DeviceTable()
    table.publish(numbered(3))
    made = Service(Resource(NAME, Listed(), allocation_policy="spread"), table, Counts(), RULES.combine, broken)
    wish = {"available_deviceIDs": ["d00001", "d00002"], "must_include_deviceIDs": [], "allocation_size": 1}
    request = device_plugin.PreferredAllocationRequest(container_requests=[wish])
    (answer,) = (await made.get_preferred_allocation(request, None)).container_responses
    assert ["d00001"] == list(answer.deviceIDs)


@story
async def test_pre_start_runs_the_hook(tmp_path: Path) -> None:
    """The hook gets the resource's name and the ids; a failing one fails the call with what it said."""
    told = tmp_path / "told"
    made = service(numbered(2), pre_start=Hook(("sh", "-c", f"echo $RESOURCE_NAME $DEVICE_IDS > {told}")))
    await made.pre_start_container(device_plugin.PreStartContainerRequest(devices_ids=["b", "a"]), None)
    assert f"{NAME} a,b\n" == told.read_text()
    assert {("pre_start", "ok"): 1} == dict(made.counts.hooks)
    failing = service(numbered(2), pre_start=Hook(("sh", "-c", "echo no power; exit 3")))
    with pytest.raises(Exception, match="failed with status 3: no power"):
        await failing.pre_start_container(device_plugin.PreStartContainerRequest(devices_ids=["a"]), None)
    assert {("pre_start", "failed"): 1} == dict(failing.counts.hooks)


def test_snapshot_tells_numa_for_all_or_for_none() -> None:
    """One healthy device without a NUMA node takes the topology of all away; an unhealthy one does not."""
    near = Device("near", numa=(0, 1))
    decode = device_plugin.ListAndWatchResponse.FromString
    mixed = decode(build_snapshot([near, Device("far")]))
    sick = decode(build_snapshot([near, Device("far", healthy=False)]))
    assert [[], []] == [[node.ID for node in device.topology.nodes] for device in mixed.devices]
    assert [[0, 1], []] == [[node.ID for node in device.topology.nodes] for device in sick.devices]


def test_snapshot_limit() -> None:
    """A list that fits is sent up to the limit; beyond it the text tells size, limit and the number that fits."""
    count = SNAPSHOT_LIMIT // 76
    assert len(build_snapshot(Device(f"{n:063}") for n in range(count))) <= SNAPSHOT_LIMIT < MESSAGE_LIMIT
    with pytest.raises(
        SnapshotTooLarge, match=f"60000 devices make a message of 4560000 bytes.*at most {count} "
    ) as info:
        build_snapshot(Device(f"{n:063}") for n in range(60_000))
    assert str(MESSAGE_LIMIT) in str(info.value)


def test_table_tells_only_changes_that_the_kubelet_sees() -> None:
    """A new reason or another answer keeps the version; health, ids and topology raise it."""
    table = DeviceTable()
    assert table.publish([Device("a")])
    assert not table.publish([Device("a")])
    assert not table.publish([Device("a", answer=DeviceAnswer(env=(("K", "V"),)))])
    assert (("K", "V"),) == table.devices["a"].answer.env
    assert table.publish([Device("a", healthy=False, reason="gone")])
    assert not table.publish([Device("a", healthy=False, reason="still gone")])
    assert table.publish([])
    assert 3 == table.version


def test_too_large_list_keeps_the_old_one() -> None:
    """A list that is refused changes nothing."""
    table = DeviceTable()
    table.publish(numbered(1))
    with pytest.raises(SnapshotTooLarge):
        table.publish([Device(f"{n:063}") for n in range(60_000)])
    assert (1, ["d00000"]) == (table.version, list(table.devices))
