"""The manual's pages as their code blocks, and how a block of a terminal session is checked."""

import re
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from markdown_it import MarkdownIt

from support.checkout import REPOSITORY

PAGES = [REPOSITORY / "README.md", *sorted(REPOSITORY.glob("docs/**/*.md"))]


class Block(NamedTuple):
    """A fenced block: its language, its text, the page and the line where it begins."""

    language: str
    text: str
    place: str


def blocks(page: Path) -> list[Block]:
    """Return the fenced blocks of a page in order."""
    tokens = MarkdownIt().parse(page.read_text(encoding="utf-8"))
    name = page.relative_to(REPOSITORY)
    return [
        Block(token.info, token.content, f"{name}:{token.map[0] + 1}")
        for token in tokens
        if token.type == "fence" and token.map
    ]


def commands(session: str) -> Iterator[tuple[str, str]]:
    """Split a terminal session into its commands, behind `$ ` and continued behind `> `, and what each prints."""
    command, output = "", ""
    for line in session.splitlines():
        if line.startswith("$ "):
            if command:
                yield command, output
            command, output = line[2:], ""
        elif line.startswith("> ") and not output:
            command += "\n" + line[2:]
        else:
            output += line + "\n"
    if command:
        yield command, output


def run(command: str, folder: Path, environ: Mapping[str, str]) -> str:
    """Run a command as a terminal shows it: both streams, and a newline after an answer that has none."""
    done = subprocess.run(
        ["sh", "-c", command],
        cwd=folder,
        env=dict(environ),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=60,
        check=False,
    )
    return done.stdout if done.stdout.endswith("\n") or not done.stdout else done.stdout + "\n"


def shows(expected: str, actual: str) -> bool:
    """Whether a page shows an output; `…` stands for any text."""
    pattern = ".*".join(re.escape(part) for part in expected.split("…"))
    return re.fullmatch(pattern, actual, re.DOTALL) is not None
