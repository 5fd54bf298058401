"""Compile one code image. Run by each interpreter that an image is made for, so it needs nothing but that interpreter.

Reads a JSON request on stdin:

    label       name of the built file, for tracebacks
    modules     [name, is a package, path inside the archive, source, is our own]
    start, extension    the module that comes first, the one that loads msgspec
    verbs       verb -> [modules to run at once, in order, functions that they call, stores];
                stores: module imported first -> [modules, functions]
    plugin, plugin_class    what to start

Writes the lengths of two heads in 8 bytes each, the heads (boot code; start module and index), and the code that the
index points into.
"""

import ast
import json
import marshal
import sys
import zlib
from types import CodeType
from typing import Any

_BOOT = """
import _imp
del sys.argv[0]
if _imp.extension_suffixes()[0] in k[3]:
    b, i = marshal.loads(f.read(k[2]))
    m = type(sys)("resource_extend.packed.start")
    sys.modules[m.__name__] = m
    exec(b, m.__dict__)
    m.start(f, k, i)
else:
    import runpy
    runpy.run_path(sys.argv[0], run_name="__main__")
"""


class Trim(ast.NodeTransformer):
    """Takes out what costs time at each start and changes nothing.

    That is docstrings, annotations of functions, and with `hot` given the bodies of all functions that are not in it
    and can be fetched later.
    """

    def __init__(self, module: str, hot: "set[str] | None", numbers: "dict[str, int]", keep_docstrings: bool) -> None:
        self.path = [module]
        self.in_class = False
        self.hot = hot
        self.numbers = numbers
        self.keep_docstrings = keep_docstrings

    def visit_Module(self, node: ast.Module) -> ast.AST:
        """Trim a module: the annotations of its variables too."""
        node.body = [plain(statement) for statement in node.body if not is_bare(statement)]
        return self._visit_block(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        """Trim a class; the annotations of its fields stay."""
        outer, self.in_class = self.in_class, True
        self.path.append(node.name)
        self._visit_block(node)
        self.path.pop()
        self.in_class = outer
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        """Trim a function, or leave its body for later."""
        name = ".".join([*self.path, node.name])
        arguments = node.args
        node.returns = None
        every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
        for argument in [*every, arguments.vararg, arguments.kwarg]:
            if argument is not None:
                argument.annotation = None
        if self.hot is None or name in self.hot or name not in self.numbers:
            self.path.append(node.name)
            numbers, self.numbers = self.numbers, {}  # Functions inside functions come with them.
            self._visit_block(node)
            self.numbers = numbers
            self.path.pop()
            return node
        positional: list[ast.expr] = [ast.Name(a.arg, ast.Load()) for a in [*arguments.posonlyargs, *arguments.args]]
        if arguments.vararg:
            positional.append(ast.Starred(ast.Name(arguments.vararg.arg, ast.Load()), ast.Load()))
        keywords = [ast.keyword(a.arg, ast.Name(a.arg, ast.Load())) for a in arguments.kwonlyargs]
        if arguments.kwarg:
            keywords.append(ast.keyword(None, ast.Name(arguments.kwarg.arg, ast.Load())))
        fetch = ast.Call(ast.Name("__late__", ast.Load()), [ast.Constant(self.numbers[name])], [])
        node.body = [ast.Return(ast.Call(fetch, positional, keywords))]
        return node

    def _visit_block(self, node: "Any") -> ast.AST:
        if not self.keep_docstrings and ast.get_docstring(node, clean=False) is not None:
            node.body = node.body[1:] or [ast.Pass()]
        return self.generic_visit(node)


def is_bare(statement: ast.stmt) -> bool:
    """Whether a statement of a module only annotates a name."""
    return isinstance(statement, ast.AnnAssign) and statement.value is None


def plain(statement: ast.stmt) -> ast.stmt:
    """Return the assignment of an annotated one."""
    if isinstance(statement, ast.AnnAssign) and statement.value is not None:
        return ast.copy_location(ast.Assign([statement.target], statement.value), statement)
    return statement


def functions_of(code: CodeType, path: str) -> "Any":
    """Yield (dotted name, code) of the functions of a module and its classes that stand alone."""
    for constant in code.co_consts:
        if isinstance(constant, CodeType) and not constant.co_name.startswith("<"):
            name = f"{path}.{constant.co_name}"
            is_function = bool(constant.co_flags & 0x02)  # CO_NEWLOCALS
            if not is_function:
                yield from functions_of(constant, name)
            elif not constant.co_freevars and not any(x.startswith("__") for x in constant.co_varnames):
                yield name, constant


def main() -> None:
    """Compile what stdin asks for."""
    request = json.load(sys.stdin)
    area = bytearray()
    seen: dict[bytes, tuple[int, int]] = {}

    def put(data: bytes) -> "tuple[int, int]":
        """Add to the code, once each; return (offset, size)."""
        if data not in seen:
            seen[data] = (len(area), len(data))
            area.extend(data)
        return seen[data]

    def compiled(name: str, hot: "set[str] | None") -> CodeType:
        _, _, path, source, _ = modules[name]
        tree = ast.parse(source)
        tree = ast.fix_missing_locations(Trim(name, hot, numbers, "__doc__" in source).visit(tree))
        return compile(tree, f"{request['label']}/{path}", "exec", dont_inherit=True)

    def group(names: "list[str]", hot: "list[str]") -> "tuple[int, int]":
        entries = []
        for name in names:
            parent, _, child = name.rpartition(".")
            entries.append((name, parent, child, modules[name][1], compiled(name, set(hot))))
        return put(marshal.dumps(tuple(entries)))

    modules = {module[0]: module for module in request["modules"]}
    numbers: dict[str, int] = {}
    whole = {name: compiled(name, None) for name, module in modules.items() if module[4]}
    late = {}
    for name, code in whole.items():
        for function, body in functions_of(code, name):
            # Two functions of one name, under an `if`: leave both as they are.
            late[function] = None if function in late else (name, body)
    for function, found in late.items():
        if found is not None:
            numbers[function] = len(numbers)

    sets = {}
    same: dict[str, object] = {}
    for verb, (names, hot, stores) in sorted(request["verbs"].items()):
        content = json.dumps([names, sorted(hot), stores], sort_keys=True)
        if content not in same:
            groups = {module: group(*members) for module, members in sorted(stores.items())}
            same[content] = (group(names, hot), groups)
        sets[verb] = same[content]

    table: dict[object, tuple[object, ...]] = {}
    for name, (_, is_package, path, source, own) in modules.items():
        if own:
            data = marshal.dumps(whole[name])
        else:
            code = compile(source, f"{request['label']}/{path}", "exec", dont_inherit=True)
            data = zlib.compress(marshal.dumps(code), 9)
        offset, size = put(data)
        table[name] = (is_package, offset, offset + size, not own)
    for function, number in numbers.items():
        name, body = late[function]  # type: ignore[misc]
        offset, size = put(marshal.dumps(body))
        table[number] = (name, offset, offset + size)

    index = (
        compiled(request["extension"], None),
        sets,
        marshal.dumps(table),
        request["plugin"],
        request["plugin_class"],
    )
    boot = marshal.dumps(compile(_BOOT, f"{request['label']}/boot", "exec", dont_inherit=True))
    head = marshal.dumps((compiled(request["start"], None), index))
    sys.stdout.buffer.write(len(boot).to_bytes(8, "big") + len(head).to_bytes(8, "big") + boot + head + area)


main()
