"""A copy of what the front door needs of the project, with plugins that run from source as its built files."""

import shutil
from pathlib import Path

from support.calls import CLASSES, source_program

REPOSITORY = Path(__file__).parents[2]


class Checkout:
    """A project folder with scripts, examples and built files. `root` is the folder."""

    def __init__(self, root: Path) -> None:
        self.root = root
        (root / "dist").mkdir(parents=True)
        for part in ("scripts", "examples"):
            shutil.copytree(REPOSITORY / part, root / part)
        for kind in CLASSES:
            source_program(self.built(kind), kind)

    def built(self, kind: str) -> Path:
        """Return the built file of a kind."""
        return self.root / "dist" / f"resource-{kind}.pyz"

    def change(self, kind: str, note: str = "another build") -> bytes:
        """Make another build of a kind, and return what it holds."""
        with self.built(kind).open("a") as file:
            file.write(f"# {note}\n")
        return self.built(kind).read_bytes()
