"""A fake API server, and the program's commands run against it."""

import json
import signal
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from kubernetes.extended_resource.fake_api_server import FakeApiServer, Fault
from kubernetes.extended_resource.fake_cluster import Kubelet
from kubernetes.extended_resource.fake_objects import Object
from kubernetes.extended_resource.server_facts import NAME
from resource_extend.kubernetes.extended_resource.cli import main
from resource_extend.kubernetes.extended_resource.connection import connect
from resource_extend.kubernetes.extended_resource.options import Edge

BASE = {"cpu": "4", "memory": "8Gi", "pods": "110"}


@pytest.fixture
def server() -> Iterator[FakeApiServer]:
    """A fake API server of its own for each test."""
    with FakeApiServer() as running:
        yield running


@dataclass
class Ran:
    """What a command left behind."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """Standard output as JSON."""
        return json.loads(self.out)


Run = Callable[..., Ran]


@pytest.fixture
def run(server: FakeApiServer, tmp_path: Path) -> Run:
    """`run("set", "a.b/c=1", "--node", "n1", user="nobody")`: one call of the program."""

    def call(*words: str, user: str = "admin", timeout: float = 5.0, **credentials: Any) -> Ran:
        config = server.kubeconfig(tmp_path, user, **credentials)
        clients = []

        def opened(kubeconfig: str, context: str) -> Any:
            clients.append(connect(kubeconfig or config, context, timeout))
            return clients[-1]

        answer = CliRunner().invoke(main, words, obj=Edge(opened, server.clock), prog_name="extended-resource")
        for client in clients:
            client.close()
        if answer.exception and not isinstance(answer.exception, SystemExit):
            raise answer.exception
        return Ran(answer.exit_code, answer.stdout, answer.stderr)

    return call


def interrupt() -> None:
    """Ctrl-C, from another thread: a real signal, so that a blocked call of the main thread ends."""
    signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)


class Nodes:
    """Nodes and pods of the fake cluster, made in a few words and read in fewer."""

    def __init__(self, server: FakeApiServer) -> None:
        self.server = server

    def make(
        self,
        name: str,
        capacity: dict[str, str] | None = None,
        allocatable: dict[str, str] | None = None,
        *,
        labels: dict[str, str] | None = None,
        mark: dict[str, int] | None = None,
        kubelet: bool = True,
        spec: Object | None = None,
    ) -> None:
        """A node; allocatable as capacity when it is not given; `kubelet` syncs every 10 s of the fake clock."""
        capacity = {**BASE, **(capacity or {})}
        metadata: Object = {"name": name, "labels": labels or {}}
        if mark is not None:
            metadata["annotations"] = {"resource-extend/extended-resources": json.dumps(mark, separators=(",", ":"))}
        status = {"capacity": capacity, "allocatable": capacity if allocatable is None else {**BASE, **allocatable}}
        self.server.cluster.create("nodes", {"metadata": metadata, "spec": spec or {}, "status": status})
        if kubelet:
            self.server.cluster.kubelets[name] = Kubelet(self.server.clock.now())

    def pod(self, name: str, requests: dict[str, str], node: str = "", **spec: Any) -> None:
        """A pod in namespace default, Running when it is bound."""
        container = {"name": "main", "resources": {"requests": requests, "limits": requests}}
        phase = "Running" if node else "Pending"
        self.server.cluster.create(
            "pods",
            {
                "metadata": {"name": name, "namespace": "default"},
                "spec": {"containers": [container], **({"nodeName": node} if node else {}), **spec},
                "status": {"phase": phase},
            },
        )

    def stop_at_watch_or_lists(self, lists: int) -> None:
        """Send the process a SIGINT when the first watch has begun, at the latest after so many lists."""
        calls = 0
        timer = threading.Timer(0.3, interrupt)

        def count() -> None:
            nonlocal calls
            calls += 1
            if calls == 2:
                timer.start()
            if calls == lists:
                timer.cancel()
                interrupt()

        self.server.faults = [Fault("GET", "/api/v1/nodes", times=99, meddle=count)]

    def shows(self, node: str, name: str = NAME) -> tuple[str | None, str | None]:
        """(capacity, allocatable) as stored."""
        status = self.server.cluster.get("nodes", node)["status"]
        return status["capacity"].get(name), status["allocatable"].get(name)

    def marks(self, node: str) -> dict[str, int]:
        """The ownership annotation."""
        annotations = self.server.cluster.get("nodes", node)["metadata"].get("annotations", {})
        return dict(json.loads(annotations.get("resource-extend/extended-resources", "{}")))


@pytest.fixture
def nodes(server: FakeApiServer) -> Nodes:
    """The fake cluster's nodes."""
    return Nodes(server)
