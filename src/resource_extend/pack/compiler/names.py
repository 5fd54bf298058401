"""Where names of a module come from, and which of them a piece of code reads."""

import ast
from collections.abc import Iterator


def is_type_checking(node: ast.AST) -> bool:
    """Whether a node is an `if TYPE_CHECKING:` without other branch: nothing in it runs."""
    if not isinstance(node, ast.If) or node.orelse:
        return False
    return isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def bound(body: "list[ast.stmt]") -> "dict[str, int]":
    """Return name -> how often the statements of a module bind it, in any way, functions and classes not entered."""
    counts: dict[str, int] = {}
    waiting: list[ast.AST] = [node for node in body if not is_type_checking(node)]
    while waiting:
        node = waiting.pop()
        names: list[str] = []
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names = [node.name]
        else:
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                names = [alias.asname or alias.name.partition(".")[0] for alias in node.names]
            elif isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
                names = [node.id]
            elif isinstance(node, ast.ExceptHandler) and node.name:
                names = [node.name]
            waiting += ast.iter_child_nodes(node)
        for name in names:
            counts[name] = counts.get(name, 0) + 1
    return counts


def imported(body: "list[ast.stmt]") -> "dict[str, tuple[str, str]]":
    """Return local name -> (module, its name there) of the `from` imports at the top of a module."""
    return {
        alias.asname or alias.name: (node.module or "", alias.name)
        for node in body
        if isinstance(node, ast.ImportFrom) and not node.level
        for alias in node.names
    }


def locals_of(function: ast.FunctionDef) -> "set[str]":
    """Return the names that a function, or one inside it, binds: nothing is said about such a name's global."""
    names = set()
    for node in ast.walk(function):
        if isinstance(node, ast.arg):
            names.add(node.arg)
        elif isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            names.add(node.id)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            names |= {alias.asname or alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, (ast.ExceptHandler, ast.FunctionDef, ast.ClassDef)) and node is not function:
            names |= {node.name} if node.name else set()
    return names


def read_when_all_goes_well(node: ast.AST) -> "Iterator[ast.AST]":
    """Yield a node and those in it that run unless something is raised: no `raise`, no `except`."""
    if not isinstance(node, (ast.Raise, ast.ExceptHandler)):
        yield node
        for child in ast.iter_child_nodes(node):
            yield from read_when_all_goes_well(child)
