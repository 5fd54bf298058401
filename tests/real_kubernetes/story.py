"""The story of the manual's device plugin tutorial, played on a whole real node; the page has to tell what happened.

usage: python -m real_kubernetes.story [--write]

It takes some six minutes, five of which are the kubelet's grace for a plugin that is gone. With --write the page gets
the output of this run.
"""

from __future__ import annotations

import argparse
import difflib
import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from real_kubernetes.control_plane import ControlPlane, wait_until
from real_kubernetes.kubelet import Kubelet
from real_kubernetes.plugin import DEVICE_PLUGIN
from real_kubernetes.program import PROGRAM as EXTENDED_RESOURCE
from support.checkout import REPOSITORY

PAGE = REPOSITORY / "docs" / "device-plugin-tutorial.md"
NAME = "example.com/resource"
CONFIG = f"resources: [{{name: {NAME}, counter: 2}}]\n"
FIRST, SECOND = "f71ef937-0", "f71ef937-1"
GRACE = 330  # seconds to wait for the kubelet's five minutes


class Story:
    """What is typed and what is seen, block by block, as the page shows it."""

    def __init__(self, plane: ControlPlane, node: Kubelet, folder: Path) -> None:
        self.plane = plane
        self.node = node
        self.log = folder / "log"
        self.config = folder / "config.yaml"
        self.config.write_text(CONFIG)
        self.blocks: list[str] = []
        self._logged = 0

    def show(self, typed: str, seen: str) -> None:
        """Add a block of a command and its output."""
        self.blocks.append(f"$ {typed}\n{seen.rstrip()}".rstrip() + "\n")

    def ls(self) -> None:
        """Show the kubelet's folder; a socket's name is another one each time."""
        names = sorted(os.listdir(self.node.plugins))
        seen = [re.sub(r"(rex-[0-9a-f]{8})-.*\.sock", r"\1-….sock", name) for name in names]
        self.show("ls /var/lib/kubelet/device-plugins", "\n".join(seen))

    def numbers(self) -> None:
        """Show what the node object says of capacity and allocatable; nothing where the entry is gone."""
        path = "{.status.capacity.example\\.com/resource} {.status.allocatable.example\\.com/resource}"
        shown = " ".join(number or "" for number in self.plane.shows(self.node.name, NAME))
        self.show(f"kubectl get node {self.node.name} -o jsonpath='{path}'", shown)

    def phase(self, pod: str) -> None:
        """Show what a pod is doing."""
        self.show(f"kubectl get pod {pod} -o jsonpath='{{.status.phase}}'", self.plane.pod(pod)["status"]["phase"])

    def logged(self) -> str:
        """Give the plugin's new log lines, without their times and numbers that differ each time."""
        lines = self.log.read_text().splitlines()
        new, self._logged = lines[self._logged :], len(lines)
        # Register's end and the first list cross each other, so either may be logged first.
        for number, line in enumerate(new[:-1]):
            if " list sent:" in line and " wait_stream:" in new[number + 1]:
                new[number], new[number + 1] = new[number + 1], line
        return "\n".join(re.sub(r"pid=\d+ ", "", line.partition(" ")[2]) for line in new)

    def wait_logged(self, event: str) -> None:
        """Wait for an event in the log."""
        wait_until(lambda: f" {event}" in self.log.read_text(), 30, f"{event} in the log")

    @contextmanager
    def plugin(self) -> Iterator[subprocess.Popen[bytes]]:
        """Run the plugin."""
        words = [*DEVICE_PLUGIN, "run", "--config", str(self.config), "--plugin-dir", str(self.node.plugins)]
        with self.log.open("ab") as log, subprocess.Popen(words, stderr=log) as process:
            try:
                yield process
            finally:
                process.terminate()

    def call(self, program: list[str], *words: str) -> str:
        """Run a command of one of our programs."""
        done = subprocess.run([*program, *words], capture_output=True, text=True, timeout=120, check=True)
        return done.stdout


def play(story: Story) -> None:
    """Play it: the plugin comes, pods use its devices, the plugin goes."""
    node, plane = story.node, story.plane
    story.ls()
    with story.plugin() as plugin:
        node.wait_shows(NAME, 2, 2)
        story.wait_logged("active")
        story.show("device-plugin run --config config.yaml", story.logged())
        story.ls()
        story.numbers()
        plane.make_pod("w-one", {NAME: "1"})
        got = node.container("w-one/main")
        node.wait_phase("w-one", "Running")
        story.phase("w-one")
        story.blocks.append(f"{story.logged()}\n")
        environment = sorted(f"{key}={text}" for key, text in got["envs"].items() if key.startswith("EXAMPLE"))
        story.show("kubectl exec w-one -- env | grep ^EXAMPLE", "\n".join(environment))
        socket = node.root / "pod-resources" / "kubelet.sock"
        story.show("device-plugin status", story.call(DEVICE_PLUGIN, "status", "--pod-resources", str(socket)))
        plane.make_pod("w-two", {NAME: "2"})
        typed = "kubectl get events --field-selector reason=FailedScheduling -o jsonpath='{.items[*].message}'"
        story.show(typed, plane.unschedulable("w-two"))
        plane.delete_pod("w-two")
        plugin.terminate()
        plugin.wait(10)
    node.wait_shows(NAME, 2, 0)
    story.blocks.append(f"{story.logged()}\n")
    story.ls()
    story.numbers()
    story.phase("w-one")
    plane.delete_pod("w-one")
    node.wait_shows(NAME, 0, 0, GRACE)
    story.numbers()
    kubeconfig = ("--kubeconfig", plane.kubeconfig("admin"))
    words = ("unset", NAME, "--node", node.name, "--force")
    story.show(f"extended-resource {shlex.join(words)}", story.call(EXTENDED_RESOURCE, *kubeconfig, *words))
    time.sleep(5)
    assert (None, None) == plane.shows(node.name, NAME), "it stays away"
    story.numbers()


def same_device(text: str) -> str:
    """Tell the story of the device that the kubelet picked, which may be either, as the first one's."""
    if f"devices={SECOND}" in text:
        return text.replace(FIRST, "\0").replace(SECOND, FIRST).replace("\0", SECOND)
    return text


def fill(page: str, blocks: list[str]) -> str:
    """Put the blocks into the page's own, in order. Raises ValueError when their number is another one."""
    pattern = re.compile(r"(```text\n)(.*?)(```)", re.DOTALL)
    places = len(pattern.findall(page))
    if places != len(blocks):
        raise ValueError(f"the page has {places} blocks of the story, the story {len(blocks)}:\n\n" + "\n".join(blocks))
    left = iter(blocks)
    return pattern.sub(lambda found: found[1] + next(left) + found[3], page)


def main(*, write: bool) -> int:
    """Play the story and compare the page with it."""
    with tempfile.TemporaryDirectory() as folder, ControlPlane() as plane, Kubelet(plane) as node:
        story = Story(plane, node, Path(folder))
        play(story)
    page = PAGE.read_text(encoding="utf-8")
    told = fill(page, same_device("\f".join(story.blocks)).split("\f"))
    if write:
        PAGE.write_text(told, encoding="utf-8")
    difference = list(difflib.unified_diff(page.splitlines(), told.splitlines(), "page", "this run", lineterm=""))
    sys.stdout.write("\n".join([*difference, "the page is rewritten" if write else "story played"]) + "\n")
    return 1 if difference and not write else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true")
    raise SystemExit(main(write=parser.parse_args().write))
