"""Verbs about a node's record (specification, storage 4, 5, 10, 11 and 13.4)."""

from typing import Any

import pytest

from storage.verbs import GIB, TIB, Cluster, default_node, disk, resource

ALL = {f"/data{i}": TIB for i in range(4)}
VDA = "/dev/vda:/,/data0:100:200:1G:2G"


# --- add-node


def test_volumes_are_the_storage_when_none_is_given() -> None:
    """Storage is the sum of the volumes, not 80 % of the report; the answer has the capacity only."""
    cluster = Cluster()
    answer = cluster.call("add-node", nodename="n", resource={"volumes": ["/data0:1T"]}, info={"StorageTotal": 10**12})
    assert {"capacity": resource({"/data0": TIB}, [], TIB)} == answer
    assert {"capacity": resource({"/data0": TIB}, [], TIB), "usage": resource()} == cluster.record()
    assert "node already exists" == cluster.refusal("add-node", nodename="n", resource={"volumes": ["/data0:1T"]})


@pytest.mark.parametrize(
    ("info", "storage"),
    [
        ({"StorageTotal": 10**12}, 800000000000),
        ({"StorageTotal": 10**12, "Type": 5, "Resources": {"storage": "eyJzdG9yYWdlIjoxMH0="}}, 800000000000),
        ({"storage_total": 19}, 15),
        ({"StorageTotal": None, "storage_total": 10}, 0),
        ({"StorageTotal": 5, "storage_total": 10}, 4),
        ({"Resources": {"storage": "eyJzdG9yYWdlIjoxMH0="}}, 0),
        ({}, 0),
        (None, 0),
    ],
)
def test_storage_from_the_engines_report(info: dict[str, Any] | None, storage: int) -> None:
    """Without storage and volumes a node gets 80 % of the engine's total; nothing else of the report is looked at."""
    answer = Cluster().call("add-node", nodename="n", resource=None, info=info)
    assert {"capacity": resource(storage=storage)} == answer


def test_a_report_of_a_wrong_type() -> None:
    """The one member that is looked at must be an integer."""
    text = Cluster().refusal("add-node", nodename="n", info={"StorageTotal": "1T"})
    assert "decode plugin input: expected int, got str at $.info.StorageTotal" == text


@pytest.mark.parametrize(
    ("request_of_node", "expected"),
    [
        ({"volumes": ["/data0:1T", "/data1:1G"], "storage": "1G", "rm-disks": "/dev/vdb,/dev/vdc"}, TIB + 2 * GIB),
        ({"volumes": ["/data0:1G"], "storage": "100G"}, 101 * GIB),
        ({"volumes": ["/data0:1G"], "storage": 107374182400}, 101 * GIB),
        ({"volumes": ["/data0:1G", "/data0:2G"]}, 2 * GIB),
        ({"volumes": ["/data0:"], "storage": "+5"}, 5),
        ({"storage": 1.073741824e10}, 10 * GIB),
        ({"storage": "10737418240"}, 10 * GIB),
        ({"volumes": None, "storage": None, "disks": None, "rm-disks": None}, 0),
        ({"cpu": 3, "memory": "5G", "storage": "1"}, 1),
    ],
)
def test_node_requests(request_of_node: dict[str, Any], expected: int) -> None:
    """A node request's storage includes its volumes, whatever its spelling; other plugins' keys are ignored."""
    assert expected == Cluster().call("add-node", nodename="n", resource=request_of_node)["capacity"]["storage"]


