"""TLS to etcd: whose certificates count, and what is said when they do not (specification, protocol 6.4)."""

import os
import shutil
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from resource_extend.errors import PluginError, SettingsError, StoreError
from resource_extend.settings import Settings
from resource_extend.store.client import LIMITS, Client
from resource_extend.store.protobuf import RANGE, range_answer, range_request
from resource_extend.store.tls import open_context
from support.certificates import Certificates
from support.etcd import Etcd, running
from support.etcd_users import PASSWORD, USER, add_users
from support.peers import peer, silent
from support.stores import NOWHERE, hasty_store_at, store_at


@pytest.fixture(scope="module")
def secure(certificates: Certificates) -> Iterator[Etcd]:
    """Return an etcd with a server certificate, which asks clients for none."""
    with running(tls=certificates) as etcd:
        yield etcd


@pytest.fixture(scope="module")
def mutual(certificates: Certificates) -> Iterator[Etcd]:
    """Return an etcd that wants a client certificate, whose common name is the user."""
    with running(["--client-cert-auth", f"--trusted-ca-file={certificates.ca}"], tls=certificates) as etcd:
        add_users(etcd)
        etcd.control("auth", "enable")
        yield etcd


def pair(certificates: Certificates, user: str) -> dict[str, Any]:
    """Return the settings for a client certificate."""
    cert, key = certificates.client(user)
    return {"ca": str(certificates.ca), "cert": str(cert), "key": str(key)}


def failure(*machines: str, node: str = "n", **keys: Any) -> str:
    """Return the error of a read."""
    with pytest.raises(PluginError) as caught:
        store_at(*machines, **keys).get(node)
    return str(caught.value)


def test_authority_alone(secure: Etcd, certificates: Certificates) -> None:
    """`ca` alone is enough where etcd asks for no client certificate, by address and by name."""
    ca = str(certificates.ca)
    store_at(secure.url, ca=ca).update("secure", lambda _: b"value")

    assert b"value" == store_at(f"https://localhost:{secure.client_port}/", ca=ca).get("secure")


def test_large_records(secure: Etcd, certificates: Certificates) -> None:
    """Records of a megabyte and answers of several go through TLS whole."""
    store = store_at(secure.url, ca=str(certificates.ca))
    value = bytes(range(256)) * 4000
    for number in range(4):
        store.update(f"large-{number}", lambda _: value)

    assert [value] * 4 == list(store.get_many(f"large-{number}" for number in range(200)).values())


def test_standard_library(secure: Etcd, certificates: Certificates) -> None:
    """Where the C module has changed the standard library's TLS does the same."""
    settings = Settings([secure.url], ca=str(certificates.ca))
    client = Client(settings, "/eru/resource/gpu/", time.monotonic() + 20, LIMITS, NOWHERE)
    client.context = open_context(settings, native=False)
    assert isinstance(client.context, ssl.SSLContext)
    store_at(secure.url, ca=str(certificates.ca)).update("standard", lambda _: b"x" * 100_000)
    message = client.read(RANGE, range_request(b"/eru/resource/gpu/standard"))

    assert b"x" * 100_000 == range_answer(message)[0][2]


def test_authorities_of_the_system(secure: Etcd, certificates: Certificates) -> None:
    """Without `ca` the system's authorities count; ours is none of them unless the system says so."""
    message = failure(secure.url)

    assert message.startswith(f"etcd unreachable: {secure.url}: its certificate is not accepted: ")

    program = (
        "import sys, time; from resource_extend.settings import Settings;"
        "from resource_extend.store.etcd import EtcdStore;"
        "print(EtcdStore(Settings([sys.argv[1]]), 'gpu', time.monotonic() + 20).get('nobody'))"
    )
    environ = {**os.environ, "SSL_CERT_FILE": str(certificates.ca)}
    done = subprocess.run([sys.executable, "-c", program, secure.url], env=environ, capture_output=True, check=True)

    assert (b"None\n", b"") == (done.stdout, done.stderr)


