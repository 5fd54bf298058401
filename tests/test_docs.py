"""What the README and the manual show is what happens: their code blocks are run or read.

`console` is run and its output compared, `python` is run (a `text` block right behind it is its output), `sh` is for
what a test cannot do here: it must be sound and name scripts that exist. `yaml` and `json` are read.
"""

import json
import os
import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest
import yaml

from resource_extend.metrics import NodeOfPod
from resource_extend.settings import interpret
from resource_extend.verbs import REQUESTS
from resource_extend.yaml_full import parse_fully
from support.calls import CLASSES
from support.checkout import REPOSITORY, Checkout
from support.pages import PAGES, Block, blocks, commands, run, shows

LANGUAGES = {"console", "python", "sh", "yaml", "json", "text", "toml"}

each_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(REPOSITORY)))


def of_language(page: Path, language: str) -> list[Block]:
    """Return the blocks of one language."""
    return [block for block in blocks(page) if block.language == language]


@each_page
def test_blocks_have_a_known_language(page: Path) -> None:
    """Every block says what it is, so that none escapes the tests of this file."""
    assert [] == [block.place for block in blocks(page) if block.language not in LANGUAGES]


@each_page
def test_console_blocks(page: Path, tmp_path: Path) -> None:
    """A terminal session prints what the page shows; a page is one story, played in a clone that has been built."""
    checkout = Checkout(tmp_path / "clone")
    bin_folder = tmp_path / "bin"
    bin_folder.mkdir()
    (bin_folder / "python3").write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    (bin_folder / "python3").chmod(0o755)
    for kind in CLASSES:
        (bin_folder / f"resource-{kind}").symlink_to(checkout.built(kind))
    environ = {
        "PATH": f"{bin_folder}:/usr/bin:/bin",
        "HOME": str(tmp_path),
        "LC_ALL": "C.UTF-8",
        "PYTHONPATH": f"{REPOSITORY}/src:{REPOSITORY}/examples",
    }
    for block in of_language(page, "console"):
        for command, expected in commands(block.text):
            actual = run(command, checkout.root, environ)

            assert shows(expected, actual), f"{block.place}: $ {command}\n{actual}"


@each_page
def test_python_blocks(page: Path, tmp_path: Path) -> None:
    """The Python of a page runs, as one program, and prints what the page shows."""
    found = blocks(page)
    program = "\n".join(block.text for block in found if block.language == "python")
    if not program:
        return
    expected = "".join(
        block.text for before, block in pairwise(found) if before.language == "python" and block.language == "text"
    )
    environ = {**os.environ, "PYTHONPATH": f"{REPOSITORY}/src:{REPOSITORY}/examples"}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        cwd=tmp_path,
        env=environ,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert (0, expected, "") == (done.returncode, done.stdout, done.stderr)


@each_page
def test_sh_blocks(page: Path) -> None:
    """Commands that a test cannot run are sound shell, and their scripts exist."""
    for block in of_language(page, "sh"):
        subprocess.run(["sh", "-n"], input=block.text, text=True, check=True)
        for script in re.findall(r"(?:^|[\s;&])(scripts/[\w-]+)", block.text):
            assert os.access(REPOSITORY / script, os.X_OK), f"{block.place}: {script}"


@each_page
def test_yaml_blocks(page: Path) -> None:
    """YAML can be read; what configures a plugin is accepted by it."""
    for block in of_language(page, "yaml"):
        document = parse_fully(block.place, block.text)
        if isinstance(document, dict) and {"etcd", "sqlite"} & document.keys():
            interpret(block.place, document)
        else:
            list(yaml.safe_load_all(block.text))


@each_page
def test_json_blocks(page: Path) -> None:
    """JSON can be read."""
    for block in of_language(page, "json"):
        json.loads(block.text)


@pytest.mark.parametrize("name", ["gpu", "gpu-sqlite", "storage", "storage-sqlite"])
def test_example_configurations(name: str) -> None:
    """The example configurations are accepted as they are."""
    path = REPOSITORY / "examples" / f"{name}.yaml"

    settings = interpret(str(path), parse_fully(str(path), path.read_text(encoding="utf-8")))

    assert name.endswith("-sqlite") == bool(settings.sqlite_path)


def test_the_protocol_page_names_every_verb_and_key() -> None:
    """The page's table has the verbs of the program, in their order, each with the keys of its request."""
    page = (REPOSITORY / "docs/protocol.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([a-z-]+)` \|([^|]*)\|", page, re.MULTILINE)
    keys_of = {verb: [key for key, _, _ in keys] for verb, keys in REQUESTS.items()}
    keys_of["get-metrics"] = ["nodes", *NodeOfPod.__struct_fields__]

    assert list(keys_of.items()) == [(verb, re.findall(r"`(\w+)`", keys)) for verb, keys in rows]
