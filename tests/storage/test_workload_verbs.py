"""Verbs about workloads: capacity, deploy, realloc (specification, storage 6, 8, 9 and 13.1, 13.5, 13.6, 13.9)."""

from typing import Any

import pytest

from storage.verbs import DEFAULT_NODE, GIB, TIB, Cluster, default_node, disk, resource

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


# --- requests (6.1, 6.2, 13.1)


def roomy_node() -> Cluster:
    """Return a cluster with a node that holds more than any request here asks for."""
    cluster = Cluster()
    cluster.call(
        "add-node",
        nodename="n",
        resource={"volumes": ["/data0:1P", "/data1:1P"], "disks": ["/dev/vda:/:1000000:1000000:1T:1T"]},
    )
    return cluster


def storages(request: Any) -> tuple[int, int]:
    """Return the storage request and limit that a deploy books."""
    workload = deploy(roomy_node(), request)["workloads_resource"][0]
    return workload["storage_request"], workload["storage_limit"]


@pytest.mark.parametrize(
    ("request_of_workload", "expected"),
    [
        ({"storage": "2G"}, (2 * GIB, 2 * GIB)),
        ({"storage": 2147483648}, (2 * GIB, 2 * GIB)),
        ({"storage": None, "storage-request": "1G"}, (0, 0)),
        ({"storage": 1, "storage-request": "1G", "storage-limit": "2G"}, (1, 1)),
        ({"storage-request": "1G"}, (GIB, 0)),
        ({"storage-limit": "1G"}, (GIB, GIB)),
        ({"storage-request": "2G", "storage-limit": "1G"}, (2 * GIB, 2 * GIB)),
        ({"volumes": ["AUTO:/dir:rw:1G"], "storage-request": "1G"}, (2 * GIB, GIB)),
        ({"volume-limit": ["AUTO:/d:rw:100G"], "storage-limit": "150G"}, (250 * GIB, 250 * GIB)),
        ({"volume-limit": ["AUTO:/d:rw:100G"], "storage-request": "10G"}, (110 * GIB, 100 * GIB)),
        ({"cpu": 1, "memory": "1G", "storage": 1}, (1, 1)),
        (None, (0, 0)),
    ],
)
def test_storages(request_of_workload: Any, expected: tuple[int, int]) -> None:
    """Request and limit fill each other and have the volumes folded in, once."""
    assert expected == storages(request_of_workload)


@pytest.mark.parametrize(
    ("keys", "request_list", "limit_list"),
    [
        ({"volumes": ["/a:/a"]}, ["/a:/a"], ["/a:/a"]),
        ({"volume": ["/a:/a"], "volume-limit": ["/b:/b"]}, ["/a:/a"], ["/a:/a"]),
        ({"volumes": [], "volume": None, "volume-limit": ["/b:/b"]}, ["/b:/b"], ["/b:/b"]),
        ({"volumes-limit": ["/b:/b"]}, ["/b:/b"], ["/b:/b"]),
        ({"volumes": ["/a:/a"], "volume": ["/b:/b"], "volume-limit": ["/c:/c"]}, ["/a:/a"], ["/a:/a"]),
        ({"volumes-request": ["/a:/a"], "volume-request": ["/b:/b"], "volumes": ["/a:/a"]}, ["/a:/a"], ["/a:/a"]),
        ({"volumes-request": [], "volume-request": ["/a:/a"], "volumes": ["/a:/a:rw:5"]}, ["/a:/a"], ["/a:/a"]),
    ],
)
def test_spellings(keys: Any, request_list: list[str], limit_list: list[str]) -> None:
    """The first key that holds a non-empty list counts; without a request list the limit is the request."""
    workload = held(keys)
    assert request_list == [text.split(":rw")[0] for text in workload["volumes_request"]]
    assert limit_list == [text.split(":rw")[0] for text in workload["volumes_limit"]]


