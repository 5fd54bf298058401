"""The published JSON Schema against what the plugin takes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from resource_extend.kubernetes.config.schema import schema, text
from resource_extend.kubernetes.model import ConfigError
from support.configuration import loader

ROOT = Path(__file__).parents[2]
PUBLISHED = ROOT / "docs/schema/device-plugin.schema.json"
EXAMPLES = sorted((ROOT / "examples/device-plugin").glob("*.yaml"))


def _valid(value: Any) -> bool:
    return bool(jsonschema.Draft202012Validator(schema()).is_valid(value))


def test_published_file_is_current() -> None:
    """The file in the manual is what the description makes; `python -m resource_extend.kubernetes.config.schema`."""
    assert PUBLISHED.read_text() == text()


def test_it_is_a_schema() -> None:
    """The file itself is valid against the schema of schemas."""
    jsonschema.Draft202012Validator.check_schema(json.loads(PUBLISHED.read_text()))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_examples_fit(path: Path) -> None:
    """Every example is taken by the schema (the plugin's own loader is held to them elsewhere)."""
    assert _valid(yaml.safe_load(path.read_text()))


GOOD = [
    "resources: [{name: example.com/resource, counter: 2}]",
    "devices: [{name: x, groups: [{count: 3, paths: [{path: /dev/fuse, permissions: mrw}]}]}]\ndomain: a.b",
    'resources: [{name: a.b/c, usb: [{vendor: "0403", product: 6001, serial: 12}], scanInterval: 500ms}]',
    'resources: [{name: a.b/c, pci: [{class: "0302"}], numa: false, health: {recovery: 2}}]',
    "resources: [{name: a.b/c, command: {command: [a, 1], timeout: 5}, env: {A_1: 5}}]",
]
BAD = [
    "{}",
    "resources: []",
    "resources: [{name: a.b/c}]",
    "resources: [{counter: 1}]",
    "resources: [{name: a.b/c, counter: 0}]",
    "resources: [{name: a.b/c, counter: one}]",
    "resources: [{name: a.b/c, counter: 1, colour: red}]",
    "resources: [{name: a.b/c, paths: [{path: /dev/a, regex: /dev/b}]}]",
    "resources: [{name: a.b/c, paths: [{path: dev/a}]}]",
    "resources: [{name: a.b/c, paths: [{path: /dev/a, type: device}]}]",
    "resources: [{name: a.b/c, usb: [{vendor: xyz}]}]",
    "resources: [{name: a.b/c, counter: 1, env: {1A: x}}]",
    "resources: [{name: a.b/c, counter: 1, scanInterval: soon}]",
    "resources: [{name: a.b/c, counter: 1}]\ndevices: [{name: a.b/d, counter: 1}]",
    "resources: [{name: a.b/c, counter: 1}]\nlogFormat: xml",
]


@pytest.mark.parametrize("configuration", GOOD)
def test_schema_and_plugin_take_the_same(configuration: str, tmp_path: Path) -> None:
    """What the plugin takes fits the schema."""
    assert loader(tmp_path)(configuration).resources
    assert _valid(yaml.safe_load(configuration))


@pytest.mark.parametrize("configuration", BAD)
def test_schema_and_plugin_refuse_the_same(configuration: str, tmp_path: Path) -> None:
    """What does not fit the schema is refused by the plugin, and the other way round."""
    with pytest.raises(ConfigError):
        loader(tmp_path)(configuration)
    assert not _valid(yaml.safe_load(configuration))
