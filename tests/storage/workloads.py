"""Calls about workloads, and the shapes of their answers, for the tests of those verbs."""

from typing import Any

from storage.verbs import GIB, Cluster, disk

GIB100 = 100 * GIB
SHORTAGE = "cannot alloc a plan, not enough resource"


def capacity(cluster: Cluster, request: Any, nodes: list[str] | None = None) -> Any:
    """Ask for the deploy capacity."""
    return cluster.call("get-nodes-deploy-capacity", nodenames=nodes or ["n"], workload_resource=request)


def deploy(cluster: Cluster, request: Any, count: int = 1, node: str = "n") -> Any:
    """Calculate a deploy."""
    return cluster.call("calculate-deploy", nodename=node, deploy_count=count, workload_resource_request=request)


def deploy_refusal(cluster: Cluster, request: Any, count: int = 1, node: str = "n") -> str:
    """Return the text of a deploy that fails."""
    keys = {"nodename": node, "deploy_count": count, "workload_resource_request": request}
    return cluster.refusal("calculate-deploy", keys)


def held(request: Any) -> Any:
    """Return the workload resource of a request that needs no node."""
    return deploy(Cluster(), request, node="unknown")["workloads_resource"][0]


def book(cluster: Cluster, workloads: list[Any], incr: bool = True, node: str = "n") -> None:
    """Record workloads as core does."""
    cluster.call("set-node-resource-usage", nodename=node, workloads_resource=workloads, delta=True, incr=incr)


EMPTY_ENGINE = {"volumes": [], "volume_changed": False, "storage": 0, "iops_options": {}}
EMPTY_WORKLOAD: dict[str, Any] = {
    "volumes_request": [],
    "volumes_limit": [],
    "volume_plan_request": {},
    "volume_plan_limit": {},
    "storage_request": 0,
    "storage_limit": 0,
    "disks_request": [],
    "disks_limit": [],
}

QUOTA_VOLUME = "AUTO:/dir0:rw:100GiB:100:100:1M:1M"
QUOTA_ROW = disk("/dev/vda", ["/data0"], 100, 100, 1048576, 1048576)


def quota_node() -> Cluster:
    """Return the node of the last row of 13.6."""
    cluster = Cluster()
    request = {"volumes": ["/data0:1T"], "disks": ["/dev/vda:/data0:1000:1000:1G:1G"]}
    cluster.call("add-node", nodename="n", resource=request)
    return cluster