def test_limits_are_raised_to_requests() -> None:
    """Sizes and quotas of a limit are at least those of its request; a limit size of 0 stays 0."""
    workload = deploy(
        roomy_node(),
        {
            "volume-request": ["AUTO:/dir:rw:2G:100:100:0:0", "AUTO:/e:rw:5"],
            "volume-limit": ["AUTO:/e:rw:0", "AUTO:/dir:rw:1G:50:50:0:0"],
            "storage-request": "2G",
            "storage-limit": "1G",
        },
    )["workloads_resource"][0]
    assert ["AUTO:/dir:rw:2147483648:100:100:0:0", "AUTO:/e:rw:0:0:0:0:0"] == workload["volumes_limit"]
    assert (4 * GIB + 5, 4 * GIB) == (workload["storage_request"], workload["storage_limit"])


@pytest.mark.parametrize(
    ("request_of_workload", "error"),
    [
        (
            {"volumes": ["AUTO:/dir:mrw"]},
            "monopoly volume requires a positive size: AUTO:/dir:mrw:0:0:0:0:0: invalid volume",
        ),
        (
            {"volumes": ["AUTO:/dir:mrw:0:100:100:1M:1M"]},
            "monopoly volume requires a positive size: AUTO:/dir:mrw:0:100:100:1048576:1048576: invalid volume",
        ),
        (
            {"volumes": ["AUTO:/dir:mrw:-1G"]},
            "monopoly volume requires a positive size: AUTO:/dir:mrw:-1073741824:0:0:0:0: invalid volume",
        ),
        ({"volumes": ["AUTO:/d:rw:-1G"]}, "negative size: AUTO:/d:rw:-1073741824:0:0:0:0: invalid volume"),
        ({"volumes": ["/s:/d:rw:-1G"]}, "negative size: /s:/d:rw:-1073741824:0:0:0:0: invalid volume"),
        (
            {"volumes": ["AUTO:/dir:rw:1G:-1"]},
            "invalid io parameters: AUTO:/dir:rw:1073741824:-1:0:0:0: invalid volume",
        ),
        ({"volumes": ["AUTO:/d:rw:10G:-1"]}, "invalid io parameters: AUTO:/d:rw:10737418240:-1:0:0:0: invalid volume"),
        ({"volumes": ["AUTO:/d:rw:1G", "/x:/d"]}, "duplicate destination /d: invalid volume"),
        (
            {"volume-request": ["AUTO:/a:rw:1", "AUTO:/b:rw:1"], "volume-limit": ["AUTO:/a:rw:1"]},
            "different length of request and limit: invalid volume",
        ),
        ({"volumes-request": ["AUTO:/a:rw:1"]}, "different length of request and limit: invalid volume"),
        (
            {"volumes-request": ["AUTO:/dir1:rw:1G"], "volumes": ["AUTO:/other:rw:1G"]},
            "request and limit not match: invalid volume",
        ),
        ({"storage": "-1"}, "storage limit or request less than 0: invalid storage"),
        ({"storage-request": 1, "storage-limit": -1}, "storage limit or request less than 0: invalid storage"),
        ({"storage": "-1", "volumes": ["AUTO:/d:rw:-1"]}, "negative size: AUTO:/d:rw:-1:0:0:0:0: invalid volume"),
        ({"volumes": ["/a"]}, "/a: invalid volume"),
        ({"volumes": ["a:b:c:d:e:f:g:h:i"]}, "a:b:c:d:e:f:g:h:i: invalid volume"),
        ({"volumes": ["AUTO:/d:rw:1x"]}, "invalid suffix: 'x'"),
        ({"storage": "lots"}, "invalid size: 'lots'"),
        ({"volumes": ["AUTO:/a:rw:8191P", "AUTO:/b:rw:8191P"]}, "storage is out of range: invalid storage"),
        ({"volume": "AUTO:/a"}, "decode plugin input: expected array, got str at $.workload_resource_request.volume"),
        ({"storage": {}}, "decode plugin input: expected int, got object at $.workload_resource_request.storage"),
    ],
)
def test_requests_refused(request_of_workload: Any, error: str) -> None:
    """A fault names the item, before any record is read, in a deploy and in a capacity query."""
    assert error == deploy_refusal(Cluster(), request_of_workload)
    text = Cluster().refusal("get-nodes-deploy-capacity", nodenames=["n"], workload_resource=request_of_workload)
    assert error == text.replace("workload_resource.", "workload_resource_request.")


# --- capacity of ten default nodes (13.5)