@pytest.mark.parametrize(
    ("request_of_node", "error"),
    [
        ({"volumes": ["/data0"]}, "volume should have 2 parts: invalid volume"),
        ({"volumes": ["/data0:1:2"]}, "volume should have 2 parts: invalid volume"),
        ({"volumes": ["/data0:xx"]}, "invalid size: 'xx'"),
        ({"storage": "1x"}, "invalid suffix: 'x'"),
        ({"disks": ["x"]}, "wrong disk format: x, expected 6 parts, got 1: invalid disk"),
        ({"disks": [VDA, VDA]}, "duplicate disk /dev/vda: invalid disk"),
        ({"volumes": ["/data0:-1"], "storage": 1}, "volume size should not be less than 0: invalid volume"),
        ({"storage": -5}, "storage capacity can't be negative: invalid storage"),
        ({"disks": ["v:/:-1:0:0:0"]}, "disk IOPS / BPS can't be negative: invalid disk"),
        ({"volumes": ["/a:8191P", "/b:8191P"]}, "storage is out of range: invalid storage"),
        ({"volumes": {"/data0": 5}}, "decode plugin input: expected array, got object at $.resource.volumes"),
        ({"disks": [{"device": "v"}]}, "decode plugin input: expected str, got object at $.resource.disks[0]"),
        ({"storage": 1.5}, "decode plugin input: expected int, got float at $.resource.storage"),
        ({"storage": True}, "decode plugin input: expected int, got bool at $.resource.storage"),
        ({"storage": []}, "decode plugin input: expected int, got array at $.resource.storage"),
        ({"rm-disks": 5}, "decode plugin input: expected str, got int at $.resource.rm-disks"),
        ({"volumes": [None]}, "decode plugin input: expected str, got null at $.resource.volumes[0]"),
    ],
)
def test_node_requests_refused(request_of_node: dict[str, Any], error: str) -> None:
    """A fault names the item; nothing is written."""
    assert error == Cluster().refusal("add-node", nodename="n", resource=request_of_node)


def test_disks_are_stored_sorted() -> None:
    """Disks are written in the order of their devices."""
    texts = ["/dev/vdb:/b:1:2:3:4", "/dev/vda:/a:5:6:7:8"]
    answer = Cluster().call("add-node", nodename="n", resource={"disks": texts})
    assert [disk("/dev/vda", ["/a"], 5, 6, 7, 8), disk("/dev/vdb", ["/b"], 1, 2, 3, 4)] == answer["capacity"]["disks"]


# --- set-node-resource-capacity


def set_capacity(cluster: Cluster, request: Any = None, delta: bool = False, incr: bool = True, **keys: Any) -> Any:
    """Call the verb as core does."""
    keys = {"resource": None, "resource_request": request, **keys}
    return cluster.call("set-node-resource-capacity", nodename="n", delta=delta, incr=incr, **keys)


def test_capacity_resource_added_and_taken() -> None:
    """A resource adds as it stands; a device that comes to 0 is dropped."""
    cluster = default_node()
    extra = resource({"/data4": TIB}, [], TIB)
    answer = set_capacity(cluster, delta=True, resource=extra)
    assert resource(ALL, [], 4 * TIB) == answer["before"]
    assert resource({**ALL, "/data4": TIB}, [], 5 * TIB) == answer["after"]
    assert resource(ALL, [], 4 * TIB) == set_capacity(cluster, delta=True, incr=False, resource=extra)["after"]


def test_capacity_request_added_and_taken() -> None:
    """A request's storage has its volumes added."""
    cluster = default_node()
    extra = {"volumes": ["/data4:1T"], "storage": "1T"}
    assert 6 * TIB == set_capacity(cluster, extra, delta=True)["after"]["storage"]
    assert resource(ALL, [], 4 * TIB) == set_capacity(cluster, extra, delta=True, incr=False)["after"]


def test_capacity_request_absolute() -> None:
    """An absolute request replaces what it gives; an empty one changes nothing."""
    cluster = default_node()
    expected = resource({"/data4": TIB}, [], 2 * TIB)
    assert expected == set_capacity(cluster, {"volumes": ["/data4:1T"], "storage": "1T"})["after"]
    assert {"before": expected, "after": expected} == set_capacity(cluster, {})


def test_capacity_of_an_unknown_node() -> None:
    """A change starts from the empty record and creates it, also when there is nothing to add."""
    cluster = Cluster()
    assert {"before": resource(), "after": resource(storage=TIB)} == set_capacity(
        cluster, {"storage": "1T"}, delta=True
    )
    other = Cluster()
    set_capacity(other, delta=True)
    assert {"capacity": resource(), "usage": resource()} == other.record()


def test_snapshot_is_restored() -> None:
    """`before`, sent back, is the capacity again: twice, and whatever incr says (13.4)."""
    cluster = default_node()
    set_capacity(cluster, {"disks": [VDA]}, delta=True)
    stored = cluster.store.values["n"]
    before = set_capacity(cluster, {"volumes": ["/data4:1T"], "storage": "1T"})["before"]
    assert stored != cluster.store.values["n"]
    for incr in (False, False, True):
        set_capacity(cluster, before, incr=incr)
        assert stored == cluster.store.values["n"]
    set_capacity(cluster, {"storage": 7})
    set_capacity(cluster, before, incr=True)
    assert stored == cluster.store.values["n"]


