"""Probes and metrics as a kubelet's prober and Prometheus get them."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from resource_extend.errors import PluginError
from resource_extend.kubernetes.ask import ask_probe
from resource_extend.kubernetes.counts import Counts
from resource_extend.kubernetes.endpoint import Endpoint
from resource_extend.kubernetes.fake_kubelet import FakeKubelet
from resource_extend.kubernetes.logs import JsonLines, TextLines
from resource_extend.kubernetes.model import Device, Resource
from resource_extend.kubernetes.probes import ListenError, ProbeServer
from resource_extend.kubernetes.service import Service
from resource_extend.kubernetes.sockets import SocketError, is_dead
from resource_extend.kubernetes.table import DeviceTable
from support.device_plugin import NAME, RULES, Listed, Ours, numbered, story, until


async def ask(address: str, path: str) -> tuple[bool, str]:
    """Ask a probe from a thread, since the daemon lives in this loop."""
    return await asyncio.to_thread(ask_probe, address, path, 5.0)


async def metrics(address: str) -> dict[str, float]:
    """Get all samples, named as in a query."""
    well, text = await ask(address, "/metrics")
    assert well
    return {
        f"{sample.name}{{{','.join(f'{name}={value}' for name, value in sorted(sample.labels.items()))}}}": sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


@story
async def test_metrics(tmp_path: Path) -> None:
    """Devices by health, the stream, allocations, registrations by result; no label has a device id."""
    address = f"unix:{tmp_path}/probes.sock"
    async with FakeKubelet(tmp_path / "plugins") as kubelet, Ours() as ours:
        devices = [*numbered(2), Device("sick", healthy=False)]
        await ours.start(str(tmp_path / "plugins"), devices, listen=address)
        await kubelet.wait_for(NAME, allocatable=2)
        await kubelet.admit("pod", {NAME: 1})
        await until(lambda: ours.running.probes)
        shown = await metrics(address)
        one = f"resource={NAME}"
        expected = {
            f"device_plugin_devices{{health=healthy,{one}}}": 2,
            f"device_plugin_devices{{health=unhealthy,{one}}}": 1,
            f"device_plugin_stream_open{{{one}}}": 1,
            f"device_plugin_devices_current{{{one}}}": 1,
            f"device_plugin_allocations_total{{{one}}}": 1,
            f"device_plugin_allocation_failures_total{{{one}}}": 0,
            f"device_plugin_streams_total{{{one}}}": 1,
            f"device_plugin_registrations_total{{{one},result=ok}}": 1,
            f"device_plugin_list_too_large{{{one}}}": 0,
            "device_plugin_config_generation{}": 1,
            "device_plugin_config_error{}": 0,
        }
        assert expected == {name: shown[name] for name in expected}
        assert not [name for name in shown if "sick" in name or "d0000" in name]
        await kubelet.plugins.drop_streams(NAME)
        await until(ours.running.ready_faults)
        shown = await metrics(address)
        assert 0 == shown[f"device_plugin_stream_open{{{one}}}"]
        assert 1 == shown[f"device_plugin_registrations_total{{{one},result=stream_ended}}"]


@story
async def test_readiness_says_what_is_missing(tmp_path: Path) -> None:
    """/readyz names each resource that is not offered and why; /livez does not care."""
    address = f"unix:{tmp_path}/probes.sock"
    async with Ours() as ours:
        await ours.start(str(tmp_path / "plugins"), numbered(1), listen=address)
        await until(lambda: ours.running.probes)
        assert (False, f"{NAME}: init\n") == await ask(address, "/readyz")
        assert (True, "ok\n") == await ask(address, "/livez")
        assert (False, "/livez /readyz /metrics\n") == await ask(address, "/health")
        async with FakeKubelet(tmp_path / "plugins") as kubelet:
            await kubelet.wait_for(NAME, allocatable=1)
            await until(lambda: not ours.running.ready_faults())
            assert (True, "ok\n") == await ask(address, "/readyz")


@story
async def test_liveness_sees_a_stuck_loop(tmp_path: Path) -> None:
    """A blocked event loop fails /livez with words, in place of a probe that gets no answer."""
    address = f"unix:{tmp_path}/probes.sock"
    async with FakeKubelet(tmp_path / "plugins") as kubelet, Ours() as ours:
        await ours.start(str(tmp_path / "plugins"), numbered(1), listen=address)
        await kubelet.wait_for(NAME, allocatable=1)
        await until(lambda: ours.running.probes)

        def ask_later() -> tuple[bool, str]:
            time.sleep(0.3)
            return ask_probe(address, "/livez", 5)

        probe = asyncio.ensure_future(asyncio.to_thread(ask_later))
        await asyncio.sleep(0)
        time.sleep(3)
        assert (False, "the event loop gave no answer within 2 s\n") == await probe
        assert (True, "ok\n") == await ask(address, "/livez")


@story
async def test_self_dial_sees_a_deaf_server(tmp_path: Path) -> None:
    """A server of ours that does not answer in time is told apart from one that does."""

    class Deaf(Service):
        async def get_options(self, _request: object, _context: object) -> None:
            await asyncio.sleep(60)

    deaf = pytest.raises(SocketError, match="gives no answer: DEADLINE_EXCEEDED")
    for kind, expected in ((Service, contextlib.nullcontext()), (Deaf, deaf)):
        service = kind(Resource(NAME, Listed()), DeviceTable(), Counts(), RULES.combine, RULES.prefer)
        endpoint = Endpoint(service, str(tmp_path / f"{kind.__name__}.sock"), lambda: None)
        await endpoint.start()
        with expected:
            await endpoint.self_dial(0.3)
        await endpoint.close()
        assert not endpoint.exists


def test_addresses_that_cannot_be_used(tmp_path: Path) -> None:
    """A wrong address is refused with its text; so is asking where nobody listens."""
    loop = asyncio.new_event_loop()
    for address in ("nonsense", "192.0.2.1:1", f"unix:{tmp_path}/no/p.sock"):
        with pytest.raises(ListenError, match="cannot listen on"):
            ProbeServer(None, address, loop)  # type: ignore[arg-type]
    loop.close()
    for address in (f"unix:{tmp_path}/p.sock", "127.0.0.1:1", "nonsense"):
        with pytest.raises(PluginError, match="no answer on"):
            ask_probe(address, "/livez", 1)


def test_path_that_is_somebody_elses(tmp_path: Path) -> None:
    """A file, and a socket that somebody listens on, are refused and stay; a socket without an owner is taken over."""
    loop = asyncio.new_event_loop()
    path = tmp_path / "p.sock"
    path.write_text("precious")
    with pytest.raises(ListenError, match="cannot listen on"):
        ProbeServer(None, f"unix:{path}", loop)  # type: ignore[arg-type]
    assert "precious" == path.read_text()
    path.unlink()
    with socket.socket(socket.AF_UNIX) as owner:
        owner.bind(str(path))
        owner.listen()
        with pytest.raises(ListenError, match="cannot listen on"):
            ProbeServer(None, f"unix:{path}", loop)  # type: ignore[arg-type]
        assert not is_dead(str(path))
    server = ProbeServer(None, f"unix:{path}", loop)  # type: ignore[arg-type]
    path.unlink()
    path.write_text("precious")
    server.close()
    loop.close()
    assert "precious" == path.read_text()


@story
async def test_tcp_address(tmp_path: Path) -> None:
    """Probes on a TCP port that the system chose."""
    async with Ours() as ours:
        await ours.start(str(tmp_path), numbered(1), listen="127.0.0.1:0")
        await until(lambda: ours.running.probes)
        assert ours.running.probes is not None
        address = f"127.0.0.1:{ours.running.probes.port}"
        assert (True, "ok\n") == await ask(address, "/livez")
        assert "device_plugin_devices{health=healthy,resource=example.com/resource}" in await metrics(address)


def test_daemon_loads_no_tls() -> None:
    """The `run` command leaves OpenSSL out, also with the metrics library loaded: that is a tenth of its memory."""
    code = """
