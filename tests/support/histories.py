"""Random histories of a cluster, as core makes them: nodes come and go, workloads are placed, changed and freed.

What must hold after every step: the records are those of the nodes, whole; their usage is the sum of the workloads
that were booked and stays within the capacity; an undone step gives back the bytes that were there.
"""

import json
from collections.abc import Callable
from typing import Any, NamedTuple

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from support.scenarios import Cluster

NODES = ["n1", "n1.example", "pod/节点"]
MANY = 6  # workloads of one deploy


class Shapes(NamedTuple):
    """What is asked for in the terms of one resource, and what must fit into what."""

    node: st.SearchStrategy[Any]
    growth: st.SearchStrategy[Any]
    workload: st.SearchStrategy[Any]
    change: st.SearchStrategy[Any]
    too_much: Any
    within: Callable[[Any, Any], bool]


_products = st.sampled_from(["a", "b", "卡"])


def _cards(counts: st.SearchStrategy[int], most: int = 3, least: int = 0) -> st.SearchStrategy[Any]:
    cards = st.dictionaries(_products, counts, min_size=least, max_size=most)
    return st.builds(lambda cards: {"prod_count_map": cards}, cards)


def _cards_within(usage: Any, capacity: Any) -> bool:
    free = capacity["prod_count_map"]
    return all(0 < count <= free.get(product, 0) for product, count in usage["prod_count_map"].items())


GPU = Shapes(
    node=_cards(st.integers(1, 8), least=2),
    growth=_cards(st.integers(0, 3)),
    workload=st.one_of(_cards(st.integers(1, 3), 2, least=1), _cards(st.integers(1, 3), 1)),
    change=_cards(st.integers(-2, 2), 2),
    too_much={"prod_count_map": {"a": 1000}},
    within=_cards_within,
)

_DISKS = ["/dev/vda:/data0,/data1:1000:1000:1G:1G", "/dev/vdb:/data2:50:50:50M:50M"]
_STORAGE_NODE = st.fixed_dictionaries(
    {"volumes": st.just(["/data0:100G", "/data1:60G", "/data2:20G"]), "storage": st.sampled_from(["0", "40G", "1T"])},
    optional={"disks": st.lists(st.sampled_from(_DISKS), unique=True, max_size=2)},
)
_VOLUMES = st.lists(
    st.sampled_from(
        [
            "AUTO:{}:rw:7G",
            "AUTO:{}:rw:30G",
            "AUTO:{}:mrw:5G",
            "AUTO:{}:rw:1G:10:10:1M:1M",
            "AUTO:{}:rw",
            "/data0:{}:rw:2G",
        ]
    ),
    max_size=3,
).map(lambda forms: [form.format(f"/d{number}") for number, form in enumerate(forms)])


def _storage_within(usage: Any, capacity: Any) -> bool:
    disks = {disk["device"]: disk for disk in capacity["disks"]}
    numbers = ("read_IOPS", "write_IOPS", "read_bps", "write_bps")
    return (
        0 <= usage["storage"] <= capacity["storage"]
        and all(0 <= used <= capacity["volumes"].get(volume, 0) for volume, used in usage["volumes"].items())
        and all(0 <= disk[each] <= disks[disk["device"]][each] for disk in usage["disks"] for each in numbers)
    )


STORAGE = Shapes(
    node=_STORAGE_NODE,
    growth=st.fixed_dictionaries({}, optional={"volumes": st.just(["/data1:5G"]), "storage": st.just("10G")}),
    workload=st.fixed_dictionaries({"volumes": _VOLUMES}, optional={"storage": st.sampled_from(["1G", "15G"])}),
    change=st.fixed_dictionaries(
        {},
        optional={
            "volumes": st.lists(st.sampled_from(["AUTO:/d0:rw:1G", "AUTO:/d0:rw:-1G", "AUTO:/d7:rw:1G"]), max_size=1),
            "storage": st.sampled_from(["1G", "-1G"]),
        },
    ),
    too_much={"storage": "900T"},
    within=_storage_within,
)

