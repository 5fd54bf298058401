"""The life of one resource with the kubelet: serve, register, be watched, notice a loss, begin again.

    INIT -> SERVING -> REGISTERING -> WAIT_STREAM -> ACTIVE -> LOST -> (delay) -> INIT -> SERVING on a new socket ...

INIT waits for the kubelet's socket. Every round has a socket name of its own, the old stream is ended before the new
socket registers (kubelets up to 1.36 would let the late end of the old one disconnect the new one), and nothing but an
open stream counts as success (specification, kubernetes 2.6 and 2.13). A round ends with a reason in words; the delay
before the next one grows from 1 s to 30 s, starts small again after an open stream, and is cut short when the kubelet
makes its socket again.
"""

from __future__ import annotations

import asyncio
import enum
import os
import time
from collections.abc import Callable

import grpc

from resource_extend.errors import PluginError
from resource_extend.kubernetes import api, rpc, sockets
from resource_extend.kubernetes.endpoint import Endpoint
from resource_extend.kubernetes.folder import PluginFolder
from resource_extend.kubernetes.logs import LOGGER, note, warn
from resource_extend.kubernetes.loss import Delay, LostError, refusal
from resource_extend.kubernetes.service import Service, options

REGISTER_DEADLINE = 20.0  # seconds; the kubelet dials back for up to 10 s inside the call
STREAM_WAIT = 20.0  # seconds from Register to the kubelet's ListAndWatch
SETTLE = 0.1  # seconds between the end of an old stream and the next socket


class State(enum.Enum):
    """Where a resource stands with the kubelet."""

    INIT = "init"
    SERVING = "serving"
    REGISTERING = "registering"
    WAIT_STREAM = "wait_stream"
    ACTIVE = "active"
    LOST = "lost"
    STOPPED = "stopped"


