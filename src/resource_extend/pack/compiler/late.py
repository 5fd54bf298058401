"""Parts of modules that a start leaves out: functions that a verb was not seen to call, classes that it does not read.

Both cost at each start though hardly any call needs them: the code of a function must be read, a class made. In the
groups of an image a late function is `name = __late__(NUMBER)`, whose first call fetches the real one; a late class is
gone, and functions say `__late_class__(NUMBER)` where they said its name. What is fetched then is the very code that
was left out.

A class may be late when its name is bound once in its module and in no other way, it has no decorator, and code outside
of functions reads it nowhere but in the bases of other late classes. Modules that had it, or had it imported, hand it
out as an attribute all the same.
"""

import ast
import builtins
import copy
from dataclasses import dataclass
from typing import Any

from resource_extend.pack.compiler.names import bound, imported, is_type_checking, locals_of, read_when_all_goes_well


@dataclass
class Part:
    """A late part: `tree` is a module to compile, in which `path` leads to the function."""

    number: int
    module: str
    name: str
    is_class: bool
    tree: ast.Module
    path: tuple[str, ...] = ()
    defaults: "tuple[object, ...] | None" = None
    keyword_defaults: "dict[str, object] | None" = None


class Late:
    """All late parts of a set of modules."""

    def __init__(self, trees: "dict[str, ast.Module]") -> None:
        self.trees = trees
        self.imports = {name: imported(tree.body) for name, tree in trees.items()}
        self.classes = self._find_classes()
        self.functions: dict[str, int] = {}
        self.parts: list[Part] = []
        for (module, name), number in self.classes.items():
            definition = self._definition(module, name)
            tree = ast.Module([self._with_late_classes(module, copy.deepcopy(definition))], [])
            self.parts.append(Part(number, module, name, True, tree))
        for module, tree in trees.items():
            whole = self._with_late_classes(module, copy.deepcopy(tree))
            self._find_functions(module, tree.body, (), whole)

    def hot_classes(self, modules: "list[str]", functions: "set[str]", entry: "tuple[str, str]") -> "set[str]":
        """Return the dotted names of the classes that must be there: the code that runs reads them.

        Args:
            modules: all modules of the verb, of every store.
            functions: dotted names of the functions that it calls.
            entry: module and name of the plugin class.
        """
        hot: set[str] = set()
        methods = {name.rpartition(".")[0] for name in functions}
        waiting = [entry, *(key for key in self.classes if ".".join(key) in methods)]

        def read(module: str, node: ast.AST, shadowed: "set[str]") -> None:
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id not in shadowed:
                # An exception that a function names is seldom wanted, one that a class or module names always.
                if not shadowed or not self._is_exception(*self._definer(module, node.id)):
                    waiting.append((module, node.id))
            elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                waiting.append((".".join(self._definer(module, node.value.id)), node.attr))
            elif isinstance(node, ast.ImportFrom):
                waiting.extend((node.module or "", alias.name) for alias in node.names)

        def function(module: str, node: ast.FunctionDef, path: str) -> None:
            for outer in [*node.decorator_list, *node.args.defaults, *node.args.kw_defaults]:
                for inner in ast.walk(outer) if outer is not None else ():
                    read(module, inner, set())
            if f"{path}.{node.name}" in functions:
                shadowed = {"", *locals_of(node)}
                for inner in read_when_all_goes_well(ast.Module(node.body, [])):
                    read(module, inner, shadowed)

        def block(module: str, body: "list[ast.stmt]", path: str) -> None:
            for node in body:
                if isinstance(node, ast.FunctionDef):
                    function(module, node, path)
                elif isinstance(node, ast.ClassDef):
                    if (module, node.name) not in self.classes or path != module:
                        block(module, _outside_of_functions(node), path)
                        block(module, node.body, f"{path}.{node.name}")
                elif not isinstance(node, ast.ImportFrom) and not is_type_checking(node):
                    for inner in ast.walk(node):
                        read(module, inner, set())

        for module in modules:
            block(module, self.trees[module].body, module)
        while waiting:
            module, name = self._definer(*waiting.pop())
            dotted = f"{module}.{name}"
            if (module, name) in self.classes and dotted not in hot:
                hot.add(dotted)
                definition = self._definition(module, name)
                block(module, _outside_of_functions(definition), module)
                block(module, definition.body, dotted)
        return hot

    def module_of(self, function: str) -> str:
        """Return the module that a dotted name of a function lies in."""
        while function not in self.trees:
            function = function.rpartition(".")[0]
        return function

    def classes_seen_by(self, module: str) -> "frozenset[str]":
        """Return the dotted names of the classes that may be late and have a name in a module."""
        names = {*self.imports[module], *(name for definer, name in self.classes if definer == module)}
        seen = {self._definer(module, name) for name in names}
        return frozenset(".".join(key) for key in seen if key in self.classes)

    def without_late_parts(self, module: str, functions: "set[str]", classes: "set[str]") -> ast.Module:
        """Return a module for a group.

        Args:
            module: its name.
            functions: dotted names of the functions that stay.
            classes: dotted names of the classes that stay, of all modules.
        """
        late = {key for key in self.classes if ".".join(key) not in classes}
        tree = self._with_late_classes(module, copy.deepcopy(self.trees[module]), late)
        body: list[ast.stmt] = []
        lost = False
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and (module, node.name) in late:
                lost = True
                continue
            if isinstance(node, ast.ImportFrom):
                kept = [alias for alias in node.names if self._definer(node.module or "", alias.name) not in late]
                lost = lost or len(kept) < len(node.names)
                node.names = kept
                if not kept:
                    continue
            body.append(node)
        if lost:
            body.insert(0, _assign("__getattr__", ast.Name("__late_attribute__", ast.Load())))
        return ast.Module(self._without_late_functions(body, module, functions), [])

    def _find_classes(self) -> "dict[tuple[str, str], int]":
        """Number the classes that may be late."""
        found: list[tuple[str, str]] = []
        for module, tree in self.trees.items():
            once = {name for name, count in bound(tree.body).items() if count == 1}
            rebound = {
                name for node in ast.walk(tree) if isinstance(node, (ast.Global, ast.Nonlocal)) for name in node.names
            }
            found += [
                (module, node.name)
                for node in tree.body
                if isinstance(node, ast.ClassDef) and node.name in once - rebound and not node.decorator_list
            ]
        # An attribute is asked for by its name alone.
        names = [name for _, name in found]
        return {key: number for number, key in enumerate(key for key in found if names.count(key[1]) == 1)}

    def _find_functions(self, module: str, body: "list[ast.stmt]", path: "tuple[str, ...]", whole: ast.Module) -> None:
        """Number the functions that may be late: alone under their name, defaults that are constants."""
        names = [node.name for node in body if isinstance(node, ast.FunctionDef)]
        for node in body:
            if isinstance(node, ast.ClassDef):
                self._find_functions(module, node.body, (*path, node.name), whole)
            elif isinstance(node, ast.FunctionDef) and names.count(node.name) == 1 and _stands_alone(node):
                try:
                    defaults = tuple(ast.literal_eval(x) for x in node.args.defaults)
                    pairs = zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)
                    keywords = {argument.arg: ast.literal_eval(x) for argument, x in pairs if x is not None}
                except ValueError:
                    continue
                number = len(self.classes) + len(self.functions)
                self.functions[".".join((module, *path, node.name))] = number
                names_to_it = (*path, node.name)
                part = Part(number, module, node.name, False, whole, names_to_it, defaults or None, keywords or None)
                self.parts.append(part)

    def _without_late_functions(self, body: "list[ast.stmt]", path: str, functions: "set[str]") -> "list[ast.stmt]":
        """Return the statements of a module or class with late functions replaced."""
        kept: list[ast.stmt] = []
        for node in body:
            if isinstance(node, ast.ClassDef):
                node.body = self._without_late_functions(node.body, f"{path}.{node.name}", functions)
            elif isinstance(node, ast.FunctionDef):
                dotted = f"{path}.{node.name}"
                if dotted in self.functions and dotted not in functions:
                    value: ast.expr = _call("__late__", self.functions[dotted])
                    for decorator in reversed(node.decorator_list):
                        value = ast.Call(decorator, [value], [])
                    kept.append(_assign(node.name, value))
                    continue
            kept.append(node)
        return kept

    def _with_late_classes(self, module: str, tree: "Any", late: "set[tuple[str, str]] | None" = None) -> "Any":
        """Replace the names of late classes in the functions of a tree; all classes that may be late by default."""
        for node in _functions(tree):
            shadowed = locals_of(node)
            body = _LateNames(self, module, shadowed, set(self.classes) if late is None else late)
            node.body = [body.visit(statement) for statement in node.body]
        if late is None and isinstance(tree, ast.ClassDef):
            # The class is made when others may not be there yet.
            outside = _LateNames(self, module, set(), set(self.classes))
            tree.bases = [outside.visit(base) for base in tree.bases]
            for index, statement in enumerate(tree.body):
                if isinstance(statement, ast.FunctionDef):
                    statement.decorator_list = [outside.visit(decorator) for decorator in statement.decorator_list]
                    statement.args = outside.visit(statement.args)
                else:
                    tree.body[index] = outside.visit(statement)
        return tree

    def _is_exception(self, module: str, name: str) -> bool:
        """Whether a name stands for an exception class of ours, or of Python's."""
        if (module, name) not in self.classes:
            found = getattr(builtins, name, None)
            return isinstance(found, type) and issubclass(found, BaseException)
        definition = self._definition(module, name)
        bases = [base.id for base in definition.bases if isinstance(base, ast.Name)]
        return any(self._is_exception(*self._definer(module, base)) for base in bases)

    def _definition(self, module: str, name: str) -> ast.ClassDef:
        return next(node for node in self.trees[module].body if isinstance(node, ast.ClassDef) and node.name == name)

    def _definer(self, module: str, name: str) -> "tuple[str, str]":
        """Return the module that defines what a module calls `name`, and its name there."""
        while name in self.imports.get(module, {}):
            module, name = self.imports[module][name]
        return module, name


