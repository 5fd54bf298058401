"""The settings of shiv's bootstrap, fixed when the file is built. Takes the place of shiv's module of this name.

shiv's own lets variables of the environment choose what runs: SHIV_INTERPRETER executes stdin, SHIV_ENTRY_POINT other
code. A plugin's environment is its caller's, so here they mean nothing.
"""

import json
from typing import Any


class Environment:
    """What `environment.json` says, as the bootstrap asks for it."""

    # Names of the variables that the bootstrap takes out of the environment before it starts the program.
    MODULE = "SHIV_MODULE"
    ENTRY_POINT = "SHIV_ENTRY_POINT"
    CONSOLE_SCRIPT = "SHIV_CONSOLE_SCRIPT"

    interpreter = None
    script = None
    preamble = None
    no_modify = False
    extend_pythonpath = False
    compile_pyc = False
    compile_workers = 0
    force_extract = False  # `fallback` has unpacked by then.
    # Set by `fallback`; `folder` is the site-packages below the root.
    root: "str | None" = None
    folder = ""

    def __init__(self, build_id: str, entry_point: str) -> None:
        self.build_id = build_id
        self.entry_point = entry_point

    @classmethod
    def from_json(cls, text: str) -> "Environment":
        """Read the archive's `environment.json`."""
        members: dict[str, Any] = json.loads(text)
        return cls(members["build_id"], members["entry_point"])

    @property
    def prepend_pythonpath(self) -> str:
        """The extracted packages stand before everything that PYTHONPATH may name."""
        return self.folder