def test_snapshot_of_a_go_plugin() -> None:
    """A snapshot with nulls is one too, and other keys beside it are ignored."""
    cluster = default_node()
    set_capacity(cluster, {"volumes": {"/a": 5}, "disks": None, "storage": 9, "rm-disks": "x"}, incr=False)
    assert resource({"/a": 5}, [], 9) == cluster.record()["capacity"]
    set_capacity(cluster, {"volumes": None, "disks": [disk("v", ["/"], 1)], "storage": None}, incr=False)
    assert resource({}, [disk("v", ["/"], 1)], 0) == cluster.record()["capacity"]


@pytest.mark.parametrize(
    ("request_of_node", "keys", "error"),
    [
        (resource({"/a": 1}, [], 1), {"delta": True}, "expected array, got object at $.resource_request.volumes"),
        (resource({"/a": 1}, [], 1), {"resource": {}}, "expected array, got object at $.resource_request.volumes"),
        ({"volumes": {"/a": 1}, "disks": []}, {}, "expected array, got object at $.resource_request.volumes"),
        (
            {"volumes": {"/a": 1}, "disks": [], "storage": "1"},
            {},
            "expected array, got object at $.resource_request.volumes",
        ),
        (
            {"volumes": [], "disks": [disk("v", [])], "storage": 1},
            {},
            "expected str, got object at $.resource_request.disks[0]",
        ),
        (
            {"volumes": {"/a": 1}, "disks": [disk("v", []), "w::0:0:0:0"], "storage": 1},
            {},
            "expected array, got object at $.resource_request.volumes",
        ),
    ],
)
def test_no_snapshot(request_of_node: Any, keys: dict[str, Any], error: str) -> None:
    """A stored form anywhere else, with delta, or in parts, is a wrong type."""
    cluster = default_node()
    arguments = {"nodename": "n", "delta": False, "incr": True, "resource_request": request_of_node, **keys}
    assert f"decode plugin input: {error}" == cluster.refusal("set-node-resource-capacity", arguments)


@pytest.mark.parametrize("removed", ["/dev/vda", "", None])
def test_rm_disks_is_absolute_only(removed: str | None) -> None:
    """Removing disks with delta is refused, also of none."""
    cluster = default_node()
    arguments = {"nodename": "n", "delta": True, "incr": True, "resource_request": {"rm-disks": removed}}
    assert "invalid engine args" == cluster.refusal("set-node-resource-capacity", arguments)


def two_disks() -> Cluster:
    """Return a cluster whose node has the disks vda and vdb."""
    cluster = Cluster()
    cluster.call("add-node", nodename="n", resource={"disks": [VDA, "/dev/vdb:/data1:1:2:3:4"], "storage": 1})
    return cluster


def test_rm_disks() -> None:
    """A disk that is used for nothing goes from capacity and usage; one in use stays and is an error."""
    cluster = two_disks()
    usage = resource(disks=[disk("/dev/vda", [], 10), disk("/dev/vdb", [])])
    cluster.call("set-node-resource-usage", nodename="n", resource=usage)
    assert ["/dev/vda", "/dev/vdb"] == [each["device"] for each in cluster.record()["usage"]["disks"]]
    error = cluster.refusal(
        "set-node-resource-capacity", nodename="n", resource_request={"rm-disks": "/dev/vda"}, delta=False
    )
    assert "disk /dev/vda not found in capacity: invalid disk" == error
    answer = set_capacity(cluster, {"rm-disks": "/dev/sda,,/dev/vdb, "})
    assert ["/dev/vda"] == [each["device"] for each in answer["after"]["disks"]]
    assert ["/dev/vda"] == [each["device"] for each in cluster.record()["usage"]["disks"]]


