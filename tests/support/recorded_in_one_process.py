"""Runs all recorded scenarios in one process and prints every outcome: `MODE SITE_PACKAGES FOLDER`.

Run by `python -I -S` with MODE `trimmed` or `full`: which msgspec the plugins see. With `trimmed` the core is created
before anything else is imported, as in a packed call; a module that is there already would stand in for its stand-in.
"""

# ruff: noqa: E402
import posix
import sys

mode, site_packages, folder = sys.argv[1:]
sys.path.insert(0, site_packages)
if mode == "trimmed":
    import _imp

    extension: "dict[str, Any]" = {"__name__": "extension"}
    with open(site_packages + "/resource_extend/packed/extension.py") as file:
        exec(file.read(), extension)
    path = f"{site_packages}/msgspec/_core{_imp.extension_suffixes()[0]}"
    extension["expose"](extension["create_trimmed"](posix.open(path, posix.O_RDONLY)))
else:
    import msgspec  # noqa: F401
typing = "typing" in sys.modules

import base64
import json
import sqlite3
import time
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from resource_extend.errors import PluginError
from resource_extend.process import respond
from resource_extend.store.sqlite import SqliteStore

PLUGINS = {
    "gpu": import_module("resource_extend.gpu.plugin").GpuPlugin,
    "storage": import_module("resource_extend.storage.plugin").StoragePlugin,
}
VECTORS = Path(__file__).parents[1] / "vectors"


class Constant:
    """A change of a record that knows its result."""

    def __init__(self, record: bytes) -> None:
        self.record = record

    def __call__(self, _: bytes | None) -> bytes:
        """Return the record."""
        return self.record


def run(scenario: "dict[str, Any]", number: int) -> "Iterator[Any]":
    """Yield what each step of a scenario answers, or the text of its failure, and what is stored then."""
    kind = scenario["kind"]
    database = Path(folder, f"{number}.db")
    config = Path(folder, f"{number}.yaml")
    text = f"sqlite:\n  path: {database}\n"
    if "max_deploy_count" in scenario:
        text += f"scheduler:\n  max_deploy_count: {scenario['max_deploy_count']}\n"
    config.write_text(text)
    for step in scenario["steps"]:
        for key, value in step.get("put", {}).items():
            store = SqliteStore(str(database), kind, time.monotonic() + 60)
            store.update(key.split("/", 2)[2], Constant(value.encode()))
        if "verb" in step:
            data = step["stdin"].encode() if "stdin" in step else b""
            data = base64.b64decode(step["stdin_b64"]) if "stdin_b64" in step else data
            data = json.dumps(step["request"]).encode() if "request" in step else data
            arguments = ["--config", str(config), step["verb"]]
            try:
                answer = respond(PLUGINS[kind], arguments, {}, lambda content=data: content, time.monotonic())  # type: ignore[misc]
                yield answer.decode()
            except PluginError as error:
                yield f"{type(error).__name__}: {error}".replace(folder, "")
    if database.exists():
        connection = sqlite3.connect(database)
        for (table,) in connection.execute("select name from sqlite_master where type = 'table'").fetchall():
            yield sorted(map(repr, connection.execute(f'select * from "{table}"')))
        connection.close()
    database.unlink(missing_ok=True)


outcomes: "list[Any]" = []
for kind in PLUGINS:
    for line in (VECTORS / f"{kind}.jsonl").read_text().strip().split("\n"):
        outcomes += run(json.loads(line), len(outcomes))
for each in json.loads((VECTORS / "core-requests.json").read_text()):
    kind = each["plugin"].removeprefix("resource-")
    steps = [{"verb": each["verb"], "stdin": each["stdin"]}]
    outcomes += run({"kind": kind, "steps": steps}, len(outcomes))
json.dump({"typing": typing, "outcomes": outcomes}, sys.stdout)
