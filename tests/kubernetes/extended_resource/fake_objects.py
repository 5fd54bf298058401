"""What a real API server makes of node objects: patches with its deviations from the RFCs, quantities, validation.

Specification, kubernetes 2.13 and 4.1. The table in `server_facts` is checked against this and against the real one.
"""

import copy
import re
from fractions import Fraction
from typing import Any

import json_merge_patch  # type: ignore[import-untyped]
import jsonpatch
from jsonpointer import JsonPointer, JsonPointerException

Object = dict[str, Any]

LARGEST_PATCH = 10_000
NO_DETAIL = "the server rejected our request due to an error in our request"

_QUANTITY = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+))(?:[eE]([+-]?\d+)|(n|u|m|k|M|G|T|P|E|[KMGTPE]i)?)")
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {f"{letter}i": 10 * power for power, letter in enumerate("KMGTPE", 1)}

NODE_INFO = (
    "machineID",
    "systemUUID",
    "bootID",
    "kernelVersion",
    "osImage",
    "containerRuntimeVersion",
    "kubeletVersion",
    "kubeProxyVersion",
    "operatingSystem",
    "architecture",
)
EMPTY_STATUS: Object = {
    "daemonEndpoints": {"kubeletEndpoint": {"Port": 0}},
    "nodeInfo": dict.fromkeys(NODE_INFO, ""),
}


class StatusError(Exception):
    """An answer other than 200, as the API server words it."""

    def __init__(self, code: int, reason: str, message: str, causes: list[Object] | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.body = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": message,
            "reason": reason,
            "details": {"causes": causes} if causes else {},
            "code": code,
        }


def rejected() -> StatusError:
    """The 422 without detail that stands for every patch that cannot be applied."""
    return StatusError(422, "Invalid", NO_DETAIL)


def patched(document: Object, kind: str, patch: Any) -> Object:
    """The document after a patch of content type `kind`, before any validation."""
    if kind == "application/merge-patch+json":
        return dict(json_merge_patch.merge(copy.deepcopy(document), patch))
    if kind != "application/json-patch+json":
        raise StatusError(415, "UnsupportedMediaType", "415: Unsupported Media Type")
    if not isinstance(patch, list):
        raise StatusError(400, "BadRequest", "error decoding patch: json: cannot unmarshal into []handlers.jsonPatchOp")
    if len(patch) > LARGEST_PATCH:
        raise StatusError(
            413, "RequestEntityTooLarge", f"The allowed maximum operations in a JSON patch is {LARGEST_PATCH}"
        )
    document = copy.deepcopy(document)
    for operation in patch:
        document = _applied(document, operation)
    return document


def _applied(document: Object, operation: Object) -> Object:
    """One operation by RFC 6902, apart from what the real server does in its own way."""
    operation = dict(operation)
    kind, value = operation.get("op"), operation.get("value")
    absent = _absent_below_present(document, str(operation.get("path")))
    if kind == "test" and value is None and absent:
        return document
    if kind == "replace" and absent:
        operation["op"] = "add"
    if kind in ("add", "replace"):
        operation["value"] = value
    try:
        return dict(jsonpatch.apply_patch(document, [operation]))
    except (jsonpatch.JsonPatchException, JsonPointerException) as error:
        raise rejected() from error


def _absent_below_present(document: Object, path: str) -> bool:
    """The last key of the path is missing from a map that is there."""
    try:
        pointer = JsonPointer(path)
        parent, key = pointer.to_last(document)
    except JsonPointerException:
        return False
    return isinstance(parent, dict) and key not in parent


def stored_status(status: Object, node: str) -> Object:
    """A node's status as it would be stored: quantities in their own notation, allocatable defaulted, no empty maps."""
    status = {**copy.deepcopy(EMPTY_STATUS), **status}
    for where in ("capacity", "allocatable"):
        if where in status:
            status[where] = {name: canonical(value) for name, value in (status[where] or {}).items()}
    if status.get("allocatable") is None and status.get("capacity"):
        status["allocatable"] = dict(status["capacity"])
    for where in ("capacity", "allocatable"):
        for name, text in (status.get(where) or {}).items():
            _validate(node, f"status.{where}.{name}", name, text)
    return {key: value for key, value in status.items() if value not in (None, {})}


def _validate(node: str, field: str, name: str, text: str) -> None:
    value = quantity(text)
    fault = ""
    if value < 0:
        fault = "must be greater than or equal to 0"
    elif "/" in name and value.denominator != 1:
        fault = "must be an integer"
    if fault:
        message = f'Node "{node}" is invalid: {field}: Invalid value: "{text}": {fault}'
        raise StatusError(422, "Invalid", message, [{"reason": "FieldValueInvalid", "message": fault, "field": field}])


def quantity(text: str) -> Fraction:
    """The value of a quantity that was stored."""
    match = _QUANTITY.fullmatch(text)
    if not match:
        raise rejected()
    number, exponent, suffix = match.groups()
    if suffix in _BINARY:
        return Fraction(number) * Fraction(2) ** _BINARY[suffix]
    return Fraction(number) * Fraction(10) ** (int(exponent) if exponent else _DECIMAL[suffix or ""])


def canonical(value: Any) -> str:
    """A quantity in the notation it came in, with the largest suffix that leaves a whole number."""
    if value is None:
        return "0"
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise rejected()
    text = str(value).strip()
    amount = quantity(text)
    match = _QUANTITY.fullmatch(text)
    if not match or amount == 0:
        return "0"
    _, exponent, suffix = match.groups()
    if suffix in _BINARY and abs(amount) >= 1024:
        return _largest(amount, [(name, Fraction(2**power)) for name, power in _BINARY.items()])
    if exponent:
        return _largest(amount, [(f"e{power}", Fraction(10) ** power) for power in _DECIMAL.values() if power])
    return _largest(amount, [(name, Fraction(10) ** power) for name, power in _DECIMAL.items() if name])


def _largest(amount: Fraction, scales: list[tuple[str, Fraction]]) -> str:
    for suffix, scale in sorted([*scales, ("", Fraction(1))], key=lambda item: -item[1]):
        if (amount / scale).denominator == 1:
            return f"{amount / scale}{suffix}"
    return str(amount)
