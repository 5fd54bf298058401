"""Writes the final file: first line, `_hot`, msgspec's cores, then the members of the shiv archive."""

import hashlib
import io
import time
import zipfile
import zlib
from pathlib import Path

from resource_extend.pack import launcher, shiv

_CORE = "site-packages/msgspec/_core"
_HEADER = 30


def write_program(target: Path, interpreter: str, content: "dict[str, bytes]") -> None:
    """Write a file that starts as shiv's files do, for programs that run long."""
    command = "/usr/bin/env -S python3" if interpreter == "env" else interpreter
    _write(target, f"#!{command} -I\n".encode(), content, {})


def write_plugin(target: Path, interpreter: str, content: "dict[str, bytes]", images: "list[launcher.Image]") -> None:
    """Write a file that starts fast.

    Args:
        target: the file.
        interpreter: absolute path, or `env`.
        content: members, from `shiv.members`.
        images: one for each bytecode.

    Raises:
        ValueError: the first line would be too long.
    """
    names = sorted(name for name in content if name.startswith(_CORE))
    blank = [_core(name, content[name], 0) for name in names]
    line = launcher.first_line(interpreter, len(launcher.stage_1(images, blank)))
    position = len(line) + _HEADER + len(launcher.HOT_MEMBER)
    # Offsets have a fixed width, so a first round with blank ones gives the lengths.
    offset = position + len(launcher.hot_member(images, blank, position))
    cores = []
    for name in names:
        offset += _HEADER + len(name)
        cores.append(_core(name, content[name], offset))
        offset += len(content[name])
    stored = {launcher.HOT_MEMBER: launcher.hot_member(images, cores, position)}
    stored |= {name: content[name] for name in names}
    _write(target, line, {name: data for name, data in content.items() if name not in stored}, stored)
    data = target.read_bytes()
    for core, name in zip(cores, names, strict=True):
        if data[core.offset : core.offset + core.size] != content[name]:
            raise ValueError(f"{name} does not lie where the table says")


def _core(name: str, content: bytes, offset: int) -> launcher.Core:
    """Describe one of msgspec's cores."""
    digest = hashlib.sha256(content).hexdigest()
    return launcher.Core(name[len(_CORE) :], offset, len(content), zlib.crc32(content), digest)


def _write(target: Path, line: bytes, deflated: "dict[str, bytes]", stored: "dict[str, bytes]") -> None:
    """Write a zip file behind a first line, at once and executable."""
    buffer = io.BytesIO()
    buffer.write(line)
    with zipfile.ZipFile(buffer, "w") as archive:
        for members, compression in ((stored, zipfile.ZIP_STORED), (deflated, zipfile.ZIP_DEFLATED)):
            for name, data in members.items():
                info = zipfile.ZipInfo(name, time.gmtime(shiv.TIMESTAMP)[:6])
                info.compress_type = compression
                info.external_attr = 0o100644 << 16
                info.create_system = 3
                archive.writestr(info, data)
    temporary = target.with_name(f".{target.name}.new")
    temporary.write_bytes(buffer.getvalue())
    temporary.chmod(0o755)
    temporary.replace(target)
