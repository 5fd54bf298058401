"""JSON patches of node status, guarded by `test` operations (specification, kubernetes 4.1).

Each write is preceded by a test of the exact stored text that was read (or of its absence), so a patch is applied to
the node that was looked at or not at all: the API server answers 422 and the caller reads again.
"""

from collections.abc import Mapping

from lightkube.models.core_v1 import Node

from resource_extend.kubernetes.extended_resource import ownership
from resource_extend.kubernetes.extended_resource.objects import allocatable, annotations, capacity
from resource_extend.kubernetes.extended_resource.quantities import whole

Operation = dict[str, object]

CAPACITY = ("status", "capacity")
ALLOCATABLE = ("status", "allocatable")
ANNOTATIONS = ("metadata", "annotations")


def pointer(*keys: str) -> str:
    """A JSON pointer to these keys: first `~` becomes `~0`, then `/` becomes `~1`."""
    return "".join("/" + key.replace("~", "~0").replace("/", "~1") for key in keys)


def set_patch(node: Node, name: str, count: int, *, with_allocatable: bool = False) -> list[Operation]:
    """What makes the node offer `count` of `name`, marked as ours; empty when that is so already.

    `with_allocatable` writes allocatable too, for a node without a kubelet that would copy it.
    """
    marks = {**ownership.read_marks(node), name: count}
    operations = _set_count(CAPACITY, capacity(node), name, count)
    if with_allocatable:
        operations += _set_count(ALLOCATABLE, allocatable(node), name, count)
    operations += _set_marks(node, marks)
    return _guarded(node, name, operations)


def unset_patch(node: Node, name: str) -> list[Operation]:
    """What takes `name` and its mark off the node; empty when neither is there."""
    operations: list[Operation] = []
    for where, entries in ((CAPACITY, capacity(node)), (ALLOCATABLE, allocatable(node))):
        if name in entries:
            operations += _replace(where, entries, name, None)
    marks = ownership.read_marks(node)
    marks.pop(name, None)
    return _guarded(node, name, operations + _set_marks(node, marks))


def _set_count(where: tuple[str, str], entries: Mapping[str, str], name: str, count: int) -> list[Operation]:
    if name in entries and whole(entries[name]) == count:
        return []
    return _replace(where, entries, name, str(count))


def _set_marks(node: Node, marks: Mapping[str, int]) -> list[Operation]:
    current = annotations(node)
    text = ownership.write_marks(marks)
    if text == current.get(ownership.ANNOTATION):
        return []
    return _replace(ANNOTATIONS, current, ownership.ANNOTATION, text)


def _replace(where: tuple[str, str], entries: Mapping[str, str], key: str, text: str | None) -> list[Operation]:
    """Put `text` (None: nothing) at `key`, on condition that `entries` is still what the node shows there."""
    path = pointer(*where, key)
    if key in entries:
        change: Operation = {"op": "remove", "path": path} if text is None else _write("replace", path, text)
    elif entries:
        change = _write("add", path, text)
    else:
        # The API server leaves an empty map out of the object, and nothing can be added below what is not there.
        change = _write("add", pointer(*where), {key: text})
    return [_test(where, entries, key), change]


def _guarded(node: Node, name: str, operations: list[Operation]) -> list[Operation]:
    """A patch that leaves the capacity alone still rests on the capacity that was read."""
    guard = _test(CAPACITY, capacity(node), name)
    if not operations or guard in operations:
        return operations
    return [guard, *operations]


def _test(where: tuple[str, str], entries: Mapping[str, str], key: str) -> Operation:
    """That `key` is what was read: this text, or absent; null stands for absent, also for the whole map."""
    path = pointer(*where, key) if entries else pointer(*where)
    return {"op": "test", "path": path, "value": entries.get(key)}


def _write(operation: str, path: str, value: object) -> Operation:
    return {"op": operation, "path": path, "value": value}