TEN = [f"n{i}" for i in range(10)]


def ten_nodes() -> Cluster:
    """Return a cluster of ten default nodes."""
    cluster = Cluster()
    for node in TEN:
        cluster.call("add-node", nodename=node, resource=DEFAULT_NODE)
    return cluster


@pytest.mark.parametrize(
    ("request_of_workload", "total", "each"),
    [
        ({"storage": "1099511627776"}, 40, {"capacity": 4, "usage": 0, "rate": 0.25, "weight": 1}),
        ({"storage": "1G"}, 1000, {"capacity": 100, "usage": 0, "rate": 0.000244140625, "weight": 1}),
        ({"volumes": ["AUTO:/dir0:rwm:1G"]}, 40, {"capacity": 4, "usage": 0, "rate": 0.000244140625, "weight": 1}),
        (
            {"volumes": ["AUTO:/dir0:rwm:1G"], "storage": "1T"},
            30,
            {"capacity": 3, "usage": 0, "rate": 0.000244140625, "weight": 1},
        ),
        ({}, 1000, {"capacity": 100, "usage": 0, "rate": 0, "weight": 1}),
    ],
)
def test_capacity(request_of_workload: Any, total: int, each: dict[str, Any]) -> None:
    """Ten equal nodes give ten equal answers."""
    expected = {"nodes_deploy_capacity_map": dict.fromkeys(TEN, each), "total": total}
    assert expected == capacity(ten_nodes(), request_of_workload, TEN)


@pytest.mark.parametrize("request_of_workload", [{"storage": "1"}, {"volumes": ["AUTO:/d:rw"]}])
def test_capacity_of_an_unknown_node(request_of_workload: Any) -> None:
    """A node without storage takes nothing that asks for some, and is left out."""
    expected = {"nodes_deploy_capacity_map": {}, "total": 0}
    assert expected == capacity(Cluster(), request_of_workload, ["unknown"])


@pytest.mark.parametrize("request_of_workload", [None, {"volumes": ["/a:/d"]}])
def test_capacity_of_an_unknown_node_for_nothing(request_of_workload: Any) -> None:
    """A node without storage takes any number of workloads that ask for none; ratios of nothing are 0."""
    answer = capacity(default_node(), request_of_workload, ["unknown", "n", "unknown"])
    assert {"capacity": 100, "usage": 0, "rate": 0, "weight": 1} == answer["nodes_deploy_capacity_map"]["unknown"]
    assert 200 == answer["total"]


def test_capacity_of_an_overbooked_node() -> None:
    """What is available is rounded toward zero; a node with less than nothing is left out."""
    cluster = Cluster()
    for used, left_out in ((10, True), (14, True), (6, False)):
        cluster.plant({"capacity": resource(storage=9), "usage": resource(storage=used)})
        assert left_out is (capacity(cluster, {"storage": 3})["total"] == 0)


def test_ratios_are_of_doubles() -> None:
    """Both numbers become doubles before they are divided."""
    cluster = Cluster()
    whole = 9007199254740993
    cluster.plant({"capacity": resource(storage=whole), "usage": resource(storage=whole - 2)})
    answer = capacity(cluster, {"storage": 1})["nodes_deploy_capacity_map"]["n"]
    assert float(whole - 2) / float(whole) == answer["usage"]


# --- records in odd forms, in a query of many


ODD = {
    "spaces": b' {"capacity": {"storage": 9}, "usage": {"storage": 0}}',
    "order": b'{"usage":{"storage":0},"capacity":{"storage":9}}',
    "doubled": b'{"capacity":{"storage":1},"usage":{"storage":0},"capacity":{"storage":9}}',
    "more": b'{"capacity":{"storage":9},"usage":{"storage":0},"extra":1}',
    "usage twice": b'{"capacity":{"storage":9},"usage":{"storage":9},"usage":{"storage":0}}',
    "inside": b'{"capacity":{"storage":9,"x":{"capacity":{},"usage":{"storage":5}}},"usage":{"storage":0}}',
    "in a text": b'{"capacity":{"storage":9,"x":",\\"usage\\":"},"usage":{"storage":0}}',
    "floats": b'{"capacity":{"storage":9.0},"usage":{"storage":0e1}}',
    "nulls": b'{"capacity":{"storage":9,"volumes":null,"disks":null},"usage":null}',
    "no usage": b'{"capacity":{"storage":9}}',
    "newline": b'{"capacity":{"storage":9},"usage":{"storage":0}}\n',
    "usual": b'{"capacity":{"storage":9},"usage":{"storage":0}}',
}


