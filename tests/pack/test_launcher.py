"""The first line, stage 1, and the table of images."""

import marshal
import re

import pytest

from resource_extend.pack.launcher import Core, Image, first_line, first_line_fits, hot_member, stage_1

CORES = [
    Core(".cpython-311-x86_64-linux-gnu.so", 5000, 400_000, 3_000_000_000, "a" * 64),
    Core(".cpython-311-aarch64-linux-gnu.so", 405_000, 400_001, 1, "b" * 64),
    Core(".cpython-312-x86_64-linux-gnu.so", 900_000, 400_002, 2, "c" * 64),
]
IMAGES = [
    Image(b"\xa7\r\r\n", (CORES[0].suffix, CORES[1].suffix), b"boot 311", b"head of 311", b"code of 311"),
    Image(b"\xcb\r\r\n", (CORES[2].suffix,), b"boot 312", b"head 312", b"code 312"),
]


@pytest.mark.parametrize("interpreter", ["/usr/bin/python3", "/usr/local/bin/python3", "/p", "/" + "x" * 40, "env"])
def test_first_line_says_its_own_length(interpreter: str) -> None:
    """It reads to the end of stage 1 and runs what lies behind itself and the header of the first member."""
    line = first_line(interpreter, 321).decode()

    found = re.search(r"f\.read\((\d+)\)\[(\d+):\]\)$", line)
    assert found
    assert len(line) + 30 + len("_hot") == int(found[2])
    assert int(found[2]) + 321 == int(found[1])
    assert len(line) <= 128
    assert " -ISc" in line
    assert 2 + (interpreter == "env") * 2 == len(line.split())


def test_env_quotes_survive() -> None:
    """`env -S` takes away quotes that are not escaped."""
    assert b'__import__(\\"sys\\")' in first_line("env", 321)
    assert b'__import__("sys")' in first_line("/usr/bin/python3", 321)


@pytest.mark.parametrize(
    ("interpreter", "reason"),
    [
        ("python3", "must be `env` or an absolute path"),
        ("", "must be `env` or an absolute path"),
        ("/usr/bin/python 3", "without blanks"),
        ("/opt/" + "x" * 80, "127 at most: use a shorter path"),
    ],
)
def test_impossible_interpreters(interpreter: str, reason: str) -> None:
    """What the kernel would not start is refused, with the reason."""
    with pytest.raises(ValueError, match=reason):
        first_line(interpreter, 321)
    assert not first_line_fits(interpreter)


def test_table_leads_to_images_and_cores() -> None:
    """Every magic leads to its image; a core is offered only to interpreters of its version; 0 is the way without."""
    position = 160
    content = hot_member(IMAGES, CORES, position)
    start = stage_1(IMAGES, CORES)
    assert content.startswith(start)
    size = int(re.findall(rb"f\.read\((\d+)\)", start)[0])
    table = marshal.loads(content[len(start) : len(start) + size])

    assert {0, IMAGES[0].magic, IMAGES[1].magic} == set(table)
    for image in IMAGES:
        boot, offset, head_size, cores = table[image.magic]
        assert image.boot == boot
        assert image.head == content[offset - position :][:head_size]
        assert image.code == content[offset - position + head_size :][: len(image.code)]
        assert set(image.suffixes) == set(cores)
    assert (405_000, 400_001, 1, b"b" * 64) == table[IMAGES[0].magic][3][CORES[1].suffix]
    assert "runpy" in marshal.loads(table[0][0])


def test_offsets_do_not_move_the_table() -> None:
    """The table's length is known before the offsets in it are."""
    blank = [Core(core.suffix, 0, core.size, core.crc32, core.sha256) for core in CORES]

    assert len(hot_member(IMAGES, blank, 0)) == len(hot_member(IMAGES, CORES, 10_000_000))
    assert stage_1(IMAGES, blank) == stage_1(IMAGES, CORES)
