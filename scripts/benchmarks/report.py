"""The results as a Markdown table and as JSON: pure functions of summaries."""

import json
import platform
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks.harness import Sample
from benchmarks.summary import Summary, combine, ratio_spread


class Machine(NamedTuple):
    """What was measured on."""

    processor: str
    cores: int
    kernel: str
    interpreter: str
    etcd: str

    def text(self) -> str:
        """Write it in one line."""
        return f"{self.cores} cores of {self.processor}, {self.kernel}, {self.interpreter}, {self.etcd}"


def processor_name(cpuinfo: str) -> str:
    """Find the processor's name in the text of /proc/cpuinfo."""
    names = [line.partition(":")[2].strip() for line in cpuinfo.splitlines() if line.startswith("model name")]
    return names[0] if names else platform.machine()


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Lay out a Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def goal_text(ratio: float, goal: "float | None") -> str:
    """Say whether a goal is met."""
    if goal is None:
        return ""
    return f"{goal:.2f}, {'met' if round(ratio, 2) <= goal else '**missed**'}"


def rows(runs: Sequence[Mapping[str, Summary]], goals: "Mapping[str, float | None]") -> list[list[str]]:
    """Write one row a case."""
    lines = []
    for name, summary in combine(runs).items():
        wall = f"{summary.ratio:.2f}"
        if len(runs) > 1:
            spread = ratio_spread(runs, name)
            wall += f" ({spread.low:.2f} to {spread.high:.2f})"
        lines.append(
            [
                name,
                f"{summary.median:.1f}",
                f"{summary.low:.1f} to {summary.high:.1f}",
                wall,
                goal_text(summary.ratio, goals[name]),
                f"{summary.processor:.1f}",
                f"{summary.processor_ratio:.2f}",
            ]
        )
    return lines


HEAD = ["call", "wall, ms", "p10 to p90, ms", "wall / bare", "goal", "processor, ms", "processor / bare"]


def markdown(
    machine: Machine,
    caller: str,
    rounds: int,
    runs: Sequence[Mapping[str, Summary]],
    goals: "Mapping[str, float | None]",
    phases: "Mapping[str, Mapping[str, float]]",
) -> str:
    """Write the page."""
    each = f"{len(runs)} runs of {rounds} rounds" if len(runs) > 1 else f"{rounds} rounds"
    parts = [
        f"Measured on {machine.text()}. Called from {caller}, {each}. A ratio is the median over rounds of a call's "
        "time divided by the bare interpreter's of the same round"
        + (", then the median of the runs (lowest to highest run)." if len(runs) > 1 else "."),
        table(HEAD, rows(runs, goals)),
    ]
    if phases:
        names = list(next(iter(phases.values())))
        head = ["where the time of one call goes, ms", *phases]
        parts.append(table(head, [[name, *(f"{each[name]:.2f}" for each in phases.values())] for name in names]))
    return "\n\n".join(parts) + "\n"


def document(
    machine: Machine,
    caller: str,
    runs: "Sequence[Mapping[str, Sequence[Sample]]]",
    summaries: Sequence[Mapping[str, Summary]],
    goals: "Mapping[str, float | None]",
    phases: "Mapping[str, Mapping[str, float]]",
) -> str:
    """Write everything as JSON: seconds for each round, milliseconds in summaries."""
    together = combine(summaries)
    content = {
        "machine": machine._asdict(),
        "caller": caller,
        "phases_ms": phases,
        "cases": {
            name: {
                "goal": goals[name],
                "summary": together[name]._asdict(),
                "runs": [
                    {
                        "summary": summary[name]._asdict(),
                        "wall_s": [round(sample.wall, 6) for sample in run[name]],
                        "processor_s": [round(sample.processor, 6) for sample in run[name]],
                    }
                    for run, summary in zip(runs, summaries, strict=True)
                ],
            }
            for name in together
        },
    }
    return json.dumps(content, indent=1) + "\n"


def write(folder: Path, texts: Mapping[str, str]) -> None:
    """Write files into a folder, which is made."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
