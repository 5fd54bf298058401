"""Compiles one code image.

Reads a JSON request on stdin:

    label       name of the built file, for tracebacks
    modules     [name, is a package, path inside the archive, source, is our own]
    start, extension    the modules that come first
    rare        name -> a module that the first one fetches when it needs it
    verbs       verb -> [modules to run at once, in order, functions that are called, modules of which all functions may
                be, groups]; groups: name -> modules that come when the first of them is imported
    plugin, plugin_class    what to start

Writes the lengths of two heads in 8 bytes each, the heads (boot code; start module and index), and the code that the
index points into.
"""

import ast
import json
import marshal
import sys
import zlib
from collections.abc import Iterable
from types import CodeType
from typing import Any

from resource_extend.pack.compiler.late import Late, Part
from resource_extend.pack.compiler.links import Around, linked
from resource_extend.pack.compiler.trim import bare

_BOOT = """
import _imp, sys
del sys.argv[0]
if _imp.extension_suffixes()[0] in k[3]:
    f.seek(k[1])
    b, i = m.loads(f.read(k[2]))
    s = sys.modules["resource_extend.packed.start"] = type(sys)("resource_extend.packed.start")
    exec(b, s.__dict__)
    s.start(f, k, i)
else:
    import runpy
    runpy.run_path(sys.argv[0], run_name="__main__")
"""


class Area:
    """The code of an image: what is put in twice lies there once."""

    def __init__(self) -> None:
        self.content = bytearray()
        self._places: dict[bytes, tuple[int, int]] = {}

    def put(self, data: bytes) -> "tuple[int, int]":
        """Add bytes; return their (offset, size)."""
        if data not in self._places:
            self._places[data] = (len(self.content), len(data))
            self.content += data
        return self._places[data]


def main() -> None:
    """Compile what stdin asks for."""
    request = json.load(sys.stdin)
    modules = {name: rest for name, *rest in request["modules"]}
    trees = {name: bare(source) for name, (_, _, source, own) in modules.items() if own}
    late = Late(trees)
    area = Area()

    def compiled(name: str, tree: ast.Module) -> CodeType:
        return compile(ast.fix_missing_locations(tree), f"{request['label']}/{modules[name][1]}", "exec")

    variants: dict[tuple[object, ...], CodeType] = {}

    def variant(name: str, functions: "set[str]", classes: "set[str]", around: "Around") -> CodeType:
        """Compile a module for a group; verbs that treat it alike share the code."""
        mine = frozenset(function for function in functions if function.startswith(f"{name}."))
        key = (name, mine, late.classes_seen_by(name) & classes, *around.seen_by(trees[name]))
        if key not in variants:
            variants[key] = compiled(
                name, linked(late.without_late_parts(name, functions, classes), around, mine, name)
            )
        return variants[key]

    def group(
        names: "list[str]", functions: "set[str]", classes: "set[str]", before: "list[str]", grouped: "Iterable[str]"
    ) -> "tuple[int, int]":
        entries = []
        around = Around(set(before), {*before, *names}, set(grouped))
        for name in names:
            parent, _, child = name.rpartition(".")
            entries.append((name, parent, child, modules[name][0], variant(name, functions, classes, around)))
            around.there.add(name)
        return area.put(marshal.dumps(tuple(entries)))

    ours = frozenset(name.partition(".")[0] for name in modules)
    sets: dict[str, bytes] = {}
    same: dict[str, bytes] = {}
    for verb, (names, functions, whole, others) in sorted(request["verbs"].items()):
        content = json.dumps([names, functions, whole, others], sort_keys=True)
        if content not in same:
            every = [*names, *(name for members in others.values() for name in members)]
            hot = {*functions, *(name for name in late.functions if late.module_of(name) in whole)}
            classes = late.hot_classes(every, hot, (request["plugin"], request["plugin_class"]))
            # Whichever module of a group is imported first brings the group.
            groups = {}
            for _, members in sorted(others.items()):
                elsewhere = {name for name in every if name not in names and name not in members}
                groups.update(dict.fromkeys(members, group(members, hot, classes, names, elsewhere)))
            same[content] = marshal.dumps((group(names, hot, classes, [], groups), groups))
        sets[verb] = same[content]

    table: dict[object, tuple[object, ...]] = {}
    for name, (is_package, path, source, own) in modules.items():
        if own:
            data = marshal.dumps(compiled(name, trees[name]))
        else:
            data = marshal.dumps(zlib.compress(marshal.dumps(compile(source, f"{request['label']}/{path}", "exec")), 9))
        offset, size = area.put(data)
        table[name] = (is_package, offset, size, not own)
    rows = bytearray()
    for part in sorted(late.parts, key=lambda part: part.number):
        code = part_of(part, compiled(part.module, part.tree))
        for number in area.put(marshal.dumps((part.module, part.name, *code))):
            rows += number.to_bytes(4, "little")
        if part.is_class:
            table["class", part.name] = (part.number,)

    index = (
        compiled(request["extension"], trees[request["extension"]]),
        sets,
        area.put(marshal.dumps(table)),
        area.put(bytes(rows))[0],
        {name: area.put(marshal.dumps(compiled(module, trees[module]))) for name, module in request["rare"].items()},
        ours,
        request["plugin"],
        request["plugin_class"],
    )
    boot = marshal.dumps(compile(_BOOT, f"{request['label']}/boot", "exec"))
    head = marshal.dumps((compiled(request["start"], trees[request["start"]]), index))
    sys.stdout.buffer.write(len(boot).to_bytes(8, "big") + len(head).to_bytes(8, "big") + boot + head + area.content)


def part_of(part: Part, code: CodeType) -> "tuple[Any, ...]":
    """Return what is fetched for a late part: a class's code, or a function's code, defaults, keyword defaults."""
    if part.is_class:
        return (code,)
    for name in part.path:
        code = next(x for x in code.co_consts if isinstance(x, CodeType) and x.co_name == name)
    return code, part.defaults, part.keyword_defaults
