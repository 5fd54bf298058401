"""Patches: pure functions of the node that was read."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lightkube.models.core_v1 import Node

from kubernetes.extended_resource.fake_objects import EMPTY_STATUS, StatusError, patched, stored_status
from kubernetes.extended_resource.server_facts import JSON, KEY, NAME
from resource_extend.kubernetes.extended_resource.entries import entry
from resource_extend.kubernetes.extended_resource.ownership import ANNOTATION
from resource_extend.kubernetes.extended_resource.patches import Operation, pointer, set_patch, unset_patch
from resource_extend.kubernetes.extended_resource.quantities import whole

counts = st.sampled_from(["0", "1", "2", "1k", "1Ki", "2000"])
maps = st.none() | st.dictionaries(st.sampled_from([NAME, "a.b/c", "cpu"]), counts)
annotations = st.none() | st.sampled_from(
    [{}, {"other": "x"}, {ANNOTATION: f'{{"{NAME}":2}}'}, {ANNOTATION: '{"a.b/c":1}', "other": "x"}, {ANNOTATION: "{}"}]
)


@st.composite
def documents(draw: st.DrawFn) -> dict[str, Any]:
    """Nodes with and without capacity, allocatable, annotations and marks, as the server would show them."""
    status = {key: value for key in ("capacity", "allocatable") if (value := draw(maps)) is not None}
    metadata: dict[str, Any] = {"name": "n1", "resourceVersion": "1"}
    if notes := draw(annotations):
        metadata["annotations"] = notes
    return {"kind": "Node", "metadata": metadata, "spec": {}, "status": stored_status(status, "n1")}


def as_node(document: dict[str, Any]) -> Node:
    """The document as lightkube hands it out."""
    return msgspec.convert(document, Node)


def applied(document: dict[str, Any], operations: list[Operation]) -> dict[str, Any]:
    """The document after the patch, stored."""
    after = patched(document, JSON, operations)
    return {**after, "status": stored_status(after["status"], "n1")}


@pytest.mark.parametrize(
    ("keys", "path"),
    [
        (("status", "capacity", NAME), f"/status/capacity/{KEY}"),
        (("a~b/c",), "/a~0b~1c"),
        (("~1",), "/~01"),
        (("",), "/"),
        ((), ""),
    ],
)
def test_pointers_are_escaped_in_the_right_order(keys: tuple[str, ...], path: str) -> None:
    """`~` first, then `/`, so that a `~1` in a name does not become a slash."""
    assert path == pointer(*keys)


@given(documents(), st.integers(0, 3000), st.booleans())
def test_set_makes_it_so(document: dict[str, Any], count: int, with_allocatable: bool) -> None:
    """On any node the patch leaves the count and the mark, touches nothing else, and then there is nothing to do."""
    operations = set_patch(as_node(document), NAME, count, with_allocatable=with_allocatable)
    after = applied(document, operations)

    now = entry(as_node(after), NAME)
    assert count == whole(now.capacity) == now.mark
    assert not with_allocatable or count == whole(now.allocatable)
    assert [] == set_patch(as_node(after), NAME, count, with_allocatable=with_allocatable)
    others_before = {**(document["status"].get("capacity") or {}), NAME: ""}
    others_after = {**(after["status"].get("capacity") or {}), NAME: ""}
    assert others_before == others_after


@given(documents())
def test_unset_makes_it_so(document: dict[str, Any]) -> None:
    """On any node the patch leaves nothing of the name and everything else, and then there is nothing to do."""
    after = applied(document, unset_patch(as_node(document), NAME))

    now = entry(as_node(after), NAME)
    assert not now.present
    assert now.mark is None
    assert [] == unset_patch(as_node(after), NAME)
    before_mark, after_mark = entry(as_node(document), "a.b/c").mark, entry(as_node(after), "a.b/c").mark
    assert before_mark == after_mark
    assert (document["metadata"].get("annotations") or {}).get("other") == (
        after["metadata"].get("annotations") or {}
    ).get("other")


@given(documents(), documents(), st.booleans())
def test_a_patch_fits_only_the_node_that_was_read(read: dict[str, Any], there: dict[str, Any], removal: bool) -> None:
    """Applied to a node whose entry or mark is another than what was read, the patch is a 422 and changes nothing."""
    operations = unset_patch(as_node(read), NAME) if removal else set_patch(as_node(read), NAME, 7)
    before, now = entry(as_node(read), NAME), entry(as_node(there), NAME)
    if not operations or (before.capacity, before.mark) == (now.capacity, now.mark):
        return

    marks_differ = before.mark != now.mark
    touches_mark = any("annotations" in str(operation["path"]) for operation in operations)
    if before.capacity != now.capacity or (marks_differ and touches_mark):
        with pytest.raises(StatusError) as caught:
            applied(there, operations)
        assert 422 == caught.value.code


def test_every_write_stands_behind_its_test() -> None:
    """No operation of a patch is without the test of what was read at its place."""
    document = {
        "metadata": {"name": "n1", "annotations": {ANNOTATION: f'{{"{NAME}":2}}'}},
        "status": {**EMPTY_STATUS, "capacity": {NAME: "2"}, "allocatable": {NAME: "1"}},
    }

    operations = unset_patch(as_node(document), NAME)

    assert ["test", "remove"] * 3 == [operation["op"] for operation in operations]
    assert [operation["path"] for operation in operations[::2]] == [operation["path"] for operation in operations[1::2]]
    assert ["2", "1", f'{{"{NAME}":2}}'] == [operation["value"] for operation in operations[::2]]
