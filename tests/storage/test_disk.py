"""Disks (specification, storage 3, 13.1 and 13.3)."""

import pytest

from resource_extend.codec import decode, encode
from resource_extend.errors import InputError, ResourceError
from resource_extend.storage.disk import Disk, add, covering, parse_disk, summed
from storage.verbs import GIB


def test_parsed() -> None:
    """A disk text has 6 parts: IOPS are plain integers, BPS are sizes."""
    assert Disk("/dev/vda", ["/", "/data"], 100, 200, GIB, 2 * GIB) == parse_disk("/dev/vda:/,/data:100:200:1G:2G")
    assert Disk("", [""], -1, 2, 0, -GIB) == parse_disk("::-1:+2::-1G")


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("/dev/vda:/:100:200:1G", "expected 6 parts, got 5"),
        ("", "expected 6 parts, got 1"),
        ("/dev/vda:/:1:2:3:4:5", "expected 6 parts, got 7"),
        ("/dev/vda:/:x:200:1G:2G", "invalid IOPS: 'x'"),
        ("/dev/vda:/::200:1G:2G", "invalid IOPS: ''"),
        ("/dev/vda:/:1K:200:1G:2G", "invalid IOPS: '1K'"),
        ("/dev/vda:/:1:1.0:1G:2G", "invalid IOPS: '1.0'"),
        ("/dev/vda:/:1:9223372036854775808:1G:2G", "invalid IOPS: '9223372036854775808'"),
        ("/dev/vda:/:100:200:xx:2G", "invalid size: 'xx'"),
        ("/dev/vda:/:100:200:1:2x", "invalid suffix: 'x'"),
    ],
)
def test_refused(text: str, cause: str) -> None:
    """A fault names the whole text and its cause on one line."""
    with pytest.raises(InputError) as caught:
        parse_disk(text)
    assert f"wrong disk format: {text}, {cause}: invalid disk" == str(caught.value)


def test_shape() -> None:
    """IOPS are upper case and bps lower case in JSON; missing members and null mounts are empty."""
    written = b'{"device":"/dev/vda","mounts":["/"],"read_IOPS":1,"write_IOPS":2,"read_bps":3,"write_bps":4}'
    assert Disk("/dev/vda", ["/"], 1, 2, 3, 4) == decode(written, Disk)
    assert written == encode(decode(written, Disk))
    assert Disk("", [], 0, 0, 0, 0) == decode(b'{"mounts":null}', Disk)
    assert "/dev/vda:/,/a:1:2:3:4" == Disk("/dev/vda", ["/", "/a"], 1, 2, 3, 4).text()


def test_added() -> None:
    """Numbers add per device; mounts that are given replace; unknown devices come last."""
    first = [Disk("vda", ["/"], 100)]
    second = [Disk("vda", ["/data"], 1, 2, 3, 4), Disk("vdb", [], 10)]
    assert [Disk("vda", ["/data"], 101, 2, 3, 4), Disk("vdb", [], 10)] == add(first, second)
    assert [Disk("vda", ["/data"], 101, 2, 3, 4)] == add(add(first, second)[:1], [Disk("vda")])
    assert [Disk("vda", ["/"], 100)] == first


def test_subtracted() -> None:
    """Subtraction appends an absent device with negated numbers."""
    first = [Disk("vda", [], 100, 100, 100, 100)]
    second = [Disk("vda", [], 40, 30, 20, 10), Disk("vdb", ["/data"], 5, 6, 7, 8)]
    assert [Disk("vda", [], 60, 70, 80, 90), Disk("vdb", ["/data"], -5, -6, -7, -8)] == add(first, second, -1)


def test_doubled_devices() -> None:
    """Of a doubled device the first counts; one listed twice and absent is appended twice."""
    assert [Disk("a", [], 3), Disk("a", [], 1)] == add([Disk("a", [], 1), Disk("a", [], 1)], [Disk("a", [], 2)])
    assert [Disk("a", [], 1), Disk("a", [], 2)] == add([], [Disk("a", [], 1), Disk("a", [], 2)])


@pytest.mark.parametrize("sign", [1, -1])
def test_beyond_int64(sign: int) -> None:
    """A number that cannot be stored fails."""
    largest = Disk("a", [], 0, 0, 0, sign * 2**62)
    with pytest.raises(ResourceError, match=r"^disk IOPS / BPS is out of range: invalid disk$"):
        add([largest, Disk("b")], [largest, largest, largest], 1)


def test_summed() -> None:
    """Entries of one disk are summed into the first."""
    a, b = Disk("a", ["/a"], 9), Disk("b", ["/b"], 9)
    rows = summed([(a, (1, 2, 3, 4)), (b, (1, 1, 1, 1)), (a, (1, 0, 0, 0))])
    assert [Disk("a", ["/a"], 2, 2, 3, 4), Disk("b", ["/b"], 1, 1, 1, 1)] == rows


VDA, VDB, VDC = Disk("vda", ["/"]), Disk("vdb", ["/data"]), Disk("vdc", ["/data/sub/"])


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/", 0),
        ("/etc", 0),
        ("/data", 1),
        ("/data/", 1),
        ("/data/x", 1),
        ("/database", 0),
        ("/data/sub", 2),
        ("/data/sub/x", 2),
        ("relative", -1),
        ("data/sub", -1),
    ],
)
def test_covering(path: str, expected: int) -> None:
    """The deepest mount that holds the path wins; a prefix of a name holds nothing."""
    assert expected == covering([VDA, VDB, VDC], path)


def test_covered_by_none() -> None:
    """Without `/` there are paths that no disk covers."""
    assert -1 == covering([VDB], "/etc")
    assert -1 == covering([], "/")


def test_covering_ties() -> None:
    """On equal depth the later one wins, and an empty mount acts like `/`."""
    assert 1 == covering([Disk("a", ["/data"]), Disk("b", ["/data/"])], "/data/x")
    assert 1 == covering([Disk("a", ["/"]), Disk("b", [""])], "/etc")
    assert -1 == covering([Disk("b", [""])], "relative")
