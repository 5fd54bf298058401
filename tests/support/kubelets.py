"""What the kubelet facts ask of a kubelet, and the fake one behind it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from resource_extend.kubernetes.fake_kubelet import AdmissionError, ContainerError, FakeKubelet

Counts = tuple[int | None, int | None]


class RefusedError(Exception):
    """The kubelet refused a pod, or could not start a container; the text is its own."""


@dataclass(frozen=True)
class Admitted:
    """What a pod's container got: ids by resource, and its environment."""

    devices: dict[str, list[str]]
    env: dict[str, str]


class Node(Protocol):
    """A kubelet's device manager: the fake one, or a real one."""

    folder: Path
    generation: str

    async def counts(self, resource: str) -> Counts:
        """Give (capacity, allocatable) as the node shows it after a status sync now; None is absent."""
        ...

    async def wait(self, resource: str, capacity: int | None, allocatable: int | None, timeout: float = 10) -> None:
        """Wait until the node shows that. Raises TimeoutError."""
        ...

    async def admit(self, pod: str, requests: dict[str, int]) -> Admitted:
        """Admit a pod of one container. Raises RefusedError."""
        ...

    async def start(self, pod: str) -> dict[str, str]:
        """Start the container of a pod again and give its environment. Raises RefusedError."""
        ...

    async def delete(self, pod: str) -> None:
        """Take a pod off the node."""
        ...

    async def health(self, pod: str) -> dict[str, str]:
        """Give the health of a pod's devices as its status tells it."""
        ...

    async def age(self, seconds: float) -> None:
        """Let time pass for plugins that are gone."""
        ...

    async def restart(self) -> None:
        """End the kubelet and start it again, pods running on."""
        ...


class FakeNode:
    """The fake kubelet."""

    def __init__(self, kubelet: FakeKubelet, generation: str) -> None:
        self.kubelet = kubelet
        self.folder = Path(os.fspath(kubelet.folder))
        self.generation = generation

    async def counts(self, resource: str) -> Counts:
        """Give what the node shows."""
        shown = self.kubelet.node().get(resource)
        return (shown.capacity, shown.allocatable) if shown else (None, None)

    async def wait(self, resource: str, capacity: int | None, allocatable: int | None, timeout: float = 10) -> None:
        """Wait until the node shows that."""
        await self.kubelet.wait_for(resource, capacity=capacity, allocatable=allocatable, timeout=timeout)

    async def admit(self, pod: str, requests: dict[str, int]) -> Admitted:
        """Admit a pod."""
        try:
            made = await self.kubelet.admit(pod, requests)
        except AdmissionError as error:
            raise RefusedError(str(error)) from error
        env = await self.start(pod)
        return Admitted({name: sorted(ids) for name, ids in made.devices.items()}, env)

    async def start(self, pod: str) -> dict[str, str]:
        """Start the container of a pod."""
        try:
            answers = await self.kubelet.pods.start_container(self.kubelet.pods.pods["default", pod])
        except ContainerError as error:
            raise RefusedError(str(error)) from error
        return {key: text for answer in answers.values() for key, text in answer.envs.items()}

    async def delete(self, pod: str) -> None:
        """Take a pod off the node."""
        self.kubelet.pods.delete(pod)

    async def health(self, pod: str) -> dict[str, str]:
        """Give the health of a pod's devices."""
        return self.kubelet.pods.health(self.kubelet.pods.pods["default", pod])

    async def age(self, seconds: float) -> None:
        """Let time pass."""
        self.kubelet.clock.advance(seconds)

    async def restart(self) -> None:
        """End and start again."""
        await self.kubelet.restart(down=0.1)
