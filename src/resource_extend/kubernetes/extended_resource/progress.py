"""A sign of life on standard error: a bar on a screen, a line now and then in a log, nothing on a short run."""

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from resource_extend.kubernetes.extended_resource.clock import Clock

SILENCE = 10.0
"""Seconds between two lines in a log."""

PROGRAM = "extended-resource"

Step = Callable[[], None]


def complain(texts: Iterable[str]) -> None:
    """One line for each text, under the program's name."""
    for text in texts:
        say(f"{PROGRAM}: {text}")


def say(text: str) -> None:
    """One line for people on standard error."""
    print(text, file=sys.stderr, flush=True)  # noqa: T201 - this is where such lines go


@contextmanager
def progress(title: str, total: int, clock: Clock) -> Iterator[Step]:
    """A function to be called after each of `total` steps."""
    screen = Console(stderr=True)
    if screen.is_terminal and total > 1:
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        with Progress(*columns, console=screen, transient=True) as bar:
            task = bar.add_task(title, total=total)
            yield lambda: bar.advance(task)
    else:
        yield _lines(title, total, clock)


def _lines(title: str, total: int, clock: Clock) -> Step:
    done = 0
    said = clock.now()

    def step() -> None:
        nonlocal done, said
        done += 1
        if clock.now() - said >= SILENCE and done < total:
            said = clock.now()
            say(f"{title}: {done} of {total}")

    return step