import sys
from resource_extend.kubernetes.lean import leave_out_tls, names_of_tls
leave_out_tls()
import asyncio, hashlib, resource_extend.kubernetes.daemon
with names_of_tls():
    import prometheus_client
print(hashlib.sha256(b"").hexdigest()[:8], sorted(set(sys.modules) & {"_ssl", "prometheus_client"}), sys.modules["ssl"])
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "e3b0c442 ['prometheus_client'] None\n" == run.stdout


def record(**fields: object) -> logging.LogRecord:
    """Make a record as `note` makes it."""
    made = logging.LogRecord("x", logging.INFO, "f", 1, "allocate", (), None)
    made.created, made.msecs = 0.25, 250
    made.fields = fields
    return made


def test_text_lines() -> None:
    """One line: time, level, event, fields; what has spaces or quotes is quoted."""
    line = TextLines().format(record(resource=NAME, devices=["a", "b"], reason="no power\n", empty=""))
    expected = f'resource={NAME} devices=a,b reason="no power\\n" empty=""'
    assert f"1970-01-01T00:00:00.250Z info allocate: {expected}" == line
    assert "1970-01-01T00:00:00.250Z info allocate" == TextLines().format(record())


def test_json_lines() -> None:
    """One JSON object a line, the fields beside time, level and event."""
    line = json.loads(JsonLines().format(record(resource=NAME, devices=["a"])))
    expected = {"time": "1970-01-01T00:00:00.250Z", "level": "info", "event": "allocate", "resource": NAME}
    assert {**expected, "devices": ["a"]} == line
