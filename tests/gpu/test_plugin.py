"""Every gpu verb from request to record, over a SQLite file (specification, gpu 7 to 10)."""

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from resource_extend.gpu.plugin import GpuPlugin
from resource_extend.store.sqlite import SqliteStore
from support.calls import call_here

R = {"nvidia-3070": 4, "nvidia-3090": 4}
NOT_ENOUGH = "cannot alloc a plan, not enough resource"


def cards(**products: int) -> dict[str, Any]:
    """Write `{"prod_count_map": {...}}`; `_` stands for `-`."""
    return {"prod_count_map": {product.replace("_", "-"): count for product, count in products.items()}}


class Node:
    """The plugin over one file in which `n1` has 4 + 4 cards."""

    def __init__(self, folder: Path) -> None:
        self._database = folder / "records.db"
        self.config = folder / "gpu.yaml"
        self.config.write_text("sqlite: {path: records.db}\n")
        self.plant("n1", {"capacity": {"prod_count_map": R}, "usage": {"prod_count_map": {}}})

    def __call__(self, verb: str, **request: Any) -> Any:
        """Return the answer of a verb."""
        return self.answer(verb, json.dumps(request).encode())

    def answer(self, verb: str, request: bytes) -> Any:
        """Return the answer to a text."""
        outcome = call_here(GpuPlugin, ["--config", str(self.config), verb], request)
        assert 0 == outcome.status, outcome.stderr
        return json.loads(outcome.stdout)

    def refuses(self, verb: str, **request: Any) -> str:
        """Return the text of a failure, after which all is stored as before."""
        before = self.stored("n1")
        outcome = call_here(GpuPlugin, ["--config", str(self.config), verb], json.dumps(request).encode())
        assert (128, b"") == outcome[:2]
        assert before == self.stored("n1")
        return outcome.stderr.decode().removesuffix("\n")

    def plant(self, node: str, record: Any) -> None:
        """Store a record, or a text that is none."""
        value = record.encode() if isinstance(record, str) else json.dumps(record).encode()
        self._store().update(node, lambda _: value)

    def stored(self, node: str) -> bytes | None:
        """Return the stored bytes of a node."""
        return self._store().get(node)

    def record(self, node: str = "n1") -> tuple[dict[str, int], dict[str, int]] | None:
        """Return the stored capacity and usage."""
        value = self.stored(node)
        if value is None:
            return None
        record = json.loads(value)
        return record["capacity"]["prod_count_map"], record["usage"]["prod_count_map"]

    def _store(self) -> SqliteStore:
        return SqliteStore(str(self._database), "gpu", time.monotonic() + 10)


@pytest.fixture
def node(tmp_path: Path) -> Node:
    """Return the plugin over a fresh file."""
    return Node(tmp_path)


def fits(capacity: int, usage: float, rate: float) -> dict[str, float]:
    """Write one entry of nodes_deploy_capacity_map."""
    return {"capacity": capacity, "usage": usage, "rate": rate, "weight": 1}


# --- the worked examples of specification, gpu 10, by number


@pytest.mark.parametrize(
    ("number", "nodenames", "request_", "listed"),
    [
        (1, ["n1"], {}, {"n1": fits(1_000_000, 0, 0)}),
        (2, ["n1"], {"nvidia-3070": 3}, {"n1": fits(1, 0, 0.375)}),
        (3, ["n1"], {"nvidia-3070": 1, "nvidia-3090": 2}, {"n1": fits(2, 0, 0.375)}),
        (4, ["n1"], {"nvidia-3070": 5}, {}),
        (5, ["n1", "x"], {}, {"n1": fits(1_000_000, 0, 0), "x": fits(1_000_000, 0, 0)}),
        (6, ["n1", "x"], {"nvidia-3070": 1}, {"n1": fits(4, 0, 0.125)}),
    ],
)
def test_examples_of_deploy_capacity(number: int, nodenames: list[str], request_: Any, listed: Any, node: Node) -> None:
    """Examples 1 to 6: capacity by the scarcest product, unknown nodes only for requests that ask for nothing."""
    answer = node("get-nodes-deploy-capacity", nodenames=nodenames, workload_resource={"prod_count_map": request_})

    expected = {"nodes_deploy_capacity_map": listed, "total": sum(entry["capacity"] for entry in listed.values())}
    assert json.dumps(expected, sort_keys=True) == json.dumps(answer, sort_keys=True)


