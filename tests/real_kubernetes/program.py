"""The extended-resource program as a process, on a real cluster."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from typing import Any

from real_kubernetes.control_plane import ControlPlane

NAME = "kkloud.io/widget"
PROGRAM = os.environ.get("EXTENDED_RESOURCE", "").split() or [
    sys.executable,
    "-m",
    "resource_extend.kubernetes.extended_resource",
]


def say(text: str) -> None:
    """A line for whoever runs this."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


@dataclass(frozen=True)
class Ran:
    """What one call of the program left behind."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """Standard output as JSON."""
        return json.loads(self.out)


def run(plane: ControlPlane, *words: str, user: str = "admin") -> Ran:
    """Call the program."""
    command = [*PROGRAM, "--kubeconfig", plane.kubeconfig(user), *words]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=120)
    return Ran(done.returncode, done.stdout, done.stderr)


def succeed(plane: ControlPlane, *words: str, user: str = "admin") -> Ran:
    """Call the program, which has to succeed."""
    ran = run(plane, *words, user=user)
    assert 0 == ran.code, ran.out + ran.err
    return ran


def read_line(running: "subprocess.Popen[str]") -> str:
    """The next line of a program that is running, "" when it has ended."""
    assert running.stdout
    return running.stdout.readline()
