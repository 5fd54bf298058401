"""The first module of a packed call: runs the modules that the verb needs, then the plugin.

The archive holds, for each bytecode, the code of all modules (`table`), and beside that some of them once more in
groups: what one verb runs, what one store runs, each in an order in which everything that a module imports is there
already. In a group, functions that the verb was never seen to call are replaced by short ones, which fetch the real
code if they are called after all (`late`): reading code is what a start costs most. Modules are ordinary ones either
way, and so one source serves here and in a plain installation.

This module is also the import hook for the rest; a class would cost more than all its lookups.
"""

import sys
from gc import set_threshold
from marshal import loads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FunctionType, ModuleType
    from typing import Any, BinaryIO

Module = type(sys)
Function: "Any" = type(lambda: None)
# Set once by `start`. Offsets count from `base`, where the image's code begins in the archive.
archive: "BinaryIO"
base = 0
# The top-level packages in the archive.
ours: "frozenset[str]" = frozenset()
# Module -> group that it is in: (offset, size).
groups: "dict[str, tuple[int, int]]" = {}
# Decoded from `packed_table` when first needed: module -> (is a package, offset, end, compressed);
# number of a late part -> (its module, its name, offset, end); ("class", name) -> (number,).
table: "dict[Any, tuple[Any, ...]]" = {}
packed_table = b""
functions: "dict[int, FunctionType]" = {}


def start(file: "BinaryIO", place: "tuple[Any, ...]", index: "tuple[Any, ...]") -> None:
    """Load the modules, answer the verb, leave the process.

    Args:
        file: the open archive, at the place where the image's code begins.
        place: (offset of the image, sizes of its two heads, extension suffix -> core).
        index: what `compiler` puts beside this module's code.
    """
    global archive, base, packed_table, ours, groups  # noqa: PLW0603 - the import hook has no other place to look
    try:
        set_threshold(20000)
        extension, sets, packed_table, ours, plugin, plugin_class = index
        base = place[0] + place[1] + place[2]
        modules = sys.modules
        sys.meta_path.insert(-1, modules[__name__])
        archive = file
        if file.fileno() < 3:
            from resource_extend.packed.rare import keep_standard_streams_closed

            archive = keep_standard_streams_closed(file)
        first, groups = sets.get(sys.argv[-1]) or sets[""]
        namespace: dict[str, Any] = {"__name__": "resource_extend.packed.extension"}
        exec(extension, namespace)  # noqa: S102 - code of this file
        namespace["load"](archive, place[3])
        run_group(*first)
        main = modules["resource_extend.process"].main
        served = getattr(modules[plugin], plugin_class)
    except BaseException as error:
        from resource_extend.packed.rare import fail

        fail(error)
    else:
        main(served)


def run_group(offset: int, size: int) -> None:
    """Make the modules of a group and run their code."""
    archive.seek(base + offset)
    modules = sys.modules
    for name, parent, child, is_package, code in loads(archive.read(size)):
        if name not in modules:
            module = modules[name] = Module(name)
            module.__package__ = parent
            if is_package:
                module.__path__ = []
                module.__package__ = name
            if parent:
                setattr(modules[parent], child, module)
            namespace = module.__dict__
            namespace["__modules__"] = modules
            namespace["__group__"] = group
            namespace["__late__"] = late
            namespace["__late_class__"] = late_class
            namespace["__late_attribute__"] = late_attribute
            exec(code, namespace)  # noqa: S102 - code of this file


def group(name: str) -> "ModuleType":
    """Return a module that has a group of its own."""
    if name not in sys.modules:
        run_group(*groups[name])
    return sys.modules[name]


def late(number: int) -> "FunctionType":
    """Return what stands for a function that a group left out: it fetches the real one when it is called."""

    def function(*arguments: "Any", **keywords: "Any") -> "Any":
        if number not in functions:
            namespace, (code, defaults, keyword_defaults) = fetch(number)
            functions[number] = Function(code, namespace, None, defaults)
            functions[number].__kwdefaults__ = keyword_defaults
        return functions[number](*arguments, **keywords)

    return function  # type: ignore[return-value]


def late_class(number: int) -> "Any":
    """Return a class that a group left out, made now if it is the first time."""
    if not table:
        table.update(loads(packed_table))
    module, name, _, _ = table[number]
    namespace = sys.modules[module].__dict__
    if name not in namespace:
        exec(fetch(number)[1], namespace)  # noqa: S102 - code of this file
    return namespace[name]


def late_attribute(name: str) -> "Any":
    """Return a late class by its name: the `__getattr__` of the modules that have it."""
    if not table:
        table.update(loads(packed_table))
    if ("class", name) not in table:
        raise AttributeError(name)
    return late_class(table["class", name][0])


def fetch(number: int) -> "tuple[dict[str, Any], Any]":
    """Read a late part: the namespace of its module, its code."""
    if not table:
        table.update(loads(packed_table))
    module, _, offset, end = table[number]
    archive.seek(base + offset)
    return sys.modules[module].__dict__, loads(archive.read(end - offset))


def find_spec(name: str, path: object = None, target: object = None) -> "Any":  # noqa: ARG001 - the import protocol
    """Find a module that has not run yet (import hook)."""
    if name.partition(".")[0] not in ours:
        return None
    if name in groups:
        group(name)
    elif not table:
        table.update(loads(packed_table))
    if name not in sys.modules and name not in table:
        return None
    from _frozen_importlib import ModuleSpec

    package = name not in sys.modules and table[name][0]
    return ModuleSpec(name, sys.modules[__name__], origin=sys.argv[0], is_package=package)  # type: ignore[arg-type]


def create_module(spec: "Any") -> "ModuleType | None":
    """Return the module if its group has just run; else let the import system make it (import hook)."""
    return sys.modules.get(spec.name)


def exec_module(module: "Any") -> None:
    """Run the code of a module, unless its group has (import hook)."""
    namespace = module.__dict__
    if "__late__" in namespace:
        return
    _, offset, end, compressed = table[module.__name__]
    archive.seek(base + offset)
    code = archive.read(end - offset)
    if compressed:
        from zlib import decompress

        code = decompress(code)
    exec(loads(code), namespace)  # noqa: S102 - code of this file