CAPACITY = "set-node-resource-capacity"
USAGE = "set-node-resource-usage"


@pytest.mark.parametrize(
    ("number", "request_", "after"),
    [
        (7, {"delta": True}, R),
        (8, {"resource_request": cards(nvidia_3070=1), "delta": True, "incr": True}, R | {"nvidia-3070": 5}),
        (8, {"resource_request": cards(nvidia_3070=1), "delta": True, "incr": False}, R | {"nvidia-3070": 3}),
        (9, {"resource_request": cards(nvidia_3070=1), "delta": False, "incr": False}, {"nvidia-3070": 1}),
        (9, {"resource_request": cards(nvidia_3070=1), "delta": False, "incr": True}, {"nvidia-3070": 1}),
        (10, {"resource_request": cards(nvidia_3070=1), "delta": None, "incr": False}, {"nvidia-3070": 1}),
        (12, {"delta": False}, {}),
        (13, {"resource_request": {}, "delta": False}, R),
        (13, {"resource_request": {"cpu": 1}, "delta": False, "incr": True}, R),
        (14, {"resource_request": {"prod_count_map": None}, "delta": False}, {}),
        (14, {"resource_request": {"prod_count_map": {}}, "delta": False}, {}),
        (14, {"resource": {}, "delta": False}, {}),
        (16, {"resource_request": cards(nvidia_3070=-4), "delta": True, "incr": True}, {"nvidia-3090": 4}),
        # Which source counts, and that zeros are dropped.
        (0, {"resource_request": {}, "resource": cards(a=1), "delta": True, "incr": True}, R),
        (0, {"resource_request": None, "resource": cards(a=1), "delta": True, "incr": True}, R | {"a": 1}),
        (0, {"resource_request": cards(a=0), "delta": False}, {}),
        (0, {"resource_request": cards(a=0, b=1), "delta": True, "incr": True}, R | {"b": 1}),
    ],
)
def test_examples_of_set_capacity(number: int, request_: Any, after: Any, node: Node) -> None:
    """Examples 7 to 16: the source replaces, adds or subtracts; the answer tells before and after."""
    answer = node(CAPACITY, nodename="n1", **request_)

    assert {"before": {"prod_count_map": R}, "after": {"prod_count_map": after}} == answer
    assert (after, {}) == node.record()


def test_example_11(node: Node) -> None:
    """A flag that is a text is an error that names it."""
    request = {"nodename": "n1", "resource_request": cards(a=1), "delta": "false"}

    assert "decode plugin input: expected bool, got str at $.delta" == node.refuses(CAPACITY, **request)


def test_example_15(node: Node) -> None:
    """More cards cannot be taken away than there are; nothing is written."""
    text = node.refuses(CAPACITY, nodename="n1", resource_request=cards(nvidia_3070=5), delta=True, incr=False)

    line = "count is less than or equal to zero: <product: nvidia-3070, count: -1>: invalid gpu map"
    assert f"invalid capacity: {line}" == text


def test_example_17(node: Node) -> None:
    """The capacity before, replayed as core does it, restores the stored bytes."""
    node(CAPACITY, nodename="n1", delta=True)  # into our own bytes
    before = node.stored("n1")
    answer = node(CAPACITY, nodename="n1", resource_request=cards(nvidia_3070=1), delta=False, incr=True)
    assert before != node.stored("n1")
    node(CAPACITY, nodename="n1", resource=None, resource_request=answer["before"], delta=False, incr=False)

    assert before == node.stored("n1")


@pytest.mark.parametrize("verb", [CAPACITY, USAGE])
def test_example_18(verb: str, node: Node) -> None:
    """An unknown node starts from the empty record and is created, also when there is nothing to add."""
    answer = node(verb, nodename="x", resource_request=cards(nvidia_3070=2), delta=True, incr=True)
    assert {"before": cards(), "after": cards(nvidia_3070=2)} == answer
    expected = ({"nvidia-3070": 2}, {}) if verb == CAPACITY else ({}, {"nvidia-3070": 2})
    assert expected == node.record("x")

    assert {"before": cards(), "after": cards()} == node(verb, nodename="y", delta=True)
    assert b'{"capacity":{"prod_count_map":{}},"usage":{"prod_count_map":{}}}' == node.stored("y")


