"""Calls a plugin file with each line of a session on a fresh SQLite file and prints what it answers: FILE SESSION."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path


def main(plugin: Path, session: Path) -> None:
    """Print one line a call: verb, status, both streams."""
    with tempfile.TemporaryDirectory() as folder:
        configuration = Path(folder, "plugin.yaml")
        configuration.write_text("sqlite:\n  path: nodes.db\n", encoding="utf-8")
        environ = {"HOME": os.environ["HOME"], "PATH": "/usr/bin:/bin"}
        calls = [json.loads(line) for line in session.read_text(encoding="utf-8").splitlines()]
        for verb, request in [("name", {}), ("verbs", {}), ("bogus", {}), ("calculate-deploy", {}), *calls]:
            done = subprocess.run(
                [plugin, "--config", str(configuration), verb],
                input=json.dumps(request).encode(),
                capture_output=True,
                env=environ,
                check=False,
            )
            print(verb, done.returncode, done.stdout.decode(), done.stderr.decode().strip())


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
