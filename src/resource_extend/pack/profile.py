"""How verbs use etcd, recorded on a real one (`scripts/profile`), because a build needs no etcd.

The recording only says which modules and functions come with a verb at once. What it misses is fetched when it is
called, so an old recording makes calls slower and never wrong.
"""

import json
from pathlib import Path

from resource_extend.pack.trace import Run, is_of_stores

FILE = Path(__file__).with_name("etcd_profile.json")


def read() -> "dict[str, Run]":
    """Return verb -> what it runs on etcd."""
    content = json.loads(FILE.read_text(encoding="utf-8"))
    return {verb: Run(run["modules"], run["functions"]) for verb, run in content.items()}


def text(traces: "list[dict[str, Run]]") -> str:
    """Return the content of the file for traces of several plugins on etcd: what is common to them and theirs alone."""
    shared = set.intersection(*({name for run in runs.values() for name in run.modules} for runs in traces))
    joined: dict[str, dict[str, list[str]]] = {}
    for runs in traces:
        for verb, run in runs.items():
            modules = [name for name in run.modules if is_of_stores(name)]
            if modules:
                found = joined.setdefault(verb, {"modules": [], "functions": []})
                found["modules"] = list(dict.fromkeys(found["modules"] + modules))
                mine = {name for name in run.functions if _module_of(name, shared)}
                found["functions"] = sorted({*found["functions"], *mine})
    return json.dumps(joined, indent=1, sort_keys=True) + "\n"


def _module_of(function: str, modules: "set[str]") -> str:
    """Return the module that a dotted name of a function or method lies in; empty when it is in none of them."""
    while function and function not in modules:
        function = function.rpartition(".")[0]
    return function
