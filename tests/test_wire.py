"""Each key of a request is read as the protocol's table says (specification, protocol 4.2)."""

import json
from typing import Any

import pytest
from msgspec import Struct

from resource_extend.errors import InputError
from resource_extend.metrics import NodeOfPod
from resource_extend.plugin import Plugin
from resource_extend.verbs import REQUESTS
from resource_extend.wire import decode_nodes_of_pods, decode_request


class NodeResource(Struct):
    """What a node has, in a made-up plugin."""

    stored: int = 0


class NodeRequest(Struct):
    """What an operator asks of it."""

    asked: int | str = 0


class WorkloadResource(Struct):
    """What a workload holds."""

    held: int = 0


class WorkloadRequest(Struct):
    """What a workload asks for."""

    wanted: int = 0


class Engine(Struct, rename={"total": "Total"}):
    """What is looked at of the engine's report."""

    total: int = 0


class Fivefold(Plugin):
    """A plugin whose five shapes differ, so that one taken for another shows."""

    name = "fivefold"
    NodeResource = NodeResource
    NodeRequest = NodeRequest
    WorkloadResource = WorkloadResource
    WorkloadRequest = WorkloadRequest
    EngineInfo = Engine


def arguments(verb: str, request: dict[str, Any]) -> dict[str, Any]:
    """Decode a request of a verb."""
    return decode_request(json.dumps(request).encode(), REQUESTS[verb], Fivefold)


def refusal(verb: str, request: dict[str, Any]) -> str:
    """Decode a request that must not decode, and return the text."""
    with pytest.raises(InputError) as caught:
        arguments(verb, request)
    return str(caught.value)


FULL: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("get-metrics-description", {}, {}),
    (
        "add-node",
        {"nodename": "n", "resource": {"asked": "1"}, "info": {"Total": 2, "x": []}},
        {"nodename": "n", "resource": NodeRequest("1"), "info": Engine(2)},
    ),
    ("remove-node", {"nodename": "n"}, {"nodename": "n"}),
    (
        "get-nodes-deploy-capacity",
        {"nodenames": ["n", "m"], "workload_resource": {"wanted": 1}},
        {"nodenames": ["n", "m"], "request": WorkloadRequest(1)},
    ),
    (
        "set-node-resource-capacity",
        {"nodename": "n", "resource": {"stored": 1}, "resource_request": {"asked": "2"}, "delta": True, "incr": True},
        {
            "nodename": "n",
            "resource": NodeResource(1),
            "resource_request": NodeRequest("2"),
            "delta": True,
            "incr": True,
        },
    ),
    (
        "get-node-resource-info",
        {"nodename": "n", "workloads_resource": [{"held": 1}, None, {}]},
        {"nodename": "n", "workloads_resource": [WorkloadResource(1), WorkloadResource()]},
    ),
    ("get-nodes-resource-info", {"nodenames": ["n"]}, {"nodenames": ["n"]}),
    (
        "set-node-resource-info",
        {"nodename": "n", "capacity": {"stored": 1}, "usage": {"stored": 2}},
        {"nodename": "n", "capacity": NodeResource(1), "usage": NodeResource(2)},
    ),
    (
        "set-node-resource-usage",
        {
            "nodename": "n",
            "resource": {"stored": 1},
            "resource_request": {"asked": 2},
            "workloads_resource": [{"held": 3}],
            "delta": True,
            "incr": False,
        },
        {
            "nodename": "n",
            "resource": NodeResource(1),
            "resource_request": NodeRequest(2),
            "workloads_resource": [WorkloadResource(3)],
            "delta": True,
            "incr": False,
        },
    ),
    ("get-most-idle-node", {"nodenames": ["n"]}, {"nodenames": ["n"]}),
    (
        "fix-node-resource",
        {"nodename": "n", "workloads_resource": [{"held": 1}]},
        {"nodename": "n", "workloads_resource": [WorkloadResource(1)]},
    ),
    (
        "calculate-deploy",
        {"nodename": "n", "deploy_count": 3, "workload_resource_request": {"wanted": 1}},
        {"nodename": "n", "deploy_count": 3, "request": WorkloadRequest(1)},
    ),
    (
        "calculate-realloc",
        {"nodename": "n", "workload_resource": {"held": 1}, "workload_resource_request": {"wanted": 2}},
        {"nodename": "n", "resource": WorkloadResource(1), "request": WorkloadRequest(2)},
    ),
    (
        "calculate-remap",
        {"nodename": "n", "workloads_resource": {"w": {"held": 1}, "v": None}},
        {"nodename": "n", "workloads_resource": {"w": WorkloadResource(1)}},
    ),
]


