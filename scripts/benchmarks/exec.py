"""What a plugin call costs beside starting Python, measured side by side: rounds in random order, answers checked.

Writes exec.md, exec.json and exec.svg into dist/bench/. The stores are private ones on loopback with 1000 nodes of each
kind; every way of calling has a home and so a cache of its own. A figure is told as the median over rounds of its time
divided by that of the bare interpreter in the same round, for wall time and for processor time.
"""

import argparse
import contextlib
import os
import platform
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from benchmarks import picture, report
from benchmarks.calls import CASES, cases
from benchmarks.harness import Case, core_client, rounds, spawn
from benchmarks.phases import watch
from benchmarks.summary import summarize_all
from benchmarks.surroundings import ROOT, Surroundings, build_if_stale
from support.etcd import find_etcd

WATCHED = (
    "gpu calculate-deploy, etcd",
    "storage calculate-deploy, etcd",
    "gpu set-node-resource-usage, etcd",
    "storage set-node-resource-usage, etcd",
)
"""The calls of which is told where their time goes."""
MOST_WATCHED = 50


def main(arguments: list[str]) -> int:
    """Measure and write the results."""
    given = _parse(arguments)
    try:
        _measure(given)
    except (RuntimeError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def _measure(given: argparse.Namespace) -> None:
    if given.plugins is None:
        build_if_stale(ROOT / "dist")
    with Surroundings((given.plugins or ROOT / "dist").resolve()) as surroundings, contextlib.ExitStack() as stack:
        caller = "a Go program, as core does" if given.go else "a Python program"
        execute = stack.enter_context(core_client(surroundings.folder)) if given.go else spawn
        machine = _machine(surroundings.interpreter)
        made = cases(surroundings, lambda name: given.only in name)
        runs = []
        for number in range(given.runs):
            print(f"run {number + 1} of {given.runs}: {len(made)} cases, {given.rounds} rounds", flush=True)
            runs.append(rounds(made, given.rounds, execute))
        phases = _phases(made, given.rounds, surroundings.folder)
    goals = {case.name: case.goal for case in made}
    summaries = [summarize_all(run) for run in runs]
    page = report.markdown(machine, caller, given.rounds, summaries, goals, phases)
    texts = {
        "exec.md": page,
        "exec.json": report.document(machine, caller, runs, summaries, goals, phases),
        "exec.svg": picture.draw(runs, goals, phases),
    }
    report.write(given.output, texts)
    print(f"\n{page}\nwritten: {', '.join(str(given.output / name) for name in texts)}")


def _parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="scripts/bench exec",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="The cases:\n" + "\n".join(f"  {name}" for name, _, _ in CASES),
    )
    parser.add_argument("--rounds", type=_positive, default=100, metavar="N", help="rounds of a run (default 100)")
    parser.add_argument("--runs", type=_positive, default=1, metavar="N", help="runs, of which the median counts")
    parser.add_argument("--only", default="", metavar="TEXT", help="only cases whose name holds TEXT")
    parser.add_argument("--go", action="store_true", help="call from a Go program, the way core does")
    parser.add_argument("--plugins", type=Path, metavar="DIR", help="measure the files there, as they are")
    parser.add_argument("--output", type=Path, default=ROOT / "dist" / "bench", metavar="DIR", help="where to write")
    return parser.parse_args(arguments)


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return number


def _phases(made: list[Case], count: int, folder: Path) -> Mapping[str, Mapping[str, float]]:
    return {case.name: watch(case, min(count, MOST_WATCHED), folder) for case in made if case.name in WATCHED}


def _machine(interpreter: str) -> report.Machine:
    """Describe where this runs."""
    asked = [[interpreter, "-I", "--version"], [str(find_etcd()), "--version"]]
    python, etcd = [subprocess.run(command, capture_output=True, text=True, check=True).stdout for command in asked]
    return report.Machine(
        report.processor_name(Path("/proc/cpuinfo").read_text(encoding="utf-8")),
        len(os.sched_getaffinity(0)),
        f"{platform.system()} {platform.release()}",
        python.strip(),
        etcd.splitlines()[0].replace("Version: ", ""),
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
