"""Volume bindings (specification, storage 2 and 13.1)."""

import pytest

from resource_extend.errors import InputError, ResourceError
from resource_extend.storage.binding import Binding, needs_scheduling, parse_binding, parse_bindings
from resource_extend.storage.deploy import apply_plan
from resource_extend.storage.merge import merge
from storage.verbs import GIB, KIB, MIB

NONE = (0, 0, 0, 0)
NO_QUOTAS = " ReadIOPS:0 WriteIOPS:0 ReadBPS:0 WriteBPS:0}: invalid volume"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("AUTO:/dir:rw:1G", Binding("AUTO", "/dir", "rw", GIB, NONE)),
        ("/src:/dst", Binding("/src", "/dst", "rw", 0, NONE)),
        ("AUTO:/dir:wrm:1G", Binding("AUTO", "/dir", "mrw", GIB, NONE)),
        ("AUTO:/d:ro", Binding("AUTO", "/d", "or", 0, NONE)),
        ("AUTO:/d:rowo:1G", Binding("AUTO", "/d", "orw", GIB, NONE)),
        ("AUTO:/d:rwo:1G", Binding("AUTO", "/d", "orw", GIB, NONE)),
        ("AUTO:/dir::-1G", Binding("AUTO", "/dir", "rw", -GIB, NONE)),
        ("AUTO:/d:rw:1K:1K", Binding("AUTO", "/d", "rw", KIB, (KIB, 0, 0, 0))),
        ("AUTO:/d:rw:1K:1:2", Binding("AUTO", "/d", "rw", KIB, (1, 2, 0, 0))),
        ("AUTO:/d:rw:1K:1:2:3", Binding("AUTO", "/d", "rw", KIB, (1, 2, 3, 0))),
        ("AUTO:/d:rw::::-5:", Binding("AUTO", "/d", "rw", 0, (0, 0, -5, 0))),
        ("/mnt:/dir:rw:0:100:200:1M:2M", Binding("/mnt", "/dir", "rw", 0, (100, 200, MIB, 2 * MIB))),
        (":/d", Binding("", "/d", "rw", 0, NONE)),
        ("C:x", Binding("C", "x", "rw", 0, NONE)),
        ("a:b:zyzo", Binding("a", "b", "oyz", 0, NONE)),
    ],
)
def test_parsed(text: str, expected: Binding) -> None:
    """A binding text means these parts; flags are held sorted and without doubles."""
    assert expected == parse_binding(text)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("one", "one: invalid volume"),
        ("", ": invalid volume"),
        ("a:b:c:d:e:f:g:h:i", "a:b:c:d:e:f:g:h:i: invalid volume"),
        ("AUTO:/dir:rw:xx", "invalid size: 'xx'"),
        ("AUTO:/dir:rw:1:2x", "invalid suffix: 'x'"),
        (
            "AUTO::rw:1G",
            "dest must be provided: {Source:AUTO Destination: Flags:rw SizeInBytes:1073741824" + NO_QUOTAS,
        ),
        (
            "AUTO:",
            "dest must be provided: {Source:AUTO Destination: Flags:rw SizeInBytes:0" + NO_QUOTAS,
        ),
    ],
)
def test_refused(text: str, error: str) -> None:
    """A wrong number of parts, a wrong size and a missing destination have their texts."""
    with pytest.raises(InputError) as caught:
        parse_binding(text)
    assert error == str(caught.value)


def test_first_fault_of_a_list() -> None:
    """A list is parsed element by element; the first error ends it."""
    with pytest.raises(InputError, match=r"^one: invalid volume$"):
        parse_bindings(["/a:/b", "one", "two"])


@pytest.mark.parametrize(
    ("text", "full", "normalized"),
    [
        ("AUTO:/dir:mrw:1G", "AUTO:/dir:mrw:1073741824:0:0:0:0", "AUTO:/dir:rw:1073741824"),
        ("/src:/dst", "/src:/dst:rw:0:0:0:0:0", "/src:/dst:rw:0"),
        (
            "AUTO:/dir:orw:1G:100:100:1M:1M",
            "AUTO:/dir:rowo:1073741824:100:100:1048576:1048576",
            "AUTO:/dir:rowo:1073741824:100:100:1048576:1048576",
        ),
        ("AUTO:/dir:ro:1G", "AUTO:/dir:ro:1073741824:0:0:0:0", "AUTO:/dir:ro:1073741824"),
        ("AUTO:/dir:m:1G", "AUTO:/dir:m:1073741824:0:0:0:0", "AUTO:/dir::1073741824"),
        ("AUTO:/d:rowo:1G", "AUTO:/d:rowo:1073741824:0:0:0:0", "AUTO:/d:rowo:1073741824"),
        ("a:b:mro:0:-1:0:0:0", "a:b:mro:0:-1:0:0:0", "a:b:ro:0:-1:0:0:0"),
        ("a:b:om", "a:b:m:0:0:0:0:0", "a:b::0"),
    ],
)
def test_rendered(text: str, full: str, normalized: str) -> None:
    """The full form has 8 parts; the normalized one no `m`, and 4 parts without quotas."""
    binding = parse_binding(text)
    assert full == binding.full()
    assert normalized == binding.normalized()


