"""The name rule of extended resources (specification, kubernetes 2.3)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resource_extend.errors import InputError
from resource_extend.kubernetes.names import check_name, is_extended, name_fault

GOOD = ["example.com/x", "a.b/X_y.z-1", "kkloud.io/widget", "a/x", "1.2/3", "a" * 244 + "/x", "example.com/" + "x" * 63]
BAD = {
    "": "no domain",
    "widget": "no domain",
    "cpu": "built-in",
    "memory": "built-in",
    "pods": "built-in",
    "ephemeral-storage": "built-in",
    "hugepages-2Mi": "built-in",
    "attachable-volumes-aws-ebs": "built-in",
    "kubernetes.io/x": "kubernetes.io/",
    "node.kubernetes.io/x": "kubernetes.io/",
    "mykubernetes.io/x": "kubernetes.io/",
    "requests.example.com/x": "requests.",
    "Example.com/x": "DNS name",
    "/x": "DNS name",
    "-a/x": "DNS name",
    "a-/x": "DNS name",
    "a..b/x": "DNS name",
    "a_b/x": "DNS name",
    "example.com\n/x": "DNS name",
    "a" * 245 + "/x": "at most 244",
    "example.com/": "after the slash",
    "example.com/-x": "after the slash",
    "example.com/x-": "after the slash",
    "example.com/x\n": "after the slash",
    "example.com/é": "after the slash",
    "example.com/" + "x" * 64: "at most 63",
    "example.com/x/y": "exactly one slash",
}


@pytest.mark.parametrize("name", GOOD)
def test_good_names_are_returned_as_they_are(name: str) -> None:
    """A name that meets all four parts of the rule passes unchanged."""
    assert name == check_name(name)
    assert is_extended(name)


@pytest.mark.parametrize(("name", "rule"), BAD.items())
def test_a_bad_name_is_refused_with_its_rule(name: str, rule: str) -> None:
    """The refusal names the text and the part of the rule that it breaks, on one line."""
    with pytest.raises(InputError) as caught:
        check_name(name)

    assert repr(name) in str(caught.value)
    assert rule in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not is_extended(name)


@given(st.text())
def test_any_text_gets_an_answer(text: str) -> None:
    """Whatever the text is, it is either accepted or refused with a reason of one line."""
    assert "\n" not in name_fault(text)
