"""The table of verbs, and which of them a plugin lists (specification, protocol 3)."""

from typing import Any

import pytest

from resource_extend.gpu.plugin import GpuPlugin
from resource_extend.plugin import Plugin
from resource_extend.verbs import ANSWER_NOTHING, REQUESTS, listed, method_name

# The answer of `verbs` as the specification has it.
REQUIRED = [
    "get-metrics-description",
    "get-metrics",
    "add-node",
    "remove-node",
    "get-nodes-deploy-capacity",
    "set-node-resource-capacity",
    "get-node-resource-info",
    "get-nodes-resource-info",
    "set-node-resource-info",
    "set-node-resource-usage",
    "get-most-idle-node",
    "fix-node-resource",
    "calculate-deploy",
    "calculate-realloc",
]


class Remapping(Plugin):
    """A plugin with both optional methods."""

    name = "remapping"

    def get_nodes_resource_info(self, nodenames: list[str]) -> Any:
        """Read many nodes."""

    def calculate_remap(self, nodename: str, workloads_resource: dict[str, Any]) -> Any:
        """Map anew."""


class Minimal(Plugin):
    """A plugin with neither."""

    name = "minimal"


def test_listed_verbs() -> None:
    """The verbs are listed in the protocol's order; the two optional ones only when the class has the method."""
    assert REQUIRED == listed(GpuPlugin)
    assert [*REQUIRED, "calculate-remap"] == listed(Remapping)
    assert [verb for verb in REQUIRED if verb != "get-nodes-resource-info"] == listed(Minimal)


def test_every_verb_has_a_method() -> None:
    """The method of a verb has its name with underscores, and each is described by the interface or optional."""
    assert "get_nodes_deploy_capacity" == method_name("get-nodes-deploy-capacity")
    assert {"get-nodes-resource-info", "calculate-remap"} == {
        verb for verb in REQUESTS if not hasattr(Plugin, method_name(verb))
    }


@pytest.mark.parametrize("verb", sorted(set(REQUIRED) - {"get-nodes-resource-info"}))
def test_a_missing_method_says_so(verb: str) -> None:
    """A class that does not override a required method fails with a text that names it."""
    rows = REQUESTS[verb] if verb != "get-metrics" else (("", "", "nodes"),)
    plugin: Any = Minimal(store=None, settings=None)  # type: ignore[arg-type]

    with pytest.raises(Exception, match=f"^Minimal does not implement {method_name(verb)}$"):
        getattr(plugin, method_name(verb))(**{argument: None for _, _, argument in rows})


def test_verbs_that_answer_nothing() -> None:
    """Two verbs answer an empty object."""
    assert ("remove-node", "set-node-resource-info") == ANSWER_NOTHING
