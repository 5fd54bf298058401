"""The plugin: `get-most-idle-node` runs the case that the first node is named after, and answers what came out."""

from msgspec import Struct

from oddities import faults, parts
from resource_extend.plugin import Plugin

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from resource_extend.answers.capacity import MostIdleNode


class Shape(Struct):
    """No resource at all."""


def _unseen(text: str) -> str:
    """Never called in the build's session."""
    return f"unseen {text}"


class OdditiesPlugin(Plugin):
    """Cases by name."""

    name = "oddities"
    NodeResource = NodeRequest = WorkloadResource = WorkloadRequest = Shape

    def get_most_idle_node(self, nodenames: list[str]) -> "MostIdleNode":
        """Run a case."""
        from resource_extend.answers.capacity import MostIdleNode

        return MostIdleNode(self._run(nodenames[0]), 0)

    def _run(self, case: str) -> str:
        if case == "nothing":
            return "nothing"
        cases: dict[str, Callable[[], str]] = {
            "function": lambda: _unseen("text"),
            "defaults": lambda: parts.defaults(1) + parts.defaults(1, 3, "x", 4, d=(), e=1),
            "module default": lambda: str(parts.default_of_the_module()),
            "generator": lambda: str(list(parts.count(3))),
            "closure": lambda: str(parts.adder(2)(3)),
            "exceptions": lambda: ",".join(parts.caught(depth) for depth in range(3)),
            "shadowed": lambda: parts.shadowed("x"),
            "attributes": parts.by_attribute,
            "inside": parts.imported_inside,
            "objects": parts.objects,
            "names": lambda: f"{parts.Base.__module__} {parts.Base.__qualname__} {faults.DeepFault.__mro__[1:3]}",
        }
        return cases[case]()
