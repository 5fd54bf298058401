"""The way into a packed file: its first line, stage 1, and the table of what it holds for which interpreter.

A zip archive may begin with anything, so the first line starts the interpreter on a few characters of code rather than
on the archive: `python3 file.pyz` would import runpy, read the zip directory and compile its first module, which costs
more than all the rest. Those characters open the archive, skip to its first member `_hot`, which is stored
uncompressed, and run stage 1, the first line of that member. Stage 1 must be understood by every Python 3 and be short,
since it is compiled on each call. It finds the image made for this bytecode, whose boot code looks for msgspec's core
for this machine; without one it takes shiv's road.
"""

import marshal
from dataclasses import dataclass

FIRST_LINE_LIMIT = 127  # Kernels before 5.1 cut the line there, and what is left runs.
HOT_MEMBER = "_hot"
_LOCAL_HEADER = 30  # A zip member's data follow its header of 30 bytes and its name.

_OPEN = 'f=open(__import__("sys").argv[1],"rb");exec(f.read({end})[{skip}:])'
_STAGE_1 = (
    "import marshal as m,_frozen_importlib_external as e;t=m.loads(f.read({size}));k=t.get(e.MAGIC_NUMBER)or t[0];"
    "exec(m.loads(k[0]))\n"
)
# What runs without an image: marshalled text, which every version reads.
_NO_IMAGE = marshal.dumps("import sys,runpy;del sys.argv[0];runpy.run_path(sys.argv[0],run_name='__main__')", 2)


@dataclass(frozen=True)
class Core:
    """msgspec's compiled core for one interpreter and machine, as it lies in the archive.

    `suffix` is the extension suffix, `offset` counts from the start of the file.
    """

    suffix: str
    offset: int
    size: int
    crc32: int
    sha256: str


@dataclass(frozen=True)
class Image:
    """The code image for one bytecode magic: the boot code, the head (start module and index), the modules' code.

    `suffixes` are the extension suffixes of the interpreters that may run it: one version on several machines.
    """

    magic: bytes
    suffixes: tuple[str, ...]
    boot: bytes
    head: bytes
    code: bytes


def first_line(interpreter: str, stage_1_size: int) -> bytes:
    """Return the line that starts the launcher.

    Args:
        interpreter: an absolute path, or `env` for the `python3` found on PATH.
        stage_1_size: bytes of stage 1, at the beginning of the member that follows the line.

    Raises:
        ValueError: the path is not absolute, holds blanks, or is too long.
    """
    if interpreter != "env" and (not interpreter.startswith("/") or len(interpreter.split()) != 1):
        raise ValueError(f"interpreter {interpreter!r}: must be `env` or an absolute path without blanks")
    line = b""
    for _ in range(3):  # The line says its own length; that settles once the numbers have their final width.
        skip = len(line) + _LOCAL_HEADER + len(HOT_MEMBER)
        code = _OPEN.format(skip=skip, end=skip + stage_1_size)
        if interpreter == "env":
            # `env -S` takes quotes away unless they are escaped.
            text = "#!/usr/bin/env -S python3 -ISc" + code.replace('"', '\\"')
        else:
            text = f"#!{interpreter} -ISc{code}"
        line = text.encode("ascii") + b"\n"
    if len(text) > FIRST_LINE_LIMIT:
        raise ValueError(
            f"interpreter {interpreter!r}: the first line would have {len(text)} characters, "
            f"{FIRST_LINE_LIMIT} at most: use a shorter path (a symbolic link)"
        )
    return line


def stage_1(images: "list[Image]", cores: "list[Core]") -> bytes:
    """Return the code that the first line runs."""
    return _STAGE_1.format(size=len(_table(images, cores, 0))).encode("ascii")


def hot_member(images: "list[Image]", cores: "list[Core]", position: int) -> bytes:
    """Return the content of `_hot`: stage 1, the table, the images.

    Args:
        images: one for each bytecode magic.
        cores: msgspec's cores; an image is offered to an interpreter only when its core is there.
        position: where in the file the returned bytes will lie.
    """
    start = stage_1(images, cores)
    table = _table(images, cores, position + len(start))
    return start + table + b"".join(image.head + image.code for image in images)


def _table(images: "list[Image]", cores: "list[Core]", position: int) -> bytes:
    """Return the marshalled table: magic -> (boot code, offset and size of the head, suffix -> core).

    `position` is its own; all offsets count from the start of the file. The boot code of 0 runs when no magic fits.
    """
    packed = b""
    for _ in range(2):  # The table says where it ends; its own size does not depend on that.
        table: dict[object, object] = {0: (_NO_IMAGE,)}
        offset = position + len(packed)
        for image in images:
            fitting = {
                core.suffix: (core.offset, core.size, core.crc32, core.sha256.encode("ascii"))
                for core in cores
                if core.suffix in image.suffixes
            }
            table[image.magic] = (image.boot, offset, len(image.head), fitting)
            offset += len(image.head) + len(image.code)
        # Version 2 writes no references, so the bytes do not depend on who else holds the objects, and every Python 3
        # reads them.
        packed = marshal.dumps(table, 2)
    return packed


def first_line_fits(interpreter: str) -> bool:
    """Whether the launcher can be started with an interpreter of this path."""
    try:
        first_line(interpreter, 999)
    except ValueError:
        return False
    return True
