"""Logging in to etcd, and the token that is kept between calls (specification, protocol 6.4)."""

import os
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from resource_extend.errors import StoreError
from resource_extend.settings import Settings
from resource_extend.store.etcd import EtcdStore
from resource_extend.store.protobuf import field
from resource_extend.store.token import cached_token, keep_token, token_path
from support.etcd import Etcd, running
from support.etcd_users import PASSWORD, ROOT, ROOT_PASSWORD, USER, add_users, enable_login
from support.peers import Conversation, peer, proxy
from support.stores import NOWHERE, SHORT, store_at

WRONG_PASSWORD = (
    "etcd: etcdserver: authentication failed, invalid user ID or password "
    "(check etcd.auth.username and etcd.auth.password)"
)


@pytest.fixture(scope="module")
def guarded() -> Iterator[Etcd]:
    """Return an etcd that wants a login."""
    with running() as etcd:
        add_users(etcd)
        enable_login(etcd)
        yield etcd


@pytest.fixture
def home(tmp_path: Path) -> dict[bytes, bytes]:
    """Return an environment with a home folder for tokens."""
    return {b"HOME": bytes(tmp_path)}


def failure(store: EtcdStore, node: str = "n") -> str:
    """Return the error of a read."""
    with pytest.raises(StoreError) as caught:
        store.get(node)
    return str(caught.value)


def user_at(etcd: Etcd, environ: dict[bytes, bytes] = NOWHERE, password: str = PASSWORD) -> EtcdStore:
    """Return a store of the plugin's user."""
    return store_at(etcd.endpoint, username=USER, password=password, environ=environ)


def settings_of(etcd: Etcd, password: str = PASSWORD) -> Settings:
    """Return the settings of the plugin's user."""
    return Settings([etcd.endpoint], username=USER, password=password)


def token_file(environ: dict[bytes, bytes], etcd: Etcd) -> Path:
    """Return where the token of the plugin's user is kept."""
    path = token_path(settings_of(etcd), environ)
    assert path is not None
    return Path(os.fsdecode(path))


def test_login(guarded: Etcd) -> None:
    """With user name and password records are read and written as without."""
    user_at(guarded).update("n", lambda _: b"value")
    nodes = [f"node-{number}" for number in range(200)]

    assert b"value" == user_at(guarded).get("n")
    assert {"n": b"value"} == user_at(guarded).get_many(["n", "m"])
    assert {"n": b"value"} == user_at(guarded).get_many(["n", *nodes])

    user_at(guarded).delete("n")

    assert user_at(guarded).get("n") is None


def test_wrong_password(guarded: Etcd) -> None:
    """A wrong password and an unknown user are refused at once, and neither is shown."""
    assert WRONG_PASSWORD == failure(user_at(guarded, password="s3cret2"))
    assert WRONG_PASSWORD == failure(store_at(guarded.endpoint, username="nobody", password="s3cret"))


def test_no_login_given(guarded: Etcd) -> None:
    """An etcd that wants a login is told from one that cannot be reached, with what to do."""
    message = "etcd: etcdserver: user name is empty (set etcd.auth.username and etcd.auth.password)"

    assert message == failure(store_at(guarded.endpoint))
    with pytest.raises(StoreError) as caught:
        store_at(guarded.endpoint).get_many(["a", "b"])
    assert message == str(caught.value)


def test_rights(guarded: Etcd) -> None:
    """A user without rights for the records is told which rights are needed."""
    settings = Settings([guarded.endpoint], username=USER, password=PASSWORD)
    store = EtcdStore(settings, "storage", time.monotonic() + 20, environ=NOWHERE)

    assert (
        "etcd: etcdserver: permission denied (the user needs read and write rights on /eru/resource/storage/)"
        == failure(store)
    )


def test_right_to_read_only(guarded: Etcd) -> None:
    """A write that the user has no right to is refused, and its outcome is known."""
    guarded.control("user", "add", "reader:r")
    guarded.control("role", "add", "reader")
    guarded.control("role", "grant-permission", "reader", "read", "/eru/resource/gpu/", "--prefix=true")
    guarded.control("user", "grant-role", "reader", "reader")
    store = store_at(guarded.endpoint, username="reader", password="r")

    assert store.get("unwritten") is None
    with pytest.raises(StoreError, match=r"^etcd: etcdserver: permission denied \("):
        store.update("unwritten", lambda _: b"value")