def test_example_19(node: Node) -> None:
    """Workloads of which the record knows nothing show in the totals and one by one."""
    workloads = [cards(nvidia_3070=1, nvidia_3090=1)]
    diffs = ["node.usage != sum(workload.request): 0 != 2", "nvidia-3070 not in usage", "nvidia-3090 not in usage"]
    answer = node("get-node-resource-info", nodename="n1", workloads_resource=workloads)

    assert {"capacity": {"prod_count_map": R}, "usage": cards(), "diffs": diffs} == answer
    # Example 21: the repair answers the differences found before it, and stores the sum.
    answer = node("fix-node-resource", nodename="n1", workloads_resource=workloads)
    assert {"capacity": {"prod_count_map": R}, "usage": workloads[0], "diffs": diffs} == answer
    assert (R, {"nvidia-3070": 1, "nvidia-3090": 1}) == node.record()
    stored = node.stored("n1")
    assert [] == node("fix-node-resource", nodename="n1", workloads_resource=workloads)["diffs"]
    assert stored == node.stored("n1")


def test_example_20(node: Node) -> None:
    """Equal totals say nothing of the products; a null among the workloads is nothing."""
    node.plant("n1", {"capacity": cards(), "usage": cards(nvidia_3070=2)})
    workloads = [None, cards(nvidia_3070=1), cards(nvidia_3090=1)]
    answer = node("get-node-resource-info", nodename="n1", workloads_resource=workloads)

    assert ["nvidia-3070: actual(1) != usage(2)", "nvidia-3090 not in usage"] == answer["diffs"]


def test_examples_22_and_23(node: Node) -> None:
    """An unknown node is null to read, and an error to repair."""
    assert None is node("get-node-resource-info", nodename="x", workloads_resource=[cards(a=1)])
    assert "key: x: node not exists" == node.refuses("fix-node-resource", nodename="x", workloads_resource=[])
    assert None is node.record("x")


def deploy(count: Any, request: Any, nodename: str = "n1") -> dict[str, Any]:
    """Write a request of calculate-deploy."""
    return {"nodename": nodename, "deploy_count": count, "workload_resource_request": request}


def test_examples_24_to_28(node: Node) -> None:
    """Workloads are placed all or nothing; each gets the request's map."""
    one = cards(nvidia_3070=1, nvidia_3090=1)
    expected = {"engines_params": [one] * 4, "workloads_resource": [one] * 4}
    assert expected == node("calculate-deploy", **deploy(4, one))
    assert NOT_ENOUGH == node.refuses("calculate-deploy", **deploy(5, one))
    line = "count is less than or equal to zero: <product: nvidia-3070, count: -1>: invalid gpu map"
    assert line == node.refuses("calculate-deploy", **deploy(1, cards(nvidia_3070=-1)))
    for empty in ({}, None, cards(), {"prod_count_map": None}):
        expected = {"engines_params": [cards()] * 2, "workloads_resource": [cards()] * 2}
        assert expected == node("calculate-deploy", **deploy(2, empty, "x"))
    for count in (0, -1, None, -(2**63)):
        assert {"engines_params": [], "workloads_resource": []} == node("calculate-deploy", **deploy(count, one))
    # Also then the request must be right; and an unknown node has no cards.
    assert line == node.refuses("calculate-deploy", **deploy(0, cards(nvidia_3070=-1)))
    assert NOT_ENOUGH == node.refuses("calculate-deploy", **deploy(1, one, "x"))


def realloc(current: Any, request: Any, nodename: str = "n1") -> dict[str, Any]:
    """Write a request of calculate-realloc."""
    return {"nodename": nodename, "workload_resource": current, "workload_resource_request": request}


def test_examples_29_to_31(node: Node) -> None:
    """A realloc answers what is then held, twice, and the difference."""
    answer = node("calculate-realloc", **realloc(cards(nvidia_3090=1), cards(nvidia_3090=-5, nvidia_3070=1)))
    held = cards(nvidia_3070=1)
    delta = {"prod_count_map": {"nvidia-3070": 1, "nvidia-3090": -1}}
    assert {"engine_params": held, "workload_resource": held, "delta_resource": delta} == answer
    answer = node("calculate-realloc", **realloc(None, None))
    assert {"engine_params": cards(), "workload_resource": cards(), "delta_resource": cards()} == answer
    answer = node("calculate-realloc", **realloc(cards(a=1), {}, "x"))
    assert {"engine_params": cards(a=1), "workload_resource": cards(a=1), "delta_resource": cards()} == answer