def test_keys_not_given_keep_what_is_stored() -> None:
    """Only what is given is replaced; null counts as given; storage follows the volumes unless it is given."""

    def stored() -> Cluster:
        cluster = Cluster()
        cluster.plant(
            {"capacity": resource({"/data0": GIB}, [disk("/dev/vda", ["/"], 1)], 3 * GIB), "usage": resource()}
        )
        return cluster

    kept = stored().record()["capacity"]
    assert kept == set_capacity(stored(), {})["after"]
    assert {**kept, "volumes": {"/data0": 4 * GIB}, "storage": 6 * GIB} == set_capacity(
        stored(), {"volumes": ["/data0:4G"]}
    )["after"]
    assert {**kept, "storage": GIB} == set_capacity(stored(), {"storage": "1G"})["after"]
    assert {**kept, "volumes": {}, "storage": 2 * GIB} == set_capacity(stored(), {"volumes": None})["after"]
    assert {**kept, "disks": []} == set_capacity(stored(), {"disks": []})["after"]
    assert {**kept, "storage": 0} == set_capacity(stored(), {"storage": None})["after"]
    assert {**kept, "volumes": {}, "storage": 1} == set_capacity(stored(), {"volumes": [], "storage": 1})["after"]


def test_nothing_given() -> None:
    """With delta nothing changes but zero devices go; without it the capacity is empty."""
    cluster = Cluster()
    cluster.plant({"capacity": resource({"/a": 0, "/b": 5}, [], 5), "usage": resource()})
    assert resource({"/b": 5}, [], 5) == set_capacity(cluster, delta=True)["after"]
    assert resource() == set_capacity(cluster)["after"]


def test_zero_devices_of_an_absolute_change_stay() -> None:
    """Only with delta a device of size 0 is dropped."""
    assert {"/a": 0} == set_capacity(Cluster(), {"volumes": ["/a:0"]})["after"]["volumes"]


def test_request_before_resource() -> None:
    """Of two sources the request counts, an empty one too; a fault in either fails the verb."""
    cluster = default_node()
    unchanged = set_capacity(cluster, {}, resource={"storage": 5})
    assert unchanged["before"] == unchanged["after"]
    error = cluster.refusal(
        "set-node-resource-capacity", nodename="n", resource_request={}, resource={"volumes": {"/a": "x"}}
    )
    assert "decode plugin input: expected int, got str at $.resource.volumes./a" == error


@pytest.mark.parametrize(
    ("stored", "extra", "error"),
    [
        (resource({"/a": 2**63 - 1}), resource({"/a": 1}), "volume size is out of range: invalid volume"),
        (resource(storage=2**63 - 1), resource(storage=1), "storage is out of range: invalid storage"),
        (
            resource(disks=[disk("v", [], 2**63 - 1)]),
            resource(disks=[disk("v", [], 1)]),
            "disk IOPS / BPS is out of range: invalid disk",
        ),
    ],
)
def test_beyond_int64(stored: Any, extra: Any, error: str) -> None:
    """A sum that no record can hold fails and writes nothing."""
    cluster = Cluster()
    cluster.plant({"capacity": stored, "usage": resource()})
    arguments = {"nodename": "n", "delta": True, "incr": True, "resource": extra}
    assert error == cluster.refusal("set-node-resource-capacity", arguments)


# --- info and fix


WORKLOADS = [{"storage_request": 1}, None, {"storage_limit": 1}]


def test_info_of_an_unknown_node() -> None:
    """The answer is null, and so one of a node whose name only begins alike."""
    assert None is default_node().call("get-node-resource-info", nodename="nn")


def test_differences() -> None:
    """Usage and workloads are compared: storage, then stored devices, then new ones, then stored disks."""
    cluster = Cluster()
    usage = resource({"/b": 5, "/a": 1, "/z": 0}, [disk("w", ["/w"], 1, 2, 3, 4), disk("v", ["/v"])], 7)
    cluster.plant({"capacity": resource(), "usage": usage})
    workload = {
        "volume_plan_request": {"AUTO:/x:rw:3": {"/b": 3, "/q": 2}, "AUTO:/y:rw:1K": {"/c": 1, "/b": 2, "/k": 0}},
        "storage_request": 8,
        "disks_request": [disk("v", ["/other"], 5), disk("new", [], 1)],
    }
    info = cluster.call("get-node-resource-info", nodename="n", workloads_resource=[workload, {}])
    assert [
        "node.Storage != sum(workload.Storage): 7 != 8",
        "node.Volumes[/a] != sum(workload.Volumes[/a]): 1 != 0",
        "node.Volumes[/c] != sum(workload.Volumes[/c]): 0 != 1",
        "node.Volumes[/q] != sum(workload.Volumes[/q]): 0 != 2",
        "node.Disks[w] != sum(workload.Disks[w]): w:/w:1:2:3:4 != w:/w:0:0:0:0",
        "node.Disks[v] != sum(workload.Disks[v]): v:/v:0:0:0:0 != v:/v:5:0:0:0",
    ] == info["diffs"]
    assert usage == info["usage"]


