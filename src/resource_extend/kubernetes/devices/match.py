"""What a member of a group found: one piece of hardware or one path, not yet a device."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Protocol

from resource_extend.errors import InputError
from resource_extend.kubernetes.devices.identity import Identity
from resource_extend.kubernetes.devices.tree import Tree
from resource_extend.kubernetes.model import Mount

VARIABLES = ("match", "id", "path", "name")
_VARIABLE = re.compile(r"\{([A-Za-z_]+)\}")


@dataclass(frozen=True, slots=True)
class NodeFound:
    """A device node of the host. `alias` is a template of its path in the container, "" for the host's own path.

    `number` is the device number (major and minor) or 0; with the path it says whether a node is still the same.
    `shared`: other resources hand it out too.
    """

    host_path: str
    alias: str = ""
    permissions: str = "rw"
    number: int = 0
    shared: bool = False


@dataclass(frozen=True, slots=True)
class Match:
    """One thing found.

    `text` is its match variable, `path` its main host path ("" without one), `reason` why it cannot be used now (""
    when it can), `env`, `annotations` and `cdi_names` what it brings itself. Container paths in `mounts` are templates.
    """

    identity: Identity
    text: str
    path: str = ""
    nodes: tuple[NodeFound, ...] = ()
    mounts: tuple[Mount, ...] = ()
    numa: tuple[int, ...] = ()
    reason: str = ""
    env: tuple[tuple[str, str], ...] = ()
    annotations: tuple[tuple[str, str], ...] = ()
    cdi_names: tuple[str, ...] = ()

    def brings_something(self) -> bool:
        """Tell whether a container gets anything with it."""
        return bool(self.nodes or self.mounts or self.env or self.annotations or self.cdi_names)


class Finder(Protocol):
    """Looks for the matches of one member, again and again.

    What was found is made into matches only when somebody needs them: thousands of devices should not be kept twice.
    """

    def look(self) -> bool:
        """Look again, and tell whether anything changed since the last time; the first time it did."""
        ...

    def matches(self) -> list[Match]:
        """Give what the last look found, in a stable order."""
        ...


class Member(Protocol):
    """What the configuration says about one member of a group."""

    @property
    def optional(self) -> bool:
        """Tell whether a device can do without it."""
        ...

    @property
    def limit(self) -> int:
        """Say in how many devices of the group one match may be used; 0 for any number."""
        ...

    def open(self, tree: Tree) -> Finder:
        """Make the finder."""
        ...


def travels(text: str) -> bool:
    """Tell whether a text can go to the kubelet, whose decoder is strict (specification, kubernetes 1.1), and on."""
    return "\0" not in text and text == text.encode("utf-8", "replace").decode()


def check_template(text: str) -> str:
    """Return a template. Raises InputError when it uses a variable that does not exist."""
    for name in _VARIABLE.findall(text):
        if name not in VARIABLES:
            known = ", ".join(f"{{{variable}}}" for variable in VARIABLES)
            raise InputError(f"unknown variable {{{name}}} in {text!r}: use {known}")
    return text


def fill(template: str, values: dict[str, str]) -> str:
    """Put values into a template; a variable without a value stays as it is."""
    return _VARIABLE.sub(lambda found: values.get(found[1], found[0]), template) if "{" in template else template
