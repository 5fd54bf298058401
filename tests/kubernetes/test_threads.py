"""Work that never ends: it holds up nobody else, and not the end of the process."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from resource_extend.kubernetes.threads import run_apart
from support.device_tree import DeviceTree

STUCK = 50  # calls; asyncio has at most 32 threads of its own


def test_stuck_calls_hold_up_no_other() -> None:
    """With many calls that never end another one is answered; an error is raised where it is waited for."""
    release = threading.Event()

    async def story() -> None:
        stuck = [asyncio.ensure_future(run_apart(release.wait)) for _ in range(STUCK)]
        assert 7 == await asyncio.wait_for(run_apart(lambda: 7), 30)
        with pytest.raises(ZeroDivisionError):
            await run_apart(lambda: 1 // 0)
        for call in stuck[1:]:
            call.cancel()
        release.set()
        assert await asyncio.wait_for(stuck[0], 30)

    try:
        asyncio.run(story())
    finally:
        release.set()


def test_a_stuck_scan_does_not_keep_the_plugin_from_stopping(tmp_path: Path) -> None:
    """A plugin whose scan never ends stops at SIGTERM all the same, with status 0."""
    tree = DeviceTree(tmp_path / "host")
    device = tree.sys / "bus/usb/devices/1-1"
    device.mkdir(parents=True)
    os.mkfifo(device / "idVendor")  # a read of it waits for a writer that never comes
    config = tmp_path / "config.yaml"
    config.write_text(
        f"roots: {{dev: {tree.dev}, sys: {tree.sys}}}\nfolders: {{plugins: {tmp_path}}}\n"
        "resources: [{name: example.com/stick, usb: [{vendor: '0403'}]}, {name: example.com/resource, counter: 2}]\n"
    )
    words = (sys.executable, "-m", "resource_extend.kubernetes.cli", "run", "--config", str(config))
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            # The other resource's devices: the scans have begun.
            assert any("devices: resource=example.com/resource" in line for line in process.stderr)
            process.send_signal(signal.SIGTERM)
            assert 0 == process.wait(timeout=30)
        finally:
            process.kill()
