"""What each verb runs, found by running it, so that the packed file can start that without searching.

Verbs run on one node in a private SQLite file, each in a process of its own. How they use etcd is known from a
recording (`profile`), because a build needs no etcd; a run against one that refuses would show only how calls fail.
"""

import ast
import json
import marshal
import os
import subprocess
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from resource_extend.pack.interpreters import Interpreter

# Members that a verb does not know are ignored, so one request serves them all.
_REQUEST = {"nodename": "n", "nodenames": ["n"], "nodes": [{"podname": "p", "nodename": "n"}], "deploy_count": 1}
# Each of these costs a call more than all that it does itself.
FORBIDDEN = frozenset(
    "argparse ast asyncio collections contextlib copy dataclasses datetime decimal enum functools hpack http importlib "  # noqa: SIM905
    "inspect json logging os pathlib re runpy shutil socket sqlite3 ssl string subprocess tempfile threading traceback "
    "types typing uuid warnings weakref yaml".split()
)
_STORES = "resource_extend.store"
# (source, first line, name) -> dotted name of a function.
Names = dict[tuple[Path, int, str], str]
# What a verb asks a store for.
_ASKING = ("get", "get_many", "update", "delete")
LATE = "late"
SHARED = "shared"


@dataclass(frozen=True)
class Run:
    """What ran: modules, each behind those that it imports, and functions, by dotted name.

    `late` are those of the modules that ran only after the store had been asked.
    """

    modules: list[str]
    functions: list[str]
    late: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class VerbSet:
    """What a verb runs at once, and in groups what comes when the first of it is imported.

    The groups are each store's modules, by name of the surroundings, under `SHARED` what several surroundings of etcd
    need beside the plain one's, and under `LATE` what runs while the store is at work. Of `whole` modules all functions
    come, for it is not known which of them run.
    """

    run: Run
    groups: dict[str, list[str]] = field(default_factory=dict)
    whole: list[str] = field(default_factory=list)

    def as_json(self) -> "list[object]":
        """Return it as `compiler` reads it."""
        return [self.run.modules, self.run.functions, self.whole, self.groups]


# Runs as a packed file does, on the trimmed msgspec and with nothing else imported.
_RUN = '''
import marshal, posix, sys
from _frozen_importlib_external import PathFinder

request = marshal.loads(bytes.fromhex(sys.argv.pop()))
site_packages, own = request["site_packages"], request["own"]
stores = site_packages + request["stores"]
sys.path.insert(0, site_packages)
ran, called, before = [], {}, []

class Recorder:
    """Notes each of our own modules when its code has run."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name.partition(".")[0] not in own:
            return None
        spec = PathFinder.find_spec(name, path or [site_packages])
        if spec is not None and spec.loader is not None:
            run = spec.loader.exec_module
            def exec_module(module):
                run(module)
                ran.append(name)
            spec.loader.exec_module = exec_module
        return spec

def note(frame, event, argument):
    """Note each of our own functions when it is called."""
    if event == "call":
        code = frame.f_code
        if code.co_filename.startswith(site_packages):
            if not before and code.co_name in request["asking"] and code.co_filename.startswith(stores):
                before.append(len(ran))
            called[code.co_filename, code.co_firstlineno, code.co_name] = True

def leave(status):
    sys.setprofile(None)
    with open(request["result"], "wb") as file:
        marshal.dump([ran, list(called), sorted(sys.modules), ran[before[0]:] if before else []], file)
    really_leave(status)

extension = {"__name__": "extension"}
with open(site_packages + "/resource_extend/packed/extension.py") as file:
    exec(file.read(), extension)
core = posix.open(request["core"], posix.O_RDONLY)
extension["expose"](extension["create_trimmed"](core))
really_leave, posix._exit = posix._exit, leave
sys.meta_path.insert(0, Recorder)
sys.setprofile(note)
from resource_extend.process import main
__import__(request["plugin"])
main(getattr(sys.modules[request["plugin"]], request["plugin_class"]))
'''


def is_of_stores(module: str) -> bool:
    """Tell whether a module is the package of the stores or in it."""
    return f"{module}.".startswith(f"{_STORES}.")