def test_every_verb_is_covered() -> None:
    """The table of this test has every verb that takes a request by keys."""
    assert set(REQUESTS) - {"get-metrics"} == {verb for verb, _, _ in FULL}


@pytest.mark.parametrize(("verb", "request_", "expected"), FULL, ids=[verb for verb, _, _ in FULL])
def test_everything_given(verb: str, request_: dict[str, Any], expected: dict[str, Any]) -> None:
    """Each key becomes the argument of the interface, in the plugin's own shape."""
    assert expected == arguments(verb, request_)


EMPTY: dict[str, object] = {
    "resource": None,
    "resource_request": None,
    "info": None,
    "delta": False,
    "incr": False,
    "deploy_count": 0,
    "request": WorkloadRequest(),
    "capacity": NodeResource(),
    "usage": NodeResource(),
}


@pytest.mark.parametrize(("verb", "request_", "_"), FULL, ids=[verb for verb, _, _ in FULL])
def test_null_is_the_same_as_missing(verb: str, request_: dict[str, Any], _: object) -> None:
    """All but names may be missing or null: no flag is set, objects and lists are absent or empty."""
    names = {key: value for key, value in request_.items() if key in ("nodename", "nodenames")}
    missing = arguments(verb, names)

    assert missing == arguments(verb, {**dict.fromkeys(request_), **names})
    for argument, value in missing.items():
        expected = EMPTY.get(argument)
        if argument == "workloads_resource":
            expected = {} if verb == "calculate-remap" else []
        elif argument == "resource" and verb == "add-node":
            expected = NodeRequest()
        elif argument == "resource" and verb == "calculate-realloc":
            expected = WorkloadResource()
        elif argument in names:
            expected = names[argument]
        assert expected == value, argument


@pytest.mark.parametrize("verb", [verb for verb, request, _ in FULL if "nodename" in request])
def test_a_node_name_is_required(verb: str) -> None:
    """No node name, a null one or an empty one is an error; any other text is a name, untrimmed."""
    requests: list[dict[str, Any]] = [{}, {"nodename": None}, {"nodename": ""}]
    for request in requests:
        assert "node name is empty" == refusal(verb, request)
    for name in (" ", "a/b", "节点-1", "\u0000", "-", "n" * 5000):
        assert name == arguments(verb, {"nodename": name})["nodename"]
    assert "decode plugin input: expected str, got int at $.nodename" == refusal(verb, {"nodename": 5})


@pytest.mark.parametrize("verb", [verb for verb, request, _ in FULL if "nodenames" in request])
def test_node_names_are_required(verb: str) -> None:
    """No list of names or an empty one is an error; an empty name in it is an unknown node; doubled ones count once."""
    requests: list[dict[str, Any]] = [{}, {"nodenames": None}, {"nodenames": []}]
    for request in requests:
        assert "node name is empty" == refusal(verb, request)
    assert ["b", "", "a"] == arguments(verb, {"nodenames": ["b", "", "a", "b", ""]})["nodenames"]
    for names in (["a", None], ["a", 1]):
        assert refusal(verb, {"nodenames": names}).startswith("decode plugin input: expected str, got ")
        assert refusal(verb, {"nodenames": names}).endswith(" at $.nodenames[1]")


@pytest.mark.parametrize("count", [1_000_001, 2**63 - 1])
def test_too_many_workloads(count: int) -> None:
    """More than 1000000 workloads at once are refused."""
    request = {"nodename": "n", "deploy_count": count}

    assert f"deploy_count {count}: 1000000 at most" == refusal("calculate-deploy", request)


def test_deploy_counts() -> None:
    """A count up to 1000000 passes, also one that is not positive; it is an integer within int64."""
    for count in (1_000_000, 0, -1, -(2**63)):
        assert count == arguments("calculate-deploy", {"nodename": "n", "deploy_count": count})["deploy_count"]
    for wrong, reason in (("1", "expected int, got str"), (1.5, "expected int, got float"), (2**63, "integer out of")):
        assert refusal("calculate-deploy", {"nodename": "n", "deploy_count": wrong}).startswith(
            f"decode plugin input: {reason}"
        )


@pytest.mark.parametrize("value", ["false", "", 0, 1, [], {}, 0.0])
@pytest.mark.parametrize("key", ["delta", "incr"])
@pytest.mark.parametrize("verb", ["set-node-resource-capacity", "set-node-resource-usage"])
def test_flags_are_bools(verb: str, key: str, value: object) -> None:
    """A flag is true, false or null; nothing else is taken for one."""
    text = refusal(verb, {"nodename": "n", key: value})

    assert text.startswith("decode plugin input: expected bool, got ")
    assert text.endswith(f" at $.{key}")