def test_token_is_kept(guarded: Etcd, home: dict[bytes, bytes]) -> None:
    """One login serves many calls: its token is kept in a file of the owner's, in a folder of the owner's."""
    with proxy(guarded.client_port) as way:
        for _ in range(3):
            store_at(way.endpoint, username=USER, password=PASSWORD, environ=home).get("n")

        assert 1 == way.logins
    files = list(Path(os.fsdecode(home[b"HOME"])).rglob("*"))

    assert [".shiv", "etcd-token-"] == [file.name[:11] for file in files]
    assert [0o40700, 0o100600] == [file.lstat().st_mode for file in files]


def test_token_that_is_rejected(guarded: Etcd, home: dict[bytes, bytes]) -> None:
    """A token that etcd does not know any more means one new login, whose token is kept."""
    with proxy(guarded.client_port) as way:
        settings = Settings([way.endpoint], username=USER, password=PASSWORD)
        keep_token(settings, home, b"outdated.1")
        store_at(way.endpoint, username=USER, password=PASSWORD, environ=home).update("n", lambda _: b"1")

        assert 1 == way.logins
        assert cached_token(settings, home) not in (b"", b"outdated.1")


def test_token_that_is_rejected_at_the_write(guarded: Etcd) -> None:
    """A token that ends between read and write means a new login, and the change is computed anew."""
    computed = []

    def change(value: bytes | None) -> bytes:
        computed.append(value)
        if len(computed) == 1:
            # Whatever changes a user ends its tokens.
            guarded.control("user", "passwd", USER, "--interactive=false", data=PASSWORD.encode())
        return b"%d" % len(computed)

    store = user_at(guarded)
    store.update("n", lambda _: b"0")
    store.update("n", change)

    assert [b"0", b"0"] == computed
    assert b"2" == store.get("n")


def test_password_that_has_changed(guarded: Etcd, home: dict[bytes, bytes]) -> None:
    """A token is bound to the password: another one does not find it and has to log in."""
    user_at(guarded, home).get("n")

    assert WRONG_PASSWORD == failure(user_at(guarded, home, password="s3cret2"))
    assert b"" == cached_token(settings_of(guarded, "s3cret2"), home)
    assert b"" != cached_token(settings_of(guarded), home)


def links(path: Path) -> None:
    """Replace the token's file by a symbolic link to a copy of it."""
    path.rename(path.with_suffix(".other"))
    path.symlink_to(path.with_suffix(".other"))


def pipes(path: Path) -> None:
    """Replace the token's file by a pipe that nobody writes to."""
    path.unlink()
    os.mkfifo(path, 0o600)


def cuts(path: Path) -> None:
    """Leave a part of the token's file."""
    path.write_bytes(path.read_bytes()[:20])


def empties(path: Path) -> None:
    """Leave nothing in the token's file."""
    path.write_bytes(b"")


def breaks(path: Path) -> None:
    """Put something into the token that no header field may hold."""
    path.write_bytes(path.read_bytes() + b"\r\nx: y")


def lengthens(path: Path) -> None:
    """Make the token's file far too long."""
    path.write_bytes(path.read_bytes() + b"x" * 100_000)


def opens_up(path: Path) -> None:
    """Let others read the token's file."""
    path.chmod(0o640)


def replaces(path: Path) -> None:
    """Replace the token's file by a folder."""
    path.unlink()
    path.mkdir()


def gives_away(path: Path) -> None:
    """Give the token's file to another user."""
    if os.geteuid():
        pytest.skip("needs root")
    os.chown(path, 12345, 12345)


@pytest.mark.parametrize("spoil", [links, pipes, cuts, empties, breaks, lengthens, opens_up, replaces, gives_away])
def test_token_file_that_is_not_trusted(guarded: Etcd, home: dict[bytes, bytes], spoil: Callable[[Path], None]) -> None:
    """A token's file that is not the owner's alone, or damaged, is not used: there is a login, without a word."""
    user_at(guarded, home).get("n")
    spoil(token_file(home, guarded))

    assert b"" == cached_token(settings_of(guarded), home)
    assert user_at(guarded, home).get("n") is not None


def test_folder_that_cannot_be_used(guarded: Etcd, tmp_path: Path) -> None:
    """Without a folder for the token every call logs in, without a word."""
    (tmp_path / "file").write_bytes(b"")
    for folder in (b"/dev/null/x", b"/proc/none", bytes(tmp_path / "missing" / "deeper"), bytes(tmp_path / "file")):
        user_at(guarded, {b"SHIV_ROOT": folder}).get("n")

    assert ["file"] == [file.name for file in tmp_path.iterdir()]