def test_name_of_the_host(certificates: Certificates) -> None:
    """A certificate for another host is not accepted, though the authority is."""
    other = Certificates(certificates.directory / "other")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*other.issue("elsewhere", "elsewhere.example"))

    def serve(sock: socket.socket) -> None:
        context.wrap_socket(sock, server_side=True).close()

    with peer(serve) as server:
        for host in ("127.0.0.1", "localhost"):
            machine = f"https://{host}:{server.port}"

            assert "not valid for" in failure(machine, ca=str(other.ca))


def test_common_name_is_the_user(mutual: Etcd, certificates: Certificates) -> None:
    """A client certificate alone logs in the user that is its common name, with that user's rights."""
    files = pair(certificates, "plugin")
    store_at(mutual.url, **files).update("n", lambda _: b"value")

    assert b"value" == store_at(mutual.url, **files).get("n")
    assert (
        "etcd: etcdserver: permission denied (the user needs read and write rights on /other/resource/gpu/)"
        == failure(mutual.url, prefix="/other", **files)
    )
    assert "etcd: etcdserver: permission denied" in failure(mutual.url, **pair(certificates, "nobody"))


def test_endpoint_without_scheme(mutual: Etcd, certificates: Certificates) -> None:
    """An endpoint without a scheme uses TLS when all three files are given, else not."""
    files = pair(certificates, "plugin")
    store_at(mutual.endpoint, **files).get("n")

    assert "write https://)" in failure(mutual.endpoint, ca=files["ca"])


def test_plain_endpoint_with_files(etcd: Etcd, certificates: Certificates) -> None:
    """An endpoint with http:// is never spoken to by TLS, whatever files are given; none of them is opened."""
    files: dict[str, Any] = {"ca": "/missing/ca", "cert": "/missing/cert", "key": "/missing/key"}

    assert store_at(etcd.url, **files).get("nobody") is None


def test_client_certificate_that_is_missing(mutual: Etcd, certificates: Certificates) -> None:
    """An etcd that wants a client certificate refuses a connection without one."""
    message = failure(mutual.url, ca=str(certificates.ca))

    assert message.startswith(f"etcd unreachable: {mutual.url}: ")
    assert "certificate" in message or "closed" in message
    assert "tLS" not in message


def test_client_certificate_of_a_stranger(mutual: Etcd, certificates: Certificates) -> None:
    """A client certificate of another authority is refused."""
    cert, key = Certificates(certificates.directory / "strange").client("plugin")
    message = failure(mutual.url, ca=str(certificates.ca), cert=str(cert), key=str(key))

    assert message.startswith(f"etcd unreachable: {mutual.url}: ")


def test_password_beside_a_certificate(mutual: Etcd, certificates: Certificates) -> None:
    """With a user name set there is a login, also over TLS with a client certificate."""
    files = pair(certificates, "nobody")

    assert store_at(mutual.url, username=USER, password=PASSWORD, **files).get("nobody") is None


def test_tls_to_plain_text(etcd: Etcd, certificates: Certificates) -> None:
    """TLS to a plain port is an error that says what to write."""
    machine = f"https://{etcd.endpoint}"
    message = failure(machine, ca=str(certificates.ca))

    assert message.startswith(f"etcd unreachable: {machine}: ")
    assert message.endswith("write http://)")