@pytest.mark.parametrize("flags", ["r", "w", "rw", "ro", "wo", "orw", "mrw", "morw", "mw"])
def test_rendering_reads_back(flags: str) -> None:
    """Flags with r or w survive rendering and parsing."""
    binding = parse_binding(f"AUTO:/d:{flags}:5:1:2:3:4")
    assert binding == parse_binding(binding.full())


@pytest.mark.parametrize(
    ("text", "scheduled", "has_iops", "monopoly", "unlimited"),
    [
        ("AUTO:/d", True, False, False, True),
        ("/mnt/AUTO:/d", True, False, False, True),
        (":/d:m:5", True, False, True, False),
        ("AUTO:/d:rw:0:100:0:0:0", True, True, False, False),
        ("AUTO:/d:rwm", True, False, True, True),
        ("/mnt:/d:rwm:5:0:0:0:7", False, True, False, False),
        ("/AUTO/x:/d", False, False, False, False),
        ("auto:/d", False, False, False, False),
        ("AUTO:/d:rw:0:-1:0:0:0", True, False, False, False),
    ],
)
def test_predicates(text: str, scheduled: bool, has_iops: bool, monopoly: bool, unlimited: bool) -> None:
    """Who chooses the device, and what is asked for, shows in source, flags and numbers."""
    binding = parse_binding(text)
    found = (binding.scheduled(), binding.has_iops(), binding.monopoly(), binding.unlimited())
    assert (scheduled, has_iops, monopoly, unlimited) == found
    assert (scheduled or has_iops) is needs_scheduling([binding])


# --- merging and plans (2.4, 2.5, 13.2)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ("AUTO:/dir1:rw:1G:50:50:0:0", ["AUTO:/dir1:rw:3221225472:150:150:0:0"]),
        ("AUTO:/dir1:rw:-2G", ["AUTO:/dir1:rw:0:100:100:0:0"]),
        ("AUTO:/dir1:rw:-3G", []),
        ("AUTO:/dir2:rw:1G", ["AUTO:/dir1:rw:2147483648:100:100:0:0", "AUTO:/dir2:rw:1073741824:0:0:0:0"]),
        ("AUTO:/dir1:rw:0:-200:0:0:0", ["AUTO:/dir1:rw:2147483648:-100:100:0:0"]),
        ("AUTO:/dir1:ro:1", ["AUTO:/dir1:ro:1:0:0:0:0", "AUTO:/dir1:rw:2147483648:100:100:0:0"]),
    ],
)
def test_merged(change: str, expected: list[str]) -> None:
    """Equal identities are summed, sizes below 0 dropped, the rest sorted by full form."""
    origin = [parse_binding("AUTO:/dir1:rw:2G:100:100:0:0")]
    assert expected == [binding.full() for binding in merge([parse_binding(change)], origin)]


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ("AUTO:/d:rw:1", "volume size is out of range: invalid volume"),
        ("AUTO:/d:rw:0:1", "disk IOPS / BPS is out of range: invalid disk"),
    ],
)
def test_merged_beyond_int64(change: str, error: str) -> None:
    """A sum that cannot be stored fails."""
    origin = [parse_binding("AUTO:/d:rw:9223372036854775807:9223372036854775807")]
    with pytest.raises(ResourceError) as caught:
        merge([parse_binding(change)], origin)
    assert error == str(caught.value)


def test_plan_applied_by_destination() -> None:
    """The planned device becomes the source; the size is the larger of the two; other destinations stay."""
    plan = {parse_binding("any:/dir1:x"): {"/data0": 4 * GIB}}
    applied = apply_plan([parse_binding("AUTO:/dir1:mrw:1G"), parse_binding("/mnt:/dir2:rw")], plan)
    assert [("/data0", 4 * GIB, "mrw"), ("/mnt", 0, "rw")] == [(each.source, each.size, each.flags) for each in applied]
    larger = apply_plan([parse_binding("AUTO:/dir1:mrw:5G")], plan)
    assert [("/data0", 5 * GIB)] == [(each.source, each.size) for each in larger]
