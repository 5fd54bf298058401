"""Functions and classes that a start leaves out behave as those that it does not."""

import json
from pathlib import Path
from typing import Any

import pytest

from resource_extend.pack.interpreters import Interpreter
from support.packed import INTERPRETERS, call_as_script, call_with, watch

CASES = {
    "nothing": "nothing",
    "function": "unseen text",
    "defaults": "(1, 2, 'c', (), (1, 2), [])(1, 3, 'x', (4,), (), ['e'])",
    "module default": "3",
    "generator": "[0, 1, 2]",
    "closure": "5",
    "exceptions": "fault 0 1,deep text,deepest 2",
    "shadowed": "xFault",
    "attributes": "(1, Line(points=[Point(x=1, y=2)]), True, 1)",
    "inside": "[True, True, []]",
    "objects": "[12, 4, 1, 112, 13, True, 'Child', 12]",
    "names": "oddities.parts Base (<class 'oddities.faults.Fault'>, <class 'Exception'>)",
}


def request(case: str) -> bytes:
    """Return the request that runs a case."""
    return json.dumps({"nodenames": [case]}).encode()


@pytest.mark.parametrize("interpreter", INTERPRETERS, ids=lambda each: each.version)
@pytest.mark.parametrize("case", CASES)
def test_case(case: str, interpreter: Interpreter, oddities: Path, tmp_path: Path) -> None:
    """A case that the build never ran gives what it gives on the ordinary road, from the very source."""
    environ = {"HOME": str(oddities.parent)}
    expected: Any = {"nodename": CASES[case], "priority": 0}

    fast = call_with(interpreter.path, oddities, ["get-most-idle-node"], request(case), environ=environ)
    assert (0, b"") == (fast.status, fast.stderr)
    assert expected == json.loads(fast.stdout)
    if interpreter is INTERPRETERS[0]:
        assert fast == call_as_script(interpreter.path, oddities, ["get-most-idle-node"], request(case), None, environ)


def test_only_what_is_used_is_fetched(oddities: Path, tmp_path: Path) -> None:
    """The call that the build ran fetches nothing; another one fetches what it calls."""
    python = INTERPRETERS[0].path
    environ = {"HOME": str(tmp_path)}
    call_with(python, oddities, ["name"], environ=environ)

    def fetched(case: str) -> set[str]:
        return set(watch(python, oddities, ["get-most-idle-node"], request(case), tmp_path / "report", environ)[2])

    assert set() == fetched("nothing")
    assert {"oddities.plugin._unseen"} == fetched("function")
    assert {"oddities.parts.adder"} == fetched("closure")
