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

from benchmarks.harness import Case, Execution, rounds, spawn
from benchmarks.summary import BARE, summarize_all
from benchmarks.surroundings import ROOT
from resource_extend.codec import encode
from resource_extend.storage.binding import parse_binding
from resource_extend.storage.disk import Disk
from resource_extend.storage.resource import Record, Resource
from resource_extend.storage.schedule import place, state_of
from resource_extend.store.etcd import EtcdStore
from storage.comparison import counted
from storage.enumeration import enumerate_slots
from support.etcd import Etcd, running

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


def interleaved(functions: Sequence[Callable[[], object]], count: int = 7) -> list[float]:
    """Return the median seconds of each function."""
    times: list[list[float]] = [[] for _ in functions]
    for _ in range(count):
        for index, function in enumerate(functions):
            started = time.perf_counter()
            function()
            times[index].append(time.perf_counter() - started)
    return [statistics.median(each) for each in times]


# --- many nodes, as core calls


class Nodes:
    """A prefix of an etcd that holds nodes, and the calls about them."""

    def __init__(self, program: Path, folder: Path, etcd: Etcd, variant: Variant, count: int) -> None:
        folder.mkdir()
        self.program = program
        self.folder = folder
        self.names = [f"node-{number:05}" for number in range(count)]
        prefix = f"/{folder.name}"
        store = EtcdStore(etcd.settings(prefix=prefix), "storage", time.monotonic() + 3600)
        for number, name in enumerate(self.names):
            store.update(name, partial(_replaced, encode(node(variant, number))))
        (folder / "storage.yaml").write_text(f"etcd:\n  machines:\n    - {etcd.url}\n  prefix: {prefix}\n")
        self.cases: list[Case] = []
        interpreter = program.open("rb").readline().decode().removeprefix("#!").split()[0]
        self.add(BARE, (interpreter, "-I", "-S", "-c", "pass"), {})
        self.ask("floor", FLOOR)

    def ask(self, name: str, request: dict[str, Any]) -> None:
        """Add a query of the capacity of all nodes."""
        keys = {"nodenames": self.names, "workload_resource": request}
        self.add(name, (str(self.program), "get-nodes-deploy-capacity"), keys)

    def add(self, name: str, arguments: tuple[str, ...], request: dict[str, Any]) -> None:
        """Add a case. What it answers now it must answer in every round."""
        stdin = self.folder / f"{len(self.cases)}.json"
        stdin.write_text(json.dumps(request))
        environment = {"PATH": "/usr/bin:/bin", "HOME": os.environ.get("HOME", "/")}
        first = spawn(Execution(arguments, self.folder, environment, stdin, b""))
        if first.status:
            raise RuntimeError(f"{name}: {first.output.decode(errors='replace')}")
        self.cases.append(Case(name, [Execution(arguments, self.folder, environment, stdin, first.output)]))


def _replaced(value: bytes, _: bytes | None) -> bytes:
    return value


def many_nodes(program: Path, etcd: Etcd, folder: Path, sizes: list[int], count: int) -> Iterator[list[str]]:
    """Give a row for each variant and number of nodes: the ratio of each request to the bare interpreter."""
    for variant in VARIANTS:
        for size in sizes:
            if size > 1000 and variant.volumes > 4:
                continue
            nodes = Nodes(program, folder / f"{VARIANTS.index(variant)}-{size}", etcd, variant, size)
            for name, request in REQUESTS.items():
                nodes.ask(name, request)
            measured = summarize_all(rounds(nodes.cases, count if size <= 1000 else max(count // 3, 5)))
            figures = [measured[name] for name in ("floor", *REQUESTS)]
            ratios = [f"{each.ratio:.2f} ({each.processor_ratio:.2f})" for each in figures]
            yield [variant.name, str(size), f"{measured[BARE].median:.1f}", *ratios]


def one_deploy(program: Path, etcd: Etcd, folder: Path, count: int) -> list[list[str]]:
    """Measure a deploy of one, and of 1,000 workloads, on one node."""
    nodes = Nodes(program, folder / "deploy", etcd, VARIANTS[1], 1)
    request = {"volumes": [f"AUTO:/d:rw:1G:{QUOTAS}"]}
    for workloads in (1, 1000):
        keys = {"nodename": nodes.names[0], "deploy_count": workloads, "workload_resource_request": request}
        nodes.add(f"{workloads} workloads", (str(program), "calculate-deploy"), keys)
    return [
        [name, f"{one.median:.1f}", f"{one.ratio:.2f}", f"{one.processor_ratio:.2f}"]
        for name, one in summarize_all(rounds(nodes.cases, count)).items()
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
