"""Preferred allocation: always legal, and what each policy chooses."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resource_extend.kubernetes.devices.allocation import POLICIES, preferred
from resource_extend.kubernetes.model import Device

NAMES = st.sampled_from([f"d{hardware}::{replica}" for hardware in range(4) for replica in range(3)])
NUMA = st.lists(st.integers(0, 2), max_size=2, unique=True).map(lambda nodes: tuple(sorted(nodes)))


def _device(name: str, numa: tuple[int, ...] = ()) -> Device:
    return Device(name, numa=numa, physical=name.partition("::")[0])


def _devices(text: str) -> list[Device]:
    """Read "a::0 a::1 b::0@1": ids, with the NUMA node behind @."""
    return [
        _device(name, (int(node),) if node else ()) for name, _, node in (word.partition("@") for word in text.split())
    ]


@given(
    st.sampled_from([*POLICIES, "unheard-of"]),
    st.lists(st.tuples(NAMES, NUMA), max_size=14),
    st.lists(NAMES, max_size=4),
    st.integers(-2, 16),
)
def test_any_question_has_a_legal_answer(
    policy: str, offered: list[tuple[str, tuple[int, ...]]], must: list[str], size: int
) -> None:
    """No question is an error: the answer has each id once, all that must be included, and the size if possible."""
    devices = [_device(name, numa) for name, numa in offered]

    answer = preferred(policy, devices, must, size)

    available = {device.id for device in devices}
    assert len(answer) == len(set(answer))
    assert set(must) <= set(answer) <= available | set(must)
    assert min(max(size, len(set(must))), len(available | set(must))) == len(answer)


@given(st.sampled_from(POLICIES), st.permutations(_devices("a::0@0 a::1@0 b::0@1 b::1@1 c::0@1")), st.integers(0, 5))
def test_answer_does_not_depend_on_the_order(policy: str, devices: list[Device], size: int) -> None:
    """The kubelet's order means nothing."""
    assert preferred(policy, sorted(devices, key=lambda d: d.id), [], size) == preferred(policy, devices, [], size)


@pytest.mark.parametrize(
    ("policy", "available", "must", "size", "chosen"),
    [
        ("none", "b::0 a::1 a::0", "", 2, "a::0 a::1"),
        # b has been used most: fewest of its replicas are left.
        ("packed", "a::0 a::1 a::2 b::1 c::0 c::1", "", 2, "b::1 c::0"),
        ("packed", "a::0 a::1 b::0 b::1", "b::0", 3, "b::0 b::1 a::0"),
        ("spread", "a::0 a::1 a::2 b::0 b::1 b::2", "", 2, "a::0 b::0"),
        ("spread", "a::0 a::1 a::2 b::1 c::0 c::1", "", 1, "a::0"),
        ("spread", "a::0 a::1 b::0 b::1", "a::0", 2, "a::0 b::0"),
        ("spread", "a::0 a::1 b::0", "", 3, "a::0 b::0 a::1"),
        # Both nodes have enough: the one where less is left over.
        ("numa", "a@0 b@0 c@0 d@1 e@1", "", 2, "d e"),
        ("numa", "a@0 b@0 c@0 d@1 e@1", "", 3, "a b c"),
        ("numa", "a@0 b@0 c@0 d@1 e@1", "", 4, "a b c d"),
        ("numa", "a@0 b@0 c@0 d@1 e@1", "a", 2, "a b"),
        ("numa", "a b c@1", "", 2, "c a"),
        ("numa", "a::0@0 a::1@0 b::0@0", "", 2, "a::0 b::0"),
    ],
)
def test_policies(policy: str, available: str, must: str, size: int, chosen: str) -> None:
    """What a policy chooses."""
    assert chosen.split() == preferred(policy, _devices(available), must.split(), size)


def test_device_near_two_nodes_counts_for_both() -> None:
    """A device near two NUMA nodes goes with either."""
    devices = [_device("a", (0, 1)), _device("b", (1,)), _device("c", (0,)), _device("d", (0,))]

    assert ["a", "b"] == preferred("numa", devices, [], 2)