def test_realloc_within_what_is_free_and_held(node: Node) -> None:
    """A realloc may take what is free and what the workload holds, also when the usage is recorded too low."""
    node.plant("n1", {"capacity": cards(a=4), "usage": cards(a=3)})
    assert cards(a=3) == node("calculate-realloc", **realloc(cards(a=2), cards(a=1)))["workload_resource"]
    assert NOT_ENOUGH == node.refuses("calculate-realloc", **realloc(cards(a=2), cards(a=2)))
    node.plant("n1", {"capacity": cards(a=4), "usage": cards()})
    assert cards(a=6) == node("calculate-realloc", **realloc(cards(a=2), cards(a=4)))["workload_resource"]
    assert NOT_ENOUGH == node.refuses("calculate-realloc", **realloc(cards(a=2), cards(a=5)))
    text = node.refuses("calculate-realloc", **realloc(cards(a=0), cards(a=1)))
    assert "count is less than or equal to zero: <product: a, count: 0>: invalid gpu map" == text
    text = node.refuses("calculate-realloc", **realloc(cards(a=1), {"prod_count_map": {" ": 0}}))
    assert "product is empty: invalid gpu product" == text


def test_examples_32_and_33(node: Node) -> None:
    """Absent maps are empty ones, given or stored."""
    assert {} == node("set-node-resource-info", nodename="n1", capacity=None, usage=None)
    assert {"capacity": cards(), "usage": cards(), "diffs": []} == node("get-node-resource-info", nodename="n1")
    for stored in (
        '{"capacity":{"prod_count_map":null},"usage":{"prod_count_map":null}}',
        "null",
        "{}",
        '{"usage":null}',
    ):
        node.plant("go", stored)
        answer = node("get-nodes-resource-info", nodenames=["go", "x"])
        empty = {"capacity": cards(), "usage": cards()}
        assert {"node_resource_info_map": {"go": empty, "x": empty}} == answer


@pytest.mark.parametrize(
    ("nodenames", "best"),
    [
        (["b", "a"], "a"),  # example 34
        (["n1", "idle", "a"], "a"),
        (["half", "third"], "third"),
        (["half", "idle"], "idle"),
        (["half", "n1"], "n1"),
        (["half"], "half"),
        (["\U0001f600", "\uffee"], "\uffee"),
        (["cardless", "half"], "cardless"),
        (["idle", ""], ""),
    ],
)
def test_most_idle_node(nodenames: list[str], best: str, node: Node) -> None:
    """The least used part wins, among equals the smallest name; nodes without cards count as idle."""
    node.plant("half", {"capacity": cards(a=4), "usage": cards(a=2)})
    node.plant("third", {"capacity": cards(a=3, b=3), "usage": cards(b=2)})
    node.plant("idle", {"capacity": cards(a=4), "usage": cards()})
    node.plant("cardless", {"capacity": cards(), "usage": cards(a=2)})

    assert {"nodename": best, "priority": 100} == node("get-most-idle-node", nodenames=nodenames)


def test_example_35(node: Node) -> None:
    """Metrics: two rows for each product of the capacity, keys with the node's dots as underlines."""
    node.plant("n.1", {"capacity": cards(p=2), "usage": cards(other=1)})
    labels = ["dev", "n.1", "p"]

    assert [
        {"name": "gpu_capacity", "labels": labels, "key": "core.node.n_1.gpu.capacity", "value": "2"},
        {"name": "gpu_used", "labels": labels, "key": "core.node.n_1.gpu.used", "value": "0"},
    ] == node("get-metrics", nodes=[{"podname": "dev", "nodename": "n.1"}])


def test_metrics(node: Node) -> None:
    """Rows follow the order of the request, then the product; a node asked twice is told twice."""
    node.plant("n1", {"capacity": cards(b=2, a=1), "usage": cards(b=1)})
    node.plant("bare", {"capacity": cards(), "usage": cards(a=1)})
    nodes = [{"podname": pod, "nodename": name} for pod, name in (("q", "n1"), ("p", "bare"), ("p", "x"), ("r", "n1"))]
    rows = node("get-metrics", nodes=nodes)

    assert [(pod, product) for pod in "qr" for product in "ab" for _ in range(2)] == [
        (row["labels"][0], row["labels"][2]) for row in rows
    ]
    assert ["1", "0", "2", "1"] * 2 == [row["value"] for row in rows]
    assert rows[:4] == node("get-metrics", podname="q", nodename="n1")
    assert [] == node("get-metrics")


