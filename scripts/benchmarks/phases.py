"""Where the time of one call goes: a plugin file is started as its first line does, with marks at some functions.

The marks stand in for builtin functions and note the time before or after they do what they are for. They are set in
the same interpreter before the code of the first line, and that time counts nowhere. What is before the first mark is
the kernel's and the interpreter's, what is after the last is the end of the process.
"""

import json
import statistics
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.harness import Case, check, command_of, spawn

PHASES = (
    "interpreter starts",
    "launcher",
    "msgspec's core is loaded",
    "the verb's modules run",
    "settings, the store's modules",
    "request is decoded",
    "store is asked",
    "answer is made and written",
    "process ends",
)

Mark = tuple[str, float]

_MARKS = Path(__file__).parent / "marks.py"
_COMPILE = "import marshal,sys;marshal.dump(compile(sys.stdin.read(),'marks','exec'),sys.stdout.buffer)"


def split(started: float, marks: Sequence[Mark], ended: float) -> dict[str, float]:
    """Divide the time of a call among the phases.

    Args:
        started: when the process was started, in seconds of the clock of the marks.
        marks: name and time, in order.
        ended: when it had ended.

    Returns:
        Milliseconds of each phase, in order.

    Raises:
        ValueError: the call did not take the road of a packed file that asks a store.
    """
    first: dict[str, float] = {}
    last: dict[str, float] = {}
    for name, when in marks:
        first.setdefault(name, when)
        last[name] = when
    try:
        borders = [
            (started, first["begin"]),
            (first["marked"], first["core"]),
            (first["core"], first["loaded"]),
            (first["loaded"], first["main"]),
            (first["main"], first["request"]),
            (first["request"], first["connect"]),
            (first["connect"], last["received"]),
            (last["received"], first["end"]),
            (first["end"], ended),
        ]
    except KeyError as missing:
        raise ValueError(f"the call never came to {missing}") from None
    return {name: (until - since) * 1e3 for name, (since, until) in zip(PHASES, borders, strict=True)}


def watch(case: Case, count: int, folder: Path) -> Mapping[str, float]:
    """Run the only execution of a case with marks, several times; return the median milliseconds of each phase."""
    (execution,) = case.executions
    interpreter, option, *rest = command_of(execution)
    code, report = folder / "marks", folder / "report"
    with _MARKS.open("rb") as source, code.open("wb") as target:
        subprocess.run([interpreter, "-I", "-S", "-c", _COMPILE], stdin=source, stdout=target, check=True)
    before = (
        "import time;marks=[('begin',time.perf_counter())];"
        f"exec(__import__('marshal').load(open({str(code)!r},'rb')),{{'marks':marks,'report':{str(report)!r}}});"
    )
    watched = execution._replace(arguments=(interpreter, "-ISc" + before + option.removeprefix("-ISc"), *rest))
    runs = []
    for _ in range(count):
        case.prepare()
        finished = spawn(watched)
        ended = time.perf_counter()
        check(case.name, watched, finished)
        runs.append(split(ended - finished.wall, json.loads(report.read_bytes()), ended))
    return {name: statistics.median(run[name] for run in runs) for name in PHASES}
