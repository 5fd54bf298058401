"""The state of a fake cluster: nodes, pods, events, classes; versions; a kubelet for the nodes that have one."""

import copy
import threading
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from kubernetes.extended_resource.fake_objects import Object, StatusError, patched, stored_status

SYNC = 10.0
"""Seconds between two node status syncs of a kubelet."""

GRACE = 300.0
"""Seconds for which a kubelet remembers a device plugin that left."""


class FakeClock:
    """Time that passes when somebody sleeps, and tells the kubelets."""

    def __init__(self) -> None:
        self._now = 1000.0
        self._lock = threading.RLock()
        self.listeners: list[Callable[[float], None]] = []

    def now(self) -> float:
        """Seconds."""
        return self._now

    def sleep(self, seconds: float) -> None:
        """Let so many seconds pass at once."""
        with self._lock:
            self._now += seconds
            for listener in self.listeners:
                listener(self._now)


@dataclass
class DevicePlugin:
    """A device plugin as the node shows it; `left` is when its stream ended."""

    devices: int
    unhealthy: int = 0
    left: float | None = None


@dataclass
class Kubelet:
    """What a kubelet does to the node object of a node (specification, kubernetes 2.5 and 2.13)."""

    last_sync: float
    plugins: dict[str, DevicePlugin] = field(default_factory=dict)

    def sync(self, status: Object, now: float) -> None:
        """One status sync: own counts written, allocatable copied from capacity for names it does not manage."""
        capacity = status.setdefault("capacity", {})
        allocatable = status.setdefault("allocatable", {})
        for name in [name for name in allocatable if name not in capacity]:
            del allocatable[name]
        allocatable.update(capacity)
        for name, plugin in list(self.plugins.items()):
            gone = plugin.left is not None
            if plugin.left is not None and now - plugin.left > GRACE:
                capacity[name] = allocatable[name] = "0"
                del self.plugins[name]
            else:
                capacity[name] = str(plugin.devices)
                allocatable[name] = "0" if gone else str(plugin.devices - plugin.unhealthy)


class FakeCluster:
    """Objects by kind and key, with one counter of versions; every method may be called from any thread."""

    def __init__(self, clock: FakeClock) -> None:
        self.clock = clock
        self.changed = threading.Condition(threading.RLock())
        self.version = 100
        self.oldest = 0
        self.objects: dict[str, dict[str, Object]] = {"nodes": {}, "pods": {}, "events": {}, "deviceclasses": {}}
        self.history: list[tuple[int, str, str, Object]] = []
        self.kubelets: dict[str, Kubelet] = {}
        self.admission: Callable[[Object], None] | None = None
        clock.listeners.append(self.sync_kubelets)

    def create(self, kind: str, document: Object) -> Object:
        """Store a new object."""
        with self.changed:
            document = copy.deepcopy(document)
            metadata = document.setdefault("metadata", {})
            key = _key(metadata)
            if key in self.objects[kind]:
                raise StatusError(409, "AlreadyExists", f'{kind} "{key}" already exists')
            metadata["uid"] = str(uuid.uuid4())
            metadata["creationTimestamp"] = "2026-01-01T00:00:00Z"
            if kind == "nodes":
                document["status"] = stored_status(document.get("status", {}), key)
                document.setdefault("spec", {})
            return self._store(kind, key, document, "ADDED")

    def delete(self, kind: str, key: str) -> Object:
        """Remove an object."""
        with self.changed:
            document = self.get(kind, key)
            del self.objects[kind][key]
            self._note("DELETED", kind, document)
            return document

    def get(self, kind: str, key: str) -> Object:
        """A copy of one object."""
        with self.changed:
            if key not in self.objects[kind]:
                name = key.rpartition("/")[2]
                raise StatusError(404, "NotFound", f'{kind} "{name}" not found')
            return copy.deepcopy(self.objects[kind][key])

    def all(self, kind: str) -> list[Object]:
        """Copies of all objects of a kind, by key."""
        with self.changed:
            return [copy.deepcopy(document) for _, document in sorted(self.objects[kind].items())]

    def patch_node(self, name: str, kind: str, patch: Any, *, status: bool, dry_run: bool = False) -> Object:
        """PATCH of a node: through /status only status, labels and annotations change, otherwise everything else."""
        with self.changed:
            before = self.get("nodes", name)
            after = patched(before, kind, patch)
            if after["metadata"].get("resourceVersion") != before["metadata"]["resourceVersion"]:
                raise StatusError(409, "Conflict", f'Operation cannot be fulfilled on nodes "{name}"')
            merged = copy.deepcopy(before)
            for key in ("labels", "annotations"):
                _put(merged["metadata"], key, after["metadata"].get(key))
            if status:
                if self.admission:
                    self.admission(after)
                merged["status"] = stored_status(after.get("status") or {}, name)
            else:
                merged["spec"] = after.get("spec", {})
            if dry_run or merged == before:
                return merged
            return self._store("nodes", name, merged, "MODIFIED")

    def sync_kubelets(self, now: float) -> None:
        """Let every kubelet whose time has come write its node's status."""
        with self.changed:
            for name, kubelet in self.kubelets.items():
                while now - kubelet.last_sync >= SYNC:
                    kubelet.last_sync += SYNC
                    self._sync(name, kubelet)

    def _sync(self, name: str, kubelet: Kubelet) -> None:
        if name in self.objects["nodes"]:
            node = self.get("nodes", name)
            status = copy.deepcopy(node["status"])
            kubelet.sync(status, kubelet.last_sync)
            if status != node["status"]:
                self._store("nodes", name, {**node, "status": stored_status(status, name)}, "MODIFIED")

    def compact(self) -> None:
        """Forget every version before the present one, as etcd does after some minutes."""
        with self.changed:
            self.version += 1
            self.oldest = self.version

    def _store(self, kind: str, key: str, document: Object, event: str) -> Object:
        self.version += 1
        document["metadata"]["resourceVersion"] = str(self.version)
        self.objects[kind][key] = document
        self._note(event, kind, document)
        return copy.deepcopy(document)

    def _note(self, event: str, kind: str, document: Object) -> None:
        self.history.append((self.version, event, kind, copy.deepcopy(document)))
        self.changed.notify_all()


def _key(metadata: Object) -> str:
    namespace = metadata.get("namespace")
    return f"{namespace}/{metadata['name']}" if namespace else str(metadata["name"])


def _put(target: Object, key: str, value: Any) -> None:
    if value:
        target[key] = value
    else:
        target.pop(key, None)
