"""The device manager of a real kubelet, as the program `devicemanager` beside this file runs it, driven from asyncio.

The program takes one JSON object a line on stdin and answers each on stdout; what each command does is told in its
`main.go`. Here it is one more kubelet for the table of facts.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
from pathlib import Path
from typing import Any

from real_kubernetes.build import program
from support.kubelets import Admitted, Counts, RefusedError


class CommandError(Exception):
    """The program could not do what it was told."""


class DeviceManager:
    """One device manager on `folder`. Killed, it forgets its pods; `restart` keeps them, as a real node does."""

    def __init__(self, folder: Path, version: str, *words: str) -> None:
        self.folder = folder
        self.version = version
        self.generation = "le136" if tuple(map(int, version.split(".")[:2])) <= (1, 36) else "ge137"
        self.log = folder.parent / "kubelet.log"
        self._words = words
        self._answers: dict[int, asyncio.Future[Any]] = {}
        self._number = 0
        self._shown: dict[str, Counts] = {}

    async def __aenter__(self) -> DeviceManager:
        """Start."""
        self.folder.mkdir(parents=True, exist_ok=True)
        await self.spawn()
        return self

    async def __aexit__(self, *_error: object) -> None:
        """End in good order."""
        with contextlib.suppress(CommandError):
            await self.do("quit")
        await self.process.wait()
        await self._reader

    async def spawn(self) -> None:
        """Start the program."""
        path = program("devicemanager", self.version)
        pipe = asyncio.subprocess.PIPE
        with self.log.open("ab") as log:
            self.process = await asyncio.create_subprocess_exec(
                str(path), "-dir", str(self.folder), *self._words, stdin=pipe, stdout=pipe, stderr=log, limit=1 << 26
            )
        assert self.process.stdout is not None
        started = json.loads(await asyncio.wait_for(self.process.stdout.readline(), 20))
        assert "started" == started["event"], started
        self._reader = asyncio.ensure_future(self._read(self.process.stdout))

    async def _read(self, lines: asyncio.StreamReader) -> None:
        while line := await lines.readline():
            said = json.loads(line)
            if "event" in said:
                continue
            waiting = self._answers.pop(said["id"])
            if waiting.done():
                continue
            if said["ok"]:
                waiting.set_result(said.get("result"))
            else:
                waiting.set_exception(CommandError(said["error"]))
        for waiting in self._answers.values():
            waiting.set_exception(CommandError("the program ended"))
        self._answers.clear()

    async def do(self, command: str, **fields: object) -> Any:
        """Do one command and give its result. Raises CommandError."""
        self._number += 1
        self._answers[self._number] = waiting = asyncio.get_running_loop().create_future()
        line = json.dumps({"id": self._number, "cmd": command, "async": command != "quit", **fields})
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(line.encode() + b"\n")
            await self.process.stdin.drain()
        except ConnectionError as error:
            raise CommandError("the program ended") from error
        return await asyncio.wait_for(waiting, 60)

    async def kill(self) -> None:
        """End it as a crash does: kubelet.sock stays, and so does everything else."""
        self.process.send_signal(signal.SIGKILL)
        await self.process.wait()
        await self._reader

    # As one more kubelet for the facts

    async def counts(self, resource: str) -> Counts:
        """Give what the node would show. The kubelet writes 0 for what it dropped, and the entry stays."""
        said = await self.do("capacity")
        for name in said["deleted"]:
            self._shown[name] = (0, 0)
        if resource in said["capacity"]:
            self._shown[resource] = (said["capacity"][resource], said["allocatable"].get(resource))
        return self._shown.get(resource, (None, None))

    async def wait(self, resource: str, capacity: int | None, allocatable: int | None, timeout: float = 10) -> None:
        """Wait until the node shows that."""
        end = asyncio.get_running_loop().time() + timeout
        while (capacity, allocatable) != (shown := await self.counts(resource)):
            if asyncio.get_running_loop().time() > end:
                raise TimeoutError(f"{resource}: wanted {(capacity, allocatable)}, the node shows {shown}; {self.log}")
            await asyncio.sleep(0.02)

    async def admit(self, pod: str, requests: dict[str, int]) -> Admitted:
        """Admit a pod and start its container."""
        said = await self.do("allocate", pod=pod, containers=[{"name": "main", "resources": requests}])
        if not said["admitted"]:
            raise RefusedError(said["message"])
        view = said["containers"]["main"]
        devices = {name: sorted(ids) for name, ids in view["devices"].items()}
        return Admitted(devices, self._env(view))

    async def start(self, pod: str) -> dict[str, str]:
        """Start the container of a pod again."""
        return self._env(await self.do("start_container", pod=pod))

    @staticmethod
    def _env(view: Any) -> dict[str, str]:
        if "start_error" in view:
            raise RefusedError(view["start_error"])
        options: dict[str, Any] = view["options"] or {}
        return dict(options.get("envs", {}))

    async def delete(self, pod: str) -> None:
        """Take a pod off the node."""
        await self.do("delete_pod", pod=pod)

    async def health(self, pod: str) -> dict[str, str]:
        """Give the health of a pod's devices."""
        status = await self.do("pod_status", pod=pod)
        entries = status["containerStatuses"][0].get("allocatedResourcesStatus", [])
        return {one["resourceID"]: one["health"] for entry in entries for one in entry["resources"]}

    async def age(self, seconds: float) -> None:
        """Let time pass for plugins that are gone."""
        await self.do("age", seconds=seconds)

    async def restart(self) -> None:
        """End and start again, in the same process."""
        await self.do("restart", down=0.1)

    @property
    def socket(self) -> str:
        """The path of its kubelet.sock."""
        return os.path.join(self.folder, "kubelet.sock")
