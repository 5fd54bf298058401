"""Who holds what, and what follows when a pod lets go."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from resource_extend.kubernetes.counts import Counts
from resource_extend.kubernetes.fake_kubelet import FakeKubelet
from resource_extend.kubernetes.held import HeldDevices, read_state
from resource_extend.kubernetes.hooks import HookError, run_hook
from resource_extend.kubernetes.model import Folders, Hook, Resource
from resource_extend.kubernetes.pod_resources import PodResourcesError, read_allocatable, read_holders
from resource_extend.kubernetes.status import node_status
from support.device_plugin import NAME, Listed, Ours, numbered, story


class Held:
    """Held devices of one resource with a release hook that writes down what it was run for."""

    def __init__(self, base: Path, script: str = "") -> None:
        self.told = base / "told"
        self.state = base / "held.json"
        command = script or f'echo "$DEVICE_IDS from $RELEASED_BY" >> {self.told}'
        self.resource = Resource(NAME, Listed(), release=Hook(("sh", "-c", command), 5))
        self.counts = Counts()
        self.devices = self.begin(base)

    def begin(self, base: Path) -> HeldDevices:
        """Begin as at a start of the daemon."""
        hooked = {NAME: (self.resource, self.counts)}
        return HeldDevices(str(base / "pods.sock"), str(self.state), lambda: hooked)

    @property
    def runs(self) -> list[str]:
        """What the hook was run for."""
        return self.told.read_text().splitlines() if self.told.exists() else []


@story
async def test_released_devices(tmp_path: Path) -> None:
    """A device is released once, after it was missing twice; one that another pod took at once is not."""
    made = Held(tmp_path)
    async with FakeKubelet(tmp_path / "plugins", pod_resources=str(tmp_path / "pods.sock")) as kubelet, Ours() as ours:
        await ours.start(str(tmp_path / "plugins"), numbered(2))
        await kubelet.wait_for(NAME, allocatable=2)
        pods = [await kubelet.admit(name, {NAME: 1}) for name in ("one", "two")]
        await made.devices.look()
        held = made.devices.held(NAME)
        assert {"d00000", "d00001"} == held
        assert frozenset() == made.devices.held("example.com/other")
        kubelet.pods.delete("one")
        await made.devices.look()
        assert [] == made.runs, "missing once may be a kubelet that has just started"
        await made.devices.look()
        await made.devices.look()
        assert [f"{pods[0].devices[NAME][0]} from default/one/main"] == made.runs
        kubelet.pods.delete("two")
        kubelet.pods.pods["default", "three"] = pods[1]
        pods[1].name = "three"
        await made.devices.look()
        await made.devices.look()
        assert 1 == len(made.runs), "handed on, never free"
        assert {("release", "ok"): 1} == dict(made.counts.hooks)


@story
async def test_release_while_the_plugin_was_down(tmp_path: Path) -> None:
    """What was held is remembered in a file, written whole; a later start notices the release."""
    made = Held(tmp_path)
    async with FakeKubelet(tmp_path / "plugins", pod_resources=str(tmp_path / "pods.sock")) as kubelet, Ours() as ours:
        await ours.start(str(tmp_path / "plugins"), numbered(1))
        await kubelet.wait_for(NAME, allocatable=1)
        await kubelet.admit("pod", {NAME: 1})
        await made.devices.look()
        assert {NAME: {"d00000": ["default/pod/main"]}} == read_state(str(made.state))
        kubelet.pods.delete("pod")
        again = made.begin(tmp_path)
        await again.look()
        await again.look()
        assert ["d00000 from default/pod/main"] == made.runs
        assert {NAME: {}} == read_state(str(made.state))
        assert ["held.json"] == [path.name for path in tmp_path.glob("held*")]


@story
async def test_failing_hook_is_counted_and_not_repeated(tmp_path: Path) -> None:
    """A release hook that fails is told and counted once."""
    made = Held(tmp_path, script="exit 1")
    made.state.write_text(json.dumps({"held": {NAME: {"d0": ["default/pod/main"]}, "example.com/gone": {"x": []}}}))
    made.devices = made.begin(tmp_path)
    async with FakeKubelet(tmp_path / "plugins", pod_resources=str(tmp_path / "pods.sock")):
        for _ in range(4):
            await made.devices.look()
    assert {("release", "failed"): 1} == dict(made.counts.hooks)
    assert {NAME: {}} == read_state(str(made.state))


@story
async def test_kubelet_that_does_not_answer(tmp_path: Path) -> None:
    """Without an answer nothing counts as released, and what was known stays known."""
    made = Held(tmp_path)
    made.state.write_text(json.dumps({"held": {NAME: {"d0": ["default/pod/main"]}}}))
    made.devices = made.begin(tmp_path)
    for _ in range(3):
        await made.devices.look()
    assert [] == made.runs
    with pytest.raises(PodResourcesError, match="is the folder of that socket mounted here"):
        await read_holders(str(tmp_path / "pods.sock"))
    with pytest.raises(PodResourcesError, match="pod resources socket"):
        await read_allocatable(str(tmp_path / "pods.sock"))


def test_unreadable_state_is_empty(tmp_path: Path) -> None:
    """A damaged file is told and counts as nothing held."""
    for text in ("{", "[]", "{}", '{"held": 5}', '{"held": {"a.b/c": 5}}', '{"held": {"a.b/c": {"d": 5}}}'):
        (tmp_path / "held.json").write_text(text)
        assert {} == read_state(str(tmp_path / "held.json"))


@story
async def test_entries_of_one_resource_are_collected(tmp_path: Path) -> None:
    """Devices on two NUMA nodes come in two entries; both are held."""
    from resource_extend.kubernetes.model import Device

    pods = str(tmp_path / "pods.sock")
    async with FakeKubelet(tmp_path / "plugins", pod_resources=pods) as kubelet, Ours() as ours:
        await ours.start(str(tmp_path / "plugins"), [Device("a", numa=(0,)), Device("b", numa=(1,))])
        await kubelet.wait_for(NAME, allocatable=2)
        assert {NAME: {"a", "b"}} == await read_allocatable(pods)
        await kubelet.admit("pod", {NAME: 2})
        assert {NAME: {"a": {"default/pod/main"}, "b": {"default/pod/main"}}} == await read_holders(pods)


def test_status() -> None:
    """Capacity, allocatable, in use and free; what does not add up is remarked."""
    holders = {NAME: {"a": {"n/p/c"}, "b": {"n/p/c", "n/q/c"}, "gone": {"n/r/c"}}}
    listed = {NAME: {"a", "b", "c", "sick"}}
    remembered = {NAME: {"c": ["n/p/c"], "a": ["n/old/c"]}}
    (one,) = node_status({NAME: {"a", "b", "c"}, "example.com/other": {"x"}}, holders, listed, remembered)
    assert (4, 3, 3, ("c",)) == (one.capacity, one.allocatable, one.in_use, one.free)
    assert {"a": ("n/p/c",), "b": ("n/p/c", "n/q/c"), "gone": ("n/r/c",)} == one.holders
    assert (
        "b is held by 2 containers: n/p/c, n/q/c",
        "gone is held, and not listed any more",
        "the kubelet has forgotten that n/p/c got c (checkpoint lost?)",
    ) == one.remarks


def test_status_without_a_configuration() -> None:
    """Without a configuration all resources are told, capacity being what is healthy or held."""
    both = node_status({NAME: {"a", "b"}}, {NAME: {"c": {"n/p/c"}}, "example.com/z": {}}, {}, {})
    assert [(NAME, 3, 2), ("example.com/z", 0, 0)] == [(r.name, r.capacity, r.allocatable) for r in both]


@story
async def test_hook_is_killed_with_its_children(tmp_path: Path) -> None:
    """A hook that takes too long is killed as a whole group, also what it left in the background."""
    started = tmp_path / "child"
    script = f"(echo $$ > {started}; sleep 60) & sleep 60"
    with pytest.raises(HookError, match=r"hook 'sh' of example\.com/resource was killed after 0\.3 s"):
        await run_hook(Hook(("sh", "-c", script), 0.3), NAME, ["a"])
    commands = [path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline") if path.exists()]
    assert not [command for command in commands if str(started).encode() in command]


@story
async def test_hook_that_does_not_exist() -> None:
    """A command that cannot be started says so."""
    with pytest.raises(HookError, match="did not start: No such file"):
        await run_hook(Hook(("/no/such/hook",)), NAME, [])


def test_default_state_is_beside_the_sockets() -> None:
    """The held devices are remembered in the plugin folder unless a file is named."""
    from resource_extend.kubernetes.held import state_path

    assert "/p/resource-extend-held.json" == state_path(Folders(plugins="/p"))
    assert "/s/held" == state_path(Folders(plugins="/p", state="/s/held"))