class Lifecycle:
    """Keeps one resource registered until it is stopped.

    `folder` is the kubelet's device plugin folder. With `registry` (and `registry_host`, the same folder as the kubelet
    sees it) the socket is made there and the kubelet finds it by itself instead.
    """

    def __init__(
        self,
        service: Service,
        folder: PluginFolder,
        *,
        registry: str = "",
        registry_host: str = "",
        delay: Delay | None = None,
    ) -> None:
        self.state = State.INIT
        self.since = time.monotonic()
        self.reason = ""
        self.endpoint: Endpoint | None = None
        self.stream_wait = STREAM_WAIT
        self._service = service
        self._folder = folder
        self._registry = registry
        self._registry_host = registry_host or registry
        self._delay = delay or Delay()
        self._poke = asyncio.Event()
        self._stopping = False
        self._kubelet: sockets.Identity | None = None
        self._elders: frozenset[str] = frozenset()
        self._siblings: set[str] = set()

    @property
    def name(self) -> str:
        """The resource's name."""
        return self._service.resource.name

    async def run(self) -> None:
        """Live until `stop` is called."""
        self._folder.watch(self._poke.set)
        try:
            while not self._stopping:
                try:
                    await self._round()
                except PluginError as error:
                    await self._lose(error)
                except Exception as error:
                    # Never the end of a resource, and never of the process.
                    LOGGER.exception("unexpected error")
                    await self._lose(LostError("internal", repr(error)))
        finally:
            await self._close()
            self._folder.unwatch(self._poke.set)
            self._enter(State.STOPPED)

    def stop(self) -> None:
        """Ask `run` to end: the stream first, then the socket."""
        self._stopping = True
        self._poke.set()

    async def _round(self) -> None:
        """Go from INIT to the end of being ACTIVE. Returns when stopped, raises what it was lost by otherwise."""
        if not self._registry:
            self._enter(State.INIT)
            await self._until(lambda: self._folder.kubelet is not None)
            self._kubelet = self._folder.kubelet
        if self._stopping:
            return
        self._enter(State.SERVING)
        endpoint = await self._serve()
        if not self._registry:
            self._enter(State.REGISTERING)
            await self._register(endpoint)
        self._enter(State.WAIT_STREAM)
        # A socket in the registry may have to wait for a kubelet that is not there yet.
        patience = None if self._registry else self.stream_wait
        if not await self._until(lambda: endpoint.streams > 0 or self._loss(endpoint) is not None, patience):
            raise LostError("no_stream", f"the kubelet opened no stream within {self.stream_wait:g} s")
        self._raise_loss(endpoint)
        if self._stopping:
            return
        self._enter(State.ACTIVE)
        self._service.counts.registrations["ok"] += 1
        self._elders, self._siblings = self._folder.names, set()
        # Also for a kubelet that ends the stream at once: the shortest pause is the least between two rounds.
        self._delay.reset()
        await self._until(lambda: endpoint.streams == 0 or self._loss(endpoint) is not None)
        self._raise_loss(endpoint)
        if not self._stopping:
            raise LostError("stream_ended", "the kubelet's stream ended")

    async def _serve(self) -> Endpoint:
        """Bind a socket that was never used before and see that it answers."""
        folder = self._registry or self._folder.path
        name = sockets.fresh_name(self.name)
        registry_endpoint = os.path.join(self._registry_host, name) if self._registry else ""
        endpoint = Endpoint(self._service, os.path.join(folder, name), self._poke.set, registry_endpoint)
        self.endpoint = endpoint
        await endpoint.start()
        await endpoint.self_dial()
        if not self._registry:
            self._folder.watch(self._poke.set, name)
        return endpoint

    async def _register(self, endpoint: Endpoint) -> None:
        """Register with the kubelet, which calls us back meanwhile; give up early when our socket goes away."""
        self._kubelet = sockets.identity(self._folder.kubelet_socket)
        call = asyncio.ensure_future(self._call_register(endpoint))
        call.add_done_callback(lambda _: self._poke.set())
        try:
            await self._until(lambda: call.done() or self._loss(endpoint) is not None)
            self._raise_loss(endpoint)
            if call.done():
                call.result()
        finally:
            call.cancel()
            await asyncio.wait((call,))

    async def _call_register(self, endpoint: Endpoint) -> None:
        """Make one Register call on a channel of its own, so that gRPC's delays stay out of ours."""
        request = api.device_plugin.RegisterRequest(
            version=api.API_VERSION,
            endpoint=os.path.basename(endpoint.path),
            resource_name=self.name,
            options=options(self._service.resource),
        )
        async with rpc.open_channel(self._folder.kubelet_socket) as channel:
            try:
                await rpc.Client(channel, api.REGISTRATION).Register(request, timeout=REGISTER_DEADLINE)
            except grpc.RpcError as error:
                raise refusal(error, REGISTER_DEADLINE) from error

    def _loss(self, endpoint: Endpoint) -> LostError | None:
        """Say what is wrong with the ground under our feet, if anything."""
        if not endpoint.exists:
            return LostError("socket_removed", "our socket was removed from the folder")
        if self._registry:
            return LostError("refused", f"the kubelet says: {endpoint.registered}") if endpoint.registered else None
        if self._new_kubelet():
            return LostError("kubelet_restarted", "the kubelet made its socket again")
        if self._sibling_left(os.path.basename(endpoint.path)):
            return LostError("sibling_left", "another instance that offered this resource is gone")
        return None

    def _new_kubelet(self) -> bool:
        """Tell whether the kubelet's socket is another one than we registered with."""
        same = {None, self._kubelet}
        if self._registry or self._folder.kubelet in same:
            return False
        # The folder's view may be older than what was read right before Register.
        return sockets.identity(self._folder.kubelet_socket) not in same

    def _sibling_left(self, own_name: str) -> bool:
        """Tell whether an instance that came after us left again: kubelets up to 1.36 then use nobody's devices."""
        if self.state is not State.ACTIVE:
            return False
        prefix = sockets.resource_prefix(self.name)
        now = {name for name in self._folder.names if name.startswith(prefix)} - self._elders - {own_name}
        self._siblings |= now
        return self._siblings != now

    def _raise_loss(self, endpoint: Endpoint) -> None:
        loss = None if self._stopping else self._loss(endpoint)
        if loss is not None:
            raise loss

    async def _lose(self, error: PluginError) -> None:
        """Close what this round had, then wait before the next one; a new kubelet.sock cuts the wait short."""
        result = error.result if isinstance(error, LostError) else "socket_error"
        self._service.counts.registrations[result] += 1
        pause = self._delay.take()
        self._enter(State.LOST, str(error), next_try=f"{pause:.1f}s")
        await self._close()
        await asyncio.sleep(SETTLE)
        if await self._until(self._new_kubelet, pause):
            self._delay.reset()

    async def _close(self) -> None:
        if self.endpoint is not None:
            endpoint, self.endpoint = self.endpoint, None
            self._folder.watch(self._poke.set)
            await endpoint.close()

    async def _until(self, done: Callable[[], bool], timeout: float | None = None) -> bool:
        """Wait until `done()`, looked at after each poke, or until stopped. Tell whether it came within `timeout`."""
        end = None if timeout is None else time.monotonic() + timeout
        while not self._stopping and not done():
            left = None if end is None else end - time.monotonic()
            if left is not None and left <= 0:
                return False
            self._poke.clear()
            try:
                await asyncio.wait_for(self._poke.wait(), left)
            except asyncio.TimeoutError:
                continue
        return True

    def _enter(self, state: State, reason: str = "", **fields: str) -> None:
        """Change the state, with one log line."""
        if state is self.state and reason == self.reason:
            return
        self.state, self.since, self.reason = state, time.monotonic(), reason
        if reason:
            warn(state.value, resource=self.name, reason=reason, **fields)
        else:
            note(state.value, resource=self.name)
