"""Which entries this tool set: a mark in a node annotation (specification, kubernetes 8.3, item 5).

The mark holds name and count, so that a later change by somebody else shows. It travels in the same JSON patch as the
capacity: the API server keeps metadata set through the status subresource (specification, kubernetes 2.13), so both
are written or neither is, and no right beyond `nodes/status` patch is needed.
"""

import json
from collections.abc import Mapping

from lightkube.models.core_v1 import Node

from resource_extend.errors import ResourceError
from resource_extend.kubernetes.extended_resource.objects import annotations, node_name
from resource_extend.kubernetes.names import is_extended

ANNOTATION = "resource-extend/extended-resources"


def read_marks(node: Node) -> dict[str, int]:
    """Name -> count of what this tool set on the node.

    Raises:
        ResourceError: somebody edited the annotation into something else. Nothing may be changed on such a node: the
            next write would throw that text away.
    """
    text = annotations(node).get(ANNOTATION)
    if text is None:
        return {}
    try:
        marks = json.loads(text)
    except ValueError:
        marks = None
    # A mark of cpu would have `keep --prune` take away the node's cpu.
    if not isinstance(marks, dict) or not all(
        is_extended(name) and type(count) is int and count >= 0 for name, count in marks.items()
    ):
        name = node_name(node)
        raise ResourceError(
            f"annotation {ANNOTATION} of node {name} is not a JSON object of extended resources and counts; mend it, "
            f"or drop all marks with `kubectl annotate node {name} {ANNOTATION}-`"
        )
    return marks


def write_marks(marks: Mapping[str, int]) -> str | None:
    """The annotation's text for these marks, None when there is nothing to mark."""
    return json.dumps(dict(marks), sort_keys=True, separators=(",", ":")) if marks else None
