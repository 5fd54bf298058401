"""The device plugin on a whole real node: kubelet, API server and scheduler, with a runtime that runs nothing.

usage: python -m real_kubernetes.check_node [--version VERSION] [SCENE ...]

The kubelet is of VERSION, the control plane of the newest one, as the version skew of Kubernetes allows.
"""

from __future__ import annotations

import argparse
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from real_kubernetes.check_facts import VERSIONS
from real_kubernetes.control_plane import ControlPlane, wait_until
from real_kubernetes.kubelet import Kubelet
from real_kubernetes.plugin import DEVICE_PLUGIN
from support.device_tree import DeviceTree

NAME = "example.com/resource"


class Scene:
    """A node, a made-up /dev and /sys, and the plugin's configuration."""

    def __init__(self, plane: ControlPlane, node: Kubelet, base: Path) -> None:
        self.plane = plane
        self.node = node
        self.tree = DeviceTree(base / "host")
        self._base = base

    @contextmanager
    def plugin(self, resource: str) -> Iterator[Callable[[signal.Signals], None]]:
        """Run the plugin with one resource, written as YAML; what is given ends it by a signal and starts it again."""
        config = self._base / "config.yaml"
        config.write_text(
            f"roots: {{dev: {self.tree.dev}, sys: {self.tree.sys}}}\nresources:\n- {{name: {NAME}, {resource}}}\n"
        )
        words = [*DEVICE_PLUGIN, "run", "--config", str(config), "--plugin-dir", str(self.node.plugins)]
        with (self._base / "plugin.log").open("ab") as log:
            processes = [subprocess.Popen(words, stderr=log)]

            def again(number: signal.Signals) -> None:
                processes[-1].send_signal(number)
                processes[-1].wait(10)
                before = self.times_active
                processes.append(subprocess.Popen(words, stderr=log))
                wait_until(lambda: self.times_active > before, 10, "the plugin active again")

            try:
                yield again
            finally:
                processes[-1].terminate()
                processes[-1].wait(10)

    @property
    def times_active(self) -> int:
        """How often the plugin became active. The node object may never show that it was away."""
        return (self._base / "plugin.log").read_text().count(" active:")

    def run_pod(self, name: str, count: int = 1) -> dict[str, object]:
        """Have a pod scheduled and started; give what its container was given."""
        self.plane.make_pod(name, {NAME: str(count)})
        given = self.node.container(f"{name}/main")
        self.node.wait_phase(name, "Running")
        return given

    def health(self, pod: str) -> dict[str, str]:
        """Give the health of a pod's devices as its status has it."""
        status = self.plane.pod(pod)["status"]["containerStatuses"][0]
        entries = status.get("allocatedResourcesStatus") or []
        return {one["resourceID"]: one["health"] for entry in entries for one in entry["resources"]}

    def done(self, *pods: str) -> None:
        """Delete pods."""
        for pod in pods:
            self.plane.delete_pod(pod)


Check = Callable[[Scene], str]
SCENES: dict[str, Check] = {}


def scene(check: Check) -> Check:
    """Add a scene to the table. It returns what was seen, as a line for people."""
    SCENES[check.__name__] = check
    return check


@scene
def what_a_container_gets(one: Scene) -> str:
    """Device nodes, mounts, environment, annotations and CDI names arrive at the container runtime."""
    one.tree.node("ttyUSB0")
    (one.tree.dev / "firmware").mkdir()
    source = (
        "paths: [{path: /dev/ttyUSB*, mountPath: /dev/modem}, {path: /dev/firmware, type: Mount, mountPath: /fw}], "
        "env: {SPEED: '115200'}, annotations: {example.com/note: hello}, cdiNames: [example.com/class=one]"
    )
    with one.plugin(source):
        one.node.wait_shows(NAME, 1, 1)
        given = one.run_pod("w")
        assert [{"container_path": "/dev/modem", "host_path": "/dev/ttyUSB0", "permissions": "rw"}] == given[
            "devices"
        ], given
        mounts, envs, annotations = given["mounts"], given["envs"], given["annotations"]
        assert isinstance(mounts, list)
        assert isinstance(envs, dict)
        assert isinstance(annotations, dict)
        assert "/fw" in [mount["container_path"] for mount in mounts], mounts
        assert "115200" == envs["SPEED"], envs
        assert "hello" == annotations["example.com/note"], annotations
        assert [{"name": "example.com/class=one"}] == given["cdi_devices"], given
        one.done("w")
    return f"nodes {given['devices']}, environment {sorted(key for key in envs if 'EXAMPLE' in key)}"


