"""The manual's page about the configuration against the configuration."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from resource_extend.kubernetes.config import description
from resource_extend.kubernetes.config.kinds import Section
from resource_extend.kubernetes.devices.command import KEYS, MOUNT_KEYS, NODE_KEYS, parse_line
from support.configuration import loader
from support.pages import Block, blocks

PAGE = Path(__file__).parents[2] / "docs/device-plugin-configuration.md"

SECTIONS: list[Section] = [
    description.TOP,
    description.RESOURCE,
    description.PATH,
    description.USB,
    description.PCI,
    description.SYSFS,
    description.SOURCE_COMMAND,
    description.HEALTH,
    description.ROOTS,
    description.FOLDERS,
]


def _tables() -> list[list[str]]:
    """Give the keys of each table, in order."""
    tables: list[list[str]] = []
    for line in PAGE.read_text().splitlines():
        if line.startswith("| Key |"):
            tables.append([])
        elif found := re.match(r"\| `(\w+)` \|", line):
            tables[-1].append(found[1])
    return tables


def test_every_key_is_in_the_manual() -> None:
    """The page's tables have the keys of the configuration, each in its section, and no others."""
    top, resource, sources, output, *others = _tables()
    written = [set(table) for table in (top, resource + sources + output, *others)]

    assert [set(section.keys) for section in SECTIONS] == written
    assert set(description.GROUP.keys) == set(sources + output)


@pytest.mark.parametrize("block", [b for b in blocks(PAGE) if b.language == "yaml"], ids=lambda block: block.place)
def test_configurations_load(block: Block, tmp_path: Path) -> None:
    """What the page shows as a configuration is one."""
    assert loader(tmp_path)(block.text).resources


def test_line_of_a_command() -> None:
    """The page's line has every key that a command may use, and is taken."""
    (block,) = [block for block in blocks(PAGE) if block.language == "json"]

    match = parse_line(block.text.replace("\n", ""), "line")

    assert set(KEYS) | set(NODE_KEYS) | set(MOUNT_KEYS) <= set(re.findall(r'"(\w+)":', block.text))
    assert ("GPU-1", 1, 1) == (match.text, len(match.nodes), len(match.mounts))
