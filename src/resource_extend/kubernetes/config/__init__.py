"""The configuration of the device plugin: a YAML file, read strictly."""

from __future__ import annotations

from resource_extend.kubernetes.config.build import build
from resource_extend.kubernetes.config.description import TOP
from resource_extend.kubernetes.config.document import read_document
from resource_extend.kubernetes.model import Config

__all__ = ["load_config"]


def load_config(path: str) -> Config:
    """Read the configuration file. Raises ConfigError, whose text begins with `file:line:`."""
    return build(TOP.read(read_document(path)))
