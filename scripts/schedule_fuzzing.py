"""Random cases for the storage scheduler against plain enumeration; the cases of the tests, only many more.

A case is a node, a request of one of the classes and several caps on the slots, or a workload that is changed. The
first case that differs is shown with the number that makes it again, and ends the run with status 1.
"""

import argparse
import random
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests")]

from resource_extend.storage.schedule import place, state_of  # noqa: E402
from storage import cases  # noqa: E402
from storage.comparison import affinity_case, caps, compare, compare_affinity, compare_quotas_left  # noqa: E402

AFFINITY = "affinity"


def run_case(seed: int, number: int) -> tuple[str, str]:
    """Compare one case; return its class and what came of it. Raises AssertionError where the two differ."""
    kinds = [*cases.CLASSES, AFFINITY][number % (len(cases.CLASSES) + 1)]
    source = random.Random(f"{seed}/{number}")  # noqa: S311 - a case must come again
    if kinds == AFFINITY:
        case = affinity_case(source)
        while case is None:
            case = affinity_case(source)
        return kinds, "placed" if compare_affinity(*case) else "no room"
    record = cases.node(source)
    bindings = cases.bindings(source, record, cases.CLASSES[kinds])
    state = state_of(record)
    wanted = cases.cap(source)
    for most in caps(state, bindings, wanted):
        compare(state, bindings, most)
        compare_quotas_left(state, bindings, most)
    slots = sum(count for count, _, _ in place(state, bindings, wanted))
    return kinds, "no slot" if not slots else "up to the cap" if slots == wanted else "some"


def main() -> int:
    """Run the cases and print a table of what they were."""
    parser = argparse.ArgumentParser(prog="scripts/fuzz-schedule", description=__doc__)
    parser.add_argument("--cases", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=int, help="the number of one case")
    arguments = parser.parse_args()
    numbers = range(arguments.cases) if arguments.only is None else [arguments.only]
    tally: dict[str, dict[str, int]] = {}
    started = time.monotonic()
    for number in numbers:
        try:
            kinds, outcome = run_case(arguments.seed, number)
        except AssertionError as difference:
            print(f"case {number} of seed {arguments.seed} differs (--seed {arguments.seed} --only {number}):")
            print(difference)
            return 1
        outcomes = tally.setdefault(kinds, {})
        outcomes[outcome] = outcomes.get(outcome, 0) + 1
    for kinds, outcomes in tally.items():
        print(f"{kinds:28}", ", ".join(f"{count} {outcome}" for outcome, count in sorted(outcomes.items())))
    print(f"{len(numbers)} cases of seed {arguments.seed}, no difference, {time.monotonic() - started:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
