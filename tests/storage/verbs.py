"""The storage plugin as its caller sees it: JSON requests in, JSON answers out, records in a dict."""

import json
from typing import Any

import pytest

from resource_extend.codec import encode
from resource_extend.errors import PluginError
from resource_extend.settings import Settings
from resource_extend.storage.plugin import StoragePlugin
from resource_extend.verbs import ANSWER_NOTHING, REQUESTS, method_name
from resource_extend.wire import decode_nodes_of_pods, decode_request
from support.memory_store import MemoryStore

KIB, MIB, GIB, TIB = 1 << 10, 1 << 20, 1 << 30, 1 << 40

DEFAULT_NODE = {"volumes": ["/data0:1T", "/data1:1T", "/data2:1T", "/data3:1T"]}


class Cluster:
    """One plugin and its store."""

    def __init__(self, max_deploy_count: int = 100) -> None:
        self.store = MemoryStore()
        self.settings = Settings(max_deploy_count=max_deploy_count)

    def call(self, verb: str, request: dict[str, Any] | bytes | None = None, /, **keys: Any) -> Any:
        """Call a verb; keys of the request may be given as arguments."""
        data = request if isinstance(request, bytes) else json.dumps({**(request or {}), **keys}).encode()
        if verb == "get-metrics":
            arguments: dict[str, Any] = {"nodes": decode_nodes_of_pods(data)}
        else:
            arguments = decode_request(data, REQUESTS[verb], StoragePlugin)
        answer = getattr(StoragePlugin(self.store, self.settings), method_name(verb))(**arguments)
        return {} if verb in ANSWER_NOTHING else json.loads(encode(answer))

    def refusal(self, verb: str, request: dict[str, Any] | bytes | None = None, /, **keys: Any) -> str:
        """Return the text of a call that fails, and see that it wrote nothing."""
        before = dict(self.store.values)
        with pytest.raises(PluginError) as caught:
            self.call(verb, request, **keys)
        assert before == self.store.values
        assert "\n" not in str(caught.value)
        return str(caught.value)

    def record(self, node: str = "n") -> Any:
        """Return the stored record of a node."""
        return json.loads(self.store.values[node])

    def plant(self, record: dict[str, Any], node: str = "n") -> None:
        """Store a record as it is, in the form in which everybody writes them."""
        self.store.values[node] = json.dumps(record, separators=(",", ":")).encode()


def resource(volumes: dict[str, int] | None = None, disks: list[Any] | None = None, storage: int = 0) -> dict[str, Any]:
    """Return a resource in its stored form."""
    return {"volumes": volumes or {}, "disks": disks or [], "storage": storage}


def disk(device: str, mounts: list[str], *quota: int) -> dict[str, Any]:
    """Return a disk in its stored form; missing numbers are 0."""
    numbers = [*quota, 0, 0, 0, 0][:4]
    names = ("read_IOPS", "write_IOPS", "read_bps", "write_bps")
    return {"device": device, "mounts": mounts, **dict(zip(names, numbers, strict=True))}


def default_node(max_deploy_count: int = 100) -> Cluster:
    """Return a cluster with the default node of the specification's examples, "n"."""
    cluster = Cluster(max_deploy_count)
    cluster.call("add-node", nodename="n", resource=DEFAULT_NODE)
    return cluster


VDA = "/dev/vda:/,/data0:100:200:1G:2G"

# One that takes a byte of storage, one that predates the plugin, one whose limit counts for nothing.
WORKLOADS: list[Any] = [{"storage_request": 1}, None, {"storage_limit": 1}]


def two_disks() -> Cluster:
    """Return a cluster whose node has the disks vda and vdb."""
    cluster = Cluster()
    cluster.call("add-node", nodename="n", resource={"disks": [VDA, "/dev/vdb:/data1:1:2:3:4"], "storage": 1})
    return cluster


def set_usage(cluster: Cluster, delta: bool = True, incr: bool = True, **keys: Any) -> Any:
    """Call the verb as core does."""
    empty = {"resource": None, "resource_request": None, "workloads_resource": None}
    return cluster.call("set-node-resource-usage", nodename="n", delta=delta, incr=incr, **{**empty, **keys})