def test_records_in_odd_forms() -> None:
    """However a record is written, its node's answer is the same, whatever records stand beside it."""
    cluster = Cluster()
    cluster.store.values = {**ODD, "usual again": ODD["usual"]}
    nodes = list(cluster.store.values)
    for asked in (nodes, nodes[::-1], ["usual", *nodes]):
        answer = capacity(cluster, {"storage": 2}, asked)
        assert dict.fromkeys(nodes, 4) == {
            node: each["capacity"] for node, each in answer["nodes_deploy_capacity_map"].items()
        }


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"{",
        b"[]",
        b'{"capacity":{"storage":9},"usage":{"storage":0}',
        b'{"capacity":{"storage":9},"usage":{"storage":0}}}',
        b'{"capacity":{"storage":9},"usage":{"storage":"0"}}',
        b'{"capacity":{"storage":9]},"usage":{"storage":0}}',
        b'{"capacity":{"storage":9223372036854775808},"usage":{"storage":0}}',
        b'{"capacity":{"storage":9,"x":"\xff"},"usage":{"storage":0}}',
        b'{"capacity":{"storage":9,"volumes":{"a":1.5}},"usage":{"storage":0}}',
        b'{"capacity":{"storage":9},"usage":{"disks":[null]}}',
    ],
)
def test_corrupt_records(value: bytes) -> None:
    """A value that is no record fails the query with its key, if and only if its node is asked for."""
    cluster = Cluster()
    cluster.store.values = {"good": ODD["usual"], "bad": value}
    for request in ({"storage": 2}, {"volumes": ["AUTO:/a:rw:1"]}):
        keys = {"nodenames": ["good", "bad"], "workload_resource": request}
        assert cluster.refusal("get-nodes-deploy-capacity", keys).startswith("corrupt record memory/bad: ")
    assert 4 == capacity(cluster, {"storage": 2}, ["good"])["total"]


# --- deploy (13.6)


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


@pytest.mark.parametrize(
    ("request_of_workload", "count", "error"),
    [
        ({"storage": "-1"}, 10, "storage limit or request less than 0: invalid storage"),
        (
            {"volumes": ["AUTO:/dir0:rwm:10T"]},
            10,
            f"not enough storage, request: 10995116277760, available: 0: {SHORTAGE}",
        ),
        (
            {"volumes": ["AUTO:/dir0:rwm:1T"]},
            10,
            f"not enough storage, request: 1099511627776, available: 4: {SHORTAGE}",
        ),
        ({"volumes": ["AUTO:/dir0:rwm:1G"]}, 10, f"not enough volume plan, need 10, available 4: {SHORTAGE}"),
    ],
)
def test_deploys_refused(request_of_workload: Any, count: int, error: str) -> None:
    """All or nothing; the text says what is short."""
    assert error == deploy_refusal(default_node(), request_of_workload, count)


def test_deploy_of_a_whole_device() -> None:
    """A monopoly binding gets a device, and its size is the device's."""
    key = "AUTO:/dir0:mrw:1099511627776:0:0:0:0"
    plan = {key: {"/data0": TIB}}
    assert {
        "engines_params": [
            {
                "volumes": ["/data0:/dir0:rw:1099511627776"],
                "volume_changed": False,
                "storage": TIB,
                "iops_options": {},
            }
        ],
        "workloads_resource": [
            {
                **EMPTY_WORKLOAD,
                "volumes_request": [key],
                "volumes_limit": [key],
                "volume_plan_request": plan,
                "volume_plan_limit": plan,
                "storage_request": TIB,
                "storage_limit": TIB,
            }
        ],
    } == deploy(default_node(), {"volumes": ["AUTO:/dir0:rwm:1T"]})


