"""The API calls of this tool, each with the right it needs; errors come out as `errors` names them."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import TypeVar

import httpx2
from lightkube import Client
from lightkube.core.client import FieldSelector, LabelSelector
from lightkube.operators import Operator
from lightkube.resources.core_v1 import Event, Node, NodeStatus, Pod
from lightkube.resources.resource_v1 import DeviceClass
from lightkube.types import PatchType

from resource_extend.kubernetes.extended_resource.answers import Call, translated
from resource_extend.kubernetes.extended_resource.clock import Clock
from resource_extend.kubernetes.extended_resource.errors import Expired, NotFound, Unreachable
from resource_extend.kubernetes.extended_resource.objects import node_name
from resource_extend.kubernetes.extended_resource.patches import Operation

CHUNK = 500
"""Objects asked for at a time: a list of thousands of nodes must not be one answer."""

READ_DELAYS = (0.5, 1.0, 2.0)
"""Seconds to wait before a read is tried again; then it has failed."""

Answer = TypeVar("Answer")


class Selector(Operator[str]):
    """A label selector in kubectl's words, passed on as it is: the API server is who judges it."""

    def __init__(self, text: str) -> None:
        super().__init__("selector", "", text)

    def encode(self, key: str) -> str:  # noqa: ARG002 - lightkube's signature
        """The selector's text."""
        return self.value


class Cluster:
    """One cluster, through one lightkube client (and one for each watch); used by several threads at once."""

    def __init__(self, connect: Callable[[], Client], clock: Clock) -> None:
        self._connect = connect
        self._client = connect()
        self._clock = clock

    def __enter__(self) -> "Cluster":
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    @property
    def namespace(self) -> str:
        """The namespace of the kubeconfig's context."""
        return str(self._client.namespace)

    def node(self, name: str) -> Node:
        """One node."""
        call = Call("get", "nodes", f"node {name}")
        return self._read(call, lambda: self._client.get(Node, name))

    def nodes(self, selector: str = "") -> list[Node]:
        """The nodes whose labels match, by name; all of them without a selector."""
        return self.nodes_at(selector)[0]

    def nodes_at(self, selector: str = "") -> tuple[list[Node], str]:
        """The same, and the version from which `watch_nodes` goes on."""
        call = Call("list", "nodes", "list of nodes")

        def ask() -> tuple[list[Node], str]:
            found = self._client.list(Node, chunk_size=CHUNK, labels=_labels(selector))
            nodes = sorted(found, key=node_name)
            return nodes, found.resourceVersion

        return self._read(call, ask)

    def watch_nodes(self, selector: str, version: str, seconds: int) -> Iterator[Node]:
        """The nodes that appear or change after `version`, for `seconds`, or so many after the last news.

        Silence ends the watch, for a quiet cluster and a dead connection look the same: list again to find out.

        Raises:
            Expired: the server no longer has that version; list again.
            ClusterError: any other trouble; list again, later.
        """
        end = self._clock.now() + seconds
        # A client of its own: lightkube begins a watch again whenever it ends, never closes one that is left, and
        # would wait for news for ever.
        with translated(Call("watch", "nodes", "watch of nodes")), self._connect() as client:
            client._client._watch_timeout.read = float(seconds)
            changes = client.watch(Node, labels=_labels(selector), resource_version=version)
            with suppress(httpx2.ReadTimeout):
                for kind, node in changes:
                    if kind in ("ADDED", "MODIFIED"):
                        yield node
                    if self._clock.now() >= end:
                        return

    def pods_on(self, node: str) -> list[Pod]:
        """The pods bound to one node."""
        call = Call("list", "pods", f"pods on node {node}")
        fields: FieldSelector = {"spec.nodeName": node}
        return self._read(call, lambda: list(self._client.list(Pod, namespace="*", chunk_size=CHUNK, fields=fields)))

    def pods(self) -> list[Pod]:
        """All pods of the cluster."""
        call = Call("list", "pods", "list of pods")
        return self._read(call, lambda: list(self._client.list(Pod, namespace="*", chunk_size=CHUNK)))

    def pod(self, namespace: str, name: str) -> Pod:
        """One pod."""
        call = Call("get", "pods", f"pod {namespace}/{name}")
        return self._read(call, lambda: self._client.get(Pod, name, namespace=namespace))

    def events(self, namespace: str, pod: str) -> list[Event]:
        """The events about one pod."""
        call = Call("list", "events", f"events of pod {namespace}/{pod}")
        fields: FieldSelector = {"involvedObject.kind": "Pod", "involvedObject.name": pod}
        return self._read(call, lambda: list(self._client.list(Event, namespace=namespace, fields=fields)))

    def device_classes(self, name: str) -> list[str]:
        """The DeviceClasses that map the extended resource `name` to dynamic resource allocation (1.34 and later)."""
        call = Call("list", "deviceclasses", "list of DeviceClasses", group="resource.k8s.io")
        try:
            found = self._read(call, lambda: list(self._client.list(DeviceClass)))
        except NotFound:
            return []
        return [
            item.metadata.name or ""
            for item in found
            if item.metadata and item.spec and item.spec.extendedResourceName == name
        ]

    def patch_status(self, node: str, operations: Sequence[Operation], *, dry_run: bool = False) -> Node:
        """Send one JSON patch to a node's status; the node as it is afterwards.

        Raises:
            Changed: a `test` of the patch failed (or the server met a conflict): nothing was changed.
            AnswerLost: nobody knows yet.
            ClusterError: nothing was changed.
        """
        with translated(Call("patch", "nodes/status", f"node {node}")):
            changed = self._client.patch(NodeStatus, node, list(operations), patch_type=PatchType.JSON, dry_run=dry_run)
        return Node(metadata=changed.metadata, spec=changed.spec, status=changed.status)

    def _read(self, call: Call, ask: Callable[[], Answer]) -> Answer:
        """Ask again for a while: a read changes nothing."""
        for delay in READ_DELAYS:
            try:
                with translated(call):
                    return ask()
            except (Unreachable, Expired):
                self._clock.sleep(delay)
        with translated(call):
            return ask()


def _labels(selector: str) -> LabelSelector | None:
    return {"": Selector(selector)} if selector else None
