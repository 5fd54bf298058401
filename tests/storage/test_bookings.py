"""What one verb says holds when another one acts on it: capacity, deploy, usage, realloc, removal together."""

import random
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from resource_extend.codec import decode, encode
from resource_extend.errors import InputError, ResourceError
from resource_extend.storage.binding import Binding
from resource_extend.storage.resource import Record
from resource_extend.storage.validation import validated
from storage import cases
from storage.verbs import Cluster, resource

SOURCES = st.randoms(use_true_random=False)
EACH = settings(max_examples=max(200, settings().max_examples))


def request_of(source: random.Random, bindings: list[Binding]) -> dict[str, Any]:
    """Return the bindings as a request, with limits of their own now and then, and storage."""
    asked = [binding.full() for binding in bindings]
    request: dict[str, Any] = {"storage": source.choice([0, 0, 1, 5])}
    if source.random() < 0.3:
        limits = [Binding(b.source, b.destination, b.flags, b.size + source.randint(0, 5), b.quota) for b in bindings]
        return {**request, "volumes-request": asked, "volumes": [binding.full() for binding in limits]}
    return {**request, "volumes": asked}


def cluster_of(record: Record, cap: int = 100) -> Cluster:
    """Return a cluster with a node "n" of that record, which has some storage beside its volumes."""
    cluster = Cluster(cap)
    record.capacity.storage += 20
    cluster.store.values["n"] = encode(validated(record))
    return cluster


def capacity(cluster: Cluster, request: Any) -> int:
    """Return how many such workloads the node takes."""
    total = cluster.call("get-nodes-deploy-capacity", nodenames=["n"], workload_resource=request)["total"]
    return int(total)


def deploy(cluster: Cluster, request: Any, count: int) -> list[Any]:
    """Calculate a deploy and book it, as core does."""
    keys = {"nodename": "n", "deploy_count": count, "workload_resource_request": request}
    workloads: list[Any] = cluster.call("calculate-deploy", keys)["workloads_resource"]
    assert count == len(workloads)
    book(cluster, workloads)
    return workloads


def book(cluster: Cluster, workloads: list[Any], incr: bool = True) -> None:
    """Add workloads to the usage, or take them off."""
    cluster.call("set-node-resource-usage", nodename="n", workloads_resource=workloads, delta=True, incr=incr)


def used(record: Any) -> Any:
    """Return the usage of a record without its zero entries."""
    usage = record["usage"]
    disks = [disk for disk in usage["disks"] if any(isinstance(number, int) and number for number in disk.values())]
    volumes = {device: size for device, size in usage["volumes"].items() if size}
    return resource(volumes, disks, usage["storage"])


def assert_within_capacity(cluster: Cluster) -> None:
    """See that the record is valid, and that nothing is used more than there is."""
    record = decode(cluster.store.values["n"], Record)
    validated(record)
    assert record.usage.storage <= record.capacity.storage
    assert all(size <= record.capacity.volumes[device] for device, size in record.usage.volumes.items())


@EACH
@given(source=SOURCES)
def test_what_the_query_says_can_be_deployed(source: random.Random) -> None:
    """N workloads fit, the record after them is valid, and taking them off gives the first record, zeros apart."""
    record = cases.node(source)
    bindings = cases.bindings(source, record, cases.CLASSES["any"], 4)
    request = request_of(source, bindings)
    cap = cases.cap(source)
    cluster = cluster_of(record, cap)
    before = used(cluster.record())
    count = capacity(cluster, request)
    assert count <= cap
    assume(count)
    workloads = deploy(cluster, request, count)
    assert_within_capacity(cluster)
    sums = [sum(workload["storage_request"] for workload in workloads) + before["storage"]]
    assert sums == [cluster.record()["usage"]["storage"]]
    for workload in workloads:
        book(cluster, [workload], incr=False)
    assert before == used(cluster.record())


@EACH
@given(source=SOURCES, kinds=st.sampled_from(["", "n"]))
def test_asking_again_gives_nothing(source: random.Random, kinds: str) -> None:
    """For storage, or one normal binding without quotas, n + 1 fails, and after n workloads there is room for none."""
    record = cases.node(source)
    request: dict[str, Any] = {"storage": source.randint(1, 9)}
    if kinds:
        request = {"volumes": [binding.full() for binding in cases.bindings(source, record, kinds, 1)]}
    cluster = cluster_of(record, 1000)
    count = capacity(cluster, request)
    assert count < 1000
    keys = {"nodename": "n", "deploy_count": count + 1, "workload_resource_request": request}
    assert "cannot alloc a plan, not enough resource" in cluster.refusal("calculate-deploy", keys)
    if count:
        deploy(cluster, request, count)
    assert 0 == capacity(cluster, request)