def test_deploy_of_storage_alone() -> None:
    """Ten equal workloads get ten equal answers."""
    assert [{**EMPTY_ENGINE, "storage": GIB}] * 10 == deploy(default_node(), {"storage": "1073741824"}, 10)[
        "engines_params"
    ]


@pytest.mark.parametrize("count", [0, -1])
def test_deploy_of_none(count: int) -> None:
    """A count of 0 or less gives two empty lists, on any node."""
    nothing: dict[str, Any] = {"engines_params": [], "workloads_resource": []}
    assert nothing == deploy(default_node(), {"storage": "1G"}, count)
    assert nothing == deploy(Cluster(), {"volumes": ["AUTO:/a:rw:1"]}, count, "unknown")


def test_deploy_on_an_unknown_node() -> None:
    """An unknown node holds what asks for nothing, and nothing else."""
    error = f"not enough storage, request: 1073741824, available: 0: {SHORTAGE}"
    assert error == deploy_refusal(Cluster(), {"storage": "1G"}, node="unknown")
    answer = deploy(Cluster(), None, 2, "unknown")
    assert {"engines_params": [EMPTY_ENGINE] * 2, "workloads_resource": [EMPTY_WORKLOAD] * 2} == answer


QUOTA_VOLUME = "AUTO:/dir0:rw:100GiB:100:100:1M:1M"
QUOTA_ROW = disk("/dev/vda", ["/data0"], 100, 100, 1048576, 1048576)


def quota_node() -> Cluster:
    """Return the node of the last row of 13.6."""
    cluster = Cluster()
    request = {"volumes": ["/data0:1T"], "disks": ["/dev/vda:/data0:1000:1000:1G:1G"]}
    cluster.call("add-node", nodename="n", resource=request)
    return cluster


def test_deploy_with_quotas() -> None:
    """Quotas show in the engine's volumes and options and in both rows."""
    answer = deploy(quota_node(), {"volumes": [QUOTA_VOLUME]})
    assert {
        "volumes": ["/data0:/dir0:rw:107374182400:100:100:1048576:1048576"],
        "volume_changed": False,
        "storage": 107374182400,
        "iops_options": {"/dev/vda": "100:100:1048576:1048576"},
    } == answer["engines_params"][0]
    workload = answer["workloads_resource"][0]
    assert [QUOTA_ROW] == workload["disks_request"] == workload["disks_limit"]


def test_limits_have_their_own_rows() -> None:
    """Limit rows sum the limits' quotas, mounts first; the planned bytes do not follow the limit in a deploy."""
    workload = deploy(
        quota_node(),
        {
            "volume-request": ["AUTO:/a:rw:1G:1:0:0:0", "/data0/x:/b:rw", "/elsewhere:/c:rw"],
            "volume-limit": ["AUTO:/a:rw:5G:7:0:0:0", "/data0/x:/b:rw:0:0:9:0:0", "/elsewhere:/c:rw:0:5:0:0:0"],
        },
    )["workloads_resource"][0]
    assert [disk("/dev/vda", ["/data0"], 1)] == workload["disks_request"]
    assert [disk("/dev/vda", ["/data0"], 7, 9)] == workload["disks_limit"]
    assert {"AUTO:/a:rw:5368709120:7:0:0:0": {"/data0": GIB}} == workload["volume_plan_limit"]


def test_limit_rows_beyond_int64() -> None:
    """Limits whose sum no answer can hold fail."""
    error = deploy_refusal(
        quota_node(),
        {
            "volume-request": ["AUTO:/a:rw:1:1", "AUTO:/b:rw:1:1"],
            "volume-limit": ["AUTO:/a:rw:1:9223372036854775807", "AUTO:/b:rw:1:1"],
        },
    )
    assert "disk IOPS / BPS is out of range: invalid disk" == error


def test_max_deploy_count_does_not_bound_a_deploy() -> None:
    """The cap is the capacity query's alone (15, 6)."""
    cluster = default_node(max_deploy_count=2)
    assert 2 == capacity(cluster, {"storage": "1G"})["total"]
    assert 3 == len(deploy(cluster, {"storage": "1G"}, 3)["engines_params"])


