"""Work that may never end, such as a look at a dead network file system, kept away from everything else.

asyncio's own threads are few, so that a handful of stuck calls would hold up all others, and a process waits for them
at its end. Here each call has a thread of its own, which the process does not wait for.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from typing import TypeVar

Result = TypeVar("Result")


async def run_apart(work: Callable[[], Result]) -> Result:
    """Call `work` in a thread of its own and give its result, or raise what it raised. Cancelled, it is left alone."""
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[Result] = loop.create_future()

    def tell(result: Result | None, error: BaseException | None) -> None:
        if ended.done():
            return
        if error is not None:
            ended.set_exception(error)
        else:
            ended.set_result(result)  # type: ignore[arg-type]

    def run() -> None:
        result, error = None, None
        try:
            result = work()
        except Exception as raised:
            error = raised
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(tell, result, error)

    threading.Thread(target=run, name=work.__qualname__, daemon=True).start()
    return await ended
