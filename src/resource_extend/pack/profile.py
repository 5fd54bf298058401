"""How verbs use etcd, recorded on a real one (`scripts/profile`), because a build needs no etcd.

The recording only says which modules and functions come with a verb at once. What it misses is fetched when it is
called, so an old recording makes calls slower and never wrong. It has a part for each of `SURROUNDINGS`; all but the
first part say only what comes in addition.
"""

import json
from pathlib import Path

from resource_extend.pack.trace import Run, is_of_stores

FILE = Path(__file__).with_name("etcd_profile.json")
PLAIN = "etcd"
SURROUNDINGS = (PLAIN, "etcd login", "etcd tls")
"""An etcd that wants nothing, one that wants user and password, one with TLS and client certificates."""


def read() -> "dict[str, dict[str, Run]]":
    """Return surroundings -> verb -> what it runs there."""
    content = json.loads(FILE.read_text(encoding="utf-8"))
    return {
        name: {verb: Run(run["modules"], run["functions"]) for verb, run in verbs.items()}
        for name, verbs in content.items()
    }


def text(traces: "dict[str, list[dict[str, Run]]]") -> str:
    """Return the content of the file for traces of several plugins in each of the surroundings."""
    joined = {name: _joined(each) for name, each in traces.items()}
    for name, verbs in joined.items():
        if name != PLAIN:
            for verb, run in verbs.items():
                for what, names in joined[PLAIN].get(verb, {}).items():
                    run[what] = [each for each in run[what] if each not in names]
    return json.dumps(joined, indent=1, sort_keys=True) + "\n"


def _joined(traces: "list[dict[str, Run]]") -> "dict[str, dict[str, list[str]]]":
    """Join traces of several plugins: what is common to them and theirs alone."""
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
    return joined


def _module_of(function: str, modules: "set[str]") -> str:
    """Return the module that a dotted name of a function or method lies in; empty when it is in none of them."""
    while function and function not in modules:
        function = function.rpartition(".")[0]
    return function