def test_two_workloads_are_not_put_on_one_full_volume() -> None:
    """Each placed request lowers what is left before the next is placed, within a call and across calls (fault 40)."""
    cluster = Cluster()
    size, used = 943819063296, 721554505728
    devices = {f"/mnt/{i}": size for i in range(7)}
    usage = resource(dict.fromkeys(devices, used), [], 7 * used)
    cluster.plant({"capacity": resource(devices, [], 7 * size), "usage": usage})
    request = {"volumes": ["AUTO:/data:rw:200G"]}
    both = [each["volumes"] for each in deploy(cluster, request, 2)["engines_params"]]
    assert [["/mnt/0:/data:rw:214748364800"], ["/mnt/1:/data:rw:214748364800"]] == both
    for expected in both:
        answer = deploy(cluster, request)
        assert expected == answer["engines_params"][0]["volumes"]
        book(cluster, answer["workloads_resource"])
    assert all(taken <= size for taken in cluster.record()["usage"]["volumes"].values())


def book(cluster: Cluster, workloads: list[Any], incr: bool = True, node: str = "n") -> None:
    """Record workloads as core does."""
    cluster.call("set-node-resource-usage", nodename=node, workloads_resource=workloads, delta=True, incr=incr)


# --- realloc (13.9)


ORIGIN_TEXTS = [
    "AUTO:/dir0:rw:107374182400:0:0:0:0",
    "AUTO:/dir1:mrw:107374182400:0:0:0:0",
    "AUTO:/dir2:rw:0:0:0:0:0",
]
ORIGIN_PLAN = dict(zip(ORIGIN_TEXTS, [{"/data0": GIB100}, {"/data2": TIB}, {"/data0": 0}], strict=True))
ORIGIN: dict[str, Any] = {
    **EMPTY_WORKLOAD,
    "volumes_request": ORIGIN_TEXTS,
    "volumes_limit": ORIGIN_TEXTS,
    "volume_plan_request": ORIGIN_PLAN,
    "volume_plan_limit": ORIGIN_PLAN,
}


def booked_node() -> Cluster:
    """Return a cluster whose default node holds the origin."""
    cluster = default_node()
    book(cluster, [ORIGIN])
    return cluster


def realloc(cluster: Cluster, request: Any, origin: Any = ORIGIN, node: str = "n") -> Any:
    """Calculate a realloc."""
    keys = {"nodename": node, "workload_resource": origin, "workload_resource_request": request}
    return cluster.call("calculate-realloc", keys)


def realloc_refusal(cluster: Cluster, request: Any, origin: Any = ORIGIN, node: str = "n") -> str:
    """Return the text of a realloc that fails."""
    keys = {"nodename": node, "workload_resource": origin, "workload_resource_request": request}
    return cluster.refusal("calculate-realloc", keys)


@pytest.mark.parametrize(
    ("request_of_workload", "error"),
    [
        (
            {"volume-request": ORIGIN_TEXTS, "storage-request": -1, "storage-limit": -1},
            "storage limit or request less than 0: invalid storage",
        ),
        (
            {"volumes": ["AUTO:/dir0:rw:-100G"], "storage-request": -1, "storage-limit": -1},
            "storage limit or request less than 0: invalid storage",
        ),
        ({"volumes": ["AUTO:/dir1:rwm:100GiB"], "storage": "4T"}, SHORTAGE),
        ({"volumes": ["AUTO:/dir1:rwm:1TiB"]}, SHORTAGE),
        ({"volumes": ["AUTO:/dir0:ro:1G"]}, "duplicate destination /dir0: invalid volume"),
        (
            {"volumes": ["AUTO:/dir1:rwm:-100G"]},
            "monopoly volume requires a positive size: AUTO:/dir1:mrw:0:0:0:0:0: invalid volume",
        ),
        (
            {"volumes": ["AUTO:/dir0:rw:0:-1"]},
            "invalid io parameters: AUTO:/dir0:rw:107374182400:-1:0:0:0: invalid volume",
        ),
        ({"volumes-request": ["AUTO:/new:rw:1"]}, "different length of request and limit: invalid volume"),
    ],
)
def test_reallocs_refused(request_of_workload: Any, error: str) -> None:
    """The merged request is validated; any shortage has the one text."""
    assert error == realloc_refusal(booked_node(), request_of_workload)


