"""set-node-resource-capacity (specification, storage 5.4 and 13.4)."""

from typing import Any

import pytest

from storage.verbs import GIB, TIB, VDA, Cluster, default_node, disk, resource, two_disks

ALL = {f"/data{i}": TIB for i in range(4)}


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