def test_metrics_description(node: Node) -> None:
    """The description is fixed, and every row has as many labels as it says."""
    labels = ["podname", "nodename", "product"]
    expected = [
        {"name": "gpu_capacity", "help": "node available gpu.", "type": "gauge", "labels": labels},
        {"name": "gpu_used", "help": "node used gpu.", "type": "gauge", "labels": labels},
    ]

    assert expected == node("get-metrics-description")
    for row in node("get-metrics", podname="p", nodename="n1"):
        assert len(labels) == len(row["labels"])
        assert row["name"] in {each["name"] for each in expected}


def test_example_36(node: Node) -> None:
    """Integral numbers in every spelling are exact."""
    request = b'{"nodename":"x","resource":{"prod_count_map":{"a":2.0,"b":1e3,"c":9007199254740993}}}'
    expected = b'{"capacity":{"prod_count_map":{"a":2,"b":1000,"c":9007199254740993}},"usage":{"prod_count_map":{}}}'

    assert cards(a=2, b=1000, c=9007199254740993) == node.answer("add-node", request)["capacity"]
    assert expected == node.stored("x")


@pytest.mark.parametrize("count", [2.5, "2", True, 2**63, [], {}])
def test_example_37(count: Any, node: Node) -> None:
    """Anything else than an integer within int64 is an error that names the place."""
    text = node.refuses("add-node", nodename="x", resource={"prod_count_map": {"p": count}})

    assert text.startswith("decode plugin input: ")
    assert text.endswith(" at $.resource.prod_count_map.p")


# --- what the examples leave out


@pytest.mark.parametrize("resource", [None, {}, {"prod_count_map": None}, {"cpu": 4, "volumes": ["x"]}])
def test_add_node_without_cards(resource: Any, node: Node) -> None:
    """No cards are given in many ways; keys of other resources are ignored."""
    for info in (None, {}, {"NCPU": "x", "StorageTotal": "1T"}):
        answer = node("add-node", nodename="x", resource=resource, info=info)
        assert {"capacity": cards()} == answer
        assert ({}, {}) == node.record("x")
        assert {} == node("remove-node", nodename="x")
        assert None is node.record("x")


def test_add_node(node: Node) -> None:
    """A node is added once, whatever its record holds; its cards are validated without a prefix in the text."""
    for stored in (None, "no record"):
        if stored:
            node.plant("n1", stored)
        assert "node already exists" == node.refuses("add-node", nodename="n1", resource=cards(a=1))
    text = node.refuses("add-node", nodename="x", resource=cards(a=0))
    assert "count is less than or equal to zero: <product: a, count: 0>: invalid gpu map" == text
    assert None is node.record("x")
    node("add-node", nodename="x", resource=cards(b=1, a=2))
    assert b'{"capacity":{"prod_count_map":{"a":2,"b":1}},"usage":{"prod_count_map":{}}}' == node.stored("x")


def test_usage(node: Node) -> None:
    """Workloads are booked and given back; the usage before, replayed as core does it, restores the stored bytes."""
    workloads = [cards(nvidia_3070=1), None, cards(nvidia_3070=1, nvidia_3090=1)]
    node(USAGE, nodename="n1", delta=True)
    before = node.stored("n1")
    answer = node(USAGE, nodename="n1", workloads_resource=workloads, delta=True, incr=True)
    assert {"before": cards(), "after": cards(nvidia_3070=2, nvidia_3090=1)} == answer
    assert (R, {"nvidia-3070": 2, "nvidia-3090": 1}) == node.record()
    nothing = {"resource_request": None, "workloads_resource": None, "delta": False, "incr": False}
    node(USAGE, nodename="n1", resource=answer["before"], **nothing)
    assert before == node.stored("n1")

    node(USAGE, nodename="n1", workloads_resource=workloads, delta=False, incr=False)
    assert (R, {"nvidia-3070": 2, "nvidia-3090": 1}) == node.record()
    node(USAGE, nodename="n1", workloads_resource=workloads[:1], delta=True, incr=False)
    assert (R, {"nvidia-3070": 1, "nvidia-3090": 1}) == node.record()
    node(USAGE, nodename="n1", workloads_resource=[], delta=True, incr=False)
    assert (R, {"nvidia-3070": 1, "nvidia-3090": 1}) == node.record()
    node(USAGE, nodename="n1", delta=False)
    assert (R, {}) == node.record()


