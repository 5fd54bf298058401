"""Which modules of our own packages a program can reach, read from the import statements of their sources."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.machinery import PathFinder
from pathlib import Path


@dataclass(frozen=True)
class SourceModule:
    """One module: its dotted name, where its source lies, where it goes in the archive."""

    name: str
    source: Path
    is_package: bool

    @property
    def archive_path(self) -> str:
        """The path below site-packages."""
        path = self.name.replace(".", "/")
        return f"{path}/__init__.py" if self.is_package else f"{path}.py"


def reachable(entries: "list[str]", search_path: "list[str]") -> "dict[str, SourceModule]":
    """Return all modules that the entry modules import, at their top or in any function, by name.

    Only the top-level packages of the entries count as our own. What stands under `if TYPE_CHECKING:` is not imported.

    Raises:
        ModuleNotFoundError: an entry, or something that one imports from our own packages, does not exist.
    """
    own = {entry.partition(".")[0] for entry in entries}
    found: dict[str, SourceModule] = {}
    waiting = list(entries)
    while waiting:
        name = waiting.pop()
        if name in found or name.partition(".")[0] not in own:
            continue
        module = find(name, search_path)
        if module is None:
            raise ModuleNotFoundError(f"no module {name}", name=name)
        found[name] = module
        parent = name.rpartition(".")[0]
        waiting += [parent] if parent else []
        for imported, members in imports(ast.parse(module.source.read_bytes()), name, module.is_package):
            waiting.append(imported)
            # `from package import x`: x is a module or a name in the package.
            if imported.partition(".")[0] in own:
                waiting += [f"{imported}.{x}" for x in members if find(f"{imported}.{x}", search_path)]
    return dict(sorted(found.items()))


def find(name: str, search_path: "list[str]") -> SourceModule | None:
    """Find a module's source without importing anything."""
    path: list[str] | None = search_path
    parts = name.split(".")
    for depth in range(1, len(parts) + 1):
        spec = PathFinder.find_spec(".".join(parts[:depth]), path)
        if spec is None or (depth < len(parts) and spec.submodule_search_locations is None):
            return None
        path = list(spec.submodule_search_locations or ())
    if spec is None or not spec.origin or not spec.origin.endswith(".py"):
        return None
    return SourceModule(name, Path(spec.origin), spec.submodule_search_locations is not None)


def imports(tree: ast.AST, name: str, is_package: bool) -> "Iterator[tuple[str, list[str]]]":
    """Yield (module, names taken from it) of each import statement that can run."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, []
        elif isinstance(node, ast.ImportFrom):
            package = name if is_package else name.rpartition(".")[0]
            for _ in range(node.level - 1):
                package = package.rpartition(".")[0]
            module = ".".join(part for part in (package if node.level else "", node.module or "") if part)
            yield module, [alias.name for alias in node.names]
        elif isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            for other in node.orelse:
                yield from imports(ast.Module([other], []), name, is_package)
        else:
            yield from imports(node, name, is_package)
