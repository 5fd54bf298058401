"""Import statements of a group's modules, where the import system has nothing to find: `x = __modules__[module].x`.

A `from` import costs ten times that even when the module is there, mostly in two failed attribute look-ups.
"""

import ast
import importlib.machinery
import importlib.util
import sys
from dataclasses import dataclass

# Loaded by every interpreter before any of our code.
_THERE = ("posix", "sys", "time")
_EXPOSED = ("msgspec", "msgspec.json")


@dataclass
class Around:
    """Which modules of ours a module can count on.

    `there` have run when it does. `later` have run when its functions are called; what a function imports while its
    module runs has run before that in the recorded order. `grouped` are in groups of their own, which run when they are
    imported.
    """

    there: "set[str]"
    later: "set[str]"
    grouped: "set[str]"

    def seen_by(self, tree: ast.Module) -> "list[frozenset[str]]":
        """Return those that a module imports."""
        imported = {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
        return [frozenset(imported & names) for names in (self.there, self.later, self.grouped)]


def linked(tree: ast.Module, around: Around, hot: "frozenset[str]", name: str) -> ast.Module:
    """Replace the imports of a module that find what is there already.

    Args:
        tree: the module.
        around: the modules that it can count on.
        hot: dotted names of the functions whose imports are replaced as well.
        name: the module's name.
    """
    _Links(around, hot, name).visit(tree)
    return tree


class _Links(ast.NodeTransformer):
    def __init__(self, around: Around, hot: "frozenset[str]", name: str) -> None:
        self.there = {*around.there, *_EXPOSED}
        self.later = around.later
        self.grouped = around.grouped
        self.hot = hot
        self.path = name
        self.in_function = False

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        outer, self.path = self.path, f"{self.path}.{node.name}"
        self.generic_visit(node)
        self.path = outer
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        if self.in_function or f"{self.path}.{node.name}" in self.hot:
            outer = self.there, self.in_function
            self.there, self.in_function = self.there | self.later, True
            self.generic_visit(node)
            self.there, self.in_function = outer
        return node

    def visit_ImportFrom(self, node: ast.ImportFrom) -> "ast.AST | list[ast.stmt]":
        if not node.level and node.module and _is_native(node.module):
            return self._taken(node, _native(node.module), _module(node.module))
        if node.level or node.module not in self.there | self.grouped:
            return node
        there = _module(node.module)
        return self._taken(node, there if node.module in self.there else _group(node.module), there)

    def _taken(self, node: ast.ImportFrom, first: ast.expr, then: ast.expr) -> "list[ast.stmt]":
        """Return an assignment for each imported name: the first brings the module, then it is there."""
        return [
            _assign(alias.asname or alias.name, ast.Attribute(then if number else first, alias.name, ast.Load()), node)
            for number, alias in enumerate(node.names)
        ]

    def visit_Import(self, node: ast.Import) -> "ast.AST | list[ast.stmt]":
        if not all(_is_native(alias.name) for alias in node.names):
            return node
        return [_assign(alias.asname or alias.name, _native(alias.name), node) for alias in node.names]


def _module(name: str) -> ast.expr:
    return ast.Subscript(ast.Name("__modules__", ast.Load()), ast.Constant(name), ast.Load())


def _group(name: str) -> ast.expr:
    return ast.Call(ast.Name("__group__", ast.Load()), [ast.Constant(name)], [])


def _is_native(name: str) -> bool:
    """Whether a module is written in C, in the interpreter that compiles or in the end of its path."""
    if name in sys.builtin_module_names:
        return True
    spec = importlib.util.find_spec(name) if "." not in name else None
    return spec is not None and isinstance(spec.loader, importlib.machinery.ExtensionFileLoader)


def _native(name: str) -> ast.expr:
    """Return `__modules__.get(name) or __native__(name)`, or the call alone for what is not there from the start."""
    load = ast.Call(ast.Name("__native__", ast.Load()), [ast.Constant(name)], [])
    if name not in _THERE:
        return load
    get = ast.Attribute(ast.Name("__modules__", ast.Load()), "get", ast.Load())
    return ast.BoolOp(ast.Or(), [ast.Call(get, [ast.Constant(name)], []), load])


def _assign(name: str, value: ast.expr, node: ast.stmt) -> ast.Assign:
    return ast.copy_location(ast.Assign([ast.Name(name, ast.Store())], value), node)
