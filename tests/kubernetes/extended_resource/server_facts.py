"""What this tool relies on in an API server, as one table: checked on the fake server and on the real one.

Each fact starts from a fresh node, sends PATCHes, and says what the last one is answered with and what the node shows
then (specification, kubernetes 2.13 and 4.1).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Request = Callable[[str, str, Any, str], tuple[int, Any]]
"""(method, path, body, content type) -> (status code, document)"""

NAME = "kkloud.io/widget"
KEY = "kkloud.io~1widget"
CAPACITY = f"/status/capacity/{KEY}"
ALLOCATABLE = f"/status/allocatable/{KEY}"
MARK = "resource-extend/extended-resources"
MARKS = "/metadata/annotations/resource-extend~1extended-resources"
JSON = "application/json-patch+json"
MERGE = "application/merge-patch+json"


@dataclass(frozen=True)
class Patch:
    """One PATCH of the node's status (of the node itself, with `main`)."""

    body: Any
    kind: str = JSON
    main: bool = False
    query: str = ""


@dataclass(frozen=True)
class Fact:
    """`words` is the fact. `capacity` is what the node starts with, None for a node object without any status.

    `shows` gives what the node shows of NAME at the end: (capacity, allocatable), and `mark` its annotation.
    """

    words: str
    patches: Sequence[Patch]
    code: int
    shows: tuple[str | None, str | None]
    capacity: Mapping[str, str] | None = field(default_factory=dict)
    mark: str | None = None


def add(path: str, value: Any) -> dict[str, Any]:
    """An `add` operation."""
    return {"op": "add", "path": path, "value": value}


def replace(path: str, value: Any) -> dict[str, Any]:
    """A `replace` operation."""
    return {"op": "replace", "path": path, "value": value}


def guard(path: str, value: Any) -> dict[str, Any]:
    """A `test` operation."""
    return {"op": "test", "path": path, "value": value}


def remove(path: str) -> dict[str, Any]:
    """A `remove` operation."""
    return {"op": "remove", "path": path}


HAS_2 = {NAME: "2"}
GONE = {"status": {"capacity": {NAME: None}, "allocatable": {NAME: None}}}

