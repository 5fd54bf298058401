"""The fake kubelet as a program: commands on stdin, one JSON object a line on stdout."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import json
import signal
import sys
from collections.abc import Awaitable, Callable
from typing import Any

from resource_extend.kubernetes.fake_kubelet.kubelet import FakeKubelet
from resource_extend.kubernetes.fake_kubelet.pods import AdmissionError, ContainerError

PERIOD = 0.1  # seconds between looks for something to tell


class Console:
    """Runs a fake kubelet until stdin ends, `quit` or a signal; tells registrations and node changes as they happen."""

    def __init__(self, kubelet: FakeKubelet, write: Callable[[str], object] | None = None) -> None:
        self._kubelet = kubelet
        self._write = write or self._print
        self._told = 0
        self._node: dict[str, Any] = {}
        self.commands: dict[str, Callable[..., Awaitable[object]]] = {
            "node": self._show_node,
            "wait": self._wait,
            "admit": self._admit,
            "start": self._start_container,
            "delete": self._delete,
            "pods": self._pods,
            "drop": self._drop,
            "restart": self._restart,
            "age": self._age,
            "fault": self._fault,
            "help": self._help,
        }

    @staticmethod
    def _print(line: str) -> None:
        sys.stdout.write(line + "\n")
        sys.stdout.flush()

    def _tell(self, **fields: object) -> None:
        self._write(json.dumps(fields, default=_plain))

    async def run(self) -> None:
        """Start the kubelet, follow commands, stop it."""
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader()
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, reader.feed_eof)
        async with self._kubelet:
            self._tell(event="started", folder=self._kubelet.folder)
            teller = asyncio.ensure_future(self._watch())
            try:
                await self._follow(reader)
            finally:
                teller.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await teller

    async def _follow(self, reader: asyncio.StreamReader) -> None:
        while line := (await reader.readline()).decode("utf-8", "replace"):
            words = line.split()
            if words == ["quit"]:
                return
            if words:
                await self.command(*words)

    async def command(self, name: str, *words: str) -> None:
        """Do one command and tell its result."""
        try:
            result = await self.commands[name](*words)
        except (AdmissionError, ContainerError, TimeoutError) as error:
            self._tell(command=name, ok=False, error=str(error))
        except (KeyError, TypeError, ValueError) as error:
            self._tell(command=name, ok=False, error=f"{error!r}; see `help`")
        else:
            self._tell(command=name, ok=True, result=result)

    async def _watch(self) -> None:
        while True:
            for resource, endpoint, error in self._kubelet.registrations[self._told :]:
                self._tell(event="register", resource=resource, endpoint=endpoint, error=error)
                self._told += 1
            node = self._kubelet.node()
            if node != self._node:
                self._node = node
                self._tell(event="node", resources=node)
            await asyncio.sleep(PERIOD)

    async def _show_node(self) -> object:
        """Node: the extended resources of the node."""
        return self._kubelet.node()

    async def _wait(self, resource: str, allocatable: str, timeout: str = "10") -> object:
        """Wait RESOURCE ALLOCATABLE [SECONDS]: until the node shows so many."""
        return await self._kubelet.wait_for(resource, allocatable=int(allocatable), timeout=float(timeout))

    async def _admit(self, name: str, *requests: str) -> object:
        """Admit NAME RESOURCE=COUNT ...: admit a pod."""
        wanted = dict(request.split("=", 1) for request in requests)
        return await self._kubelet.admit(name, {resource: int(count) for resource, count in wanted.items()})

    async def _start_container(self, name: str) -> object:
        """Start NAME: start (again) the container of a pod."""
        return await self._kubelet.pods.start_container(self._kubelet.pods.pods["default", name])

    async def _delete(self, name: str) -> object:
        """Delete NAME: take a pod off the node."""
        self._kubelet.pods.delete(name)
        return name

    async def _pods(self) -> object:
        """Pods: all pods with their devices."""
        return list(self._kubelet.pods.pods.values())

    async def _drop(self, resource: str) -> object:
        """Drop RESOURCE: end its stream, no file is touched."""
        await self._kubelet.plugins.drop_streams(resource)
        return resource

    async def _restart(self, down: str = "0") -> object:
        """Restart [SECONDS]: end, stay away, start again."""
        await self._kubelet.restart(float(down))
        return None

    async def _age(self, seconds: str) -> object:
        """Age SECONDS: let time pass on the clock of the five minutes' grace."""
        self._kubelet.clock.advance(float(seconds))
        return self._kubelet.node()

    async def _fault(self, name: str, value: str) -> object:
        """Fault NAME VALUE: set a fault, as in `fault refuse 3`."""
        old = vars(self._kubelet.faults)[name]
        setattr(self._kubelet.faults, name, value == "true" if isinstance(old, bool) else type(old)(value))
        return self._kubelet.faults

    async def _help(self) -> object:
        """Help: all commands."""
        return [command.__doc__ for command in self.commands.values()] + ["Quit: end."]


def _plain(value: Any) -> Any:
    """Write dataclasses and messages as JSON."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    from google.protobuf.json_format import MessageToDict

    return MessageToDict(value, preserving_proto_field_name=True)
