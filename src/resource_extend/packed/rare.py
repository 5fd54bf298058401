"""What the start of a packed call needs only when something is wrong with its surroundings."""

import posix

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import BinaryIO, NoReturn


def keep_standard_streams_closed(file: "BinaryIO") -> "BinaryIO":
    """Move the archive off descriptors 0 to 2 and fill the closed ones so that reading 0 or writing 1 and 2 fails.

    Otherwise the next socket or file opened would become the caller's standard stream, and an answer be lost in it.
    """
    position = file.tell()
    filled = [file.fileno()]
    while filled[-1] < 3:
        filled.append(posix.dup(file.fileno()))
    moved = open(filled.pop(), "rb")  # noqa: SIM115 - open until the process ends
    moved.seek(position)
    for closed in filled:
        posix.dup2(posix.open("/dev/null", posix.O_RDONLY if closed else posix.O_WRONLY), closed)
    return moved


def fail(error: BaseException) -> "NoReturn":
    """End the process as every failure does: one line on stderr, status 128 (specification, protocol 8)."""
    text = f"internal error: {type(error).__name__}: {error}"
    line = "".join(character if character.isprintable() else repr(character)[1:-1] for character in text)
    try:
        posix.write(2, line.encode("utf-8", "backslashreplace") + b"\n")
    finally:
        posix._exit(128)
