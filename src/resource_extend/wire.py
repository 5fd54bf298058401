"""A request's JSON -> the arguments of a plugin method (specification, protocol 4.1 and 4.2).

The struct of a request is made for the one verb that is called, from the verb's rows and the plugin's own shapes, so
that one strict decoding reads everything and a start pays for no other verb.
"""

from msgspec import defstruct

from resource_extend.codec import decode, decode_at_once
from resource_extend.errors import InputError, Undecodable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, TypeVar

    from resource_extend.metrics import NodeOfPod
    from resource_extend.plugin import Plugin

    Shape = TypeVar("Shape")

DEPLOY_COUNT_MAX = 1_000_000


def decode_request(data: bytes, rows: "Sequence[tuple[str, str, str]]", plugin: "type[Plugin]") -> "dict[str, Any]":
    """Decode a request into the arguments of the verb's method, by argument name.

    Args:
        data: the JSON text.
        rows: the verb's rows, see `verbs.REQUESTS`.
        plugin: the plugin class, which names its shapes.

    Raises:
        InputError: the text is no request of this verb.
    """
    optional = False
    for _, how, _ in rows:
        optional = optional or how.startswith("optional")
    # Hardly any request gives an optional key, and without it its shape need not be made.
    request = decode_at_once(data, _struct(rows, plugin, False)) if optional else None
    if request is None:
        request = _decode(data, _struct(rows, plugin, True))
    arguments = {}
    for key, how, argument in rows:
        arguments[argument] = _argument(how, getattr(request, key), plugin)
    return arguments


def _struct(rows: "Sequence[tuple[str, str, str]]", plugin: "type[Plugin]", optional: bool) -> "Any":
    """Return the struct of a request, in which optional keys can be something or only null."""
    keys: Any = []
    for key, how, _ in rows:
        if optional or not how.startswith("optional"):
            keys.append((key, (_TYPES.get(how) or _shape(how, plugin)) | None, None))
        else:
            keys.append((key, None, None))
    return defstruct("Request", keys)


def decode_nodes_of_pods(data: bytes) -> "list[NodeOfPod]":
    """Decode the request of get-metrics, also in the form with one node that older cores send (protocol 4.2)."""
    from resource_extend.metrics import MetricsRequest, NodeOfPod

    request = _decode(data, MetricsRequest)
    if request.nodes is None and request.nodename:
        return [NodeOfPod(request.podname or "", request.nodename)]
    return request.nodes or []


def _decode(data: bytes, shape: "type[Shape]") -> "Shape":
    try:
        return decode(data, shape)
    except Undecodable as error:
        raise InputError(f"decode plugin input: {error}") from None


def _shape(how: str, plugin: "type[Plugin]") -> "Any":
    """Return the type of a key that holds a shape of the plugin, or several of one."""
    words = how.split(" ")
    shape = shape_of(getattr(plugin, words[-1]))
    if words[0] == "list":
        return list[shape | None]  # type: ignore[valid-type]
    return dict[str, shape | None] if words[0] == "map" else shape  # type: ignore[valid-type]


def _argument(how: str, value: "Any", plugin: "type[Plugin]") -> "Any":
    """Return what the method gets for a key: null is what is empty, or None where that is something else."""
    if how in _CHECKS:
        return _CHECKS[how](value)
    return value if value is not None or how.startswith("optional") else shape_of(getattr(plugin, how))()


def shape_of(declared: "Any") -> "Any":
    """Return the Struct type that a plugin names, or gives when it is asked for it."""
    return declared if isinstance(declared, type) else declared()


def _node_name(value: str | None) -> str:
    if not value:
        raise InputError("node name is empty")
    return value


def _node_names(value: list[str] | None) -> list[str]:
    if not value:
        raise InputError("node name is empty")
    return list(dict.fromkeys(value))


def _deploy_count(value: int | None) -> int:
    if value and value > DEPLOY_COUNT_MAX:
        raise InputError(f"deploy_count {value}: {DEPLOY_COUNT_MAX} at most")
    return value or 0


def _elements(value: "list[Any] | None") -> "list[Any]":
    """Drop the nulls: workloads that predate the plugin."""
    return [item for item in value or () if item is not None]


def _members(value: "dict[str, Any] | None") -> "dict[str, Any]":
    return {key: item for key, item in (value or {}).items() if item is not None}


# The ways of reading a key that name no shape of the plugin, and the types that such a key has unless it is null.
_TYPES: "dict[str, Any]" = {"node name": str, "node names": list[str], "flag": bool, "deploy count": int}
# What makes the method's argument of a value or of null.
_CHECKS: "dict[str, Callable[[Any], Any]]" = {
    "node name": _node_name,
    "node names": _node_names,
    "flag": bool,
    "deploy count": _deploy_count,
    "list of WorkloadResource": _elements,
    "map of WorkloadResource": _members,
}
