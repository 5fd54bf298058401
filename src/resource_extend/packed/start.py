"""The first module of a packed call: runs the modules that the verb needs, then the plugin.

The archive holds, for each bytecode, the code of all modules, and beside that some of them once more in groups: what
one verb runs, what it runs on one store, each in an order in which everything that a module imports is there already.
In a group, functions and classes that the verb was never seen to use are left out; they are fetched if they are used
after all. Reading code is what a start costs most. Modules are ordinary ones either way, and so one source serves here
and in a plain installation.

This module is also the import hook for the rest; a class would cost more than all its look-ups. It is read on every
call, so what few calls need is in `finder` and `late`.
"""

import sys
from _frozen_importlib import BuiltinImporter, ModuleSpec
from _imp import create_builtin, create_dynamic, exec_builtin, exec_dynamic, extension_suffixes
from marshal import loads
from posix import access

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any, BinaryIO

Module = type(sys)
# Set once by `start`. Offsets count from `base`, where the image's code begins in the archive.
archive: "BinaryIO"
base = 0
# The top-level packages in the archive.
ours: "frozenset[str]" = frozenset()
# Module -> group that it is in: (offset, size).
groups: "dict[str, tuple[int, int]]" = {}
# (offset, size) of what tells where everything is that is in no group, the offset of rows that tell it for late parts,
# and by name the (offset, size) of modules of this package that few calls need.
table = (0, 0)
rows = 0
rare_code: "dict[str, tuple[int, int]]" = {}


def start(file: "BinaryIO", place: "tuple[Any, ...]", index: "tuple[Any, ...]") -> None:
    """Load the modules, answer the verb, leave the process.

    Args:
        file: the open archive, at the place where the image's code begins.
        place: (boot code, offset of the head, its size, extension suffix -> core).
        index: what `compiler.main` puts beside this module's code.
    """
    global archive, base, ours, groups, table, rows, rare_code  # noqa: PLW0603 - the import hook has no other place to look
    try:
        extension, sets, table, rows, rare_code, ours, plugin, plugin_class = index
        archive = file
        base = place[1] + place[2]
        modules = sys.modules
        sys.meta_path.insert(-1, modules[__name__])
        # A call ends long before a collection pays.
        native("gc").set_threshold(20000)
        if file.fileno() < 3:
            archive = rare("finder").keep_standard_streams_closed(file)
        # What the code of a group calls by these names, which no other code has.
        modules["builtins"].__dict__.update(
            __modules__=modules,
            __native__=native,
            __group__=group,
            __late__=late,
            __late_class__=late_class,
            __late_attribute__=late_attribute,
        )
        first, groups = loads(sets.get(sys.argv[-1]) or sets[""])
        native("_datetime")  # msgspec's core asks for it.
        namespace: dict[str, Any] = {"__name__": "resource_extend.packed.extension"}
        exec(extension, namespace)  # noqa: S102 - code of this file
        namespace["load"](archive, place[3])
        run_group(*first)
        main = modules["resource_extend.process"].main
        served = getattr(modules[plugin], plugin_class)
    except BaseException as error:
        rare("finder").fail(error)
    else:
        main(served)


def load(offset: int, size: int) -> "Any":
    """Read something of the image."""
    archive.seek(base + offset)
    return loads(archive.read(size))


def run_group(offset: int, size: int) -> None:
    """Make the modules of a group and run their code."""
    modules = sys.modules
    for name, parent, child, is_package, code in load(offset, size):
        if name not in modules:
            module = modules[name] = Module(name)
            module.__package__ = parent
            if is_package:
                module.__path__ = []
                module.__package__ = name
            if parent:
                setattr(modules[parent], child, module)
            exec(code, module.__dict__)  # noqa: S102 - code of this file


def group(name: str) -> "ModuleType":
    """Return a module that is in a group."""
    if name not in sys.modules:
        run_group(*groups[name])
    return sys.modules[name]


def native(name: str) -> "Any":
    """Return a module that is written in C, of the interpreter or its library, without the import system's detours."""
    modules = sys.modules
    if name not in modules:
        if name in sys.builtin_module_names:
            spec = ModuleSpec(name, BuiltinImporter, origin="built-in")  # type: ignore[arg-type]
            create, run = create_builtin, exec_builtin
        else:
            file = f"{sys.path[-1]}/{name}{extension_suffixes()[0]}"
            if not access(file, 4):
                return __import__(name)
            spec = ModuleSpec(name, None, origin=file)
            create, run = create_dynamic, exec_dynamic
        module = create(spec)
        module.__spec__ = spec
        module.__loader__ = spec.loader
        modules[name] = module
        try:
            run(module)
        except BaseException:
            del modules[name]
            raise
    return modules[name]


def rare(name: str) -> "Any":
    """Return a module of this package that few calls need."""
    modules = sys.modules
    full = f"resource_extend.packed.{name}"
    if full not in modules:
        module = modules[full] = Module(full)
        exec(load(*rare_code[name]), module.__dict__)  # noqa: S102 - code of this file
    return modules[full]


def late(number: int) -> "Callable[..., Any]":
    """Return what stands for a function that a group left out: it fetches the real one when it is called."""
    real = None

    def function(*arguments: "Any", **keywords: "Any") -> "Any":
        nonlocal real
        if real is None:
            real = rare("late").function(number)
        return real(*arguments, **keywords)

    return function


def late_class(number: int) -> "Any":
    """Return a class that a group left out."""
    return rare("late").class_(number)


def late_attribute(name: str) -> "Any":
    """Return a class that a group left out: the `__getattr__` of the modules that had it."""
    if name.startswith("__"):  # the import system asks modules for more than they have
        raise AttributeError(name)
    return rare("finder").class_named(name)


def find_spec(name: str, path: object = None, target: object = None) -> "Any":  # noqa: ARG001 - the import protocol
    """Find a module of the archive (import hook)."""
    if name.partition(".")[0] in ours:
        return rare("finder").find_spec(name)
    return None