class _LateNames(ast.NodeTransformer):
    """Puts a fetch where a late class is named."""

    def __init__(self, late: Late, module: str, shadowed: "set[str]", classes: "set[tuple[str, str]]") -> None:
        self.late = late
        self.module = module
        self.shadowed = shadowed
        self.classes = classes

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """Replace one name."""
        if isinstance(node.ctx, ast.Load) and node.id not in self.shadowed:
            definer = self.late._definer(self.module, node.id)
            if definer in self.classes and definer in self.late.classes:
                return ast.copy_location(_call("__late_class__", self.late.classes[definer]), node)
        return node


def _functions(tree: "Any") -> "list[ast.FunctionDef]":
    """Return the functions of a module or class that are in no other function."""
    found = []
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            found.append(node)
        elif isinstance(node, ast.ClassDef):
            found += _functions(node)
    return found


def _stands_alone(node: ast.FunctionDef) -> bool:
    """Whether a function works outside of its class: it does not read the class cell, its names are not mangled."""
    for inner in ast.walk(node):
        if isinstance(inner, ast.Name) and inner.id in ("super", "__class__"):
            return False
        names = [getattr(inner, "id", ""), getattr(inner, "attr", ""), getattr(inner, "arg", "") or ""]
        if any(name.startswith("__") and not name.endswith("__") for name in names):
            return False
    return True


def _outside_of_functions(node: ast.ClassDef) -> "list[ast.stmt]":
    """Return the bases and keywords of a class as statements."""
    return [ast.Expr(value) for value in [*node.bases, *(keyword.value for keyword in node.keywords)]]


def _call(function: str, number: int) -> ast.Call:
    return ast.Call(ast.Name(function, ast.Load()), [ast.Constant(number)], [])


def _assign(name: str, value: ast.expr) -> ast.Assign:
    return ast.Assign([ast.Name(name, ast.Store())], value)