def test_usage_of_an_empty_request(node: Node) -> None:
    """An empty resource_request counts as given: with delta false it empties the usage, it does not keep it."""
    node(USAGE, nodename="n1", resource=cards(a=1))
    answer = node(USAGE, nodename="n1", resource_request={}, resource=cards(b=1), workloads_resource=[cards(c=1)])

    assert {"before": cards(a=1), "after": cards()} == answer


def test_usage_may_exceed_capacity(node: Node) -> None:
    """Nothing checks that what is used is there; but it cannot be negative."""
    node(USAGE, nodename="n1", resource=cards(a=9))
    answer = node("get-nodes-deploy-capacity", nodenames=["n1"], workload_resource=cards(nvidia_3070=1))
    assert fits(4, 1.125, 0.125) == answer["nodes_deploy_capacity_map"]["n1"]
    answer = node("get-nodes-deploy-capacity", nodenames=["n1"], workload_resource=cards(a=1))
    assert {"nodes_deploy_capacity_map": {}, "total": 0} == answer
    text = node.refuses(USAGE, nodename="n1", workloads_resource=[cards(a=10)], delta=True, incr=False)
    assert "invalid usage: count is less than or equal to zero: <product: a, count: -1>: invalid gpu map" == text


def test_counts_beyond_int64(node: Node) -> None:
    """A sum beyond int64 is an error and nothing is written."""
    node.plant("n1", {"capacity": cards(a=2**63 - 1), "usage": cards(a=2**63 - 1)})
    line = f"card count {2**63} is out of range: invalid gpu map"

    assert line == node.refuses(CAPACITY, nodename="n1", resource_request=cards(a=1), delta=True, incr=True)
    assert line == node.refuses(USAGE, nodename="n1", workloads_resource=[cards(a=1)], delta=True, incr=True)
    assert line == node.refuses("fix-node-resource", nodename="n1", workloads_resource=[cards(a=2**63 - 1), cards(a=1)])
    assert line == node.refuses("calculate-realloc", **realloc(cards(a=2**63 - 1), cards(a=1)))


def test_set_info(node: Node) -> None:
    """Absolute values are stored as given, whatever was there; the record is validated."""
    node.plant("n1", "no record")
    assert {} == node("set-node-resource-info", nodename="n1", capacity=cards(b=2, a=1), usage=cards(c=9))
    assert ({"a": 1, "b": 2}, {"c": 9}) == node.record()
    for part in ("capacity", "usage"):
        text = node.refuses("set-node-resource-info", nodename="n1", **{part: cards(a=0)})
        assert f"invalid {part}: count is less than or equal to zero: <product: a, count: 0>: invalid gpu map" == text
        text = node.refuses("set-node-resource-info", nodename="n1", **{part: {"prod_count_map": {"\t": 1}}})
        assert f"invalid {part}: product is empty: invalid gpu product" == text
    assert {} == node("set-node-resource-info", nodename="new", capacity=cards(a=1))
    assert ({"a": 1}, {}) == node.record("new")


def test_a_stored_fault_blocks_the_other_part(node: Node) -> None:
    """Every write validates the whole record; a repair of the faulty part itself goes through."""
    node.plant("n1", {"capacity": cards(a=0), "usage": cards(b=-1)})
    text = node.refuses(USAGE, nodename="n1", resource=cards(a=1))
    assert "invalid capacity: count is less than or equal to zero: <product: a, count: 0>: invalid gpu map" == text
    text = node.refuses(CAPACITY, nodename="n1", resource=cards(a=1))
    assert "invalid usage: count is less than or equal to zero: <product: b, count: -1>: invalid gpu map" == text
    assert node.refuses("fix-node-resource", nodename="n1").startswith("invalid capacity: ")
    node.plant("n1", {"capacity": cards(a=1), "usage": cards(b=-1)})
    node("fix-node-resource", nodename="n1", workloads_resource=[])
    assert ({"a": 1}, {}) == node.record()
    text = node.refuses("fix-node-resource", nodename="n1", workloads_resource=[cards(a=-1)])
    assert "invalid usage: count is less than or equal to zero: <product: a, count: -1>: invalid gpu map" == text


