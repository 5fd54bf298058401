"""The device plugin on the device managers of real kubelets.

usage: python -m real_kubernetes.check_plugin [--version VERSION] [SCENE ...]

DEVICE_PLUGIN names another program than the one in the source tree, such as dist/device-plugin.pyz.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Awaitable, Callable
from pathlib import Path

from real_kubernetes.check_facts import VERSIONS
from real_kubernetes.device_manager import DeviceManager
from real_kubernetes.plugin import PluginProcess
from support.device_plugin import NAME, until
from support.device_tree import DeviceTree
from support.kubelets import RefusedError


class Scene:
    """A folder with a made-up host, a device manager, and the plugin's configuration."""

    def __init__(self, base: Path, version: str) -> None:
        self.base = base
        self.version = version
        self.plugins = base / "plugins"
        self.plugins.mkdir()
        self.tree = DeviceTree(base / "host")
        self.pod_resources = base / "pods.sock"

    def manager(self, *words: str) -> DeviceManager:
        """Make the device manager."""
        return DeviceManager(self.plugins, self.version, *words)

    def plugin(self, resource: str, *words: str, more: str = "") -> PluginProcess:
        """Make the plugin with one resource, written as YAML."""
        config = self.base / "config.yaml"
        roots = f"roots: {{dev: {self.tree.dev}, sys: {self.tree.sys}}}"
        config.write_text(
            f"{roots}\nfolders: {{plugins: {self.plugins}{more}}}\nresources:\n- {{name: {NAME}, {resource}}}\n"
        )
        return PluginProcess(config, *words)


Check = Callable[[Scene], Awaitable[str]]
SCENES: dict[str, Check] = {}


def scene(check: Check) -> Check:
    """Add a scene to the table. It returns what was seen, as a line for people."""
    SCENES[check.__name__] = check
    return check


async def again(manager: DeviceManager, count: int, limit: float) -> float:
    """Wait until `count` devices are offered again, within `limit` seconds; give the seconds."""
    began = time.monotonic()
    await manager.wait(NAME, count, count, limit)
    return time.monotonic() - began


@scene
async def registration(one: Scene) -> str:
    """The plugin is offered as soon as it starts, whoever was there first."""
    began = time.monotonic()
    async with one.manager() as manager, one.plugin("counter: 2"):
        await manager.wait(NAME, 2, 2)
        took = time.monotonic() - began
        got = await manager.admit("pod", {NAME: 1})
        assert any(got.devices[NAME][0] in text for text in got.env.values()), got.env
    async with one.plugin("counter: 2"):
        await asyncio.sleep(1)
        async with one.manager() as manager:
            late = await again(manager, 2, 5)
    return f"offered {took:.1f} s after both were started; {late:.1f} s after a late kubelet"


@scene
async def kubelet_restarts(one: Scene) -> str:
    """A kubelet that is killed or restarted, ten times: offered again within two seconds each time."""
    times = []
    async with one.manager() as manager, one.plugin("counter: 3") as plugin:
        await manager.wait(NAME, 3, 3)
        for turn in range(10):
            if turn % 2:
                await manager.kill()
                await asyncio.sleep(0.5)
                await manager.spawn()
            else:
                await manager.restart()
            times.append(await again(manager, 3, 4))
            await manager.admit(f"pod-{turn}", {NAME: 1})
            await manager.delete(f"pod-{turn}")
        assert plugin.process.returncode is None
    assert max(times) < 2, times
    return f"offered again after {min(times):.1f} to {max(times):.1f} s"


@scene
async def lost_streams(one: Scene) -> str:
    """Connections that break, no file changed: offered again within three seconds."""
    times = []
    async with one.manager() as manager, one.plugin("counter: 3") as plugin:
        await manager.wait(NAME, 3, 3)
        for _ in range(3):
            await asyncio.sleep(1.5)
            assert plugin.drop_connections() >= 1
            await manager.wait(NAME, 3, 0, 2)
            times.append(await again(manager, 3, 5))
    assert max(times) < 3, times
    return f"offered again after {min(times):.1f} to {max(times):.1f} s"


