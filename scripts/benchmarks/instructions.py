"""The guard of the start: instructions of a call, as callgrind counts them, over those of the bare interpreter.

Instructions show what the noise of a machine hides: they repeat within half a percent. They see neither waiting nor
page faults. Hash randomisation moves them a little, so each command runs three times and its lowest count is taken.
Exit status 1 when a call is above its limit.
"""

import argparse
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from benchmarks.calls import cases
from benchmarks.harness import Case, Finished, check, command_of, once, spawn
from benchmarks.report import table
from benchmarks.summary import BARE
from benchmarks.surroundings import ROOT, Surroundings, build_if_stale

TIMES = 3


class Limit(NamedTuple):
    """What is wanted of a call and what is let pass, as ratios to the bare interpreter's instructions.

    Where nothing is promised, or the goal is not reached yet, the limit is what has been reached and two percent.
    """

    goal: float | None
    limit: float


LIMITS = {
    "gpu verbs": Limit(None, 0.905),
    "gpu calculate-deploy, etcd": Limit(1.03, 1.025),
    "storage calculate-deploy, etcd": Limit(1.10, 1.13),
    "gpu set-node-resource-usage, etcd": Limit(None, 1.045),
    "storage set-node-resource-usage, etcd": Limit(None, 1.085),
}


def count(case: Case) -> int:
    """Return how many instructions the only execution of a case takes, and check its answer."""
    case.prepare()
    (execution,) = case.executions
    valgrind = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", *command_of(execution)]
    with execution.stdin.open("rb") as stdin:
        done = subprocess.run(
            valgrind,
            stdin=stdin,
            capture_output=True,
            cwd=execution.folder,
            env=dict(execution.environment),
            check=False,
        )
    check(case.name, execution, Finished(0, 0, done.returncode, done.stdout))
    found = re.search(rb"Collected : (\d+)", done.stderr)
    if found is None:
        raise RuntimeError(f"callgrind did not say how much it counted:\n{done.stderr.decode(errors='replace')}")
    return int(found[1])


def measure(plugins: Path) -> dict[str, int]:
    """Count the calls that have a limit, and the bare interpreter."""
    with Surroundings(plugins) as surroundings:
        counted = cases(surroundings, lambda name: name in (BARE, *LIMITS))
        for case in counted:
            once(case, spawn)  # leaves the cache that later calls find
        # Side by side, for nothing here is a time. No two cases change the same record.
        with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as threads:
            counts = threads.map(lambda case: min(count(case) for _ in range(TIMES)), counted)
            return {case.name: lowest for case, lowest in zip(counted, counts, strict=True)}


def above(counts: Mapping[str, int], limits: Mapping[str, Limit]) -> list[str]:
    """Return a line for each call that takes more instructions than its limit allows."""
    return [
        f"{name}: {counts[name] / counts[BARE]:.3f} of the bare interpreter's instructions, the limit is {limit:.3f}"
        for name, (_, limit) in limits.items()
        if counts[name] > limit * counts[BARE]
    ]


def main(arguments: list[str]) -> int:
    """Count, print the table, and tell whether all limits hold."""
    parser = argparse.ArgumentParser(prog="scripts/bench instructions", description=__doc__)
    parser.add_argument("--plugins", type=Path, metavar="DIR", help="measure the files there, as they are")
    given = parser.parse_args(arguments)
    if given.plugins is None:
        build_if_stale(ROOT / "dist")
    counts = measure((given.plugins or ROOT / "dist").resolve())
    rows = [[BARE, f"{counts[BARE] / 1e6:.2f}", "1.000", "", ""]]
    for name, (goal, limit) in LIMITS.items():
        ratio = counts[name] / counts[BARE]
        rows.append([name, f"{counts[name] / 1e6:.2f}", f"{ratio:.3f}", f"{goal:.2f}" if goal else "", f"{limit:.3f}"])
    print(table(["call", "million instructions", "of bare", "goal", "limit"], rows))
    missed = above(counts, LIMITS)
    for line in missed:
        print(line, file=sys.stderr)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