def test_monopoly_and_storage_grow() -> None:
    """A monopoly binding keeps its device whatever its size; storages grow by both."""
    answer = realloc(booked_node(), {"volumes": ["AUTO:/dir1:rwm:100GiB"], "storage": "1GiB"})
    assert {
        "volumes": ["/data0:/dir0:rw:107374182400", "/data2:/dir1:rw:1099511627776", "/data0:/dir2:rw:0"],
        "volume_changed": False,
        "storage": 108447924224,
        "iops_options": {},
    } == answer["engine_params"]
    assert {
        "AUTO:/dir0:rw:107374182400:0:0:0:0": {"/data0": GIB100},
        "AUTO:/dir1:mrw:214748364800:0:0:0:0": {"/data2": TIB},
        "AUTO:/dir2:rw:0:0:0:0:0": {"/data0": 0},
    } == answer["workload_resource"]["volume_plan_request"]
    assert {
        **EMPTY_WORKLOAD,
        "volume_plan_request": {"fake-source:fake-destination:fake-flags:0:0:0:0:0": {"/data0": 0, "/data2": 0}},
        "storage_request": 108447924224,
    } == answer["delta_resource"]


@pytest.mark.parametrize("node", ["n", "unknown"])
def test_storage_alone_leaves_plans(node: str) -> None:
    """Without scheduled bindings in the request the plan stays, whatever became of its devices (15, 15)."""
    cluster = booked_node()
    if node == "unknown":
        cluster.plant({"capacity": resource(storage=TIB), "usage": resource()}, node)
    answer = realloc(cluster, {"storage": "1GiB"}, node=node)
    assert answer["engine_params"]["volume_changed"] is False
    assert ORIGIN_PLAN == answer["workload_resource"]["volume_plan_request"]
    assert (GIB, GIB) == (answer["workload_resource"]["storage_request"], answer["workload_resource"]["storage_limit"])
    delta = answer["delta_resource"]["volume_plan_request"]
    assert [{"/data0": 0, "/data2": 0}] == list(delta.values())


def test_realloc_on_an_unknown_node() -> None:
    """An unknown node has no storage to give; nothing can be asked of it all the same."""
    assert SHORTAGE == realloc_refusal(Cluster(), {"storage": "1G"}, {"storage_request": 5, "storage_limit": 5})
    answer = realloc(Cluster(), None, None)
    assert {
        "engine_params": EMPTY_ENGINE,
        "delta_resource": EMPTY_WORKLOAD,
        "workload_resource": EMPTY_WORKLOAD,
    } == answer


def booked_quota_node() -> tuple[Cluster, Any]:
    """Return the node and the workload of the last row of 13.6, booked."""
    cluster = quota_node()
    answer = deploy(cluster, {"volumes": [QUOTA_VOLUME]})
    book(cluster, answer["workloads_resource"])
    return cluster, answer["workloads_resource"][0]


def test_rows_stay_when_only_storage_grows() -> None:
    """Disk rows are untouched; their difference is zeros, with the mounts."""
    cluster, origin = booked_quota_node()
    answer = realloc(cluster, {"storage": "1GiB"}, origin)
    assert (108447924224, 108447924224) == (
        answer["workload_resource"]["storage_request"],
        answer["workload_resource"]["storage_limit"],
    )
    assert [QUOTA_ROW] == answer["workload_resource"]["disks_request"]
    assert [disk("/dev/vda", ["/data0"])] == answer["delta_resource"]["disks_request"]


def test_quotas_grow() -> None:
    """A quota more is on every row, and the difference is only that."""
    cluster, origin = booked_quota_node()
    answer = realloc(cluster, {"volumes": ["AUTO:/dir0:rw:0:50:0:0:0"]}, origin)
    row = disk("/dev/vda", ["/data0"], 150, 100, 1048576, 1048576)
    assert [row] == answer["workload_resource"]["disks_request"] == answer["workload_resource"]["disks_limit"]
    assert {"/dev/vda": "150:100:1048576:1048576"} == answer["engine_params"]["iops_options"]
    assert [disk("/dev/vda", ["/data0"], 50)] == answer["delta_resource"]["disks_request"]
    assert [{"/data0": 0}] == list(answer["delta_resource"]["volume_plan_request"].values())