@pytest.mark.parametrize(
    ("verb", "key"),
    [
        (verb, key)
        for verb, request, _ in FULL
        for key in request
        if key not in ("nodename", "nodenames", "delta", "incr", "deploy_count")
    ],
)
def test_wrong_types(verb: str, key: str) -> None:
    """What must be an object, an array or a map is nothing else, also where it would not be used."""
    names = {"nodename": "n", "nodenames": ["n"]}
    array = key == "workloads_resource" and verb != "calculate-remap"
    for value, name in (
        (5, "int"),
        ("x", "str"),
        (True, "bool"),
        ({} if array else [], "object" if array else "array"),
    ):
        expected = "array" if array else "object"
        assert f"decode plugin input: expected {expected}, got {name} at $.{key}" == refusal(
            verb, {**names, key: value}
        )


def test_all_sources_are_decoded() -> None:
    """A fault in a source that is not the one that counts fails the verb all the same."""
    good = {"nodename": "n", "resource_request": {"asked": 1}, "resource": {"stored": 1}, "workloads_resource": []}

    assert refusal("set-node-resource-usage", {**good, "resource": {"stored": "x"}}).endswith("at $.resource.stored")
    assert refusal("set-node-resource-usage", {**good, "workloads_resource": [None, {"held": "x"}]}).endswith(
        "at $.workloads_resource[1].held"
    )


def test_absent_and_empty_differ() -> None:
    """An empty object is given, null is not."""
    request: dict[str, Any] = {"nodename": "n", "resource": {}, "resource_request": None}

    assert NodeResource() == arguments("set-node-resource-usage", request)["resource"]
    assert None is arguments("set-node-resource-usage", request)["resource_request"]


@pytest.mark.parametrize("text", [b"", b"[]", b"nul", b'{"nodename":"a"}{}', b'{"nodename":"\xff"}', b"\xef\xbb\xbf{}"])
def test_undecodable(text: bytes) -> None:
    """Whatever is no JSON object is an error of the input."""
    with pytest.raises(InputError, match=r"^decode plugin input: "):
        decode_request(text, REQUESTS["add-node"], Fivefold)
    with pytest.raises(InputError, match=r"^decode plugin input: "):
        decode_nodes_of_pods(text)


@pytest.mark.parametrize(
    ("request_", "nodes"),
    [
        ({"nodes": [{"podname": "p", "nodename": "n"}, {"nodename": "m"}, {}]}, [("p", "n"), ("", "m"), ("", "")]),
        ({"nodes": [{"podname": None, "nodename": None}]}, [("", "")]),
        ({"nodes": [{"podname": "p", "nodename": "n"}] * 2}, [("p", "n"), ("p", "n")]),
        ({"podname": "p", "nodename": "n"}, [("p", "n")]),
        ({"podname": None, "nodename": "n"}, [("", "n")]),
        ({"nodes": None, "nodename": "n"}, [("", "n")]),
        ({"nodes": [], "nodename": "n"}, []),
        ({"nodes": [{"nodename": "m"}], "nodename": "n"}, [("", "m")]),
        ({"podname": "p"}, []),
        ({"podname": "p", "nodename": ""}, []),
        ({"nodes": []}, []),
        ({}, []),
    ],
)
def test_nodes_of_metrics(request_: dict[str, Any], nodes: list[tuple[str, str]]) -> None:
    """get-metrics takes nodes with their pods, and the older form with one node."""
    assert [NodeOfPod(*node) for node in nodes] == decode_nodes_of_pods(json.dumps(request_).encode())


@pytest.mark.parametrize(
    ("request_", "reason"),
    [
        ({"nodes": [None]}, "expected object, got null at $.nodes[0]"),
        ({"nodes": ["n"]}, "expected object, got str at $.nodes[0]"),
        ({"nodes": {}}, "expected array, got object at $.nodes"),
        ({"nodes": [{"nodename": 1}]}, "expected str, got int at $.nodes[0].nodename"),
        ({"nodename": ["n"]}, "expected str, got array at $.nodename"),
    ],
)
def test_wrong_nodes_of_metrics(request_: dict[str, Any], reason: str) -> None:
    """The nodes of get-metrics are decoded as strictly as everything."""
    with pytest.raises(InputError) as caught:
        decode_nodes_of_pods(json.dumps(request_).encode())

    assert f"decode plugin input: {reason}" == str(caught.value)
