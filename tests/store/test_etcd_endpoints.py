"""The texts of etcd.machines, and which endpoint is used (specification, protocol 7.3)."""

import itertools
import os
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from resource_extend.errors import SettingsError, StoreError
from resource_extend.store.client import LIMITS, Limits
from resource_extend.store.endpoints import parse_endpoint
from support.etcd import Etcd, free_ports
from support.peers import Proxy, peer, silent
from support.stores import SHORT, store_at


@pytest.mark.parametrize(
    ("text", "host", "port", "tls", "shown"),
    [
        ("http://127.0.0.1:2379", "127.0.0.1", 2379, False, "http://127.0.0.1:2379"),
        ("https://etcd-0.etcd:2379", "etcd-0.etcd", 2379, True, "https://etcd-0.etcd:2379"),
        ("HTTPS://etcd:1/", "etcd", 1, True, "HTTPS://etcd:1"),
        ("etcd:65535", "etcd", 65535, None, "etcd:65535"),
        ("http://[::1]:2379/", "::1", 2379, False, "http://[::1]:2379"),
        ("[fe80::1%eth0]:2379", "fe80::1%eth0", 2379, None, "[fe80::1%eth0]:2379"),
        ("http://user:s3cret@etcd:2379", "etcd", 2379, False, "http://etcd:2379"),
        ("user:s3@cret@etcd:2379", "etcd", 2379, None, "etcd:2379"),
        ("http://bücher.example:2379", "xn--bcher-kva.example", 2379, False, "http://bücher.example:2379"),
    ],
)
def test_endpoint(text: str, host: str, port: int, tls: bool | None, shown: str) -> None:
    """An endpoint is http://, https:// or nothing before host:port, and is shown without user information."""
    assert (host, port, tls, shown) == parse_endpoint(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("etcd", "etcd has no port"),
        ("http://etcd", "http://etcd has no port"),
        ("http://etcd:", "http://etcd: has no port"),
        ("http://[::1]", "http://[::1] has no port"),
        ("http://user:s3cret@etcd", "http://etcd has no port"),
        ("user:s3cret@etcd/", "etcd has no port"),
        ("", "'' has no port"),
        ("http://:2379", "http://:2379 has no host"),
        ("ftp://user:s3cret@etcd:21", "ftp://etcd:21 must begin with http:// or https://"),
        ("user:s3cret://x@etcd:21", "etcd:21 must begin with http:// or https://"),
        ("://etcd:21", "etcd:21 must begin with http:// or https://"),
        ("http://etcd:0", "http://etcd:0 must end with its port, a number from 1 to 65535"),
        ("etcd:" + "1" * 5000, f"etcd:{'1' * 5000} must end with its port, a number from 1 to 65535"),
        ("http://etcd:65536", "http://etcd:65536 must end with its port, a number from 1 to 65535"),
        ("http://etcd:x", "http://etcd:x must end with its port, a number from 1 to 65535"),
        ("http://etcd:²", "http://etcd:² must end with its port, a number from 1 to 65535"),
        ("http://etcd:2379/v3", "http://etcd:2379/v3 must end with its port, a number from 1 to 65535"),
        ("http://::1:2379", "http://::1:2379 needs brackets around its IPv6 address, as in [::1]:2379"),
        ("http://[etcd]:2379", "http://[etcd]:2379 needs brackets around its IPv6 address, as in [::1]:2379"),
        ("http://et cd:2379", "http://et cd:2379 is no host:port"),
        ("http://a/b:2379", "http://a/b:2379 is no host:port"),
        ("http://et\ncd:2379", "'http://et\\ncd:2379' is no host:port"),
        ("http://" + "ü" * 70 + ":2379", "http://" + "ü" * 70 + ":2379 is no host:port"),
    ],
)
def test_endpoint_that_is_none(text: str, message: str) -> None:
    """Whatever else is an error that names the endpoint without user information."""
    with pytest.raises(SettingsError) as caught:
        parse_endpoint(text)

    assert f"config invalid: etcd.machines: {message}" == str(caught.value)