def test_fix() -> None:
    """Usage becomes the workloads' sum; the answer has the differences found before."""
    cluster = default_node()
    expected = ["node.Storage != sum(workload.Storage): 0 != 1"]
    assert expected == cluster.call("get-node-resource-info", nodename="n", workloads_resource=WORKLOADS)["diffs"]
    fixed = cluster.call("fix-node-resource", nodename="n", workloads_resource=WORKLOADS)
    assert expected == fixed["diffs"]
    assert 1 == fixed["usage"]["storage"] == cluster.record()["usage"]["storage"]
    writes = cluster.store.writes
    assert [] == cluster.call("fix-node-resource", nodename="n", workloads_resource=WORKLOADS)["diffs"]
    assert writes == cluster.store.writes


def test_fix_drops_zeros() -> None:
    """Only what workloads mention is left of the usage."""
    cluster = Cluster()
    cluster.plant({"capacity": resource({"/a": 1}), "usage": resource({"/a": 0}, [], 3)})
    assert resource() == cluster.call("fix-node-resource", nodename="n")["usage"]


def test_fix_refused() -> None:
    """An unknown node, and a sum that no record may hold, are errors."""
    cluster = default_node()
    assert "key: other: node not exists" == cluster.refusal("fix-node-resource", nodename="other")
    workloads = [{"storage_request": 1, "disks_request": [disk("v", [], 1)]}]
    error = cluster.refusal("fix-node-resource", nodename="n", workloads_resource=workloads)
    assert "disk v not found in capacity: invalid disk" == error
    huge = [{"storage_request": 2**63 - 1}, {"storage_request": 1}]
    for verb in ("fix-node-resource", "get-node-resource-info"):
        error = cluster.refusal(verb, nodename="n", workloads_resource=huge)
        assert "storage is out of range: invalid storage" == error
    negative = [{"storage_request": -1}]
    assert "storage usage can't be negative: invalid storage" == cluster.refusal(
        "fix-node-resource", nodename="n", workloads_resource=negative
    )


def test_nodes_info() -> None:
    """Unknown nodes are listed with the empty record; names that only begin alike are others."""
    nodes = default_node().call("get-nodes-resource-info", nodenames=["n", "n1", "n"])["node_resource_info_map"]
    assert {"n", "n1"} == set(nodes)
    assert {"capacity": resource(), "usage": resource()} == nodes["n1"]
    assert 4 * TIB == nodes["n"]["capacity"]["storage"]


# --- set-node-resource-info


def set_info(cluster: Cluster, capacity: Any, usage: Any) -> Any:
    """Call the verb."""
    return cluster.call("set-node-resource-info", nodename="n", capacity=capacity, usage=usage)


def test_set_info_is_exact() -> None:
    """Both are stored as given; usage above capacity in storage, and of unknown devices, is legal."""
    cluster = default_node()
    assert {} == set_info(cluster, resource({"/data4": TIB}, [], TIB), resource({"/data3": TIB}, [], 4 * TIB))
    assert TIB == cluster.record()["capacity"]["storage"]
    assert resource({"/data3": TIB}, [], 4 * TIB) == cluster.record()["usage"]
    set_info(cluster, None, None)
    assert {"capacity": resource(), "usage": resource()} == cluster.record()


GOOD = resource({"/data0": GIB}, [disk("v", ["/"], 100)])