FACTS = [
    Fact("add to capacity leaves allocatable alone", [Patch([add(CAPACITY, "2")])], 200, ("2", None)),
    Fact("add on a present key replaces it", [Patch([add(CAPACITY, "3")])], 200, ("3", "2"), HAS_2),
    Fact("replace on an absent key creates it", [Patch([replace(CAPACITY, "1")])], 200, ("1", None)),
    Fact("remove on an absent key is a 422", [Patch([remove(CAPACITY)])], 422, (None, None)),
    Fact(
        "a patch is applied whole or not at all",
        [Patch([add(CAPACITY, "9"), remove(CAPACITY + "x")])],
        422,
        (None, None),
    ),
    Fact(
        "test of null passes on an absent key", [Patch([guard(CAPACITY, None), add(CAPACITY, "2")])], 200, ("2", None)
    ),
    Fact(
        "test of null fails on a present key",
        [Patch([guard(CAPACITY, None), add(CAPACITY, "3")])],
        422,
        ("2", "2"),
        HAS_2,
    ),
    Fact("test of null fails below an absent map", [Patch([guard(CAPACITY, None)])], 422, (None, None), None),
    Fact("test of another text is a 422", [Patch([guard(CAPACITY, "3"), add(CAPACITY, "4")])], 422, ("2", "2"), HAS_2),
    Fact("test of a number fails on a text", [Patch([guard(CAPACITY, 2), add(CAPACITY, "4")])], 422, ("2", "2"), HAS_2),
    Fact("test of an absent key is a 422", [Patch([guard(CAPACITY, "2")])], 422, (None, None)),
    Fact("an unescaped slash is a 422", [Patch([add(f"/status/capacity/{NAME}", "2")])], 422, (None, None)),
    Fact("an unknown operation is a 422", [Patch([{"op": "frob", "path": CAPACITY}])], 422, ("2", "2"), HAS_2),
    Fact("a path without a leading slash is a 422", [Patch([add("status/capacity/x", "2")])], 422, (None, None)),
    Fact("a patch that is no list is a 400", [Patch(add(CAPACITY, "2"))], 400, (None, None)),
    Fact("another content type is a 415", [Patch([add(CAPACITY, "2")], "application/json")], 415, (None, None)),
    Fact("10 001 operations are a 413", [Patch([guard("/kind", "Node")] * 10_001)], 413, (None, None)),
    Fact("add of null stores 0", [Patch([add(CAPACITY, None)])], 200, ("0", None)),
    Fact("add without a value stores 0", [Patch([{"op": "add", "path": CAPACITY}])], 200, ("0", None)),
    Fact("a number is stored as text", [Patch([add(CAPACITY, 2)])], 200, ("2", None)),
    Fact("1000 is stored as 1k", [Patch([add(CAPACITY, "1000")])], 200, ("1k", None)),
    Fact("1500 stays 1500", [Patch([add(CAPACITY, "1500")])], 200, ("1500", None)),
    Fact("1k stays 1k", [Patch([add(CAPACITY, "1k")])], 200, ("1k", None)),
    Fact("1Ki stays 1Ki", [Patch([add(CAPACITY, "1Ki")])], 200, ("1Ki", None)),
    Fact("2000m is stored as 2", [Patch([add(CAPACITY, "2000m")])], 200, ("2", None)),
    Fact("1e3 stays 1e3", [Patch([add(CAPACITY, "1e3")])], 200, ("1e3", None)),
    Fact("a space before a number is dropped", [Patch([add(CAPACITY, " 2")])], 200, ("2", None)),
    Fact("the largest count is stored as it is", [Patch([add(CAPACITY, str(2**63 - 1))])], 200, (str(2**63 - 1), None)),
    Fact("a fraction is a 422", [Patch([add(CAPACITY, "1.5")])], 422, (None, None)),
    Fact("a negative count is a 422", [Patch([add(CAPACITY, "-1")])], 422, (None, None)),
    Fact("a text that is no number is a 422", [Patch([add(CAPACITY, "abc")])], 422, (None, None)),
    Fact("true is a 422", [Patch([add(CAPACITY, True)])], 422, (None, None)),
    Fact(
        "test holds against the stored notation",
        [Patch([add(CAPACITY, "1000")]), Patch([guard(CAPACITY, "1k")])],
        200,
        ("1k", None),
    ),
    Fact(
        "test fails against the sent notation",
        [Patch([add(CAPACITY, "1000")]), Patch([guard(CAPACITY, "1000")])],
        422,
        ("1k", None),
    ),
    Fact("nothing can be added below an absent map", [Patch([add(CAPACITY, "2")])], 422, (None, None), None),
    Fact(
        "an absent map can be tested for and written whole, and allocatable is defaulted from it",
        [Patch([guard("/status/capacity", None), add("/status/capacity", {NAME: "2"})])],
        200,
        ("2", "2"),
        None,
    ),
    Fact(
        "a capacity that was there does not default allocatable", [Patch([add(CAPACITY, "5")])], 200, ("5", "2"), HAS_2
    ),
    Fact("allocatable may be written without capacity", [Patch([add(ALLOCATABLE, "7")])], 200, (None, "7")),
    Fact("allocatable may be removed without capacity", [Patch([remove(ALLOCATABLE)])], 200, ("2", None), HAS_2),
    Fact(
        "a status patch may set annotations, in the same patch as the capacity",
        [
            Patch(
                [
                    guard(CAPACITY, None),
                    add(CAPACITY, "2"),
                    guard("/metadata/annotations", None),
                    add("/metadata/annotations", {MARK: '{"kkloud.io/widget":2}'}),
                ]
            )
        ],
        200,
        ("2", None),
        mark='{"kkloud.io/widget":2}',
    ),
    Fact(
        "a status patch may take the annotation away again",
        [Patch([add("/metadata/annotations", {MARK: "{}"})]), Patch([guard(MARKS, "{}"), remove(MARKS)])],
        200,
        (None, None),
    ),
    Fact(
        "a failed test keeps the annotation of the same patch out",
        [Patch([add("/metadata/annotations", {MARK: "{}"}), guard(CAPACITY, "3")])],
        422,
        ("2", "2"),
        HAS_2,
    ),
    Fact(
        "a status patch beside /status is answered 200 and dropped",
        [Patch([add(CAPACITY, "9")], main=True)],
        200,
        ("2", "2"),
        HAS_2,
    ),
    Fact("a dry run stores nothing", [Patch([add(CAPACITY, "9")], query="?dryRun=All")], 200, ("2", "2"), HAS_2),
    Fact("a dry run tests as well", [Patch([guard(CAPACITY, "9")], query="?dryRun=All")], 422, ("2", "2"), HAS_2),
    Fact("a merge patch with null removes", [Patch(GONE, MERGE)], 200, (None, None), HAS_2),
    Fact(
        "a merge patch with null removes what is not there", [Patch(GONE, MERGE), Patch(GONE, MERGE)], 200, (None, None)
    ),
    Fact(
        "a merge patch creates the map",
        [Patch({"status": {"capacity": {NAME: "2"}}}, MERGE)],
        200,
        ("2", "2"),
        None,
    ),
    Fact(
        "another resource version in a patch is a 409",
        [Patch([add(CAPACITY, "3"), replace("/metadata/resourceVersion", "1")])],
        409,
        ("2", "2"),
        HAS_2,
    ),
]


def check(fact: Fact, request: Request, node: str) -> None:
    """Play one fact on a node of its own; raises AssertionError when the server disagrees."""
    document: dict[str, Any] = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": node}}
    if fact.capacity is not None:
        document["status"] = {"capacity": {"cpu": "4", **fact.capacity}, "allocatable": {"cpu": "4", **fact.capacity}}
    code, answer = request("POST", "/api/v1/nodes", document, "application/json")
    assert code in (200, 201), answer
    try:
        for patch in fact.patches:
            path = f"/api/v1/nodes/{node}" + ("" if patch.main else "/status") + patch.query
            code, answer = request("PATCH", path, patch.body, patch.kind)
        assert fact.code == code, answer
        _, shown = request("GET", f"/api/v1/nodes/{node}", None, "")
        status = shown["status"]
        found = tuple((status.get(where) or {}).get(NAME) for where in ("capacity", "allocatable"))
        assert fact.shows == found
        assert fact.mark == (shown["metadata"].get("annotations") or {}).get(MARK)
    finally:
        request("DELETE", f"/api/v1/nodes/{node}", None, "")
