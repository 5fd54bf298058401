"""A request's JSON -> the arguments of a plugin method (specification, protocol 4.1 and 4.2).

The struct of a request is made for the one verb that is called, from the verb's rows and the plugin's own shapes, so
that one strict decoding reads everything and a start pays for no other verb.
"""

from msgspec import defstruct

from resource_extend.codec import decode
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
    shape: Any = defstruct("Request", [(key, _READINGS[how][0](plugin), None) for key, how, _ in rows])
    request = _decode(data, shape)
    return {argument: _READINGS[how][1](getattr(request, key), plugin) for key, how, argument in rows}


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


def _node_name(value: str | None, _: object) -> str:
    if not value:
        raise InputError("node name is empty")
    return value


def _node_names(value: list[str] | None, _: object) -> list[str]:
    if not value:
        raise InputError("node name is empty")
    return list(dict.fromkeys(value))


def _deploy_count(value: int | None, _: object) -> int:
    if value and value > DEPLOY_COUNT_MAX:
        raise InputError(f"deploy_count {value}: {DEPLOY_COUNT_MAX} at most")
    return value or 0


def _given(value: "Any", _: object) -> "Any":
    return value


def _flag(value: bool | None, _: object) -> bool:
    return bool(value)


def _elements(value: "list[Any] | None", _: object) -> "list[Any]":
    """Drop the nulls: workloads that predate the plugin."""
    return [item for item in value or () if item is not None]


def _members(value: "dict[str, Any] | None", _: object) -> "dict[str, Any]":
    return {key: item for key, item in (value or {}).items() if item is not None}


def shape_of(declared: "Any") -> "Any":
    """Return the Struct type that a plugin names, or gives when it is asked for it."""
    return declared if isinstance(declared, type) else declared()


def _empty_if_none(attribute: str) -> "Callable[[Any, type[Plugin]], Any]":
    """Return what reads null as the empty value of a shape of the plugin."""
    return lambda value, plugin: shape_of(getattr(plugin, attribute))() if value is None else value


# How a key is read: (its type for the decoder, what the method gets). A missing key reads as null.
_READINGS: "dict[str, tuple[Callable[[type[Plugin]], Any], Callable[[Any, type[Plugin]], Any]]]" = {
    "node name": (lambda _: str | None, _node_name),
    "node names": (lambda _: list[str] | None, _node_names),
    "flag": (lambda _: bool | None, _flag),
    "deploy count": (lambda _: int | None, _deploy_count),
    "engine info": (lambda plugin: shape_of(plugin.EngineInfo) | None, _given),
    "node resource": (lambda plugin: shape_of(plugin.NodeResource) | None, _empty_if_none("NodeResource")),
    "node resource or none": (lambda plugin: shape_of(plugin.NodeResource) | None, _given),
    "node request": (lambda plugin: shape_of(plugin.NodeRequest) | None, _empty_if_none("NodeRequest")),
    "node request or none": (lambda plugin: shape_of(plugin.NodeRequest) | None, _given),
    "workload resource": (
        lambda plugin: shape_of(plugin.WorkloadResource) | None,
        _empty_if_none("WorkloadResource"),
    ),
    "workload request": (lambda plugin: shape_of(plugin.WorkloadRequest) | None, _empty_if_none("WorkloadRequest")),
    "workload resources": (lambda plugin: list[shape_of(plugin.WorkloadResource) | None] | None, _elements),  # type: ignore[misc]
    "workload resources by id": (
        lambda plugin: dict[str, shape_of(plugin.WorkloadResource) | None] | None,  # type: ignore[misc]
        _members,
    ),
}