@pytest.mark.parametrize(
    ("usage", "error"),
    [
        (resource({"/data0": 2 * GIB}), "invalid size in usage: invalid volume"),
        (resource({"/data0": -1}), "invalid size in usage: invalid volume"),
        (resource(storage=-1), "storage usage can't be negative: invalid storage"),
        (
            resource(disks=[disk("v", [], 200)]),
            "disk IOPS / BPS usage can't be greater than capacity: invalid disk",
        ),
        (resource(disks=[disk("v", [], -1)]), "disk IOPS / BPS can't be negative: invalid disk"),
        (resource(disks=[disk("w", [], 0, 0, 0, 1)]), "disk w not found in capacity: invalid disk"),
        (
            resource({"/data0": 2 * GIB}, [], -1),
            "invalid size in usage: invalid volume; storage usage can't be negative: invalid storage",
        ),
        (
            resource({"/data0": 2 * GIB}, [disk("w", [], 1)], -1),
            "; ".join(
                [
                    "invalid size in usage: invalid volume",
                    "storage usage can't be negative: invalid storage",
                    "disk w not found in capacity: invalid disk",
                ]
            ),
        ),
    ],
)
def test_usage_refused(usage: Any, error: str) -> None:
    """All three checks run; their first faults are joined."""
    assert error == Cluster().refusal("set-node-resource-info", nodename="n", capacity=GOOD, usage=usage)


@pytest.mark.parametrize(
    ("capacity", "error"),
    [
        (resource({"/a": -1}), "volume size should not be less than 0: invalid volume"),
        (resource(storage=-1), "storage capacity can't be negative: invalid storage"),
        (resource(disks=[disk("v", [], 0, 0, -1)]), "disk IOPS / BPS can't be negative: invalid disk"),
    ],
)
def test_capacity_refused(capacity: Any, error: str) -> None:
    """A capacity below nothing is refused."""
    assert error == Cluster().refusal("set-node-resource-info", nodename="n", capacity=capacity)


def test_usage_disks_are_fitted() -> None:
    """Usage's disks get the capacity's mounts and order; unused ones that the capacity lacks are removed."""
    cluster = Cluster()
    usage = resource(disks=[disk("z", ["/z"]), disk("v", ["/old"], 5)])
    set_info(cluster, GOOD, usage)
    assert [disk("v", ["/"], 5)] == cluster.record()["usage"]["disks"]


# --- set-node-resource-usage


def set_usage(cluster: Cluster, delta: bool = True, incr: bool = True, **keys: Any) -> Any:
    """Call the verb as core does."""
    empty = {"resource": None, "resource_request": None, "workloads_resource": None}
    return cluster.call("set-node-resource-usage", nodename="n", delta=delta, incr=incr, **{**empty, **keys})


def test_usage_resource_added_and_taken() -> None:
    """Zero entries of usage stay, unlike those of a capacity."""
    cluster = default_node()
    extra = resource({"/data4": TIB}, [], TIB)
    assert extra == set_usage(cluster, resource=extra)["after"]
    assert resource({"/data4": 0}) == set_usage(cluster, incr=False, resource=extra)["after"]


def test_usage_request_added_and_taken() -> None:
    """A request's storage has its volumes added."""
    cluster = default_node()
    extra = {"volumes": ["/data4:1T"], "storage": "1T"}
    assert 2 * TIB == set_usage(cluster, resource_request=extra)["after"]["storage"]
    assert 0 == set_usage(cluster, incr=False, resource_request=extra)["after"]["storage"]


def test_usage_of_workloads() -> None:
    """Workloads add their requests; only those count."""
    cluster = default_node()
    assert 1 == set_usage(cluster, workloads_resource=WORKLOADS)["after"]["storage"]
    assert 0 == set_usage(cluster, incr=False, workloads_resource=WORKLOADS)["after"]["storage"]


def test_usage_nothing_given() -> None:
    """With delta nothing changes, without it the usage is empty."""
    cluster = default_node()
    set_usage(cluster, resource=resource({"/data0": 5}, [], 5))
    unchanged = set_usage(cluster)
    assert unchanged["before"] == unchanged["after"] == resource({"/data0": 5}, [], 5)
    assert resource() == set_usage(cluster, delta=False)["after"]


def test_usage_absolute() -> None:
    """Without delta the value replaces, whatever incr says; a snapshot comes back through `resource`."""
    cluster = default_node()
    value = resource({"/data0": 5}, [], 5)
    assert value == set_usage(cluster, delta=False, incr=False, resource=value)["after"]
    stored = cluster.store.values["n"]
    before = set_usage(cluster, workloads_resource=[{"storage_request": 9}])["before"]
    set_usage(cluster, delta=False, incr=False, resource=before)
    assert stored == cluster.store.values["n"]


