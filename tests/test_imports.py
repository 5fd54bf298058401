"""What core's calls load imports builtin C modules, msgspec and its own kind only; the rest loads when needed.

Which layer may import which is checked by import-linter (`lint-imports`, pyproject.toml).
"""

import ast
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.calls import CLASSES, SOURCES, plugin_class

PACKAGE = SOURCES / "resource_extend"

# Loaded for rare things, by an import inside a function: TLS, a login, all of YAML, what etcd's errors need.
RARE = {"yaml_full.py", "store/diagnosis.py", "store/login.py", "store/tls.py", "store/token.py"}
HOT = sorted(
    path.relative_to(PACKAGE).as_posix()
    for pattern in ("*.py", "answers/*.py", "store/*.py", "gpu/*.py", "storage/*.py")
    for path in PACKAGE.glob(pattern)
)

BUILTIN = {"_socket", "_thread", "errno", "marshal", "posix", "select", "sys", "time"}
# The packed start has a stand-in for msgspec with these names only.
MSGSPEC = {
    "msgspec": {
        "DecodeError",
        "Raw",
        "Struct",
        "UNSET",
        "UnsetType",
        "ValidationError",
        "convert",
        "defstruct",
        "to_builtins",
    },
    "msgspec.json": {"Decoder", "Encoder", "decode", "encode"},
}


def at_import(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Give the statements that run when a module is imported; those for type checkers do not."""
    for statement in body:
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        if isinstance(statement, ast.If) and ast.unparse(statement.test) == "TYPE_CHECKING":
            continue
        yield statement
        for inner in ("body", "orelse", "finalbody", "handlers"):
            for each in getattr(statement, inner, []):
                yield from at_import(each.body if isinstance(each, ast.ExceptHandler) else [each])


def imports(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Give (module, name) of every import that runs when a module is imported."""
    for statement in at_import(tree.body):
        if isinstance(statement, ast.Import):
            yield from ((alias.name, "") for alias in statement.names)
        elif isinstance(statement, ast.ImportFrom):
            yield from ((statement.module or "", alias.name) for alias in statement.names)


def is_hot(module: str, name: str) -> bool:
    """Tell whether an import of our own is one of a hot module."""
    as_path = module.replace(".", "/").removeprefix("resource_extend").removeprefix("/")
    for candidate in (f"{as_path}/{name}.py".removeprefix("/"), f"{as_path}.py"):
        if candidate in RARE:
            return False
    return as_path.partition("/")[0] not in ("kubernetes", "operate", "conformance")


@pytest.mark.parametrize("path", HOT)
def test_imports_of_hot_modules(path: str) -> None:
    """A hot module imports nothing that costs a start, and of msgspec what the packed start has."""
    if path in RARE:
        return
    for module, name in imports(ast.parse((PACKAGE / path).read_text())):
        if module.split(".")[0] == "resource_extend":
            assert is_hot(module, name), f"{path} imports {module} {name}"
        elif module in MSGSPEC:
            assert name in MSGSPEC[module], f"{path} imports {name} of {module}"
        else:
            assert module in BUILTIN, f"{path} imports {module}"


def test_the_walk_sees_what_runs() -> None:
    """Imports at the top, in a branch and in a class are seen; those in functions and for type checkers are not."""
    text = """
import a
try:
    import b
except ImportError:
    from c import d
if TYPE_CHECKING:
    import no
class C:
    import e
    def method(self):
        import no
def function():
    import no
"""
    assert [("a", ""), ("b", ""), ("c", "d"), ("e", "")] == list(imports(ast.parse(text)))


PROBE = """
import sys
sys.path[:0] = {path!r}
module, name, verb, request, config = sys.argv[1:]
before = set(sys.modules)
import time
from resource_extend.process import respond
plugin = getattr(__import__(module, fromlist=[name]), name)
respond(plugin, ["--config", config, verb], {{}}, request.encode, time.monotonic())
loaded = set(sys.modules) - before
sys.stdout.write(" ".join(sorted(loaded)))
"""


@pytest.mark.parametrize("kind", sorted(CLASSES))
def test_what_a_call_loads(kind: str, tmp_path: Path) -> None:
    """From source, an ordinary call of a verb over SQLite loads of the standard library what msgspec itself loads."""
    import msgspec
    import yaml

    site = [str(SOURCES), *{str(Path(str(module.__file__)).parents[1]) for module in (msgspec, yaml)}]
    (tmp_path / "config.yaml").write_text("sqlite: {path: records.db}\n")
    baseline = set(_loaded(site, "import msgspec, msgspec.json, time\nsys.stdout.write(' '.join(sys.modules))", []))
    request = {"nodename": "n", "nodenames": ["n"], "nodes": [{"nodename": "n"}]}
    module, name = CLASSES[kind]
    for verb in [*_verbs(kind), "calculate-remap"]:
        arguments = [module, name, verb, json.dumps(request if verb != "calculate-remap" else {}), "config.yaml"]
        loaded = _loaded(site, PROBE.format(path=site), arguments, tmp_path)
        ours = {each for each in loaded if each.partition(".")[0] == "resource_extend"}
        strange = set(loaded) - ours - baseline - BUILTIN - {"_sqlite3"}
        assert set() == strange, f"{verb} loads {strange}"
        assert not {"resource_extend.yaml_full", "resource_extend.exact", "resource_extend.about"} & ours, verb


def _verbs(kind: str) -> list[str]:
    from resource_extend.verbs import listed

    return listed(plugin_class(kind))


def _loaded(site: list[str], program: str, arguments: list[str], folder: Path | None = None) -> list[str]:
    """Run a program in a bare interpreter and return the words that it prints."""
    program = f"import sys\nsys.path[:0] = {site!r}\n{program}"
    command = [sys.executable, "-I", "-S", "-c", program, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, check=False)
    assert "" == done.stderr
    return done.stdout.split()