def test_shrunk_below_nothing() -> None:
    """Storage that would be negative is refused even where the volume disappears."""
    cluster, origin = booked_quota_node()
    error = realloc_refusal(cluster, {"volumes": ["AUTO:/dir0:rw:-200G"]}, origin)
    assert "storage limit or request less than 0: invalid storage" == error


@pytest.mark.parametrize("devices", [{}, None, {"/data0": 1, "/data1": 2}])
@pytest.mark.parametrize("member", ["volume_plan_request", "volume_plan_limit"])
def test_malformed_origins(member: str, devices: Any) -> None:
    """A workload's plan has exactly one device in each entry."""
    error = realloc_refusal(booked_node(), {"storage": 1}, {**ORIGIN, member: {ORIGIN_TEXTS[0]: devices}})
    assert "a volume plan entry needs exactly one device: invalid volume" == error


@pytest.mark.parametrize(
    ("origin", "request_of_workload", "error"),
    [
        (
            {"storage_request": 2**63 - 1, "storage_limit": 2**63 - 1},
            {"storage": 1},
            "storage is out of range: invalid storage",
        ),
        (
            {"volumes_request": ["AUTO:/a:rw:8191P"], "volumes_limit": ["AUTO:/a:rw:8191P"]},
            {"volumes": ["AUTO:/a:rw:8191P"]},
            "volume size is out of range: invalid volume",
        ),
        (
            {"volumes_request": ["/a:/a:rw:0:8191P"], "volumes_limit": ["/a:/a:rw:0:8191P"]},
            {"volumes": ["/a:/a:rw:0:8191P"]},
            "disk IOPS / BPS is out of range: invalid disk",
        ),
    ],
)
def test_reallocs_beyond_int64(origin: Any, request_of_workload: Any, error: str) -> None:
    """Sums that no answer can hold fail."""
    assert error == realloc_refusal(booked_node(), request_of_workload, origin)


def test_a_volume_keeps_its_disk() -> None:
    """A larger volume is refused when its disk is full, though another is free (fault 45)."""
    cluster = Cluster()
    cluster.call("add-node", nodename="n", resource={"volumes": ["/data0:10", "/data1:100"]})
    answer = deploy(cluster, {"volumes": ["AUTO:/a:rw:10"]})
    book(cluster, answer["workloads_resource"])
    assert {"/data0": 10} == cluster.record()["usage"]["volumes"]
    assert SHORTAGE == realloc_refusal(cluster, {"volumes": ["AUTO:/a:rw:1"]}, answer["workloads_resource"][0])


def test_limits_follow_in_a_realloc() -> None:
    """Unlike in a deploy, planned limits have limit - request added (15, 9)."""
    cluster = quota_node()
    workload = deploy(cluster, {"volumes": ["AUTO:/a:rw:5"]})["workloads_resource"][0]
    book(cluster, [workload])
    request = {"volume-request": ["AUTO:/a:rw:1"], "volume-limit": ["AUTO:/a:rw:10"]}
    changed = realloc(cluster, request, workload)["workload_resource"]
    assert {"AUTO:/a:rw:6:0:0:0:0": {"/data0": 6}} == changed["volume_plan_request"]
    assert {"AUTO:/a:rw:15:0:0:0:0": {"/data0": 15}} == changed["volume_plan_limit"]


def test_volume_changed() -> None:
    """A new binding, one less, or another device is a change for the engine; a size is none."""
    cluster = quota_node()
    workload = deploy(cluster, {"volumes": ["AUTO:/a:rw:5", "/mnt:/b:ro"]})["workloads_resource"][0]
    book(cluster, [workload])
    for request, changed in (
        ({"volumes": ["AUTO:/a:rw:7"]}, False),
        ({"volumes": ["AUTO:/c:rw:7"]}, True),
        ({"volumes": ["AUTO:/a:rw:-6"], "storage": 1}, True),
        ({"volumes": ["/mnt:/c:ro"]}, True),
        ({"storage": 1}, False),
    ):
        assert changed is realloc(cluster, request, workload)["engine_params"]["volume_changed"]
