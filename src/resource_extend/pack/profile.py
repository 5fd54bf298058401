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
SURROUNDINGS = (PLAIN, "etcd name", "etcd login", "etcd tls")
"""An etcd that wants nothing, at an address or a name; one that wants user and password; one with TLS both ways."""


def read() -> "dict[str, dict[str, Run]]":
    """Return surroundings -> verb -> what it runs there; the functions of all but `PLAIN` are not known."""
    content = json.loads(FILE.read_text(encoding="utf-8"))
    return {
        name: {verb: Run(run["modules"], run.get("functions", [])) for verb, run in verbs.items()}
        for name, verbs in content.items()
    }


def text(traces: "dict[str, list[dict[str, Run]]]") -> str:
    """Return the content of the file for traces of several plugins in each of the surroundings."""
    joined = {name: _joined(each) for name, each in traces.items()}
    content: dict[str, dict[str, dict[str, list[str]]]] = {}
    for name, verbs in joined.items():
        for verb, run in verbs.items():
            found = {"modules": run.modules, "functions": run.functions}
            if name != PLAIN:  # Which of the functions run there depends on how fast the peer is.
                plain = joined[PLAIN].get(verb, Run([], []))
                found = {"modules": [each for each in run.modules if each not in plain.modules]}
            content.setdefault(name, {})[verb] = found
    return json.dumps(content, indent=1, sort_keys=True) + "\n"


def _joined(traces: "list[dict[str, Run]]") -> "dict[str, Run]":
    """Join traces of several plugins: what is common to them and theirs alone."""
    shared = set.intersection(*({name for run in runs.values() for name in run.modules} for runs in traces))
    joined: dict[str, Run] = {}
    for runs in traces:
        for verb, run in runs.items():
            modules = [name for name in run.modules if is_of_stores(name)]
            if modules:
                before = joined.get(verb, Run([], []))
                mine = {name for name in run.functions if _module_of(name, shared)}
                every = list(dict.fromkeys(before.modules + modules))
                joined[verb] = Run(every, sorted({*before.functions, *mine}))
    return joined


def _module_of(function: str, modules: "set[str]") -> str:
    """Return the module that a dotted name of a function or method lies in; empty when it is in none of them."""
    while function and function not in modules:
        function = function.rpartition(".")[0]
    return function