def test_folder() -> None:
    """The folder is SHIV_ROOT, else .shiv at home, else at the home that the system knows; each only if absolute."""
    settings = Settings(["a:1"], username="u", password="p")

    def folder(environ: dict[bytes, bytes]) -> str:
        path = token_path(settings, environ)
        assert path is not None
        return os.path.dirname(os.fsdecode(path))

    import pwd

    known = pwd.getpwuid(os.geteuid()).pw_dir + "/.shiv"

    assert "/var/cache/x" == folder({b"SHIV_ROOT": b"/var/cache/x", b"HOME": b"/home/x"})
    assert "/home/x/.shiv" == folder({b"SHIV_ROOT": b"cache", b"HOME": b"/home/x"})
    assert known == folder({b"SHIV_ROOT": b"", b"HOME": b"."})
    assert known == folder({})


def test_name_of_the_file() -> None:
    """The file's name depends on endpoints and user, not on the password, which others could guess from it."""

    def name(machines: list[str], username: str, password: str) -> bytes:
        path = token_path(Settings(machines, username=username, password=password), {b"HOME": b"/h"})
        assert path is not None
        return path

    first = name(["a:1", "b:2"], "u", "p")

    assert first == name(["a:1", "b:2"], "u", "q")
    assert 5 == len({first, name(["a:1"], "u", "p"), name(["a:1", "b:2"], "v", "p"), name(["a:1b:2"], "u", "p"),
                     name(["a:1", "b:2u"], "", "p")})  # fmt: skip


def test_nothing_in_the_working_directory(guarded: Etcd, tmp_path: Path) -> None:
    """No token, and nothing else, is ever put into the working directory, whatever the environment says."""
    program = (
        "import sys, time; from resource_extend.settings import Settings;"
        "from resource_extend.store.etcd import EtcdStore;"
        "settings = Settings([sys.argv[1]], username=sys.argv[2], password=sys.argv[3]);"
        "EtcdStore(settings, 'gpu', time.monotonic() + 20).get('n')"
    )
    command = [sys.executable, "-B", "-c", program, guarded.endpoint, USER, PASSWORD]
    for environ in ({"SHIV_ROOT": ".", "HOME": "."}, {"SHIV_ROOT": "", "HOME": ""}, {"SHIV_ROOT": "x/y"}):
        subprocess.run(command, cwd=tmp_path, env={"HOME": "/dev/null", **environ}, check=True)

    assert [] == list(tmp_path.iterdir())


def test_login_where_none_is_wanted(etcd: Etcd, home: dict[bytes, bytes]) -> None:
    """User name and password do no harm at an etcd without authentication, also with a token from before."""
    settings = Settings([etcd.endpoint], username=USER, password=PASSWORD)
    store_at(etcd.endpoint, username=USER, password=PASSWORD, environ=home).update("unguarded", lambda _: b"1")

    assert b"" == cached_token(settings, home)

    keep_token(settings, home, b"outdated.1")

    assert b"1" == store_at(etcd.endpoint, username=USER, password=PASSWORD, environ=home).get("unguarded")


def test_login_switched_on_between_calls(home: dict[bytes, bytes]) -> None:
    """Authentication may be switched on and off between two calls, and also within one."""
    with running() as etcd:
        add_users(etcd)
        before = user_at(etcd, home)
        before.update("n", lambda _: b"1")
        enable_login(etcd)
        before.update("n", lambda _: b"2")

        assert b"2" == user_at(etcd, home).get("n")

        during = user_at(etcd, home)
        during.get("n")
        etcd.control("auth", "disable")
        etcd.login = []
        during.update("n", lambda _: b"3")

        assert b"3" == user_at(etcd, home).get("n")
        assert b"3" == store_at(etcd.endpoint).get("n")


def test_signed_tokens(tmp_path: Path, home: dict[bytes, bytes]) -> None:
    """Tokens may be long, as signed ones (JWT) are."""
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import rsa

    key = rsa.generate_private_key(65537, 2048)
    private, public = tmp_path / "jwt.key", tmp_path / "jwt.pub"
    private.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
        )
    )
    public.write_bytes(
        key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    )
    flag = f"--auth-token=jwt,pub-key={public},priv-key={private},sign-method=RS256,ttl=10m"
    with running([flag]) as etcd:
        add_users(etcd)
        enable_login(etcd)
        for value in (b"1", b"2"):
            user_at(etcd, home).update("n", lambda _, value=value: value)  # type: ignore[misc]

        assert b"2" == user_at(etcd, home).get("n")
        assert len(cached_token(settings_of(etcd), home)) > 300


def test_root(guarded: Etcd) -> None:
    """Any user with the rights will do."""
    assert store_at(guarded.endpoint, username=ROOT, password=ROOT_PASSWORD).get("nobody") is None


