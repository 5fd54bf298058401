"""One change to a compiled module: a library that it asks for and does not need.

msgspec's core asks for `libpthread.so.0`. That has been an empty shell since glibc 2.34, and before that CPython itself
had loaded it. Looking for it costs each call some fifteen system calls, 2 % of starting Python. Nothing else of the
file changes, and nothing at all when it does use a symbol version of that library.
"""

import struct
from collections.abc import Iterator

_ELF64_LITTLE = b"\x7fELF\x02\x01"
_LOAD, _DYNAMIC = 1, 2
_NEEDED, _STRTAB, _VERNEED, _VERNEEDNUM = 1, 5, 0x6FFFFFFE, 0x6FFFFFFF
# In a range that is left to operating systems: the loader passes over tags that it does not know.
_IGNORED = 0x60000010


def without_library(content: bytes, library: str) -> bytes:
    """Return a shared object that does not ask for a library, unless it needs it. Other files come back as they are."""
    if not content.startswith(_ELF64_LITTLE):
        return content
    (table,) = struct.unpack_from("<Q", content, 0x20)
    (count,) = struct.unpack_from("<H", content, 0x38)
    segments = [struct.unpack_from("<IIQQQQQQ", content, table + 56 * number) for number in range(count)]

    def position(address: int) -> int:
        """Return where in the file an address is."""
        for kind, _, offset, start, _, size, _, _ in segments:
            if kind == _LOAD and start <= address < start + size:
                return int(address - start + offset)
        raise ValueError(f"address {address:#x} is in no segment")

    found = [(offset, size) for kind, _, offset, _, _, size, _, _ in segments if kind == _DYNAMIC]
    if not found:
        return content
    (offset, size), *_ = found
    entries = [(at, *struct.unpack_from("<QQ", content, at)) for at in range(offset, offset + size, 16)]
    tags = {tag: value for _, tag, value in entries}
    names = position(tags[_STRTAB])

    def name(at: int) -> str:
        return content[names + at : content.index(b"\0", names + at)].decode()

    if _VERNEED in tags and library in map(
        name, _versioned(content, position(tags[_VERNEED]), tags.get(_VERNEEDNUM, 0))
    ):
        return content
    changed = bytearray(content)
    for at, tag, value in entries:
        if tag == _NEEDED and name(value) == library:
            struct.pack_into("<Q", changed, at, _IGNORED)
    return bytes(changed)


def _versioned(content: bytes, at: int, count: int) -> "Iterator[int]":
    """Yield the names, as offsets, of the libraries of which a certain version is asked for."""
    for _ in range(count):
        _, _, file, _, following = struct.unpack_from("<HHIII", content, at)
        yield file
        at += following