def test_usage_takes_no_snapshot_as_request() -> None:
    """The stored form through `resource_request` is a wrong type; rm-disks there is ignored."""
    cluster = two_disks()
    error = cluster.refusal("set-node-resource-usage", nodename="n", resource_request=resource({"/a": 1}))
    assert "decode plugin input: expected array, got object at $.resource_request.volumes" == error
    set_usage(cluster, resource_request={"rm-disks": "/dev/vda", "storage": 1})
    assert 1 == cluster.record()["usage"]["storage"]


def test_two_plan_keys_of_one_binding() -> None:
    """Of two keys that mean one binding the last holds."""
    plans = '{"AUTO:/a:rw:1K": {"/data0": 1}, "AUTO:/a:wr:1024": {"/data0": 5}}'
    cluster = default_node()
    cluster.call(
        "set-node-resource-usage",
        b'{"nodename":"n","delta":true,"incr":true,"workloads_resource":[{"volume_plan_request":%b}]}' % plans.encode(),
    )
    assert {"/data0": 5} == cluster.record()["usage"]["volumes"]


def test_a_bad_binding_of_a_workload() -> None:
    """A workload's texts are read, also those that are not summed; the fault names the text."""
    for workload in ({"volumes_limit": ["one"]}, {"volume_plan_limit": {"one": {"/a": 1}}}):
        for verb in ("set-node-resource-usage", "get-node-resource-info", "fix-node-resource"):
            assert "one: invalid volume" == default_node().refusal(verb, nodename="n", workloads_resource=[workload])


def test_unchanged_records_are_not_written() -> None:
    """A change to what is there already is no write."""
    cluster = default_node()
    writes = cluster.store.writes
    set_usage(cluster, resource=resource())
    assert writes == cluster.store.writes


# --- the rest


def test_most_idle_node_is_the_first() -> None:
    """Storage has no opinion and reads nothing."""
    assert {"nodename": "b", "priority": 1} == Cluster().call("get-most-idle-node", nodenames=["b", "a"])


def test_remove_node() -> None:
    """A node goes; an unknown one is fine."""
    cluster = default_node()
    assert {} == cluster.call("remove-node", nodename="n") == cluster.call("remove-node", nodename="n")
    assert {} == cluster.store.values


@pytest.mark.parametrize("nodes", [[], ["n"], ["a.b", "n", "a.b"]])
def test_metrics(nodes: list[str]) -> None:
    """Two rows a node, with as many labels as described; dots in names become `_` in keys only."""
    cluster = default_node()
    set_usage(cluster, resource=resource(storage=7))
    described = cluster.call("get-metrics-description")
    assert [
        {"name": "storage_used", "help": "node used storage.", "type": "gauge", "labels": ["podname", "nodename"]},
        {
            "name": "storage_capacity",
            "help": "node available storage.",
            "type": "gauge",
            "labels": ["podname", "nodename"],
        },
    ] == described
    rows = cluster.call("get-metrics", nodes=[{"podname": "p", "nodename": node} for node in nodes])
    values = {"n": ("7", str(4 * TIB)), "a.b": ("0", "0")}
    expected = []
    for node in nodes:
        key = f"core.node.{node.replace('.', '_')}.storage"
        used, whole = values[node]
        expected += [
            {"name": "storage_used", "labels": ["p", node], "key": f"{key}.used", "value": used},
            {"name": "storage_capacity", "labels": ["p", node], "key": f"{key}.capacity", "value": whole},
        ]
    assert expected == rows


def test_nulls_of_the_go_plugins() -> None:
    """Records with nulls read, and what is written in their place has none."""
    cluster = Cluster()
    cluster.store.values["n"] = b'{"capacity":{"volumes":null,"disks":null,"storage":5},"usage":null}'
    info = cluster.call("get-node-resource-info", nodename="n")
    assert {"capacity": resource(storage=5), "usage": resource(), "diffs": []} == info
    cluster.store.values["n"] = (
        b'{"capacity":{"volumes":null,"disks":[{"device":"v","mounts":null,"read_IOPS":1}],"storage":null},"x":0}'
    )
    set_usage(cluster, resource={"volumes": None, "disks": None, "storage": 1})
    assert b"null" not in cluster.store.values["n"]
    assert [disk("v", [], 1)] == cluster.record()["capacity"]["disks"]
