"""Reading TOML, with the standard library's reader or, on CPython 3.10, the package it came from."""

import importlib
import sys
from pathlib import Path
from typing import Any

_READER = importlib.import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")


def read_toml(path: Path) -> dict[str, Any]:
    """Return what a TOML file holds."""
    content: dict[str, Any] = _READER.loads(path.read_text(encoding="utf-8"))
    return content
