"""A real control plane on loopback: etcd, kube-apiserver, kube-scheduler, as `build.py` makes them. No controllers.

    with ControlPlane() as plane:
        plane.make_node("n1")
        plane.kubeconfig("admin")

Users are known by static tokens made for the run: `admin` may everything, `nobody` is a user without any rights.
"""

import base64
import http.client
import json
import shutil
import socket
import ssl
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from real_kubernetes.build import KUBERNETES, program
from real_kubernetes.client import ApiError, Client

USERS = {
    "admin": ("admin", "system:masters"),
    "nobody": ("nobody", ""),
    "scheduler": ("system:kube-scheduler", ""),
    "node-n1": ("system:node:n1", "system:nodes"),
}
PODS = "/api/v1/namespaces/default/pods"

Found = TypeVar("Found")


def wait_until(look: Callable[[], Found | None], seconds: float, what: str) -> Found:
    """What `look` returns once that is something.

    Raises:
        TimeoutError: it did not become so in time.
    """
    end = time.monotonic() + seconds
    while True:
        try:
            found = look()
        except (OSError, ApiError, http.client.HTTPException):
            found = None
        if found:
            return found
        if time.monotonic() > end:
            raise TimeoutError(f"{what}: not so after {seconds:.0f} s")
        time.sleep(0.05)


