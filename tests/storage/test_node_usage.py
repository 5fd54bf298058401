"""set-node-resource-usage (specification, storage 5.8 and 13.4)."""

from storage.verbs import TIB, WORKLOADS, default_node, resource, set_usage, two_disks


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