SHAPES = {"gpu": GPU, "storage": STORAGE}


class History(RuleBasedStateMachine):
    """One random history on one cluster, which is empty at the start and emptied at the end."""

    def __init__(self, kind: str, cluster: Cluster) -> None:
        super().__init__()
        self._shapes = SHAPES[kind]
        self._prefix = f"resource/{kind}/"
        self._cluster = cluster
        self._held: dict[str, list[Any]] = {}

    def teardown(self) -> None:
        """Leave the cluster empty."""
        for node in NODES:
            self._answer("remove-node", nodename=node)

    def _call(self, verb: str, **request: Any) -> tuple[Any, str]:
        """Return an answer, or None and the text of the failure."""
        outcome = self._cluster.call(verb, json.dumps(request).encode())
        if outcome.status == 0:
            assert b"" == outcome.stderr
            return json.loads(outcome.stdout), ""
        assert (128, b"", 1) == (outcome.status, outcome.stdout, outcome.stderr.count(b"\n"))
        return None, outcome.stderr.decode().strip()

    def _answer(self, verb: str, **request: Any) -> Any:
        answer, text = self._call(verb, **request)
        assert "" == text, f"{verb} {request}: {text}"
        return answer

    def _stored(self, node: str) -> str | None:
        return self._cluster.records().get(self._prefix + node)

    def _book(self, node: str, workloads: list[Any], incr: bool) -> Any:
        return self._answer(
            "set-node-resource-usage",
            nodename=node,
            workloads_resource=workloads,
            resource=None,
            resource_request=None,
            delta=True,
            incr=incr,
        )

    def _undo_booking(self, node: str, before: Any) -> None:
        nothing = {"resource_request": None, "workloads_resource": None, "delta": False, "incr": False}
        self._answer("set-node-resource-usage", nodename=node, resource=before, **nothing)

    @initialize(data=st.data())
    def begin(self, data: st.DataObject) -> None:
        """Most histories begin with nodes."""
        for node in NODES[: data.draw(st.sampled_from([2, 2, 2, 0]))]:
            self._answer("add-node", nodename=node, resource=data.draw(self._shapes.node), info=None)
            self._held[node] = []

    @rule(data=st.data(), node=st.sampled_from(NODES))
    def add(self, data: st.DataObject, node: str) -> None:
        """A node is added once."""
        _, text = self._call("add-node", nodename=node, resource=data.draw(self._shapes.node), info=None)

        assert ("node already exists" if node in self._held else "") == text
        self._held.setdefault(node, [])

    @precondition(lambda self: not all(self._held.get(node) for node in NODES))
    @rule(data=st.data(), undone=st.sampled_from([True, True, True, False]))
    def remove(self, data: st.DataObject, undone: bool) -> None:
        """A node without workloads may be removed; core's undoing gives the bytes back."""
        node = data.draw(st.sampled_from([node for node in NODES if not self._held.get(node)]))
        info = self._answer("get-node-resource-info", nodename=node) or {"capacity": None, "usage": None}
        stored = self._stored(node)
        self._answer("remove-node", nodename=node)
        assert None is self._stored(node)
        if undone and node in self._held:
            self._answer("set-node-resource-info", nodename=node, capacity=info["capacity"], usage=info["usage"])
            assert stored == self._stored(node)
        else:
            self._held.pop(node, None)

    @precondition(lambda self: self._held)
    @rule(data=st.data(), undone=st.booleans())
    def grow(self, data: st.DataObject, undone: bool) -> None:
        """The capacity grows; undone, the bytes are back."""
        node = data.draw(st.sampled_from(sorted(self._held)))
        stored = self._stored(node)
        request = {"nodename": node, "resource": None}
        more = data.draw(self._shapes.growth)
        answer = self._answer("set-node-resource-capacity", **request, resource_request=more, delta=True, incr=True)
        if undone:
            before = answer["before"]
            self._answer("set-node-resource-capacity", **request, resource_request=before, delta=False, incr=False)
            assert stored == self._stored(node)

    @precondition(lambda self: self._held)
    @rule(data=st.data(), count=st.integers(1, MANY), undone=st.booleans())
    def deploy(self, data: st.DataObject, count: int, undone: bool) -> None:
        """Workloads fit exactly when the capacity query says so; booked and undone, the bytes are back."""
        node = data.draw(st.sampled_from(sorted(self._held)))
        request = data.draw(self._shapes.workload)
        told = self._answer("get-nodes-deploy-capacity", nodenames=[node], workload_resource=request)
        placed, text = self._call(
            "calculate-deploy", nodename=node, deploy_count=count, workload_resource_request=request
        )
        assert (count <= told["total"]) == (placed is not None), (request, told, text)
        if placed is None:
            assert text.endswith("cannot alloc a plan, not enough resource")
            return
        assert [count, count] == [len(placed["engines_params"]), len(placed["workloads_resource"])]
        stored = self._stored(node)
        answer = self._book(node, placed["workloads_resource"], incr=True)
        if undone:
            self._undo_booking(node, answer["before"])
            assert stored == self._stored(node)
        else:
            self._held[node] += placed["workloads_resource"]

    @precondition(lambda self: any(self._held.values()))
    @rule(data=st.data(), undone=st.booleans())
    def free(self, data: st.DataObject, undone: bool) -> None:
        """A workload ends; undone, the bytes are back."""
        node, number = self._some_workload(data)
        stored = self._stored(node)
        answer = self._book(node, [self._held[node][number]], incr=False)
        if undone:
            self._undo_booking(node, answer["before"])
            assert stored == self._stored(node)
        else:
            del self._held[node][number]

    @precondition(lambda self: any(self._held.values()))
    @rule(data=st.data())
    def change(self, data: st.DataObject) -> None:
        """A workload is changed, and the difference booked."""
        node, number = self._some_workload(data)
        current = self._held[node][number]
        answer, _ = self._call(
            "calculate-realloc",
            nodename=node,
            workload_resource=current,
            workload_resource_request=data.draw(self._shapes.change),
        )
        if answer is not None:
            self._book(node, [answer["delta_resource"]], incr=True)
            self._held[node][number] = answer["workload_resource"]

    @precondition(lambda self: self._held)
    @rule(data=st.data())
    def refuse(self, data: st.DataObject) -> None:
        """Taking away more than there is changes nothing."""
        node = data.draw(st.sampled_from(sorted(self._held)))
        stored = self._stored(node)
        _, text = self._call(
            "set-node-resource-capacity", nodename=node, resource_request=self._shapes.too_much, delta=True, incr=False
        )

        assert "" != text
        assert stored == self._stored(node)

    def _some_workload(self, data: st.DataObject) -> tuple[str, int]:
        node = data.draw(st.sampled_from(sorted(node for node, held in self._held.items() if held)))
        return node, data.draw(st.integers(0, len(self._held[node]) - 1))

    @invariant()
    def records_are_whole(self) -> None:
        """The records are those of the nodes, compact, without nulls."""
        records = self._cluster.records()
        assert {self._prefix + node for node in self._held} == set(records)
        for text in records.values():
            assert text == json.dumps(json.loads(text), ensure_ascii=False, separators=(",", ":"))
            assert "null" not in text

    @invariant()
    def usage_is_that_of_the_workloads(self) -> None:
        """Usage differs in nothing from the sum of the workloads, stays within the capacity, and needs no repair."""
        for node, held in self._held.items():
            workloads = [None, *held]
            info = self._answer("get-node-resource-info", nodename=node, workloads_resource=workloads)
            assert [] == info["diffs"]
            assert self._shapes.within(info["usage"], info["capacity"]), info
            stored = self._stored(node)
            assert info == self._answer("fix-node-resource", nodename=node, workloads_resource=workloads)
            assert stored == self._stored(node)