@scene
def kubelet_restarts(one: Scene) -> str:
    """The kubelet ends by SIGTERM and by SIGKILL while a pod holds a device: offered again, the pod keeps it."""
    took = []
    with one.plugin("counter: 2"):
        one.node.wait_shows(NAME, 2, 2)
        given = one.run_pod("w")
        for how in ("terminate", "kill"):
            one.node.end(how)
            before = one.times_active
            one.node.start()
            began = time.monotonic()
            wait_until(lambda before=before: one.times_active > before, 30, "the plugin active again")  # type: ignore[misc]
            took.append(time.monotonic() - began)
            one.node.wait_shows(NAME, 2, 2)
            status = one.plane.pod("w")["status"]
            assert ("Running", 0) == (status["phase"], status["containerStatuses"][0]["restartCount"]), status
        other = one.run_pod("other")
        assert given["envs"] != other["envs"]
        one.node.exit_container("w/main")
        again = one.node.container("w/main", 60)
        assert given["envs"] == again["envs"]
        one.done("w", "other")
    return f"active {max(took):.1f} s after the kubelet's start at the latest"


@scene
def plugin_restarts(one: Scene) -> str:
    """The plugin ends by SIGTERM and by SIGKILL while pods run: same ids, pods stay, new ones start."""
    with one.plugin("counter: 2") as again:
        one.node.wait_shows(NAME, 2, 2)
        one.run_pod("w")
        for turn, number in enumerate((signal.SIGTERM, signal.SIGKILL)):
            again(number)
            one.node.wait_shows(NAME, 2, 2)
            one.run_pod(f"w{turn}")
            assert "Running" == one.plane.pod("w")["status"]["phase"]
            one.done(f"w{turn}")
            wait_until(lambda turn=turn: f"w{turn}" not in str(one.plane.client().get("/api/v1/pods")), 30, "pod gone")  # type: ignore[misc]
        one.done("w")
    return "the pod ran on"


@scene
def health(one: Scene) -> str:
    """A device that vanishes is Unhealthy in the node object and in the status of its pod, and comes back."""
    one.tree.node("ttyUSB0")
    with one.plugin("paths: [{path: /dev/ttyUSB*}], scanInterval: 0.5"):
        one.node.wait_shows(NAME, 1, 1)
        one.run_pod("w")
        wait_until(lambda: one.health("w"), 20, "health in the pod's status")
        began = time.monotonic()
        one.tree.remove("ttyUSB0")
        wait_until(lambda: list(one.health("w").values()) == ["Unhealthy"], 20, "Unhealthy in the pod's status")
        took = time.monotonic() - began
        one.node.wait_shows(NAME, 1, 0)
        one.tree.node("ttyUSB0")
        wait_until(lambda: list(one.health("w").values()) == ["Healthy"], 20, "Healthy in the pod's status")
        one.node.wait_shows(NAME, 1, 1)
        one.done("w")
    return f"in the pod's status {took:.1f} s after the file was gone"


@scene
def five_thousand_devices(one: Scene) -> str:
    """5,000 devices, 500 of them to one pod."""
    began = time.monotonic()
    with one.plugin("counter: 5000"):
        one.node.wait_shows(NAME, 5000, 5000)
        took = time.monotonic() - began
        given = one.run_pod("w", 500)
        envs = given["envs"]
        assert isinstance(envs, dict)
        assert 500 == len(envs["EXAMPLE_COM_RESOURCE_DEVICES"].split(","))
        one.done("w")
    return f"in the node object after {took:.1f} s"


def check(name: str, version: str) -> bool:
    """Play one scene with a kubelet of one version; tell how it went."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="node-") as base, ControlPlane() as plane, Kubelet(plane, version) as node:
        try:
            seen = SCENES[name](Scene(plane, node, Path(base)))
        except Exception:
            sys.stdout.write(f"{version} {name}: FAILED\n{traceback.format_exc()}\n")
            log = Path(base) / "plugin.log"
            sys.stdout.write(log.read_text()[-4000:] if log.exists() else "")
            return False
    sys.stdout.write(f"{version} {name}: ok ({time.monotonic() - began:.0f} s): {seen}\n")
    sys.stdout.flush()
    return True


def main(versions: list[str], names: list[str]) -> int:
    """Play scenes one after the other."""
    results = [check(name, version) for version in versions for name in names]
    sys.stdout.write(f"{sum(results)} of {len(results)} scenes are as they should be\n")
    return 0 if all(results) else 1


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--version", action="append", choices=VERSIONS)
    parser.add_argument("scenes", nargs="*", default=[], metavar="SCENE")
    chosen = parser.parse_args()
    raise SystemExit(main(chosen.version or list(VERSIONS), chosen.scenes or list(SCENES)))
