"""Sources without what costs time at each start and changes nothing: docstrings, and annotations of functions."""

import ast


def bare(source: str) -> ast.Module:
    """Parse a module and trim it. Annotations of class members stay, they are the fields of Structs."""
    tree = ast.parse(source)
    tree.body = [_plain(statement) for statement in tree.body if not _never_runs(statement)]
    keep_docstrings = "__doc__" in source
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            node.returns = None
            arguments = node.args
            for argument in (
                *arguments.posonlyargs,
                *arguments.args,
                *arguments.kwonlyargs,
                arguments.vararg,
                arguments.kwarg,
            ):
                if argument is not None:
                    argument.annotation = None
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and not keep_docstrings:
            first = node.body[0] if node.body else None
            if (
                isinstance(first, ast.Expr)
                and isinstance(first.value, ast.Constant)
                and isinstance(first.value.value, str)
            ):
                node.body = node.body[1:] or [ast.Pass()]
    return tree


def _never_runs(statement: ast.stmt) -> bool:
    """Whether a statement is for type checkers only."""
    if isinstance(statement, ast.If):
        return isinstance(statement.test, ast.Name) and statement.test.id == "TYPE_CHECKING" and not statement.orelse
    return isinstance(statement, ast.AnnAssign) and statement.value is None


def _plain(statement: ast.stmt) -> ast.stmt:
    """Return the plain assignment for an annotated one."""
    if isinstance(statement, ast.AnnAssign) and statement.value is not None:
        return ast.copy_location(ast.Assign([statement.target], statement.value), statement)
    return statement