def test_tls_without_http2(certificates: Certificates) -> None:
    """A TLS server that does not offer HTTP/2 is told from an etcd."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificates.server_cert, certificates.server_key)

    def serve(sock: socket.socket) -> None:
        with context.wrap_socket(sock, server_side=True) as tls:
            tls.recv(100)

    with peer(serve) as server:
        machine = f"https://{server.endpoint}"
        message = failure(machine, ca=str(certificates.ca))

    assert f"etcd unreachable: {machine}: does not speak HTTP/2 over TLS, is no etcd client port" == message


def test_silence_in_the_handshake(secure: Etcd, certificates: Certificates) -> None:
    """A peer that says nothing in the handshake is passed over, and given up after the time for one answer."""
    ca = str(certificates.ca)
    with peer(silent) as mute:
        machine = f"https://{mute.endpoint}"

        assert store_at(machine, secure.url, ca=ca).get("nobody") is None
        with pytest.raises(StoreError) as caught:
            hasty_store_at(machine, ca=ca).get("n")

    assert f"etcd unreachable: {machine}: no answer within 1 s" == str(caught.value)


def test_files_that_are_missing(secure: Etcd, certificates: Certificates, tmp_path: Path) -> None:
    """A file that cannot be read is named with its key."""
    files = pair(certificates, "plugin")
    missing = str(tmp_path / "missing.pem")
    for key in ("ca", "cert", "key"):
        message = failure(secure.url, **{**files, key: missing})

        assert f"open {missing}: no such file or directory (etcd.{key})" == message
        message = failure(secure.url, **{**files, key: str(tmp_path)})

        assert f"open {tmp_path}: is a directory (etcd.{key})" == message


def test_files_that_are_something_else(secure: Etcd, certificates: Certificates, tmp_path: Path) -> None:
    """A file that does not hold what it should is named with its key."""
    files = pair(certificates, "plugin")
    text = tmp_path / "text.pem"
    text.write_text("hello\n")
    damaged = tmp_path / "damaged.pem"
    damaged.write_text("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")

    assert f"{text}: no PEM certificate in it (etcd.ca)" == failure(secure.url, ca=str(text))
    assert f"{text}: no PEM private key in it (etcd.key)" == failure(secure.url, **{**files, "key": str(text)})
    assert failure(secure.url, ca=str(damaged)).startswith(f"{damaged}: unusable as etcd.ca: ")
    message = failure(secure.url, **{**files, "cert": str(damaged)})

    assert message.startswith(f"{damaged}, {files['key']}: unusable as etcd.cert and etcd.key: ")

    _, other = certificates.client("somebody")
    message = failure(secure.url, **{**files, "key": str(other)})

    assert f"{files['cert']}, {other}: unusable as etcd.cert and etcd.key: TLS: key values mismatch" == message


@pytest.fixture
def encrypted(certificates: Certificates, tmp_path: Path) -> Path:
    """Return an encrypted key."""
    from cryptography.hazmat.primitives import serialization

    key = serialization.load_pem_private_key(certificates.root_key.read_bytes(), None)
    path = tmp_path / "encrypted.key"
    path.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(b"pass"),
        )
    )
    return path


def test_encrypted_key(secure: Etcd, certificates: Certificates, encrypted: Path) -> None:
    """An encrypted key is an error that names it; nothing is asked for, and stdin stays unread."""
    program = """
import sys, time
from resource_extend.errors import SettingsError
from resource_extend.settings import Settings
from resource_extend.store.etcd import EtcdStore
url, ca, cert, key = sys.argv[1:]
try:
    EtcdStore(Settings([url], ca=ca, cert=cert, key=key), "gpu", time.monotonic() + 20).get("n")
except SettingsError as error:
    print(error)
print(sys.stdin.read())
"""
    command = [sys.executable, "-c", program, secure.url, str(certificates.ca), str(certificates.root_cert)]
    if setsid := shutil.which("setsid"):
        # Without a terminal OpenSSL would ask on stderr and read the answer from stdin.
        command.insert(0, setsid)
        command.insert(1, "--wait")
    done = subprocess.run([*command, str(encrypted)], input=b"request", capture_output=True, check=True)

    message = f"{encrypted}: the key is encrypted (etcd.key must be one without a pass phrase)"

    assert (f"{message}\nrequest\n".encode(), b"") == (done.stdout, done.stderr)


def test_encrypted_key_in_this_process(secure: Etcd, certificates: Certificates, encrypted: Path) -> None:
    """The error of an encrypted key is one of the settings, by either TLS module."""
    settings = Settings([secure.url], ca=str(certificates.ca), cert=str(certificates.root_cert), key=str(encrypted))
    for native in (True, False):
        with pytest.raises(SettingsError, match="the key is encrypted"):
            open_context(settings, native)


def test_increments(secure: Etcd, certificates: Certificates) -> None:
    """Reads and conditional writes go over one connection, and none is lost."""
    store = store_at(secure.url, ca=str(certificates.ca))
    for _ in range(20):
        store.update("counter", lambda value: b"%d" % (int(value or b"0") + 1))

    assert b"20" == store.get("counter")
