"""Asking a running device plugin's probes: for the `probe` command, so that a pod needs no port for them."""

from __future__ import annotations

import contextlib
import http.client
import socket

from resource_extend.errors import PluginError

UNIX = "unix:"


class _UnixConnection(http.client.HTTPConnection):
    """HTTP over a unix socket."""

    def __init__(self, path: str, timeout: float) -> None:
        super().__init__("localhost", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        """Connect to the path."""
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


def ask_probe(address: str, path: str, timeout: float) -> tuple[bool, str]:
    """Get `path` from a running device plugin: whether it is well, and its text.

    `address` is what it listens on: `host:port`, `:port` or `unix:/path`. Raises PluginError when nobody answers within
    `timeout` seconds.
    """
    try:
        connection: http.client.HTTPConnection
        if address.startswith(UNIX):
            connection = _UnixConnection(address[len(UNIX) :], timeout)
        else:
            host, _, port = address.rpartition(":")
            connection = http.client.HTTPConnection(host.strip("[]") or "localhost", int(port), timeout=timeout)
        with contextlib.closing(connection):
            connection.request("GET", path)
            response = connection.getresponse()
            text = response.read().decode("utf-8", "replace")
    except (OSError, ValueError, http.client.HTTPException) as error:
        raise PluginError(f"no answer on {address!r}: {error}") from error
    return response.status == 200, text