def test_asking_again_can_give_more() -> None:
    """In general it does not: what is opened for one count, another count would not have opened (7.6)."""
    cluster = Cluster()
    volumes = {"/a": 4, "/b": 3, "/c": 2, "/d": 11}
    cluster.plant({"capacity": resource(volumes, [], 40), "usage": resource({"/a": 1}, [], 1)})
    request = {"volumes": ["AUTO:/a:rw:4", "AUTO:/b:mrw:1", "AUTO:/c:rw:3"]}
    assert 1 == capacity(cluster, request)
    deploy(cluster, request, 1)
    assert_within_capacity(cluster)
    assert 1 == capacity(cluster, request)


@EACH
@given(source=SOURCES)
def test_a_history_leaves_nothing_behind(source: random.Random) -> None:
    """Deploys, reallocs up and down and removals, in any order, stay within capacity and end where they began."""
    record = cases.node(source)
    cluster = cluster_of(record)
    before = used(cluster.record())
    workloads: list[Any] = []
    for _ in range(source.randint(1, 5)):
        if not workloads or source.random() < 0.4:
            bindings = cases.bindings(source, record, cases.CLASSES["any"], 3)
            request = request_of(source, bindings)
            count = capacity(cluster, request)
            if count:
                workloads += deploy(cluster, request, source.randint(1, min(count, 3)))
        elif source.random() < 0.7:
            index = source.randrange(len(workloads))
            workloads[index] = _reallocated(source, cluster, record, workloads[index])
        else:
            book(cluster, [workloads.pop(source.randrange(len(workloads)))], incr=False)
        assert_within_capacity(cluster)
        assert [] == _differences(cluster, workloads, before)
    book(cluster, workloads, incr=False)
    assert before == used(cluster.record())


def _reallocated(source: random.Random, cluster: Cluster, record: Record, workload: Any) -> Any:
    """Change a workload up or down and book the difference; return what it then holds."""
    change = []
    for text in workload["volumes_request"]:
        if source.random() < 0.6:
            parts = text.split(":")
            parts[3] = str(source.choice([0, 1, 3, -1, -3, -int(parts[3])]))
            parts[4:] = [source.choice(["0", "1"]), "0", "0", "0"] if source.random() < 0.4 else ["0"] * 4
            change.append(":".join(parts))
    if source.random() < 0.4:
        change.append(cases.binding(source, record, source.choice("nNmMut"), "/added", 4).full())
    request = {"volumes": change, "storage": source.choice([0, 1, -1])}
    keys = {"nodename": "n", "workload_resource": workload, "workload_resource_request": request}
    try:
        answer = cluster.call("calculate-realloc", keys)
    except (InputError, ResourceError):  # a change that no workload can have, or no room
        return workload
    book(cluster, [answer["delta_resource"]])
    return answer["workload_resource"]


def _differences(cluster: Cluster, workloads: list[Any], before: Any) -> list[str]:
    """Return how the usage differs from the workloads' and what was there before."""
    plan = {"AUTO:/before:rw:1:0:0:0:0": before["volumes"]}
    rest = {
        "volume_plan_request": plan,
        "storage_request": before["storage"],
        "disks_request": before["disks"],
    }
    info = cluster.call("get-node-resource-info", nodename="n", workloads_resource=[*workloads, rest])
    return list(info["diffs"])


@EACH
@given(source=SOURCES)
def test_snapshots_undo_any_change(source: random.Random) -> None:
    """`before` of either set verb, sent back as core does, gives the stored bytes back, repeatedly.

    Rows of usage that use nothing are left out here: they go with their disk, and a capacity does not bring them back.
    """
    record = cases.node(source)
    record.usage.disks = [disk for disk in record.usage.disks if any(disk.quota())]
    cluster = cluster_of(record)
    cluster.call("set-node-resource-usage", nodename="n", delta=True, incr=True)
    stored = cluster.store.values["n"]
    for verb, key in (
        ("set-node-resource-capacity", "resource_request"),
        ("set-node-resource-usage", "resource"),
    ):
        change = {
            "delta": source.random() < 0.5,
            "incr": source.random() < 0.7,
            "resource": resource({f"/d{source.randint(0, 8)}": source.randint(0, 9)}, [], source.randint(0, 5)),
        }
        try:
            before = cluster.call(verb, nodename="n", **change)["before"]
        except ResourceError:
            assert stored == cluster.store.values["n"]
            continue
        for _ in range(2):
            cluster.call(verb, {"nodename": "n", "delta": False, "incr": False, "resource": None, key: before})
            assert stored == cluster.store.values["n"]


@pytest.mark.parametrize("known", [True, False])
def test_a_removed_node_comes_back(known: bool) -> None:
    """What a node's record was is stored again exactly, and nothing of an unknown one."""
    cluster = Cluster()
    if known:
        usage = resource({"/a": 1}, [], 1)
        cluster.plant({"capacity": resource({"/a": 5}, [], 9), "usage": usage})
    info = cluster.call("get-node-resource-info", nodename="n")
    before = cluster.record() if known else {"capacity": resource(), "usage": resource()}
    cluster.call("remove-node", nodename="n")
    halves = {"capacity": info["capacity"], "usage": info["usage"]} if info else {"capacity": None, "usage": None}
    cluster.call("set-node-resource-info", nodename="n", **halves)
    assert before == cluster.record()
