"""/livez, /readyz and /metrics over HTTP, on a TCP address or a unix socket.

A thread of its own answers, so that a stuck event loop shows as a failed probe and not as a probe without an answer:
the thread asks the loop and waits for two seconds. It starts after the resources do and loads what it needs only
then.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import os
import socketserver
import threading
from collections.abc import Callable, Coroutine, Iterable
from typing import TYPE_CHECKING, Any, Protocol

from resource_extend.errors import PluginError
from resource_extend.kubernetes import sockets
from resource_extend.kubernetes.lean import names_of_tls
from resource_extend.kubernetes.logs import note
from resource_extend.kubernetes.metrics import Collector, Offered

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

LOOP_LIMIT = 2.0  # seconds in which the event loop has to answer
UNIX = "unix:"


class Health(Offered, Protocol):
    """What the probes ask."""

    async def live_faults(self) -> list[str]:
        """Say why this process should be restarted; empty when it should not."""
        ...

    def ready_faults(self) -> list[str]:
        """Say what is not offered as configured; empty when everything is."""
        ...


class ListenError(PluginError):
    """The address for probes and metrics cannot be listened on."""


class ProbeServer:
    """Serves `health` on `address` (`host:port`, `:port` or `unix:/path`) from a thread until closed."""

    def __init__(self, health: Health, address: str, loop: asyncio.AbstractEventLoop) -> None:
        self._health = health
        self._loop = loop
        self.address = address
        self._server = _make_server(address, self._application())
        self._socket = sockets.identity(address[len(UNIX) :]) if address.startswith(UNIX) else None
        self._thread = threading.Thread(target=self._server.serve_forever, name="probes", daemon=True)
        self._thread.start()
        note("probes", address=self.address)

    @property
    def port(self) -> int:
        """The TCP port, also when the address left its choice to the system."""
        return int(self._server.server_address[1])

    def close(self) -> None:
        """Stop serving."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
        path = self.address[len(UNIX) :]
        if self._socket and sockets.identity(path) == self._socket:
            with contextlib.suppress(OSError):
                os.unlink(path)

    def _application(self) -> WSGIApplication:
        with names_of_tls():
            from prometheus_client import CollectorRegistry, make_wsgi_app

        registry = CollectorRegistry(auto_describe=False)
        registry.register(Collector(self._health))
        metrics: WSGIApplication = make_wsgi_app(registry)
        probes: dict[str, Callable[[], list[str]]] = {"/livez": self._live, "/readyz": self._ready}

        def answer(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
            path = environ["PATH_INFO"]
            if path == "/metrics":
                return metrics(environ, start_response)
            headers = [("Content-Type", "text/plain; charset=utf-8")]
            if path not in probes:
                start_response("404 Not Found", headers)
                return [b"/livez /readyz /metrics\n"]
            faults = probes[path]()
            start_response("503 Service Unavailable" if faults else "200 OK", headers)
            return ["".join(f"{line}\n" for line in faults or ["ok"]).encode()]

        return answer

    def _ask(self, question: Coroutine[Any, Any, list[str]]) -> list[str]:
        """Have the event loop answer, within its limit."""
        future = asyncio.run_coroutine_threadsafe(question, self._loop)
        try:
            return future.result(LOOP_LIMIT)
        except concurrent.futures.TimeoutError:
            future.cancel()
            return [f"the event loop gave no answer within {LOOP_LIMIT:g} s"]

    def _live(self) -> list[str]:
        return self._ask(self._health.live_faults())

    def _ready(self) -> list[str]:
        async def faults() -> list[str]:
            return self._health.ready_faults()

        return self._ask(faults())


def _make_server(address: str, application: WSGIApplication) -> Any:
    """Make a small WSGI server on a TCP or unix address. Raises ListenError."""
    import socket
    from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

    class Quiet(WSGIRequestHandler):
        timeout = 10

        def log_message(self, *_arguments: object) -> None:
            """Probes come every few seconds; they are no news."""

        def address_string(self) -> str:
            """Name a client; one on a unix socket has no address."""
            return str(self.client_address[0]) if self.client_address else "unix"

    class Server(socketserver.ThreadingMixIn, WSGIServer):
        daemon_threads = True

        def server_bind(self) -> None:
            """Bind without looking names up, which may take long on a node without DNS."""
            socketserver.TCPServer.server_bind(self)
            self.server_name, self.server_port = "device-plugin", 0
            self.setup_environ()

        def get_request(self) -> tuple[Any, Any]:
            """Accept; a client on a unix socket has an empty address, which the handler cannot take."""
            request, client = super().get_request()
            return request, client or ("unix", 0)

    try:
        if address.startswith(UNIX):
            path: Any = address[len(UNIX) :]
            if sockets.identity(path) and sockets.is_dead(path):
                os.unlink(path)  # what a killed run left; anything else is not ours, and makes the bind fail
            Server.address_family, target = socket.AF_UNIX, path
        else:
            host, _, port = address.rpartition(":")
            target = (host.strip("[]"), int(port))
            if ":" in host:
                Server.address_family = socket.AF_INET6
        server = Server(target, Quiet)
    except (OSError, ValueError) as error:
        raise ListenError(f"cannot listen on {address!r} for probes and metrics: {error}") from error
    server.set_app(application)
    return server
