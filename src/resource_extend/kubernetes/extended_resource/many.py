"""The same work on many nodes, a few at a time, with an account of every one of them whatever happens."""

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from typing import TypeVar

Given = TypeVar("Given")
Made = TypeVar("Made")


class Interrupted(Exception):  # noqa: N818 - what a person did
    """The run was stopped by a signal; `done` holds what was finished, by place in the list."""

    def __init__(self, done: dict[int, object]) -> None:
        super().__init__("stopped")
        self.done = done


def on_each(
    items: Sequence[Given], work: Callable[[Given], Made], parallel: int, step: Callable[[], None] = lambda: None
) -> list[Made]:
    """`work` of each item, in the order of the items, at most `parallel` at a time; `step` is called after each.

    Raises:
        Interrupted: a signal came. What had begun was ended first: nothing is left half-done or unaccounted for.
    """
    with ThreadPoolExecutor(max_workers=max(1, min(parallel, len(items)))) as pool:
        futures = [pool.submit(work, item) for item in items]
        try:
            for future in as_completed(futures):
                future.result()
                step()
        except KeyboardInterrupt:
            _end(pool)
            raise Interrupted(_finished(futures)) from None
    return [future.result() for future in futures]


def _end(pool: ThreadPoolExecutor) -> None:
    """Wait for what has begun, also when the signal comes again: an account of it is worth some seconds."""
    try:
        pool.shutdown(wait=True, cancel_futures=True)
    except KeyboardInterrupt:
        _end(pool)


def _finished(futures: Sequence["Future[Made]"]) -> dict[int, object]:
    return {place: future.result() for place, future in enumerate(futures) if not future.cancelled()}
