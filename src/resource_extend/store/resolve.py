"""Host names looked up beside everything else: the system's resolver may wait for longer than a whole call lasts."""

from _socket import SOCK_STREAM, getaddrinfo
from _thread import allocate_lock, start_new_thread

# Family and socket address, as getaddrinfo returns them.
Address = tuple[int, tuple[object, ...]]


class Lookup:
    """The addresses of one name, found by a thread. A thread that never comes back ends with the process."""

    __slots__ = ("_busy", "_failure", "_found", "_host", "_port")

    def __init__(self, host: str, port: int):
        self._host = host
        self._port = port
        self._found: list[Address] = []
        self._failure: OSError | None = None
        self._busy = allocate_lock()
        self._busy.acquire()
        try:
            start_new_thread(self._look_up, ())
        except RuntimeError:  # no thread to be had
            self._look_up()

    def _look_up(self) -> None:
        try:
            # As bytes, for a text would load the IDNA codec.
            rows = getaddrinfo(self._host.encode(), self._port, 0, SOCK_STREAM)
            self._found = [(int(row[0]), row[4]) for row in rows]
        except OSError as failure:
            self._failure = failure
        finally:
            self._busy.release()

    def done(self, seconds: float = 0.0) -> bool:
        """Wait for at most that time, and return whether the answer is there."""
        if not self._busy.acquire(timeout=seconds):
            return False
        self._busy.release()
        return True

    def addresses(self) -> list[Address]:
        """Return the addresses, at least one. Raises OSError when there is none."""
        if not self._found:
            raise self._failure or OSError("no address")
        return self._found
