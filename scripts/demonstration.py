"""The main job of both plugins, call by call: what core writes to a plugin, and what the plugin answers.

Everything happens in a temporary folder that is laid out as core's plugin directory, on an embedded SQLite store.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from installation import InstallError, install

WIDTH = min(shutil.get_terminal_size((110, 0)).columns, 110)
BOLD, DIM, RED, GREEN, BLUE = "1", "2", "31", "32", "34"
# The pieces of a JSON text that must stay on one line: up to and including a comma outside of texts.
PIECES = re.compile(r'(?:"(?:[^"\\]|\\.)*"|[^",])*,?')


def main(sources: list[Path]) -> int:
    """Show both plugins at work; the exit status is 1 when one of them does not do what is shown here."""
    with tempfile.TemporaryDirectory(prefix="resource-extend-") as temporary:
        folder = Path(temporary, "plugins")
        folder.mkdir()
        for kind in ("gpu", "storage"):
            Path(folder, f"{kind}.yaml").write_text("sqlite:\n  path: ../demo.db\n", encoding="utf-8")
        print(f"\n{painted('Install into a plugin directory, as scripts/install does', BOLD)}")
        try:
            install(sources, folder, replace=False)
            show_gpu(Plugin(folder, "resource-gpu"))
            show_storage(Plugin(folder, "resource-storage"))
        except (InstallError, UnexpectedAnswerError) as error:
            print(f"\n{error}", file=sys.stderr)
            return 1
    print("\nscripts/build makes the files for a cluster; scripts/install puts them where core looks for them.")
    return 0


def show_gpu(plugin: "Plugin") -> None:
    """Two nodes with cards: capacity, deploy, usage, the record, metrics."""
    plugin.introduce("cards, counted by product")
    cards = {"node-1": {"nvidia-3090": 4, "nvidia-a100": 2}, "node-2": {"nvidia-3090": 2}}
    for node, counts in cards.items():
        resource = {"prod_count_map": counts}
        plugin.call(f"{node} joins the cluster with its cards", "add-node", nodename=node, resource=resource, info=None)
    one_card = {"prod_count_map": {"nvidia-3090": 1}}
    plugin.call(
        "How many workloads with one nvidia-3090 fit, and where?",
        "get-nodes-deploy-capacity",
        nodenames=list(cards),
        workload_resource=one_card,
    )
    deploy: dict[str, Any] = {"nodename": "node-1", "workload_resource_request": one_card}
    plan = plugin.call("Calculate a deploy of two of them on node-1", "calculate-deploy", deploy_count=2, **deploy)
    plugin.record_usage("node-1", plan["workloads_resource"])
    plugin.read_back("node-1", plan["workloads_resource"])
    plugin.call("Three more do not fit there any longer", "calculate-deploy", False, deploy_count=3, **deploy)
    plugin.scrape(list(cards))


def show_storage(plugin: "Plugin") -> None:
    """One node with volumes on a disk: a deploy with a placed volume and a disk quota."""
    plugin.introduce("volumes, disk quotas and storage space, in bytes")
    resource = {
        "storage": "500G",
        "volumes": ["/data0:1T", "/data1:500G"],
        "disks": ["/dev/vda:/data0:2000:2000:1G:1G", "/dev/vdb:/data1:1000:1000:500M:500M"],
    }
    plugin.call("node-1 joins with its volumes and disks", "add-node", nodename="node-1", resource=resource, info=None)
    volume = {"volumes": ["AUTO:/var/lib/db:rw:100G:200:200:50M:50M"], "storage": "10G"}
    plugin.call(
        "How many workloads with such a volume fit?",
        "get-nodes-deploy-capacity",
        nodenames=["node-1"],
        workload_resource=volume,
    )
    plan = plugin.call(
        "Calculate a deploy: which device holds the volume?",
        "calculate-deploy",
        nodename="node-1",
        deploy_count=1,
        workload_resource_request=volume,
    )
    plugin.record_usage("node-1", plan["workloads_resource"])
    plugin.read_back("node-1", plan["workloads_resource"])
    plugin.scrape(["node-1"])


class UnexpectedAnswerError(Exception):
    """A plugin did not do what is shown here."""


@dataclass
class Plugin:
    """One installed plugin file, called and shown."""

    folder: Path
    name: str

    def introduce(self, resource: str) -> None:
        """Say which plugin is next."""
        print(f"\n{painted(self.name, BOLD, BLUE)}: {resource}")

    def call(self, title: str, verb: str, succeeds: bool = True, /, **request: Any) -> Any:
        """Run the file as core does, show both directions, return the answer."""
        text = json.dumps(request, separators=(",", ":"))
        done = subprocess.run(
            [self.folder / self.name, verb], cwd=self.folder, input=text, capture_output=True, text=True, check=False
        )
        print(f"\n  {painted(title, BOLD)}\n  $ {self.name} {verb}")
        show("stdin ", text, DIM)
        if done.stdout:
            show("stdout", done.stdout, GREEN)
        if done.stderr:
            show("stderr", f"{done.stderr.strip()}  (exit status {done.returncode})", RED)
        if succeeds != (done.returncode == 0):
            raise UnexpectedAnswerError(f"{self.name} {verb}: exit status {done.returncode}")
        return json.loads(done.stdout) if succeeds else None

    def record_usage(self, node: str, workloads: list[Any]) -> None:
        """Book workloads on their node, in the words of core."""
        self.call(
            f"Record what the new workloads use of {node}",
            "set-node-resource-usage",
            nodename=node,
            workloads_resource=workloads,
            resource=None,
            resource_request=None,
            delta=True,
            incr=True,
        )

    def read_back(self, node: str, workloads: list[Any]) -> None:
        """Read a node and compare its usage with its workloads."""
        self.call(
            f"Read {node} back: its usage is the sum of its workloads, so no diffs",
            "get-node-resource-info",
            nodename=node,
            workloads_resource=workloads,
        )

    def scrape(self, nodes: list[str]) -> None:
        """Ask for the metrics of nodes."""
        self.call("Scrape metrics", "get-metrics", nodes=[{"podname": "pod-1", "nodename": node} for node in nodes])


def show(stream: str, text: str, colour: str) -> None:
    """Print what went over a stream; a long JSON text is broken after commas, which leaves its meaning."""
    for line in broken(text, WIDTH - 10):
        print(f"  {stream} {painted(line, colour)}")
        stream = " " * len(stream)


def broken(text: str, width: int) -> Iterator[str]:
    """Break a JSON text into lines of at most `width` characters where that is possible."""
    line = ""
    for piece in PIECES.findall(text):
        if line and len(line) + len(piece) > width:
            yield line
            line = ""
        line += piece
    yield line


def painted(text: str, *codes: str) -> str:
    """Colour a text when a terminal shows it."""
    is_colourful = sys.stdout.isatty() and "NO_COLOR" not in os.environ
    return f"\033[{';'.join(codes)}m{text}\033[0m" if is_colourful else text


if __name__ == "__main__":
    sys.exit(main([Path(argument).resolve() for argument in sys.argv[1:]]))