def test_silence_of_all(etcd: Etcd) -> None:
    """Endpoints that take the connection and say nothing are given up after the time for one answer."""
    with peer(silent) as mute, peer(silent) as other:
        begin = time.monotonic()

        assert f"etcd unreachable: {mute.endpoint}: no answer within 1 s" == unreachable(mute.endpoint)
        assert (
            f"etcd unreachable: {mute.endpoint}: no answer within 1 s; {other.endpoint}: no answer within 1 s"
            == unreachable(mute.endpoint, other.endpoint)
        )
    assert time.monotonic() - begin < 8


def refused() -> str:
    """Return an endpoint where nobody listens."""
    return f"127.0.0.1:{free_ports(1)[0]}"


def unreachable(*machines: str, seconds: float = 20.0, limits: Limits = SHORT) -> str:
    """Return the error of a read at endpoints of which none answers."""
    with pytest.raises(StoreError) as caught:
        store_at(*machines, seconds=seconds, limits=limits).get("n")
    return str(caught.value)


@pytest.mark.parametrize("order", list(itertools.permutations(["refused", "silent", "live"])))
def test_three_endpoints(etcd: Etcd, order: tuple[str, ...]) -> None:
    """Of a refused, a silent and a live endpoint the live one is used, wherever it stands, for reads and for writes."""
    with peer(silent) as mute:
        places = {"refused": refused(), "silent": mute.endpoint, "live": etcd.endpoint}
        store = store_at(*[places[each] for each in order], limits=LIMITS)
        begin = time.monotonic()
        store.update("three", lambda _: " ".join(order).encode())

        assert " ".join(order).encode() == store.get("three")
    # The specified 5 seconds for an answer are not waited for: the next endpoint is tried beside the silent one.
    assert time.monotonic() - begin < 4


def test_first_live_endpoint_is_kept(etcd: Etcd) -> None:
    """The endpoint that was ready first serves the whole call, by one connection; the others are left alone."""
    with peer(silent) as other:
        store = store_at(etcd.endpoint, other.endpoint)
        for number in range(3):
            store.update("kept", lambda _, number=number: b"%d" % number)  # type: ignore[misc]

        assert 0 == other.connections


def test_backlog_that_is_full(etcd: Etcd) -> None:
    """An endpoint that does not take the connection is passed over after a moment, and given up when it is alone."""
    with socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        dark = f"127.0.0.1:{full.getsockname()[1]}"
        waiting = [socket.socket() for _ in range(8)]
        for sock in waiting:
            sock.setblocking(False)
            sock.connect_ex(("127.0.0.1", full.getsockname()[1]))
        try:
            store_at(dark, etcd.endpoint).update("dark", lambda _: b"light")

            assert b"light" == store_at(etcd.endpoint).get("dark")
            assert f"etcd unreachable: {dark}: no connection within 0.2 s" == unreachable(dark)
            both = refused()
            message = f"etcd unreachable: {both}: connection refused; {dark}: no connection within 0.2 s"

            assert message == unreachable(both, dark)
        finally:
            for sock in waiting:
                sock.close()


def test_reasons_are_listed_in_order() -> None:
    """When no endpoint answers each is named once with its reason, in the order of the configuration."""
    first, last = refused(), refused()
    with peer(silent) as mute:
        machines = [first, f"http://user:s3cret@{mute.endpoint}/", last, first]
        message = (
            f"etcd unreachable: {first}: connection refused; http://{mute.endpoint}: no answer within 1 s; "
            f"{last}: connection refused"
        )

        assert message == unreachable(*machines)


@pytest.mark.parametrize("count", [1, 2])
def test_deadline(count: int) -> None:
    """The whole call ends at its deadline, before the limits of single requests."""
    with peer(silent) as mute, peer(silent) as other:
        machines = [mute.endpoint, other.endpoint][:count]
        begin = time.monotonic()
        message = unreachable(*machines, seconds=0.3, limits=LIMITS)

    assert time.monotonic() - begin < 2
    assert "etcd unreachable: " + "; ".join(f"{each}: no answer before the time limit" for each in machines) == message


def test_deadline_that_is_over() -> None:
    """A call without any time left ends at once."""
    with peer(silent) as mute:
        message = unreachable(mute.endpoint, seconds=-1)

    assert f"etcd unreachable: {mute.endpoint}: no answer before the time limit" == message


