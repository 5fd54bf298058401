"""What the packer changes in msgspec's compiled core: the request for one library, and nothing else."""

import struct
import zipfile

import pytest

import pyz
from resource_extend.pack import wheels
from resource_extend.pack.elf import without_library

LIBRARY = "libpthread.so.0"


def cores() -> dict[str, bytes]:
    """Return every compiled core that plugin files hold, as it is in its wheel."""
    recipe = pyz.read_recipes()["plugin"]["resource-gpu.pyz"]
    targets = [(version, machine) for version in recipe["versions"] for machine in recipe["machines"]]
    found: dict[str, bytes] = {}
    for wheel in wheels.fetch(pyz.ROOT / recipe["requirements"], targets, pyz.CACHE / "wheels"):
        with zipfile.ZipFile(wheel) as archive:
            found |= {name: archive.read(name) for name in archive.namelist() if "msgspec/_core" in name}
    return found


def test_one_tag_changes() -> None:
    """In the core of every version and machine the one tag changes, and a second time nothing."""
    every = cores()
    assert len(every) >= 10
    for name, content in every.items():
        changed = without_library(content, LIBRARY)
        different = [number for number, (a, b) in enumerate(zip(content, changed, strict=True)) if a != b]
        if f"{LIBRARY}\0".encode() not in content:
            assert [] == different, name
            continue
        assert different, name
        tag = different[0] - different[0] % 8
        assert different[-1] < tag + 8
        assert 1 == struct.unpack_from("<Q", content, tag)[0]
        assert changed == without_library(changed, LIBRARY)


def test_a_library_that_is_used_stays() -> None:
    """A library of which a version is asked for is asked for still."""
    for content in cores().values():
        assert content == without_library(content, "libc.so.6")


@pytest.mark.parametrize("content", [b"", b"MZ", b"\x7fELF\x01\x01" + bytes(100), b"PK\x03\x04"])
def test_other_files(content: bytes) -> None:
    """What is no ELF file of 64 bits comes back as it is."""
    assert content == without_library(content, LIBRARY)
