"""Loading a text as the device plugin's configuration."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from resource_extend.kubernetes.config import load_config
from resource_extend.kubernetes.model import Config

Load = Callable[[str], Config]


def loader(folder: Path) -> Load:
    """Load texts as a file of `folder` called config.yaml."""

    def load(text: str) -> Config:
        path = folder / "config.yaml"
        path.write_text(text)
        return load_config(str(path))

    return load