def sets(embedded: "dict[str, Run]", etcd: "dict[str, dict[str, Run]]", plain: str) -> "dict[str, VerbSet]":
    """Return what each verb runs, from a trace on SQLite and the recordings of etcds.

    Args:
        embedded: verb -> what it runs on SQLite.
        etcd: surroundings -> verb -> what it runs there.
        plain: the surroundings whose modules all the others need too.
    """
    found = {}
    for verb, run in embedded.items():
        remote = {name: verbs.get(verb, Run([], [])) for name, verbs in etcd.items()}
        both = {name for name in run.modules if name in remote[plain].modules}
        base = [name for name in run.modules if not is_of_stores(name) or name in both]
        groups = {"sqlite": [name for name in run.modules if name not in base]}
        groups[plain] = [name for name in remote[plain].modules if name not in base]
        more = {
            name: [module for module in other.modules if module not in base + groups[plain]]
            for name, other in remote.items()
            if name != plain
        }
        every = [module for modules in more.values() for module in modules]
        groups[SHARED] = [module for module in dict.fromkeys(every) if every.count(module) > 1]
        groups.update(
            {name: [each for each in modules if each not in groups[SHARED]] for name, modules in more.items()}
        )
        groups[LATE] = [name for name in base if name in run.late]
        base = [name for name in base if name not in run.late]
        whole = {*every}
        functions = {*run.functions, *remote[plain].functions}
        found[verb] = VerbSet(Run(base, sorted(functions)), groups, sorted(whole))
    return found


def trace(
    interpreter: Interpreter,
    site_packages: Path,
    names: "Names",
    plugin: tuple[str, str],
    session: "list[tuple[str, object]]",
    configuration: str,
) -> "dict[str, Run]":
    """Run a plugin's verbs and return what each of them runs; "" stands for all other arguments.

    Args:
        interpreter: what to run them with.
        site_packages: our own packages and the third-party ones.
        names: the names of our own modules' functions.
        plugin: module and class.
        session: (verb, request) in the order in which to run them; empty for each verb once.
        configuration: the text of the plugin's configuration file, `{folder}` for a private folder.

    Raises:
        RuntimeError: the plugin does not start, a call of the session fails, or it imports what no hot module may.
    """
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        (work / "plugin.yaml").write_text(configuration.format(folder=folder), encoding="utf-8")
        order = {
            "site_packages": str(site_packages),
            "own": sorted({name.partition(".")[0] for name in names.values()}),
            "core": str(site_packages / f"msgspec/_core{interpreter.suffix}"),
            "plugin": plugin[0],
            "plugin_class": plugin[1],
            "stores": f"/{_STORES.replace('.', '/')}/",
            "asking": _ASKING,
            "result": str(work / "result"),
        }
        command = [interpreter.path, "-I", "-S", "-c", _RUN, "--config", str(work / "plugin.yaml")]

        def run(verb: str, request: object) -> "tuple[Run, bytes]":
            done = subprocess.run(
                [*command, verb, marshal.dumps(order, 2).hex()],
                input=json.dumps(request).encode(),
                capture_output=True,
                check=False,
                cwd=work,
                env={"PATH": os.environ.get("PATH", ""), "HOME": folder},
                timeout=60,
            )
            try:
                ran, called, loaded, late = marshal.loads((work / "result").read_bytes())  # noqa: S302 - written just now
            except OSError:
                raise RuntimeError(f"{':'.join(plugin)} does not start: {done.stderr.decode().strip()}") from None
            if done.returncode and (session or verb == "verbs"):
                raise RuntimeError(f"{':'.join(plugin)} fails in {verb}: {done.stderr.decode().strip()}")
            if slow := sorted(FORBIDDEN.intersection(loaded)):
                raise RuntimeError(f"{':'.join(plugin)} imports {', '.join(slow)} in {verb}: no hot module may")
            found = (names.get((Path(path), line, name)) for path, line, name in called)
            return Run(ran, sorted({name for name in found if name}), late), done.stdout

        least, answer = run("verbs", {})
        runs = {"": least, "verbs": least, "name": run("name", {})[0]}
        # Nodes first: other verbs go further when there is one.
        each = [(verb, _REQUEST) for verb in sorted(json.loads(answer), key=lambda verb: verb != "add-node")]
        for verb, request in session or each:
            now, before = run(verb, request)[0], runs.get(verb, Run([], []))
            early = {name for each in (now, before) for name in each.modules if name not in each.late}
            every = list(dict.fromkeys(before.modules + now.modules))
            functions = sorted({*before.functions, *now.functions})
            runs[verb] = Run(every, functions, [name for name in every if name not in early])
        return runs


def function_names(modules: "dict[str, Path]") -> "Names":
    """Return the names of the functions of modules and their classes. Not for several threads: `ast` is not."""
    names: Names = {}

    def walk(body: "list[ast.stmt]", path: str, source: Path) -> None:
        for node in body:
            if isinstance(node, ast.FunctionDef):
                line = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
                names[source, line, node.name] = f"{path}.{node.name}"
            elif isinstance(node, ast.ClassDef):
                walk(node.body, f"{path}.{node.name}", source)
            else:
                for block in ("body", "orelse", "handlers", "finalbody"):
                    walk(getattr(node, block, []), path, source)

    for name, source in modules.items():
        walk(ast.parse(source.read_bytes()).body, name, source)
    return names
