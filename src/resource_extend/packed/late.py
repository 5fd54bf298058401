"""Fetches in a packed file the functions and classes that the groups of a call left out."""

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FunctionType
    from typing import Any

start: "Any" = sys.modules["resource_extend.packed.start"]
Function: "Any" = type(lambda: None)
functions: "dict[int, FunctionType]" = {}


def part(number: int) -> "tuple[Any, ...]":
    """Return a late part: its module, its name, and a class's code or a function's code and defaults."""
    start.archive.seek(start.base + start.rows + 8 * number)
    row = start.archive.read(8)
    return start.load(int.from_bytes(row[:4], "little"), int.from_bytes(row[4:], "little"))  # type: ignore[no-any-return]


def function(number: int) -> "FunctionType":
    """Return a function that a group left out."""
    if number not in functions:
        module, _, code, defaults, keyword_defaults = part(number)
        functions[number] = Function(code, sys.modules[module].__dict__, None, defaults)
        functions[number].__kwdefaults__ = keyword_defaults
    return functions[number]


def class_(number: int) -> "Any":
    """Return a class that a group left out, made now if it is the first time."""
    module, name, code = part(number)
    namespace = sys.modules[module].__dict__
    if name not in namespace:
        exec(code, namespace)  # noqa: S102 - code of this file
    return namespace[name]
