"""The SQLite store: the contract of all stores, and what is SQLite's own (specification, protocol 6.5 and 7.2)."""

import functools
import os
import signal
import sqlite3
import stat
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from resource_extend.errors import StoreError
from resource_extend.settings import Settings
from resource_extend.store import open_store
from resource_extend.store.sqlite import APPLICATION_ID, SqliteStore
from store.contract import StoreContract, StoreFactory, put
from support.calls import SOURCES


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the file that all tests of the contract share."""
    return tmp_path_factory.mktemp("contract") / "records.db"


class TestSqliteStore(StoreContract):
    """The contract on a SQLite file."""

    @pytest.fixture
    def store_factory(self, database: Path) -> StoreFactory:
        """Return stores over one file."""
        return functools.partial(open_store, Settings(sqlite_path=str(database)))

    @pytest.fixture
    def revision_of(self, database: Path) -> Callable[[str], int]:
        """Return what reads the revision column."""

        def revision(key: str) -> int:
            _, kind, node = key.partition(":")[2].removeprefix("/").split("/", 2)
            query = "SELECT revision FROM record WHERE kind = ? AND node = ?"
            with closing(sqlite3.connect(database)) as connection:
                return int(connection.execute(query, (kind, node)).fetchone()[0])

        return revision


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return a path where no file is yet."""
    return tmp_path / "records.db"


def store_of(path: Path | str, kind: str = "gpu", seconds: float = 20.0) -> SqliteStore:
    """Return a store over a file, for a call that ends in so many seconds."""
    return SqliteStore(str(path), kind, time.monotonic() + seconds)


def refusals(store: SqliteStore) -> set[str]:
    """Return the texts of all operations, which must all fail."""
    texts = set()
    operations: list[Callable[[], object]] = [
        lambda: store.get("n"),
        lambda: store.get_many(["n"]),
        lambda: put(store, "n", b"x"),
        lambda: store.delete("n"),
    ]
    for operation in operations:
        with pytest.raises(StoreError) as caught:
            operation()
        texts.add(str(caught.value))
    return texts


def execute(path: Path, *statements: str) -> list[tuple[object, ...]]:
    """Run statements as another program would; return the rows of the last."""
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        for statement in statements[:-1]:
            database.execute(statement)
        return database.execute(statements[-1]).fetchall()


def test_file_is_made_by_the_first_write(path: Path) -> None:
    """Reads, deletes and refused changes make no file; the first write makes one, for its owner alone."""
    store = store_of(path)

    def refuse(_: bytes | None) -> bytes:
        raise LookupError

    assert store.get("n") is None
    assert {} == store.get_many(["n", "m"])
    store.delete("n")
    with pytest.raises(LookupError):
        store.update("n", refuse)
    assert not path.exists()

    mask = os.umask(0)
    try:
        put(store, "n", b"x")
    finally:
        os.umask(mask)
    assert 0o600 == stat.S_IMODE(path.stat().st_mode)
    assert [path] == list(path.parent.iterdir())


def test_mode_of_the_file_is_left_alone(path: Path) -> None:
    """Whoever has opened the file to others keeps it open."""
    put(store_of(path), "n", b"x")
    path.chmod(0o660)
    put(store_of(path), "n", b"y")

    assert 0o660 == stat.S_IMODE(path.stat().st_mode)


def test_layout(path: Path) -> None:
    """One table keyed by kind and node with a revision, marked with an application id, with a rollback journal."""
    put(store_of(path), "n", b"x")
    put(store_of(path), "n", b"y")
    put(store_of(path, "storage"), "n", b"z")

    assert [("record",)] == execute(path, "SELECT name FROM sqlite_master WHERE type = 'table'")
    rows = execute(path, "SELECT kind, node, value, revision FROM record ORDER BY kind")
    assert [("gpu", "n", b"y", 2), ("storage", "n", b"z", 1)] == rows
    assert [(APPLICATION_ID,)] == execute(path, "PRAGMA application_id")
    assert [("delete",)] == execute(path, "PRAGMA journal_mode")