@scene
async def plugin_restarts(one: Scene) -> str:
    """The plugin ends by SIGTERM and by SIGKILL while a pod holds a device: same ids, the pod's container restarts."""
    async with one.manager() as manager, one.plugin("counter: 2") as plugin:
        await manager.wait(NAME, 2, 2)
        held = await manager.admit("pod", {NAME: 1})
        for number in (signal.SIGTERM, signal.SIGKILL):
            await plugin.end(number)
            await manager.wait(NAME, 2, 0)
            assert held.env == await manager.start("pod")
            await plugin.start()
            await again(manager, 2, 5)
            assert held.env == await manager.start("pod")
            other = await manager.admit("other", {NAME: 1})
            assert other.devices != held.devices
            await manager.delete("other")
    return f"{held.devices[NAME][0]} stayed with its pod"


@scene
async def health(one: Scene) -> str:
    """A device that vanishes is Unhealthy, for its pod as well, and healthy again when it is back."""
    for minor in range(3):
        one.tree.node(f"ttyUSB{minor}", minor=minor)
    async with one.manager() as manager, one.plugin("paths: [{path: /dev/ttyUSB*}], scanInterval: 0.5"):
        await manager.wait(NAME, 3, 3)
        held = await manager.admit("pod", {NAME: 1})
        (identity,) = held.devices[NAME]
        number = identity.rpartition("ttyUSB")[2][:1]
        one.tree.remove(f"ttyUSB{number}")
        began = time.monotonic()
        await manager.wait(NAME, 3, 2)
        took = time.monotonic() - began
        assert {identity: "Unhealthy"} == await manager.health("pod")
        one.tree.node(f"ttyUSB{number}", minor=int(number))
        await manager.wait(NAME, 3, 3)
        assert {identity: "Healthy"} == await manager.health("pod")
        one.tree.node("ttyUSB7", minor=7)
        await manager.wait(NAME, 4, 4)
    return f"Unhealthy {took:.1f} s after the file was gone"


@scene
async def preferred_allocation(one: Scene) -> str:
    """Replicas come from different hardware with `spread` and from the same with `packed`."""
    for minor in range(2):
        one.tree.node(f"card{minor}", minor=minor)
    seen = []
    for policy, expected in (("spread", 2), ("packed", 1)):
        source = f"paths: [{{path: /dev/card*}}], count: 3, allocationPolicy: {policy}"
        async with one.manager() as manager, one.plugin(source):
            await manager.wait(NAME, 6, 6)
            got = await manager.admit("pod", {NAME: 2})
            cards = {name.rpartition("card")[2][0] for name in got.devices[NAME]}
            assert expected == len(cards), got.devices
            seen.append(f"{policy}: {', '.join(got.devices[NAME])}")
    return "; ".join(seen)


@scene
async def topology(one: Scene) -> str:
    """Under single-numa-node a pod gets devices of one node, or is refused."""
    kind = {"vendor": "0x10de", "device": "0x1234", "class": "0x030200"}
    for group, (address, node) in enumerate((("0000:3b:00.0", "0"), ("0000:3c:00.0", "0"), ("0000:5e:00.0", "1"))):
        one.tree.pci(address, {**kind, "numa_node": node}, driver="vfio-pci", group=str(group))
    words = ("-topology-policy", "single-numa-node", "-numa", "0,1")
    async with one.manager(*words) as manager, one.plugin('pci: [{vendor: "10de"}], allocationPolicy: numa'):
        await manager.wait(NAME, 3, 3)
        got = await manager.admit("two", {NAME: 2})
        assert not [name for name in got.devices[NAME] if "5e" in name], got.devices
        await manager.delete("two")
        try:
            await manager.admit("three", {NAME: 3})
        except RefusedError as error:
            return f"two on node 0: {', '.join(got.devices[NAME])}; three: {error}"
    raise AssertionError("three devices are not on one node")


