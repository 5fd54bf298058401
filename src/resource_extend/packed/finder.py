"""Finds in a packed file the modules that no group of a call holds; and what is done before any of them can run."""

import posix
import sys
from _frozen_importlib import ModuleSpec
from marshal import loads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any, BinaryIO, NoReturn

start: "Any" = sys.modules["resource_extend.packed.start"]
# Module -> (is a package, offset, size, compressed); ("class", name) -> (number,). Read when first needed.
table: "dict[Any, tuple[Any, ...]]" = {}


def everything() -> "dict[Any, tuple[Any, ...]]":
    """Return the table of modules and classes."""
    if not table:
        table.update(start.load(*start.table))
    return table


def find_spec(name: str) -> "ModuleSpec | None":
    """Find a module, or the one that its group has just run."""
    if name in start.groups:
        start.group(name)
    elif name not in everything():
        return None
    return ModuleSpec(name, sys.modules[__name__], origin=sys.argv[0], is_package=everything()[name][0])  # type: ignore[arg-type]


def create_module(spec: "Any") -> "ModuleType | None":
    """Return the module if its group has just run; else let the import system make it (import protocol)."""
    return sys.modules.get(spec.name)


def exec_module(module: "Any") -> None:
    """Run the code of a module, unless its group has (import protocol)."""
    namespace = module.__dict__
    if "__builtins__" not in namespace:
        _, offset, size, compressed = everything()[module.__name__]
        code = start.load(offset, size)
        if compressed:
            from zlib import decompress

            code = loads(decompress(code))
        exec(code, namespace)  # noqa: S102 - code of this file


def class_named(name: str) -> "Any":
    """Return a class that a group left out, by its name."""
    if ("class", name) not in everything():
        raise AttributeError(name)
    return start.rare("late").class_(table["class", name][0])


def keep_standard_streams_closed(file: "BinaryIO") -> "BinaryIO":
    """Move the archive off descriptors 0 to 2 and fill the closed ones so that reading 0 or writing 1 and 2 fails.

    Otherwise the next socket or file opened would become the caller's standard stream, and an answer be lost in it.
    """
    position = file.tell()
    filled = [file.fileno()]
    while filled[-1] < 3:
        filled.append(posix.dup(file.fileno()))
    moved = open(filled.pop(), "rb")  # noqa: SIM115 - open until the process ends
    moved.seek(position)
    for closed in filled:
        posix.dup2(posix.open("/dev/null", posix.O_RDONLY if closed else posix.O_WRONLY), closed)
    return moved


def fail(error: BaseException) -> "NoReturn":
    """End the process as every failure does: one line on stderr, status 128 (specification, protocol 8)."""
    text = f"internal error: {type(error).__name__}: {error}"
    line = "".join(character if character.isprintable() else repr(character)[1:-1] for character in text)
    try:
        posix.write(2, line.encode("utf-8", "backslashreplace") + b"\n")
    finally:
        posix._exit(128)
