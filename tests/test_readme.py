"""What the README claims holds: its commands, its links, its counts and its limits."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from resource_extend import __version__
from support.checkout import REPOSITORY
from support.pages import PAGES
from support.toml import read_toml

README = (REPOSITORY / "README.md").read_text(encoding="utf-8")


def section(title: str) -> str:
    """Return the text of a section."""
    return README.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def test_two_commands_come_first() -> None:
    """The first block of the page holds the two commands that set everything up."""
    first = README.partition("```sh\n")[2].partition("```")[0]

    assert ["scripts/demo", "scripts/test"] == [line.split()[0] for line in first.splitlines()]


def test_every_command_is_explained() -> None:
    """What is executable in scripts/ stands in the README."""
    commands = [path.name for path in (REPOSITORY / "scripts").iterdir() if path.is_file() and os.access(path, os.X_OK)]

    assert [] == [name for name in commands if f"scripts/{name}" not in README]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(REPOSITORY)))
def test_links_lead_somewhere(page: Path) -> None:
    """Every link into the project names a file or a folder that exists."""
    links = re.findall(r"\]\((?!https?://|#)([^)#]+)", page.read_text(encoding="utf-8"))

    assert [] == [link for link in links if not (page.parent / link).exists()]


def test_the_protocol_takes_four_bullets() -> None:
    """The protocol is said in four bullets."""
    assert 4 == len(re.findall(r"^\* ", section("The protocol"), re.MULTILINE))


@pytest.mark.parametrize("title", ["Add a verb", "Add a plugin"])
def test_extending_takes_three_steps(title: str) -> None:
    """A verb and a plugin are added in three numbered steps."""
    assert ["1", "2", "3"] == re.findall(r"^(\d)\. ", section(title), re.MULTILINE)


def test_the_third_plugin_is_short() -> None:
    """The example that is called a hundred lines has about a hundred lines of code."""
    lines = (REPOSITORY / "examples/seats.py").read_text(encoding="utf-8").splitlines()

    assert 110 > len([line for line in lines if line.strip() and not line.strip().startswith(('"""', "#"))])


def test_the_limits_are_those_of_the_build() -> None:
    """Interpreters and machines that the README names are those of the recipes and of the package."""
    recipes = read_toml(REPOSITORY / "build/artefacts.toml")["plugin"].values()

    assert "CPython 3.10 to 3.13" in section("Limits")
    assert all({"3.10", "3.11", "3.12", "3.13"} <= set(recipe["versions"]) for recipe in recipes)
    assert all(["x86_64", "aarch64"] == recipe["machines"] for recipe in recipes)
    assert all("/usr/bin/python3" == recipe["interpreter"] for recipe in recipes)
    assert ">=3.10" == read_toml(REPOSITORY / "pyproject.toml")["project"]["requires-python"]


def test_there_is_one_version() -> None:
    """The package and the project's metadata agree on the version."""
    assert read_toml(REPOSITORY / "pyproject.toml")["project"]["version"] == __version__


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    """A clone that was never set up, beside a folder for programs."""
    shutil.copytree(REPOSITORY / "scripts", tmp_path / "clone/scripts")
    shutil.copytree(REPOSITORY / "requirements", tmp_path / "clone/requirements")
    shutil.copy(REPOSITORY / "pyproject.toml", tmp_path / "clone")
    (tmp_path / "bin").mkdir()
    for name in ("dirname", "readlink", "sh", "sha256sum", "cat", "rm"):
        found = shutil.which(name)
        assert found
        (tmp_path / "bin" / name).symlink_to(found)
    return tmp_path


def set_up(bare: Path) -> "subprocess.CompletedProcess[str]":
    """Run scripts/setup with nothing but the programs of the folder."""
    return subprocess.run(
        [bare / "clone/scripts/setup"],
        env={"PATH": str(bare / "bin"), "LC_ALL": "C"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("python", "found"),
    [("#!/bin/sh\necho Python 3.9.2\nexit 1\n", "Python 3.9.2"), (None, "")],
    ids=["old", "missing"],
)
def test_an_old_python_is_told(bare: Path, python: str | None, found: str) -> None:
    """Without a Python that is new enough the first line says what is needed and what is there; nothing is made."""
    if python:
        (bare / "bin/python3").write_text(python)
        (bare / "bin/python3").chmod(0o755)
    done = set_up(bare)

    assert (1, "") == (done.returncode, done.stdout)
    assert "needs Python 3.10 or newer as python3 on PATH" in done.stderr.splitlines()[0]
    assert found in done.stderr
    assert not (bare / "clone/.venv").exists()


def test_setting_up_again_does_nothing(bare: Path) -> None:
    """A finished environment is recognized by its Python and its locked requirements, and left alone."""
    python = bare / "bin/python3"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    clone = bare / "clone"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", clone / ".venv"], check=True)
    subprocess.run(
        "(pwd; sha256sum requirements/dev.txt pyproject.toml) >.venv/dev.stamp", shell=True, cwd=clone, check=True
    )

    assert (0, "", "") == ((done := set_up(bare)).returncode, done.stdout, done.stderr)
    with (clone / "requirements/dev.txt").open("a") as file:
        file.write("# changed\n")
    assert "Installing requirements/dev.txt into .venv\n" == set_up(bare).stdout