@scene
async def many_devices(one: Scene) -> str:
    """5,000 devices."""
    async with one.manager() as manager:
        began = time.monotonic()
        async with one.plugin("counter: 5000") as plugin:
            await manager.wait(NAME, 5000, 5000, 20)
            took = time.monotonic() - began
            await asyncio.sleep(3)
            resident = plugin.resident
            got = await manager.admit("pod", {NAME: 100})
            assert 100 == len(got.devices[NAME])
    return f"offered {took:.1f} s after the start; {resident:.1f} MiB resident"


@scene
async def plugin_registry(one: Scene) -> str:
    """Found by the kubelet in its plugins_registry, again after a restart of the kubelet and after a lost stream."""
    registry = one.base / "registry"
    registry.mkdir()
    more = f", registry: {registry}"
    async with one.manager("-registry-dir", str(registry)) as manager, one.plugin("counter: 2", more=more) as plugin:
        took = await again(manager, 2, 15)
        await manager.restart()
        await manager.wait(NAME, 0, 0)
        restarted = await again(manager, 2, 15)
        await asyncio.sleep(1.5)
        plugin.drop_connections()
        await manager.wait(NAME, 2, 0)
        lost = await again(manager, 2, 15)
        await manager.admit("pod", {NAME: 1})
        await plugin.end(signal.SIGTERM)
        await manager.wait(NAME, 2, 0)
        assert [] == list(registry.iterdir())
    return f"found after {took:.1f} s, {restarted:.1f} s after a restart, {lost:.1f} s after a lost stream"


@scene
async def who_holds_what(one: Scene) -> str:
    """`status` and the release hook over the kubelet's own pod resources."""
    told = one.base / "told"
    hook = f'release: {{command: [sh, -c, "echo $DEVICE_IDS $RELEASED_BY >> {told}"]}}'
    more = f", podResources: {one.pod_resources}"
    words = ("-pod-resources", str(one.pod_resources))
    async with one.manager(*words) as manager, one.plugin(f"counter: 3, {hook}", more=more) as plugin:
        await manager.wait(NAME, 3, 3)
        got = await manager.admit("pod", {NAME: 1})
        (identity,) = got.devices[NAME]
        asked = ("--json", "--config", str(plugin.config), "--pod-resources", str(one.pod_resources))
        (status,) = json.loads(await plugin.command("status", *asked))
        expected = {"capacity": 3, "allocatable": 3, "in_use": 1, "holders": {identity: ["default/pod/main"]}}
        assert expected == {key: status[key] for key in expected}, status
        # The plugin looks every ten seconds, and believes a release when it has seen it twice.
        await asyncio.sleep(11)
        await manager.delete("pod")
        await until(told.exists, 35)
        assert f"{identity} default/pod/main\n" == told.read_text()
    return f"status {status['in_use']} of {status['capacity']} in use; release hook for {identity}"


async def check(name: str, version: str) -> bool:
    """Play one scene with one version; tell how it went."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="dp-") as base:
        one = Scene(Path(base), version)
        try:
            seen = await SCENES[name](one)
        except Exception:
            sys.stdout.write(f"{version} {name}: FAILED\n{traceback.format_exc()}\n")
            for log in Path(base).glob("*.log"):
                sys.stdout.write(f"--- {log.name}\n{log.read_text()[-4000:]}\n")
            return False
    sys.stdout.write(f"{version} {name}: ok ({time.monotonic() - began:.0f} s): {seen}\n")
    sys.stdout.flush()
    return True


async def main(versions: list[str], names: list[str]) -> int:
    """Play scenes one after the other."""
    results = [await check(name, version) for version in versions for name in names]
    sys.stdout.write(f"{sum(results)} of {len(results)} scenes are as they should be\n")
    return 0 if all(results) else 1


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--version", action="append", choices=VERSIONS)
    parser.add_argument("scenes", nargs="*", default=[], metavar="SCENE")
    chosen = parser.parse_args()
    raise SystemExit(asyncio.run(main(chosen.version or list(VERSIONS), chosen.scenes or list(SCENES))))
