"""What scheduling storage costs: one node beside plain enumeration, many nodes beside starting Python.

Part one places three mixes of bindings on one node of 12 volumes, with the shipped scheduler and with the enumeration
of the tests, in this process. Part two executes the built file over a real etcd, as core does: rounds in which every
command runs once in random order, the bare interpreter among them; a figure is the median over rounds of its time
divided by the bare interpreter's of the same round. Every answer is compared with the first one.
"""

import argparse
import json
import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests")]

from resource_extend.codec import encode  # noqa: E402
from resource_extend.storage.binding import parse_binding  # noqa: E402
from resource_extend.storage.disk import Disk  # noqa: E402
from resource_extend.storage.resource import Record, Resource  # noqa: E402
from resource_extend.storage.schedule import place  # noqa: E402
from resource_extend.storage.state import state_of  # noqa: E402
from resource_extend.store.etcd import EtcdStore  # noqa: E402
from storage.comparison import counted  # noqa: E402
from storage.enumeration import enumerate_slots  # noqa: E402
from support.etcd import Etcd, running  # noqa: E402

GIB, TIB = 1 << 30, 1 << 40
MAX_DEPLOY_COUNT = 10_000

ONE_NODE_MIXES = {
    "normal with quotas": [
        "AUTO:/dir0:rw:10GiB",
        "AUTO:/dir1:rw:20GiB:100:100:1M:1M",
        "/data0:/mnt:rw:0:100:100:1M:1M",
    ],
    "monopoly": ["AUTO:/dir2:rwm:100GiB", "AUTO:/dir3:rwm:200GiB"],
}
ONE_NODE_MIXES["both"] = ONE_NODE_MIXES["normal with quotas"] + ONE_NODE_MIXES["monopoly"]

QUOTAS = "100:100:1M:1M"
REQUESTS: dict[str, dict[str, Any]] = {
    "storage only": {"storage": "10G"},
    "AUTO:/d:rw:10G": {"volumes": ["AUTO:/d:rw:10G"]},
    "AUTO:/d:rwm:10G": {"volumes": ["AUTO:/d:rwm:10G"]},
    "normal with quotas": {"volumes": [f"AUTO:/d:rw:10G:{QUOTAS}"]},
    "mix with quotas": {
        "volumes": [
            f"AUTO:/a:rw:10G:{QUOTAS}",
            f"AUTO:/b:rw:20G:{QUOTAS}",
            f"AUTO:/c:rwm:100G:{QUOTAS}",
            f"/data0:/d:rw:0:{QUOTAS}",
        ]
    },
}
# Nothing fits: what is left is reading and decoding.
FLOOR = {"storage": "8191P"}


class Variant(NamedTuple):
    """How the nodes of a run differ."""

    name: str
    different_usage: bool = False
    different_capacity: bool = False
    volumes: int = 4
    disks: int = 2


VARIANTS = [
    Variant("equal"),
    Variant("all different", True),
    Variant("capacities too", True, True),
    Variant("12 volumes, 4 disks", True, False, 12, 4),
    Variant("the same, capacities too", True, True, 12, 4),
]