class Guard:
    """A scripted server with a login. It treats every request after it as told, and notes what it was asked."""

    def __init__(self, treat: Callable[[Conversation, "Guard"], None]):
        self.treat = treat
        self.asked: list[str] = []
        self.tokens: list[str] = []

    def __call__(self, sock: socket.socket) -> None:
        """Serve a connection."""
        talk = Conversation(sock)
        while True:
            call = talk.next_call()
            self.asked.append(call.path.rpartition("/")[2])
            self.tokens.append(dict(call.fields).get("token", ""))
            if self.asked[-1] == "Authenticate":
                assert field(1, b"plugin") + field(2, PASSWORD.encode()) == call.message
                talk.send(talk.answer(call, field(1, b"") + field(2, b"token-%d" % len(self.asked))))
            else:
                self.call = call
                self.treat(talk, self)


def test_token_that_is_always_rejected() -> None:
    """After one new login the refusal of the token is an error."""

    def reject(talk: Conversation, guard: Guard) -> None:
        talk.send(talk.error(guard.call, 16, "etcdserver: invalid auth token"))

    guard = Guard(reject)
    with peer(guard) as server:
        message = failure(store_at(server.endpoint, username=USER, password=PASSWORD))

    assert ["Authenticate", "Range", "Authenticate", "Range"] == guard.asked
    assert ["", "token-1", "", "token-3"] == guard.tokens
    assert (
        "etcd: etcdserver: invalid auth token (the login was accepted, its token was not: look into etcd's log)"
        == message
    )


def test_server_that_closes_on_the_token() -> None:
    """A server that closes the connection on a token gets one new login; then it is said that the login may be why."""

    def close(talk: Conversation, guard: Guard) -> None:
        talk.sock.shutdown(socket.SHUT_RDWR)

    guard = Guard(close)
    with peer(guard) as server:
        message = failure(store_at(server.endpoint, username=USER, password=PASSWORD))

    assert ["Authenticate", "Range", "Authenticate", "Range"] == guard.asked
    assert f"etcd unreachable: {server.endpoint}: connection closed (possibly because of the login)" == message


def test_login_at_the_next_endpoint(guarded: Etcd) -> None:
    """A server that cannot take the login just now, or goes silent at it, is passed over."""

    def unavailable(sock: socket.socket) -> None:
        talk = Conversation(sock)
        talk.send(talk.error(talk.next_call(), 14, "etcdserver: no leader"))

    def mute(sock: socket.socket) -> None:
        Conversation(sock).next_call()
        time.sleep(2)

    for serve in (unavailable, mute):
        with peer(serve) as server:
            store = store_at(server.endpoint, guarded.endpoint, username=USER, password=PASSWORD)

            assert store.get("nobody") is None
            with pytest.raises(
                StoreError, match=r"^etcd unreachable: .*: (etcdserver: no leader|no answer within 1 s)$"
            ):
                store_at(server.endpoint, username=USER, password=PASSWORD, limits=SHORT).get("n")


def test_token_without_content() -> None:
    """A login that is answered without a token is an error."""

    def serve(sock: socket.socket) -> None:
        talk = Conversation(sock)
        talk.send(talk.answer(talk.next_call(), field(1, b"")))

    with peer(serve) as server:
        assert "etcd: the login's answer holds no token" == failure(
            store_at(server.endpoint, username=USER, password=PASSWORD)
        )


def test_tokens_replaced_at_the_same_time(guarded: Etcd, home: dict[bytes, bytes]) -> None:
    """Many calls that log in at the same moment leave one whole file and no other."""
    program = (
        "import sys, time; from resource_extend.settings import Settings;"
        "from resource_extend.store.etcd import EtcdStore;"
        "settings = Settings([sys.argv[1]], username=sys.argv[2], password=sys.argv[3]);"
        "EtcdStore(settings, 'gpu', time.monotonic() + 20).get('n')"
    )
    command = [sys.executable, "-B", "-c", program, guarded.endpoint, USER, PASSWORD]
    environ = {"HOME": os.fsdecode(home[b"HOME"])}
    processes = [subprocess.Popen(command, env=environ) for _ in range(8)]

    assert [0] * 8 == [process.wait() for process in processes]

    path = token_file(home, guarded)

    assert [path] == list(path.parent.iterdir())
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert b"" != cached_token(settings_of(guarded), home)


def test_limits_hold_for_logins() -> None:
    """A login that is never answered ends with the call."""

    def serve(sock: socket.socket) -> None:
        Conversation(sock).next_call()
        time.sleep(3)

    with peer(serve) as server:
        begin = time.monotonic()
        message = failure(store_at(server.endpoint, username=USER, password=PASSWORD, seconds=0.3, limits=SHORT))

    assert f"etcd unreachable: {server.endpoint}: no answer before the time limit" == message
    assert time.monotonic() - begin < 2
