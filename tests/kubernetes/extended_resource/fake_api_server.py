"""A small API server for tests: the node and pod routes over real HTTP, with rights, faults and watches.

with FakeApiServer() as server:
server.cluster.create("nodes", ...)
server.kubeconfig(path, "admin")
"""

import contextlib
import json
import re
import socket
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from kubernetes.extended_resource.fake_cluster import FakeClock, FakeCluster
from kubernetes.extended_resource.fake_objects import Object, StatusError
from kubernetes.extended_resource.fake_requests import Call, Right, answer, authorize, parse_call, selected


@dataclass
class Fault:
    """What goes wrong with the calls that match; each of `times` calls uses one up.

    `code` answers with that status. `cut` closes the connection: "before" the call was looked at, "after" it was done,
    "half" way through the answer. `delay` is in seconds, before anything else. `meddle` runs first: somebody else.
    """

    method: str
    path: str
    times: int = 1
    code: int = 0
    cut: str = ""
    delay: float = 0.0
    meddle: Callable[[], object] | None = None
    content_type: str = "application/json"


class FakeApiServer:
    """The server, its cluster, its clock, and its users' rights: `admin` may everything, others what is granted."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.cluster = FakeCluster(self.clock)
        self.rights: dict[str, set[Right]] = {"nobody": set()}
        self.faults: list[Fault] = []
        self.calls: list[tuple[str, str]] = []
        self.busiest = 0
        self.closing = threading.Event()
        self._busy = 0
        self._lock = threading.Lock()
        handler = type("Handler", (_Handler,), {"api": self})
        self._http = _Server(("127.0.0.1", 0), handler)
        self.port = self._http.server_address[1]
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)

    def __enter__(self) -> "FakeApiServer":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.closing.set()
        with self.cluster.changed:
            self.cluster.changed.notify_all()
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    def kubeconfig(self, folder: Path, user: str = "admin", **credentials: Any) -> str:
        """Write a kubeconfig for `user`; its path."""
        path = folder / f"{user}.kubeconfig"
        # Plain HTTP needs no certificates; reading the system's would take most of a test's time.
        cluster = {"server": f"http://127.0.0.1:{self.port}", "insecure-skip-tls-verify": True}
        document = {
            "current-context": "fake",
            "clusters": [{"name": "fake", "cluster": cluster}],
            "users": [{"name": user, "user": credentials or {"token": f"{user}-token"}}],
            "contexts": [{"name": "fake", "context": {"cluster": "fake", "user": user}}],
        }
        path.write_text(json.dumps(document))
        return str(path)

    def grant(self, user: str, *rights: Right) -> None:
        """Give a user rights."""
        self.rights.setdefault(user, set()).update(rights)

    def fault(self, method: str, path: str) -> Fault | None:
        """The next fault for this call, used up."""
        with self._lock:
            self.calls.append((method, path))
            for fault in self.faults:
                if fault.times > 0 and fault.method == method and re.fullmatch(fault.path, path):
                    fault.times -= 1
                    return fault
        return None

    def enter(self, step: int) -> None:
        """Count the calls that are being answered."""
        with self._lock:
            self._busy += step
            self.busiest = max(self.busiest, self._busy)


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hangs up is no error, and its traceback would get into the program's standard error."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


class _Cut(Exception):
    pass


class _Handler(BaseHTTPRequestHandler):
    api: FakeApiServer
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        self._serve()

    def do_POST(self) -> None:
        self._serve()

    def do_PATCH(self) -> None:
        self._serve()

    def do_DELETE(self) -> None:
        self._serve()

    def log_message(self, *_: Any) -> None:
        pass

    def _serve(self) -> None:
        url = urlsplit(self.path)
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        fault = self.api.fault(self.command, url.path) or Fault("", "")
        self.api.enter(1)
        try:
            self._before(fault)
            code, answer = self._answered(url.path, parse_qs(url.query), body, fault)
            if answer is None:
                return
            if fault.cut == "after":
                raise _Cut
            self._send(code, answer, fault)
        except (_Cut, BrokenPipeError, ConnectionResetError):
            self.close_connection = True
            with contextlib.suppress(OSError):
                self.connection.shutdown(socket.SHUT_RDWR)
        finally:
            self.api.enter(-1)

    def _before(self, fault: Fault) -> None:
        if fault.delay:
            time.sleep(fault.delay)
        if fault.meddle:
            fault.meddle()
        if fault.cut == "before":
            raise _Cut

    def _answered(self, path: str, query: dict[str, list[str]], body: bytes, fault: Fault) -> tuple[int, Object | None]:
        """Status and body; no body when a watch has sent its own."""
        try:
            if fault.code:
                raise StatusError(fault.code, "Injected", f"injected {fault.code}")
            call = parse_call(self.command, path, {key: values[-1] for key, values in query.items()})
            user = self.headers.get("Authorization", "").removeprefix("Bearer ").removesuffix("-token")
            authorize(call, user, self.api.rights)
            if call.watches:
                self._watch(call)
                return 200, None
            document = json.loads(body) if body else None
            return 200, answer(self.api.cluster, call, document, self.headers.get("Content-Type", ""))
        except StatusError as error:
            return error.code, error.body

    def _watch(self, call: Call) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        version, end = (
            int(call.query["resourceVersion"]),
            time.monotonic() + float(call.query.get("timeoutSeconds", 60)),
        )
        cluster = self.api.cluster
        with cluster.changed:
            if version < cluster.oldest:
                self._event("ERROR", StatusError(410, "Expired", f"too old resource version: {version}").body)
                end = 0.0
            while time.monotonic() < end and not self.api.closing.is_set():
                news = [item for item in cluster.history if item[0] > version and item[2] == call.kind]
                for at, event, _, item in news:
                    version = at
                    if selected(item, call):
                        self._event(event, item)
                if not news:
                    cluster.changed.wait(min(0.2, max(0.0, end - time.monotonic())))
        self.wfile.write(b"0\r\n\r\n")

    def _event(self, event: str, item: Object) -> None:
        line = json.dumps({"type": event, "object": item}).encode() + b"\n"
        self.wfile.write(b"%x\r\n%s\r\n" % (len(line), line))

    def _send(self, code: int, answer: Object, fault: Fault) -> None:
        data = json.dumps(answer).encode()
        self.send_response(code)
        if fault.content_type:
            self.send_header("Content-Type", fault.content_type)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if fault.cut == "half":
            self.wfile.write(data[: len(data) // 2])
            raise _Cut
        self.wfile.write(data)