def test_two_plugins_in_one_file(path: Path) -> None:
    """Two kinds share a file that either may make, and see their own records only."""
    gpu, storage = store_of(path), store_of(path, "storage")
    put(gpu, "n", b"cards")
    put(storage, "n", b"disks")
    put(storage, "m", b"more")

    assert {"n": b"cards"} == gpu.get_many(["n", "m"])
    assert {"n": b"disks", "m": b"more"} == storage.get_many(["n", "m"])


@pytest.mark.parametrize("name", [":memory:", "file:x?mode=memory", "a b", "节点.db", "x'y.db"])
def test_every_path_is_a_file(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A name that means something else to SQLite is a file like any other."""
    monkeypatch.chdir(tmp_path)
    put(store_of(f"./{name}"), "n", b"x")

    assert b"x" == store_of(f"./{name}").get("n")
    assert [name] == os.listdir(tmp_path)


def test_more_names_than_parameters(path: Path) -> None:
    """Thousands of names are read in one consistent look."""
    put(store_of(path), "n-4999", b"x")
    names = [f"n-{number}" for number in range(5000)]

    assert {"n-4999": b"x"} == store_of(path).get_many(names)


def test_value_put_in_by_hand(path: Path) -> None:
    """A value that somebody has written as text is read like one that we wrote."""
    put(store_of(path), "n", b"x")
    execute(path, "UPDATE record SET value = '{\"é\":1}'")

    assert '{"é":1}'.encode() == store_of(path).get("n")


def test_missing_folder(tmp_path: Path) -> None:
    """A folder that is not there is an error for reads too: an empty store would hide the mistake."""
    path = tmp_path / "no" / "records.db"

    assert {f"sqlite {path}: its folder does not exist"} == refusals(store_of(path))


def test_something_else_in_the_place_of_the_file(tmp_path: Path) -> None:
    """A folder, a pipe or a device where the file should be is an error: an empty store would hide the mistake."""
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe", Path("/dev/null")):
        assert {f"sqlite {path}: it is no regular file"} == refusals(store_of(path))


def test_file_in_the_place_of_a_folder(path: Path) -> None:
    """A file on the way is an error."""
    path.write_text("x")

    assert {f"sqlite {path}/x.db: not a directory"} == refusals(store_of(path / "x.db"))


@pytest.mark.parametrize("content", [b"etcd: {}\n", b"\n", os.urandom(10_000), b"SQLite format 3\0" + b"x" * 2000])
def test_no_database(content: bytes, path: Path) -> None:
    """A file that is no database is an error and stays as it is."""
    path.write_bytes(content)
    (text,) = refusals(store_of(path))

    assert text.startswith(f"sqlite {path}: file is not a database")
    assert content == path.read_bytes()
    assert [path] == list(path.parent.iterdir())


@pytest.mark.parametrize(
    "statements",
    [
        ["CREATE TABLE theirs (x)"],
        ["PRAGMA application_id = 7"],
        ["PRAGMA application_id = 7", "CREATE TABLE record (kind, node, value, revision)"],
        ["CREATE TABLE record (kind, node, value, revision)"],
        ["PRAGMA journal_mode = WAL", "CREATE TABLE theirs (x)"],
    ],
)
def test_database_of_another_program(statements: list[str], path: Path) -> None:
    """A database that somebody else made is refused and stays as it is."""
    execute(path, *statements, "PRAGMA user_version")
    before = path.read_bytes()

    expected = f"sqlite {path}: the file is another program's database; give another sqlite.path"
    assert {expected} == refusals(store_of(path))
    assert before == path.read_bytes()


def test_empty_file_and_empty_database(path: Path) -> None:
    """An empty file, and a database without anything in it, hold no records and are taken."""
    path.touch()
    assert store_of(path).get("n") is None
    execute(path, "PRAGMA user_version = 1", "VACUUM", "PRAGMA user_version")
    assert path.stat().st_size > 0
    assert store_of(path).get("n") is None
    store_of(path).delete("n")
    put(store_of(path), "n", b"x")

    assert b"x" == store_of(path).get("n")


def test_damaged_database(path: Path) -> None:
    """A file cut in the middle is an error that names it."""
    for number in range(50):
        put(store_of(path), f"n{number}", b"x" * 1000)
    os.truncate(path, path.stat().st_size // 2)

    assert all(text.startswith(f"sqlite {path}: ") for text in refusals(store_of(path)))


def test_wait_for_another_writer(path: Path) -> None:
    """A writer waits while another one writes, and sees what that has written."""
    put(store_of(path), "n", b"1")
    other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    other.execute("BEGIN EXCLUSIVE")
    other.execute("UPDATE record SET value = x'32'")  # "2"
    timer = threading.Timer(0.3, lambda: other.execute("COMMIT"))
    timer.start()
    store_of(path).update("n", lambda value: (value or b"") + b"3")
    timer.join()
    other.close()

    assert b"23" == store_of(path).get("n")


def test_wait_ends_with_the_call(path: Path) -> None:
    """The wait for another writer ends at the time limit of the call, with a reason; a read waits for no writer."""
    put(store_of(path), "n", b"1")
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        assert b"1" == store_of(path, seconds=0.1).get("n")
        with pytest.raises(StoreError) as caught:
            put(store_of(path, seconds=0.1), "n", b"2")
        other.execute("COMMIT")
        other.execute("BEGIN EXCLUSIVE")
        texts = refusals(store_of(path, seconds=0.1)) | refusals(store_of(path, seconds=-1)) | {str(caught.value)}

    expected = "database is locked: another writer held it until the time limit of this call"
    assert {f"sqlite {path}: {expected}"} == texts
    assert b"1" == store_of(path).get("n")


def test_change_that_fails_holds_no_lock(path: Path) -> None:
    """After a refused change the next writer need not wait, and nothing was written."""
    put(store_of(path), "n", b"1")
    before = path.read_bytes()

    def refuse(_: bytes | None) -> bytes:
        raise LookupError

    with pytest.raises(LookupError):
        store_of(path).update("n", refuse)

    assert before == path.read_bytes()
    put(store_of(path, seconds=0), "n", b"2")


# --- rights


@pytest.fixture
def shared_folder() -> Iterator[Path]:
    """Return a folder that every user may enter."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)
        Path(name).chmod(0o755)


def as_nobody(work: Callable[[], str]) -> str:
    """Run something as a user without rights, in a process of its own; return what it returns."""
    store_of("/nonexistent/x", seconds=0)
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        try:
            if os.getuid() == 0:
                os.setgroups([])
                os.setresgid(65534, 65534, 65534)
                os.setresuid(65534, 65534, 65534)
            os.write(writer, work().encode())
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as stream:
        text = stream.read()
    os.waitpid(child, 0)
    return text


def outcome(operation: Callable[[], object]) -> str:
    """Return what an operation gives, or the text of its failure."""
    try:
        return repr(operation())
    except StoreError as error:
        return str(error)


def test_read_only(shared_folder: Path) -> None:
    """A readable file in a folder that may not be written serves reads; a write says that both must be writable."""
    path = shared_folder / "records.db"
    put(store_of(path), "n", b"x")
    path.chmod(0o444)
    shared_folder.chmod(0o555)

    assert repr(b"x") == as_nobody(lambda: outcome(lambda: store_of(path).get("n")))
    for text in (
        as_nobody(lambda: outcome(lambda: put(store_of(path), "n", b"y"))),
        as_nobody(lambda: outcome(lambda: store_of(path).delete("n"))),
    ):
        assert text.startswith(f"sqlite {path}: attempt to write a readonly database: ")
        assert text.endswith("to write, the file and its folder must be writable")


def test_writable_file_in_a_read_only_folder(shared_folder: Path) -> None:
    """The journal lies beside the file, so a write needs the folder too, and says so."""
    path = shared_folder / "records.db"
    put(store_of(path), "n", b"x")
    path.chmod(0o666)
    shared_folder.chmod(0o555)
    text = as_nobody(lambda: outcome(lambda: put(store_of(path), "n", b"y")))

    assert text.startswith(f"sqlite {path}: ")
    assert text.endswith("to write, the file and its folder must be writable")
    assert b"x" == store_of(path).get("n")


def test_unreadable_file(shared_folder: Path) -> None:
    """A file that may not be read is an error that says so."""
    path = shared_folder / "records.db"
    put(store_of(path), "n", b"x")
    path.chmod(0)

    text = as_nobody(lambda: outcome(lambda: store_of(path).get("n")))
    assert text.startswith(f"sqlite {path}: unable to open database file: to read, the file must be readable; ")


def test_new_file_in_a_read_only_folder(shared_folder: Path) -> None:
    """A file that cannot be made is an error that names the folder."""
    path = shared_folder / "records.db"
    shared_folder.chmod(0o555)

    assert f"sqlite {path}: its folder must be writable" == as_nobody(
        lambda: outcome(lambda: put(store_of(path), "n", b"y"))
    )


# --- sudden death

WRITER = f"""
import sys, time
sys.path.insert(0, {str(SOURCES)!r})
from resource_extend.store.sqlite import SqliteStore
number = 0
while True:
    number += 1
    store = SqliteStore(sys.argv[1], "gpu", time.monotonic() + 20)
    store.update("n", lambda value: b"%d" % number * 3000)
    print(number, flush=True)
"""


def test_killed_writer(path: Path) -> None:
    """A writer killed in the middle of its writes leaves the last value it told of, or the next one, whole."""
    for attempt in range(12):
        path.unlink(missing_ok=True)
        with subprocess.Popen([sys.executable, "-I", "-c", WRITER, path], stdout=subprocess.PIPE) as writer:
            assert writer.stdout
            writer.stdout.readline()
            time.sleep(0.003 * attempt)
            writer.send_signal(signal.SIGKILL)
            told = max((int(line) for line in writer.stdout.read().split()), default=1)
        value = store_of(path).get("n") or b""

        assert value in (b"%d" % told * 3000, b"%d" % (told + 1) * 3000)
        put(store_of(path, seconds=1), "n", b"on")
        assert b"on" == store_of(path).get("n")
        assert [("ok",)] == execute(path, "PRAGMA integrity_check")


def test_killed_in_the_first_write(path: Path) -> None:
    """A journal left by a writer that died while it made the file is undone: the file holds no records and is taken."""
    dies = (
        f"import os, sys, time\nsys.path.insert(0, {str(SOURCES)!r})\n"
        "from resource_extend.store.sqlite import SqliteStore, _module\n"
        "import sqlite3\n"
        "database = sqlite3.connect(sys.argv[1], isolation_level=None)\n"
        "database.execute('PRAGMA cache_size = 1')\ndatabase.execute('PRAGMA cache_spill = 1')\n"
        "database.execute('BEGIN IMMEDIATE')\ndatabase.execute('CREATE TABLE record (value)')\n"
        "[database.execute('INSERT INTO record VALUES (zeroblob(100000))') for _ in range(9)]\n"
        "os.kill(os.getpid(), 9)\n"
    )
    subprocess.run([sys.executable, "-I", "-c", dies, path], check=False)
    assert path.with_name("records.db-journal").exists()
    assert path.stat().st_size > 0

    assert store_of(path).get("n") is None
    put(store_of(path), "n", b"x")
    assert b"x" == store_of(path).get("n")
