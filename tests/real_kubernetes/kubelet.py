"""A whole real kubelet on a real control plane, with `fakecri` beside this file as a runtime that runs nothing.

    with ControlPlane() as plane, Kubelet(plane) as node:
        node.plugins                            the device plugin folder
        plane.make_pod("pod", {"example.com/resource": "1"})
        node.container("pod/main")              what the runtime was told to give to the container

The kubelet has its device plugin folder fixed in its code, so it runs in a mount namespace of its own where a temporary
folder stands in for /var/lib/kubelet. That takes root, `unshare` and `mount`.
"""

from __future__ import annotations

import json
import queue
import shlex
import shutil
import subprocess
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from real_kubernetes.build import KUBERNETES, program
from real_kubernetes.control_plane import ControlPlane, free_port, wait_until

STATUS_PERIOD = "1s"  # how often the node object is written; ten seconds by default
NOTHING_EVICTED = {
    "memory.available": "0%",
    "nodefs.available": "0%",
    "nodefs.inodesFree": "0%",
    "imagefs.available": "0%",
}


class Kubelet:
    """The kubelet of node `n1`, the runtime beside it, and a folder for both that is removed at the end."""

    def __init__(self, plane: ControlPlane, version: str = KUBERNETES, name: str = "n1") -> None:
        self.plane = plane
        self.version = version
        self.name = name
        self.folder = Path(tempfile.mkdtemp(prefix="kubelet-"))
        self.root = self.folder / "kubelet"
        self.plugins = self.root / "device-plugins"
        self._events: queue.Queue[dict[str, Any]] = queue.Queue()
        self._answers: queue.Queue[Any] = queue.Queue()

    def __enter__(self) -> Kubelet:
        """Start both, and wait until the node is ready."""
        self.root.mkdir()
        Path("/var/lib/kubelet").mkdir(parents=True, exist_ok=True)  # what is mounted over, in its own namespace
        self._runtime = subprocess.Popen(
            [program("fakecri", self.version), "-socket", self.folder / "cri.sock"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        threading.Thread(target=self._read, daemon=True).start()
        self._event("started")
        try:
            self.start()
            self.wait_ready()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_error: object) -> None:
        """End both."""
        for process in (self.process, self._runtime):
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def start(self) -> None:
        """Start the kubelet."""
        path = self.folder / "config.json"
        path.write_text(json.dumps(self._config()))
        words = [
            str(program("kubelet", self.version)),
            f"--config={path}",
            f"--kubeconfig={self.plane.kubeconfig(f'node-{self.name}')}",
            f"--hostname-override={self.name}",
            f"--cert-dir={self.folder}/pki",
        ]
        mounts = f"mount --make-rprivate / && mount --bind {self.root} /var/lib/kubelet"
        with (self.folder / "kubelet.log").open("ab") as log:
            self.process = subprocess.Popen(
                ["unshare", "--mount", "sh", "-c", f"{mounts} && exec {shlex.join(words)}"], stdout=log, stderr=log
            )

    def end(self, how: str) -> None:
        """End the kubelet: `terminate` or `kill`."""
        getattr(self.process, how)()
        self.process.wait(20)

    def _config(self) -> dict[str, Any]:
        return {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "address": "127.0.0.1",
            "port": free_port(),
            "readOnlyPort": 0,
            "healthzPort": 0,
            "authentication": {"anonymous": {"enabled": True}, "webhook": {"enabled": False}},
            "authorization": {"mode": "AlwaysAllow"},
            "containerRuntimeEndpoint": f"unix://{self.folder}/cri.sock",
            "cgroupDriver": "cgroupfs",
            "cgroupsPerQOS": False,
            "enforceNodeAllocatable": [],
            "failSwapOn": False,
            "failCgroupV1": False,
            "localStorageCapacityIsolation": False,
            "evictionHard": NOTHING_EVICTED,
            "imageGCHighThresholdPercent": 100,
            "makeIPTablesUtilChains": False,
            "resolvConf": "",
            "podLogsDir": f"{self.folder}/logs",
            "volumePluginDir": f"{self.folder}/volume-plugins",
            "nodeStatusUpdateFrequency": STATUS_PERIOD,
            "syncFrequency": "2s",
        }

    # The runtime

    def _read(self) -> None:
        assert self._runtime.stdout
        for line in self._runtime.stdout:
            said = json.loads(line)
            if "cmd" in said:
                self._answers.put(said.get("result"))
            else:
                self._events.put(said)

    def _event(self, kind: str, container: str = "", seconds: float = 40) -> dict[str, Any]:
        end = time.monotonic() + seconds
        while True:
            try:
                said = self._events.get(timeout=max(0.01, end - time.monotonic()))
            except queue.Empty:
                raise TimeoutError(f"no {kind} of {container!r} within {seconds:.0f} s") from None
            if said["event"] == kind and container in {"", said.get("container")}:
                return said

    def container(self, name: str, seconds: float = 40) -> dict[str, Any]:
        """Wait for POD/CONTAINER to be created, and give what it gets."""
        return self._event("create", name, seconds)

    def exit_container(self, name: str) -> None:
        """Have the process of POD/CONTAINER end with status 1."""
        assert self._runtime.stdin
        self._runtime.stdin.write(json.dumps({"cmd": "exit", "container": name, "code": 1}) + "\n")
        self._runtime.stdin.flush()
        self._answers.get(timeout=10)

    # The node

    def wait_ready(self) -> None:
        """Wait until the node is Ready."""

        def ready() -> bool:
            if self.process.poll() is not None:
                last = (self.folder / "kubelet.log").read_text(errors="replace").splitlines()[-5:]
                raise RuntimeError("\n".join(["the kubelet ended:", *last]))
            status = self.plane.client().get(f"/api/v1/nodes/{self.name}")["status"]
            return any(each["type"] == "Ready" and each["status"] == "True" for each in status.get("conditions", []))

        wait_until(ready, 60, "node Ready")

    def wait_shows(self, resource: str, capacity: int, allocatable: int, seconds: float = 30) -> None:
        """Wait until the node object shows these numbers."""
        wanted = (_quantity(capacity), _quantity(allocatable))

        def reached() -> bool:
            return self.plane.shows(self.name, resource) == wanted

        try:
            wait_until(reached, seconds, "")
        except TimeoutError:
            shown = self.plane.shows(self.name, resource)
            raise TimeoutError(f"{resource}: wanted {wanted}, the node shows {shown}") from None

    def wait_phase(self, pod: str, phase: str, seconds: float = 40) -> None:
        """Wait until a pod is in a phase."""
        wait_until(lambda: self.plane.pod(pod)["status"].get("phase") == phase, seconds, f"pod {pod} {phase}")


def _quantity(number: int) -> str:
    """Write a number as the API server does, which shortens what it can: 5000 is 5k."""
    return f"{number // 1000}k" if number and number % 1000 == 0 else str(number)
