"""Label selectors in kubectl's words."""

import pytest

from resource_extend.errors import InputError
from resource_extend.kubernetes.extended_resource.selectors import parse_selector

LABELS = {"pool": "a", "zone": "z1", "x.io/flag": ""}


@pytest.mark.parametrize(
    ("text", "matches"),
    [
        ("pool=a", True),
        ("pool==a", True),
        ("pool = b", False),
        ("pool!=b", True),
        ("pool!=a", False),
        ("none!=a", True),
        ("pool", True),
        ("none", False),
        ("!none", True),
        ("! pool", False),
        ("pool in (a, b)", True),
        ("pool in (b)", False),
        ("pool notin (b,c)", True),
        ("none notin (b)", True),
        ("pool notin (a)", False),
        ("pool=a,zone in (z1,z2),!none", True),
        ("pool=a,zone=z2", False),
        ("x.io/flag=", True),
        ("x.io/flag", True),
        ("in in (a)", False),
    ],
)
def test_a_selector_matches_as_in_kubectl(text: str, matches: bool) -> None:
    """All parts together; a missing label satisfies what is negated."""
    assert matches == parse_selector(text).matches(LABELS)


@pytest.mark.parametrize(
    "text", ["", ",", "pool=a,", "pool in a", "pool in (a", "=a", "pool=a b", "a//b", "pool in (a b)"]
)
def test_what_is_no_selector_is_refused(text: str) -> None:
    """The refusal quotes the text."""
    with pytest.raises(InputError, match="selector"):
        parse_selector(text)
