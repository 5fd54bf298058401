"""Executes programs as core does and times them, in rounds: every case once a round, in random order.

A machine drifts by tens of percent within seconds, so only times of one round are compared with each other.
"""

import contextlib
import json
import os
import random
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from msgspec.json import decode

CLIENT = Path(__file__).parent / "core_client"
GO_CACHE = Path(__file__).parents[2] / ".cache" / "go"


class Execution(NamedTuple):
    """One program call: what runs, in which folder and environment, its request, and the bytes that it must write.

    `expected` are those of both its streams together: a call that succeeds writes nothing to stderr.
    """

    arguments: tuple[str, ...]
    folder: Path
    environment: Mapping[str, str]
    stdin: Path
    expected: bytes


class Finished(NamedTuple):
    """What came of an execution: wall and processor seconds, exit status, the bytes of both streams."""

    wall: float
    processor: float
    status: int
    output: bytes


class Sample(NamedTuple):
    """Wall and processor seconds of one execution, the mean when a case has several."""

    wall: float
    processor: float


@dataclass(frozen=True)
class Case:
    """What is measured under one name: executions one after the other, as one figure per execution.

    `prepare` runs before them and is not timed. `goal` is the highest ratio to the bare interpreter that is promised.
    """

    name: str
    executions: Sequence[Execution]
    prepare: Callable[[], None] = field(default=lambda: None)
    goal: float | None = None


Execute = Callable[[Execution], Finished]


def spawn(execution: Execution) -> Finished:
    """Execute a program from this process, which stands in the program's folder meanwhile: posix_spawn names none."""
    here = Path.cwd()
    os.chdir(execution.folder)
    reading, writing = os.pipe()
    actions = [
        (os.POSIX_SPAWN_OPEN, 0, str(execution.stdin), os.O_RDONLY, 0),
        (os.POSIX_SPAWN_DUP2, writing, 1),
        (os.POSIX_SPAWN_DUP2, writing, 2),
    ]
    arguments = execution.arguments
    started = time.perf_counter()
    process = os.posix_spawn(arguments[0], arguments, execution.environment, file_actions=actions)
    os.close(writing)
    chunks = []
    while chunk := os.read(reading, 1 << 20):
        chunks.append(chunk)
    _, status, usage = os.wait4(process, 0)
    elapsed = time.perf_counter() - started
    os.close(reading)
    os.chdir(here)
    processor = usage.ru_utime + usage.ru_stime
    return Finished(elapsed, processor, os.waitstatus_to_exitcode(status), b"".join(chunks))


@contextlib.contextmanager
def core_client(folder: Path) -> Iterator[Execute]:
    """Build the Go program that executes as core does, into a folder, and give what executes through it.

    Raises:
        RuntimeError: there is no Go.
    """
    if shutil.which("go") is None:
        raise RuntimeError("calling from Go needs `go` on PATH: install Go")
    program = folder / "core_client"
    environment = {**os.environ, "GOCACHE": str(GO_CACHE), "GOTOOLCHAIN": "local"}
    subprocess.run(["go", "build", "-o", str(program), "."], cwd=CLIENT, env=environment, check=True)
    with subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:

        def execute(execution: Execution) -> Finished:
            wanted = {
                "arguments": execution.arguments,
                "folder": str(execution.folder),
                "environment": [f"{key}={value}" for key, value in execution.environment.items()],
                "stdin": str(execution.stdin),
            }
            if process.stdin is None or process.stdout is None:
                raise RuntimeError("the pipes to the Go program are gone")
            process.stdin.write(json.dumps(wanted).encode() + b"\n")
            process.stdin.flush()
            return decode(process.stdout.readline(), type=Finished)

        yield execute


def command_of(execution: Execution) -> list[str]:
    """Return the command that the kernel makes of an execution: it reads the first line of a script."""
    arguments = list(execution.arguments)
    with Path(arguments[0]).open("rb") as file:
        if file.read(2) != b"#!":
            return arguments
        return [*file.readline().decode().strip().split(" ", 1), *arguments]


def check(name: str, execution: Execution, finished: Finished) -> None:
    """Raise when an answer is not the expected one.

    Raises:
        RuntimeError: the text holds both.
    """
    if finished.status or finished.output != execution.expected:
        raise RuntimeError(
            f"{name}: {' '.join(execution.arguments)} ended with status {finished.status} and wrote\n"
            f"{finished.output.decode(errors='replace')}\nnot\n{execution.expected.decode(errors='replace')}"
        )


def once(case: Case, execute: Execute) -> Sample:
    """Run a case once and check its answers."""
    case.prepare()
    finished = []
    for execution in case.executions:
        finished.append(execute(execution))
        check(case.name, execution, finished[-1])
    count = len(finished)
    return Sample(sum(each.wall for each in finished) / count, sum(each.processor for each in finished) / count)


def rounds(cases: Sequence[Case], count: int, execute: Execute = spawn) -> dict[str, list[Sample]]:
    """Run all cases in every round, each round in another order; before them once, unmeasured.

    Returns:
        The samples of each case, one a round, in the order of the rounds.
    """
    samples: dict[str, list[Sample]] = {case.name: [] for case in cases}
    for case in cases:
        once(case, execute)
    for _ in range(count):
        for case in random.sample(cases, len(cases)):
            samples[case.name].append(once(case, execute))
    return samples