def test_name(etcd: Etcd) -> None:
    """A host name is looked up, and every address of it tried: etcd listens on one of localhost's addresses only."""
    store_at(f"localhost:{etcd.client_port}").update("named", lambda _: b"value")

    assert b"value" == store_at(refused(), f"http://localhost:{etcd.client_port}/").get("named")


def test_name_that_is_unknown(etcd: Etcd) -> None:
    """A name without an address is passed over, and named when it is alone."""
    unknown = "http://no-such-host.invalid:2379"

    assert store_at(unknown, etcd.endpoint).get("nobody") is None

    message = unreachable(unknown)

    assert message.startswith(f"etcd unreachable: {unknown}: ")
    assert "no connection within" not in message


SLOW_NAME_SERVER = """
import socket, subprocess, sys, time
subprocess.run(["mount", "--bind", sys.argv[2], "/etc/resolv.conf"], check=True)
from resource_extend.errors import StoreError
from resource_extend.settings import Settings
from resource_extend.store.etcd import EtcdStore
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
    server.bind(("127.0.0.53", 53))
    for machines in (["etcd.example:2379", sys.argv[1]], ["etcd.example:2379"], ["a.example:1", "b.example:1"]):
        begin = time.monotonic()
        try:
            limits = (0.05, 0.2, 1.0)
            print(EtcdStore(Settings(machines), "gpu", time.monotonic() + 20, limits).get("nobody"))
        except StoreError as error:
            print(error)
        print(time.monotonic() - begin < 2, file=sys.stderr)
    sys.stdout.flush()
    import os
    os._exit(0)
"""


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("unshare"), reason="needs root, for a name server of its own")
def test_name_server_that_is_silent(etcd: Etcd, tmp_path: Path) -> None:
    """A name server that does not answer costs no more than a connect does: the system's resolver is not waited for."""
    resolver = tmp_path / "resolv.conf"
    resolver.write_text("nameserver 127.0.0.53\n")
    command = ["unshare", "--mount", sys.executable, "-c", SLOW_NAME_SERVER, etcd.endpoint, str(resolver)]
    done = subprocess.run(command, capture_output=True, check=False, text=True)

    assert "True\nTrue\nTrue\n" == done.stderr
    assert (
        "None\n"
        "etcd unreachable: etcd.example:2379: no connection within 0.2 s\n"
        "etcd unreachable: a.example:1: no connection within 0.2 s; b.example:1: no connection within 0.2 s\n"
        == done.stdout
    )


def test_ipv6(etcd: Etcd) -> None:
    """An IPv6 address in brackets is connected to."""
    try:
        way = Proxy(etcd.client_port, host="::1")
    except OSError:
        pytest.skip("no IPv6 on this machine")
    try:
        store_at(f"http://{way.endpoint}").update("six", lambda _: b"value")

        assert b"value" == store_at(way.endpoint, etcd.endpoint).get("six")
        assert 2 == way.connections
    finally:
        way.close()

    assert f"etcd unreachable: {way.endpoint}: connection refused" == unreachable(way.endpoint)


def test_proxies_are_not_used(etcd: Etcd, monkeypatch: pytest.MonkeyPatch) -> None:
    """Proxies of the environment are of no concern."""
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "all_proxy", "grpc_proxy"):
        monkeypatch.setenv(name, f"http://{refused()}")

    assert store_at(etcd.url).get("nobody") is None


CLOSED_STREAMS = """
import os, sys, time
for descriptor in (0, 1, 2):
    os.close(descriptor)
from resource_extend.settings import Settings
from resource_extend.store.etcd import EtcdStore
store = EtcdStore(Settings([sys.argv[1]]), "gpu", time.monotonic() + 20)
store.update("streams", lambda value: b"value")
try:
    os.write(1, b"answer")
except OSError:
    os._exit(7 if store.get("streams") == b"value" else 1)
os._exit(2)
"""


def test_closed_standard_streams(etcd: Etcd) -> None:
    """The connection never becomes a standard stream that is closed: an answer must not end up in etcd."""
    done = subprocess.run([sys.executable, "-c", CLOSED_STREAMS, etcd.endpoint], check=False)

    assert 7 == done.returncode