class ControlPlane:
    """The three programs, and a folder for their state and logs that is removed at the end."""

    def __init__(self, kubernetes: str = KUBERNETES, *, scheduler: bool = True) -> None:
        self._kubernetes = kubernetes
        self._with_scheduler = scheduler
        self.folder = Path(tempfile.mkdtemp(prefix="control-plane-"))
        self.port = free_port()
        self._programs: list[tuple[str, subprocess.Popen[bytes]]] = []

    def __enter__(self) -> "ControlPlane":
        try:
            self._start()
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()

    def client(self, user: str = "admin") -> Client:
        """Calls in the name of a user."""
        return Client(self.port, self._authority, f"{user}-token")

    def kubeconfig(self, user: str = "admin") -> str:
        """Write a kubeconfig for a user; its path."""
        authority = base64.b64encode(self._authority.read_bytes()).decode()
        server = {"server": f"https://127.0.0.1:{self.port}", "certificate-authority-data": authority}
        document = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "real",
            "clusters": [{"name": "real", "cluster": server}],
            "users": [{"name": user, "user": {"token": f"{user}-token"}}],
            "contexts": [{"name": "real", "context": {"cluster": "real", "user": user, "namespace": "default"}}],
        }
        path = self.folder / f"{user}.kubeconfig"
        path.write_text(json.dumps(document))
        path.chmod(0o600)
        return str(path)

    @property
    def _authority(self) -> Path:
        return self.folder / "certs" / "apiserver.crt"

    def _start(self) -> None:
        key, public = self.folder / "account.key", self.folder / "account.pub"
        subprocess.run(["openssl", "genrsa", "-out", key, "2048"], check=True, capture_output=True)
        subprocess.run(["openssl", "rsa", "-in", key, "-pubout", "-out", public], check=True, capture_output=True)
        lines = [f'{name}-token,{user},{name},"{groups}"\n' for name, (user, groups) in USERS.items()]
        (self.folder / "tokens.csv").write_text("".join(lines))
        etcd = self._start_etcd()
        self._run(
            "kube-apiserver",
            etcd_servers=etcd,
            bind_address="127.0.0.1",
            advertise_address="127.0.0.1",
            secure_port=self.port,
            cert_dir=self.folder / "certs",
            token_auth_file=self.folder / "tokens.csv",
            authorization_mode="Node,RBAC",
            service_cluster_ip_range="10.0.0.0/24",
            service_account_issuer="https://real.invalid",
            service_account_key_file=public,
            service_account_signing_key_file=key,
            endpoint_reconciler_type="none",
            # No controllers run: nobody would make service accounts, or take the not-ready taint off new nodes.
            disable_admission_plugins="ServiceAccount,TaintNodesByCondition",
        )
        self._wait_until(self._authority.exists, 60, "certificate of kube-apiserver")
        self._wait_until(lambda: self.client().get("/readyz") == "ok", 90, "kube-apiserver")
        self._wait_until(lambda: self.client().get("/api/v1/namespaces/default"), 30, "namespace default")
        if self._with_scheduler:
            self._start_scheduler()

    def _start_etcd(self) -> str:
        clients, peers = (f"http://127.0.0.1:{free_port()}" for _ in range(2))
        self._run(
            "etcd",
            name="one",
            data_dir=self.folder / "etcd",
            listen_client_urls=clients,
            advertise_client_urls=clients,
            listen_peer_urls=peers,
            initial_advertise_peer_urls=peers,
            initial_cluster=f"one={peers}",
        )
        return clients

    def _start_scheduler(self) -> None:
        config, port = self.kubeconfig("scheduler"), free_port()
        self._run(
            "kube-scheduler",
            kubeconfig=config,
            leader_elect="false",
            bind_address="127.0.0.1",
            secure_port=port,
            cert_dir=self.folder / "scheduler-certs",
            authentication_kubeconfig=config,
            authentication_tolerate_lookup_failure="true",
        )

        def healthy() -> bool:
            # Its certificate is made at its start and signed by nobody.
            connection = http.client.HTTPSConnection("127.0.0.1", port, context=ssl._create_unverified_context())
            connection.request("GET", "/healthz")
            return connection.getresponse().status == 200

        self._wait_until(healthy, 60, "kube-scheduler")

    def _run(self, name: str, /, **flags: object) -> None:
        """Start a program; `data_dir="x"` becomes `--data-dir=x`."""
        words = [f"--{flag.replace('_', '-')}={value}" for flag, value in flags.items()]
        with (self.folder / f"{name}.log").open("ab") as log:
            running = subprocess.Popen(
                [str(program(name, self._kubernetes)), *words], stdout=log, stderr=log, cwd=self.folder
            )
        self._programs.append((name, running))

    def _wait_until(self, look: Callable[[], object], seconds: float, what: str) -> None:
        """Wait for a program that is starting, not for one that has ended."""

        def alive() -> object:
            for name, running in self._programs:
                if running.poll() is not None:
                    last = (self.folder / f"{name}.log").read_text(errors="replace").splitlines()[-3:]
                    raise RuntimeError("\n".join([f"{name} ended with {running.returncode}:", *last]))
            return look()

        wait_until(alive, seconds, what)

    def _stop(self) -> None:
        for _, running in reversed(self._programs):
            running.terminate()
            try:
                running.wait(10)
            except subprocess.TimeoutExpired:
                running.kill()
                running.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    # What the checks make and look at.

    def make_node(self, name: str, *, labels: dict[str, str] | None = None, spec: dict[str, Any] | None = None) -> None:
        """A node without a kubelet behind it."""
        capacity = {"cpu": "4", "memory": "8Gi", "pods": "110"}
        ready = {"type": "Ready", "status": "True", "reason": "Made", "message": "no kubelet"}
        node = {
            "metadata": {"name": name, "labels": labels or {}},
            "spec": spec or {},
            "status": {"capacity": capacity, "allocatable": capacity, "conditions": [ready]},
        }
        self.client().post("/api/v1/nodes", node)

    def delete_node(self, name: str) -> None:
        """The node object goes."""
        self.client().delete(f"/api/v1/nodes/{name}")

    def make_pod(self, name: str, requests: dict[str, str], **spec: Any) -> None:
        """A pod of one container."""
        resources = {"limits": requests, "requests": requests}
        container = {"name": "main", "image": "real.invalid/none", "resources": resources}
        plain = {"automountServiceAccountToken": False, "enableServiceLinks": False}
        self.client().post(PODS, {"metadata": {"name": name}, "spec": {"containers": [container], **plain, **spec}})

    def delete_pod(self, name: str) -> None:
        """The pod goes at once."""
        self.client().delete(f"{PODS}/{name}", {"gracePeriodSeconds": 0})

    def pod(self, name: str) -> Any:
        """The pod."""
        return self.client().get(f"{PODS}/{name}")

    def node_of(self, name: str) -> str:
        """The node that the scheduler bound the pod to."""
        return wait_until(lambda: str(self.pod(name)["spec"].get("nodeName") or ""), 30, f"pod {name} bound")

    def unschedulable(self, name: str) -> str:
        """What the scheduler says of a pod that it cannot place."""

        def message() -> str:
            events = self.client().get("/api/v1/namespaces/default/events")["items"]
            about = [event for event in events if event["involvedObject"]["name"] == name]
            return next((event["message"] for event in about if event["reason"] == "FailedScheduling"), "")

        return wait_until(message, 30, f"FailedScheduling of {name}")

    def shows(self, node: str, name: str) -> tuple[str | None, str | None]:
        """(capacity, allocatable) of a resource on a node."""
        status = self.client().get(f"/api/v1/nodes/{node}")["status"]
        return status.get("capacity", {}).get(name), status.get("allocatable", {}).get(name)


def free_port() -> int:
    """A port on loopback that nobody uses right now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
