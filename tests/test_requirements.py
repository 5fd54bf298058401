"""What is installed is locked: names, versions and hashes, for all that pyproject.toml asks for."""

import re
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from support.checkout import REPOSITORY
from support.toml import read_toml

PROJECT: dict[str, Any] = read_toml(REPOSITORY / "pyproject.toml")["project"]
GROUPS: dict[str, list[str]] = {"plugin": [], **PROJECT["optional-dependencies"]}


def asked(group: str) -> list[Requirement]:
    """Return what a group asks for, with what every group has, and with the groups that it names."""
    requirements = [Requirement(text) for text in [*PROJECT["dependencies"], *GROUPS[group]]]
    named = [
        extra for requirement in requirements if requirement.name == PROJECT["name"] for extra in requirement.extras
    ]
    own = [requirement for requirement in requirements if requirement.name != PROJECT["name"]]
    return own + [requirement for extra in named for requirement in asked(extra)]


def text(group: str) -> str:
    """Return the requirements file of a group."""
    return (REPOSITORY / f"requirements/{group}.txt").read_text(encoding="utf-8")


def locked(group: str) -> dict[str, str]:
    """Return the locked versions by name."""
    found = re.findall(r"^([\w.-]+)==(\S+)", text(group), re.MULTILINE)
    return {canonicalize_name(name): version for name, version in found}


@pytest.mark.parametrize("group", GROUPS)
def test_what_is_asked_for_is_locked(group: str) -> None:
    """Each group's file holds all that it asks for, in a version that fits; else scripts/lock was forgotten."""
    versions = locked(group)

    assert [] == [
        str(requirement)
        for requirement in asked(group)
        if not requirement.specifier.contains(versions.get(canonicalize_name(requirement.name), "none"), True)
    ]


@pytest.mark.parametrize("group", GROUPS)
def test_everything_has_hashes(group: str) -> None:
    """Each locked version is followed by its hashes."""
    assert [] == re.findall(r"^[\w.-]+==[^\n]*\n(?! +--hash=sha256:[0-9a-f]{64})", text(group), re.MULTILINE)
    assert locked(group)


@pytest.mark.parametrize("group", GROUPS)
def test_no_index_is_named(group: str) -> None:
    """Which index packages come from is the machine's affair."""
    assert "://" not in text(group)
    assert "index" not in text(group)


@pytest.mark.parametrize("group", GROUPS)
def test_groups_agree(group: str) -> None:
    """A package has one version, whichever group brings it, so one environment holds them all."""
    everything = locked("dev")

    assert {} == {name: version for name, version in locked(group).items() if everything.get(name, version) != version}