def node(variant: Variant, number: int) -> Record:
    """Make a node: volumes of 1 TiB, half of them partly used, disks that each mount some of them."""
    source = random.Random(number if variant.different_usage else 0)  # noqa: S311 - the same nodes in every run
    extra = number * 4096 if variant.different_capacity else 0
    volumes = {f"/data{index}": TIB + extra for index in range(variant.volumes)}
    quota = (1_000_000, 1_000_000, 1000 * GIB, 1000 * GIB)
    disks, used = [], []
    for index in range(variant.disks):
        name = f"/dev/vd{chr(ord('a') + index)}"
        mounts = [volume for place, volume in enumerate(volumes) if place % variant.disks == index]
        disks.append(Disk(name, mounts, *quota))
        used.append(Disk(name, mounts, *[source.randint(0, number // 200) for number in quota]))
    taken = {volume: source.randint(1, TIB // 2) for volume in list(volumes)[: variant.volumes // 2]}
    return Record(Resource(volumes, disks, sum(volumes.values())), Resource(taken, used, sum(taken.values())))


# --- one node, in this process


def one_node() -> list[list[str]]:
    """Time both schedulers on one node of 12 volumes, a disk each."""
    disk = (1_000_000, 1_000_000, 1000 * GIB, 1000 * GIB)
    record = Record(
        Resource({f"/data{i}": TIB for i in range(12)}, [Disk(f"disk{i:02}", [f"/data{i}"], *disk) for i in range(12)]),
        Resource({f"/data{i}": i * GIB for i in range(1, 12, 2)}),
    )
    state = state_of(record)
    rows = []
    for name, texts in ONE_NODE_MIXES.items():
        bindings = [parse_binding(text) for text in texts]
        slots = enumerate_slots(state, bindings, MAX_DEPLOY_COUNT)
        if len(slots) != counted(state, bindings, MAX_DEPLOY_COUNT):
            raise SystemExit(f"{name}: the schedulers differ")
        functions = [
            partial(function, state, bindings, MAX_DEPLOY_COUNT) for function in (enumerate_slots, place, counted)
        ]
        plain, placed, counting = interleaved(functions)
        figures = [f"{plain * 1e3:.2f}", f"{placed * 1e3:.3f}", f"{counting * 1e3:.3f}", f"{plain / placed:.0f}"]
        rows.append([name, str(len(slots)), *figures])
    return rows


def interleaved(functions: Sequence[Callable[[], object]], rounds: int = 7) -> list[float]:
    """Return the median seconds of each function."""
    times: list[list[float]] = [[] for _ in functions]
    for _ in range(rounds):
        for index, function in enumerate(functions):
            started = time.perf_counter()
            function()
            times[index].append(time.perf_counter() - started)
    return [statistics.median(each) for each in times]


# --- many nodes, as core calls


class Command(NamedTuple):
    """One program call: what runs, what goes to its stdin."""

    arguments: list[str]
    stdin: Path


class Measured(NamedTuple):
    """Medians of one command: milliseconds, and wall and processor time over the bare interpreter's."""

    milliseconds: float
    wall: float
    processor: float


def execute(command: Command) -> tuple[float, float, bytes]:
    """Run a program; return seconds from before its start to its end, processor seconds, and stdout and stderr."""
    reading, writing = os.pipe()
    actions = [
        (os.POSIX_SPAWN_OPEN, 0, str(command.stdin), os.O_RDONLY, 0),
        (os.POSIX_SPAWN_DUP2, writing, 1),
        (os.POSIX_SPAWN_DUP2, writing, 2),
    ]
    environment = {"PATH": "/usr/bin:/bin", "HOME": os.environ.get("HOME", "/")}
    started = time.perf_counter()
    process = os.posix_spawn(command.arguments[0], command.arguments, environment, file_actions=actions)
    os.close(writing)
    chunks = []
    while chunk := os.read(reading, 1 << 20):
        chunks.append(chunk)
    _, status, usage = os.wait4(process, 0)
    elapsed = time.perf_counter() - started
    os.close(reading)
    answer = b"".join(chunks)
    if status:
        raise SystemExit(f"{' '.join(command.arguments)}: {answer.decode(errors='replace')}")
    return elapsed, usage.ru_utime + usage.ru_stime, answer


def measure(commands: dict[str, Command], rounds: int) -> dict[str, Measured]:
    """Run all commands once a round, in random order; the one called "bare" is the yardstick."""
    expected = {name: execute(command)[2] for name, command in commands.items()}
    walls: dict[str, list[float]] = {name: [] for name in commands}
    processors: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(rounds):
        order = list(commands)
        random.shuffle(order)
        for name in order:
            wall, processor, answer = execute(commands[name])
            if answer != expected[name]:
                raise SystemExit(f"{name}: another answer than before")
            walls[name].append(wall)
            processors[name].append(processor)
    return {
        name: Measured(
            statistics.median(walls[name]) * 1e3,
            statistics.median(each / bare for each, bare in zip(walls[name], walls["bare"], strict=True)),
            statistics.median(each / bare for each, bare in zip(processors[name], processors["bare"], strict=True)),
        )
        for name in commands
    }


def interpreter_of(program: Path) -> str:
    """Return the interpreter that a built file's first line names."""
    with program.open("rb") as file:
        return file.readline().decode().removeprefix("#!").split()[0]


def commands_for(
    program: Path, folder: Path, etcd: Etcd, variant: Variant, nodes: int, requests: dict[str, dict[str, Any]]
) -> dict[str, Command]:
    """Fill a prefix with nodes; return a call for each request, with the bare interpreter and the floor."""
    folder.mkdir()
    prefix = f"/{folder.name}"
    store = EtcdStore(etcd.settings(prefix=prefix), "storage", time.monotonic() + 3600)
    names = [f"node-{number:05}" for number in range(nodes)]
    for number, name in enumerate(names):
        value = encode(node(variant, number))
        store.update(name, partial(_replaced, value))
    config = folder / "storage.yaml"
    config.write_text(f"etcd:\n  machines: [{etcd.url}]\n  prefix: {prefix}\n")
    nothing = folder / "nothing"
    nothing.touch()
    commands = {"bare": Command([interpreter_of(program), "-I", "-S", "-c", "pass"], nothing)}
    for index, (name, request) in enumerate([("floor", FLOOR), *requests.items()]):
        stdin = folder / f"{index}.json"
        stdin.write_text(json.dumps({"nodenames": names, "workload_resource": request}))
        commands[name] = Command([str(program), "--config", str(config), "get-nodes-deploy-capacity"], stdin)
    return commands


def _replaced(value: bytes, _: bytes | None) -> bytes:
    return value


def many_nodes(program: Path, etcd: Etcd, folder: Path, sizes: list[int], rounds: int) -> Iterator[list[str]]:
    """Give a row for each variant and number of nodes: the ratio of each request to the bare interpreter."""
    for variant in VARIANTS:
        for nodes in sizes:
            if nodes > 1000 and variant.volumes > 4:
                continue
            here = folder / f"{VARIANTS.index(variant)}-{nodes}"
            measured = measure(
                commands_for(program, here, etcd, variant, nodes, REQUESTS),
                rounds if nodes <= 1000 else max(rounds // 3, 5),
            )
            yield [
                variant.name,
                str(nodes),
                f"{measured['bare'].milliseconds:.1f}",
                *[f"{measured[name].wall:.2f} ({measured[name].processor:.2f})" for name in ("floor", *REQUESTS)],
            ]


def one_deploy(program: Path, etcd: Etcd, folder: Path, rounds: int) -> list[list[str]]:
    """Measure a deploy of one, and of 1,000 workloads, on one node."""
    request = {"volumes": [f"AUTO:/d:rw:1G:{QUOTAS}"]}
    commands = commands_for(program, folder / "deploy", etcd, VARIANTS[1], 1, {})
    for count in (1, 1000):
        stdin = folder / "deploy" / f"deploy-{count}.json"
        keys = {"nodename": "node-00000", "deploy_count": count, "workload_resource_request": request}
        stdin.write_text(json.dumps(keys))
        arguments = [*commands["floor"].arguments[:-1], "calculate-deploy"]
        commands[f"{count} workloads"] = Command(arguments, stdin)
    measured = measure(commands, rounds)
    return [
        [name, f"{one.milliseconds:.1f}", f"{one.wall:.2f}", f"{one.processor:.2f}"] for name, one in measured.items()
    ]


def table(title: str, head: list[str], rows: Iterable[list[str]]) -> None:
    """Print a Markdown table."""
    print(f"\n{title}\n\n| {' | '.join(head)} |\n|{'---|' * len(head)}")
    for row in rows:
        print(f"| {' | '.join(row)} |", flush=True)


def main(arguments: list[str]) -> int:
    """Run both parts and print their tables."""
    parser = argparse.ArgumentParser(prog="scripts/bench schedule", description=__doc__)
    parser.add_argument("--program", type=Path, default=ROOT / "dist" / "resource-storage.pyz")
    parser.add_argument("--rounds", type=int, default=31, help="rounds of each measurement (fewer above 1,000 nodes)")
    parser.add_argument("--nodes", type=int, nargs="+", default=[10, 100, 1000, 10_000])
    given = parser.parse_args(arguments)
    table(
        "One node of 12 volumes, at most 10,000 slots: milliseconds in one process",
        ["request", "slots", "plain enumeration", "placing, with plans", "counting", "enumeration / placing"],
        one_node(),
    )
    if not given.program.exists():
        print(f"\n{given.program} is not built: scripts/build", file=sys.stderr)
        return 1
    with running() as etcd, tempfile.TemporaryDirectory() as folder:
        head = ["nodes are", "nodes", "bare, ms", "floor", *REQUESTS]
        title = (
            "get-nodes-deploy-capacity, whole call over etcd: wall time (processor time) over the bare interpreter's"
        )
        rows = many_nodes(given.program, etcd, Path(folder), given.nodes, given.rounds)
        table(title, head, rows)
        table(
            "calculate-deploy on one node, whole call over etcd",
            ["call", "ms", "wall / bare", "processor / bare"],
            one_deploy(given.program, etcd, Path(folder), given.rounds),
        )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