@pytest.mark.parametrize(
    "stored",
    ["", "x", "[]", '{"capacity":5}', '{"capacity":{"prod_count_map":{"a":"1"}}}', '{"usage":[]}', "{} {}", "1"],
)
def test_corrupt_record(stored: str, node: Node) -> None:
    """A stored value that is no record is named by its key when the node is asked; two verbs lead out of it."""
    node.plant("bad", stored)
    asked: list[tuple[str, dict[str, Any]]] = [
        ("get-node-resource-info", {"nodename": "bad"}),
        ("get-nodes-resource-info", {"nodenames": ["n1", "bad"]}),
        ("get-nodes-deploy-capacity", {"nodenames": ["n1", "bad"]}),
        ("get-most-idle-node", {"nodenames": ["n1", "bad"]}),
        ("get-metrics", {"nodes": [{"nodename": "bad"}]}),
        ("calculate-deploy", {"nodename": "bad", "deploy_count": 1}),
        ("calculate-realloc", {"nodename": "bad"}),
        ("fix-node-resource", {"nodename": "bad"}),
        (CAPACITY, {"nodename": "bad"}),
        (USAGE, {"nodename": "bad"}),
    ]
    for verb, request in asked:
        text = node.refuses(verb, **request)
        assert text.startswith("corrupt record "), verb
        assert "/resource/gpu/bad: " in text, verb
        assert stored.encode() == node.stored("bad"), verb
    node("get-nodes-deploy-capacity", nodenames=["n1"])  # another node's corrupt record does no harm
    node("set-node-resource-info", nodename="bad")
    node.plant("bad", stored)
    node("remove-node", nodename="bad")


def test_records_as_others_write_them(node: Node) -> None:
    """Unknown members of a record are ignored, and exact case is asked for."""
    node.plant("n1", '{"capacity":{"prod_count_map":{"a":2.0},"x":1},"y":[],"Usage":{"prod_count_map":{"a":1}}}')
    answer = node("get-node-resource-info", nodename="n1")

    assert {"capacity": cards(a=2), "usage": cards(), "diffs": []} == answer


def test_ratios(node: Node) -> None:
    """Both operands become doubles before the division; whole values are written as integers."""
    node.plant("n1", {"capacity": cards(a=9007199254740993, b=2), "usage": cards(a=9007199254740993)})
    entry = node("get-nodes-deploy-capacity", nodenames=["n1"], workload_resource=cards(b=1))
    expected = fits(2, 9007199254740993.0 / 9007199254740995.0, 1.0 / 9007199254740995.0)
    assert expected == entry["nodes_deploy_capacity_map"]["n1"]

    node.plant("n1", {"capacity": cards(), "usage": cards(a=1)})
    raw = call_raw(node, b'{"nodenames":["n1"]}')
    assert b'{"n1":{"capacity":1000000,"usage":0,"rate":0,"weight":1}}' in raw
    node.plant("n1", {"capacity": cards(a=2), "usage": cards(a=4)})
    assert b'"usage":2,"rate":0,' in call_raw(node, b'{"nodenames":["n1"]}')


def call_raw(node: Node, request: bytes) -> bytes:
    """Return the very bytes of an answer about deploy capacities."""
    arguments = ["--config", str(node.config), "get-nodes-deploy-capacity"]
    return call_here(GpuPlugin, arguments, request).stdout


@pytest.mark.parametrize(
    "call",
    [
        lambda node: node.refuses("get-nodes-deploy-capacity", nodenames=["bad"], workload_resource=cards(a=0)),
        lambda node: node.refuses("calculate-deploy", **deploy(1, cards(a=0), "bad")),
        lambda node: node.refuses("calculate-realloc", **realloc(cards(a=0), {}, "bad")),
        lambda node: node.refuses("add-node", nodename="bad", resource=cards(a=0)),
        lambda node: node.refuses("set-node-resource-info", nodename="bad", capacity=cards(a=0)),
    ],
    ids=["capacity", "deploy", "realloc", "add", "set-info"],
)
def test_input_is_checked_before_records(call: Callable[[Node], str], node: Node) -> None:
    """A fault of the request wins over a corrupt record."""
    node.plant("bad", "no record")

    assert "count is less than or equal to zero: <product: a, count: 0>: invalid gpu map" in call(node)
