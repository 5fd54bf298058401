"""Recorded scenarios: short histories of one cluster, each step with what it must answer and what must then be stored.

A line of a `.jsonl` file in tests/vectors is one scenario: `name`, `kind`, `max_deploy_count` (storage only) and
`steps`. A step either plants raw records (`put`: key to text, relative to the prefix) or is a call (`verb`, and what
goes to stdin: `request`, `stdin` or `stdin_b64`). Its `expect` holds `exit`, `response` or `error_contains`, and
`records`: everything stored after the step, by default the same as before it.
"""

import base64
import itertools
import json
import sqlite3
import time
from pathlib import Path
from typing import Any, Protocol

from resource_extend.store.sqlite import SqliteStore
from support.calls import Outcome, call_here, call_program, plugin_class
from support.etcd_client import EtcdClient

_numbers = itertools.count()  # of prefixes, so that no cluster sees another's records
VECTORS = Path(__file__).parents[1] / "vectors"


class Cluster(Protocol):
    """Where a scenario runs: something that answers calls, and the records behind it."""

    def call(self, verb: str, stdin: bytes) -> Outcome:
        """Call the plugin once."""
        ...

    def plant(self, key: str, value: str) -> None:
        """Store a raw value; the key is `resource/<kind>/<node>`."""
        ...

    def records(self) -> dict[str, str]:
        """Return every stored value by key."""
        ...


class SqliteCluster:
    """Calls of a plugin class in this process, over one SQLite file."""

    def __init__(self, folder: Path, kind: str, max_deploy_count: int | None = None) -> None:
        self._plugin = plugin_class(kind)
        self._database = folder / "records.db"
        self._config = folder / f"{kind}.yaml"
        self._config.write_text("sqlite: {path: records.db}\n" + _scheduler(max_deploy_count))

    def call(self, verb: str, stdin: bytes) -> Outcome:
        """Call the plugin once."""
        return call_here(self._plugin, ["--config", str(self._config), verb], stdin)

    def plant(self, key: str, value: str) -> None:
        """Store a raw value."""
        _, kind, node = key.split("/", 2)
        SqliteStore(str(self._database), kind, time.monotonic() + 5).update(node, lambda _: value.encode())

    def records(self) -> dict[str, str]:
        """Return every stored value by key."""
        if not self._database.exists() or not self._database.stat().st_size:
            return {}
        database = sqlite3.connect(self._database)
        rows = database.execute("SELECT kind, node, value FROM record").fetchall()
        database.close()
        return {f"resource/{kind}/{node}": value.decode() for kind, node, value in rows}


class EtcdCluster:
    """Executions of a plugin file over a real etcd, as core makes them: configuration in the working directory."""

    def __init__(
        self, program: Path, kind: str, client: EtcdClient, url: str, max_deploy_count: int | None = None
    ) -> None:
        self._program = program
        self._client = client
        self._prefix = f"/scenario-{next(_numbers)}"
        (program.parent / f"{kind}.yaml").write_text(
            f"etcd:\n  machines: [{url}]\n  prefix: {self._prefix}\n" + _scheduler(max_deploy_count)
        )

    def call(self, verb: str, stdin: bytes) -> Outcome:
        """Call the plugin once."""
        return call_program(self._program, [verb], stdin)

    def plant(self, key: str, value: str) -> None:
        """Store a raw value."""
        self._client.put(f"{self._prefix}/{key}", value)

    def records(self) -> dict[str, str]:
        """Return every stored value by key."""
        stored = self._client.read_prefix(f"{self._prefix}/")
        return {key.removeprefix(f"{self._prefix}/"): value for key, value in stored.items()}


def scenarios(kind: str) -> list[dict[str, Any]]:
    """Read the scenarios of a kind."""
    with (VECTORS / f"{kind}.jsonl").open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def first_difference(scenario: dict[str, Any], cluster: Cluster) -> str | None:
    """Run a scenario until it deviates; say how, or return None when it ran to its end."""
    stored: dict[str, Any] = {}
    for number, step in enumerate(scenario["steps"]):
        expected = step["expect"]
        stored = expected.get("records", stored)
        reason = None
        if "put" in step:
            for key, value in step["put"].items():
                cluster.plant(key, value)
        else:
            reason = _answer_differs(expected, cluster.call(step["verb"], _stdin(step)))
        found = {key: _value(text) for key, text in cluster.records().items()}
        if reason is None and not _same(stored, found):
            reason = f"stored {_text(found)}, expected {_text(stored)}"
        if reason is not None:
            asked = json.dumps({key: value for key, value in step.items() if key != "expect"}, ensure_ascii=False)
            return f"{scenario['name']}, step {number}, {asked}: {reason}"
    return None


def _answer_differs(expected: dict[str, Any], outcome: Outcome) -> str | None:
    if outcome.status != expected["exit"]:
        return f"status {outcome}, expected {expected}"
    if outcome.status == 0:
        if outcome.stderr or outcome.stdout != outcome.stdout.strip():
            return f"more than the answer in {outcome}"
        if not _same(expected["response"], json.loads(outcome.stdout)):
            return f"answer {outcome.stdout.decode()}, expected {_text(expected['response'])}"
        return None
    text = expected.get("error_contains", "")
    line = outcome.stderr.decode()
    one_line = line.endswith("\n") and line.count("\n") == 1 and len(line) > 1
    if outcome.stdout or not one_line or text not in line or "Traceback" in line or line.startswith("internal error"):
        return f"failure {outcome}, expected {text!r} in one line on stderr"
    return None


def _scheduler(max_deploy_count: int | None) -> str:
    return "" if max_deploy_count is None else f"scheduler:\n  max_deploy_count: {max_deploy_count}\n"


def _stdin(step: dict[str, Any]) -> bytes:
    if "stdin_b64" in step:
        return base64.b64decode(step["stdin_b64"])
    if "stdin" in step:
        return str(step["stdin"]).encode()
    return json.dumps(step.get("request", {})).encode()


def _value(text: str) -> object:
    """Return a stored text as JSON, as itself where it is none."""
    try:
        value: object = json.loads(text)
    except ValueError:
        return text
    return value


def _text(value: object) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False)


def _same(a: object, b: object) -> bool:
    """Compare as JSON: 1, 1.0 and true are three things, the order of keys is nothing."""
    return _text(a) == _text(b)
