"""The embedded store: one SQLite file on one machine, with the guarantees of the cluster's (protocol 6.5 and 7).

One table, one row a node and kind. A change reads and writes inside one BEGIN IMMEDIATE transaction, so no update is
lost, and each commit is synced to the disk. The rollback journal (not a write-ahead log) lets a reader do with read
rights on the file alone.
"""

import posix
import sys
import time

from resource_extend.errors import StoreError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any, TypeVar

    Result = TypeVar("Result")

APPLICATION_ID = 0x65727572
"""Marks a database file as ours ("erur")."""

_SCHEMA = (
    "CREATE TABLE record (kind TEXT NOT NULL, node TEXT NOT NULL, value BLOB NOT NULL, revision INTEGER NOT NULL,"
    " PRIMARY KEY (kind, node)) WITHOUT ROWID"
)
_BATCH = 500  # SQLite takes at least 999 parameters in one statement


class SqliteStore:
    """The node store in a SQLite file. See `store.Store`.

    Args:
        path: the database file; made at the first write, mode 0600, in a folder that exists.
        kind: the plugin's kind; plugins share a file.
        deadline: `time.monotonic()` seconds at which waiting for another writer ends.
    """

    def __init__(self, path: str, kind: str, deadline: float) -> None:
        self._path = path
        self._kind = kind
        self._deadline = deadline

    def key(self, node: str) -> str:
        """Return how messages name a record."""
        return f"{self._path}:/resource/{self._kind}/{node}"

    def get(self, node: str, prepare: "Callable[[], object] | None" = None) -> bytes | None:
        """Return the value of one node."""
        if prepare is not None:
            prepare()
        return self._run(lambda database: self._stored(database, node)) if self._holds_database() else None

    def get_many(
        self, nodes: "Iterable[str]", prepare: "Callable[[], Callable[[list[bytes]], object]] | None" = None
    ) -> dict[str, bytes]:
        """Return the values of the nodes that have one."""

        def select(database: "Any") -> dict[str, bytes]:
            database.execute("BEGIN")  # one snapshot for all batches
            if not self._is_ours(database):
                return {}
            return {node: value for batch in batches for node, value in self._select(database, batch)}

        if prepare is not None:
            prepare()
        names = list(dict.fromkeys(nodes))
        batches = [names[start : start + _BATCH] for start in range(0, len(names), _BATCH)]
        if not self._holds_database():
            return {}
        return self._run(select)

    def update(self, node: str, change: "Callable[[bytes | None], bytes]") -> None:
        """Change the value of one node inside one transaction that no other writer can enter."""
        # What is refused makes no file.
        first = None if self._holds_database() else change(None)

        def write(database: "Any") -> None:
            database.execute("PRAGMA synchronous = FULL")
            database.execute("BEGIN IMMEDIATE")
            if not self._is_ours(database):
                database.execute(_SCHEMA)
                database.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            stored = dict(self._select(database, [node])).get(node)
            value = change(stored) if first is None or stored is not None else first
            if value != stored:
                database.execute(
                    "INSERT INTO record VALUES (?, ?, ?, 1)"
                    " ON CONFLICT (kind, node) DO UPDATE SET value = excluded.value, revision = revision + 1",
                    (self._kind, node, value),
                )
            database.execute("COMMIT")

        if first is not None:
            self._create_file()
        self._run(write)

    def delete(self, node: str) -> None:
        """Remove the value of one node."""

        def remove(database: "Any") -> None:
            database.execute("PRAGMA synchronous = FULL")
            database.execute("BEGIN IMMEDIATE")
            if self._is_ours(database):
                database.execute("DELETE FROM record WHERE kind = ? AND node = ?", (self._kind, node))
            database.execute("COMMIT")

        if self._holds_database():
            self._run(remove)

    def _stored(self, database: "Any", node: str) -> bytes | None:
        """Return the value of one node, in one snapshot with the look at whose database it is."""
        database.execute("BEGIN")
        return dict(self._select(database, [node])).get(node) if self._is_ours(database) else None

    def _select(self, database: "Any", nodes: list[str]) -> "list[tuple[str, bytes]]":
        marks = ",".join("?" * len(nodes))
        # The cast is for values that somebody has put in by hand, as text.
        rows = database.execute(
            f"SELECT node, CAST(value AS BLOB) FROM record WHERE kind = ? AND node IN ({marks})",  # noqa: S608 - marks only
            (self._kind, *nodes),
        )
        return list(rows.fetchall())

    def _holds_database(self) -> bool:
        """Tell whether there is a file with something in it: an absent or empty one holds no records."""
        try:
            status = posix.stat(self._path)
        except FileNotFoundError:
            self._check_folder()
            return False
        except OSError as error:
            raise self._error(_reason(error)) from None
        size = status.st_size
        if status.st_mode & 0o170000 != 0o100000:
            raise self._error("it is no regular file")
        if size == 1:  # SQLite takes this for an empty file, and would overwrite it
            raise self._error(_explained("file is not a database"))
        return size > 0

    def _check_folder(self) -> None:
        """Refuse a path whose folder is missing: an empty store would hide the mistake."""
        try:
            posix.stat(self._path.rpartition("/")[0] or "/")
        except OSError:
            raise self._error("its folder does not exist") from None

    def _create_file(self) -> None:
        """Make the file with owner-only rights; SQLite itself would make it readable for others.

        One that exists is not even opened: closing it would end the locks that this process may have on it.
        """
        try:
            posix.close(posix.open(self._path, posix.O_WRONLY | posix.O_CREAT | posix.O_EXCL | posix.O_CLOEXEC, 0o600))
        except FileExistsError:
            pass
        except PermissionError:
            raise self._error("its folder must be writable") from None
        except OSError as error:
            raise self._error(_reason(error)) from None

    def _run(self, work: "Callable[[Any], Result]") -> "Result":
        """Open the file, let `work` use it, close it; an unfinished transaction is rolled back by that."""
        sqlite = _module()
        try:
            database = sqlite.connect(
                self._path, timeout=max(self._deadline - time.monotonic(), 0.0), isolation_level=None
            )
        except sqlite.Error as error:
            raise self._error(_explained(str(error))) from None
        try:
            return work(database)
        except sqlite.DatabaseError as error:
            raise self._error(_explained(str(error))) from None
        finally:
            database.close()

    def _is_ours(self, database: "Any") -> bool:
        """Tell our database from an empty one; refuse one that somebody else made."""
        ((application,),) = database.execute("PRAGMA application_id").fetchall()
        if application == APPLICATION_ID:
            return True
        ((tables,),) = database.execute("SELECT count(*) FROM sqlite_master").fetchall()
        if application or tables:
            raise self._error("the file is another program's database; give another sqlite.path")
        return False

    def _error(self, reason: str) -> StoreError:
        return StoreError(f"sqlite {self._path}: {reason}")


def _explained(reason: str) -> str:
    """Add to SQLite's words what to do, where that is known."""
    if "locked" in reason:
        return f"{reason}: another writer held it until the time limit of this call"
    if "readonly" in reason or "unable to open" in reason:
        return f"{reason}: to read, the file must be readable; to write, the file and its folder must be writable"
    if "not a database" in reason:
        return f"{reason}; give another sqlite.path"
    return reason


def _reason(error: OSError) -> str:
    return (error.strerror or str(error)).lower()


def _undecorated(*_: object, **__: object) -> "Callable[[Any], Any]":
    """Stand for `functools.lru_cache`."""
    return lambda function: function


def _module() -> "Any":
    """Load SQLite without what else the standard library's package would bring (a third of a start of Python)."""
    modules = sys.modules
    stand_in: Any = None
    if "functools" not in modules:
        # All that `_sqlite3` takes from there is one decorator for adapters.
        modules["functools"] = stand_in = type(sys)("functools")
        stand_in.lru_cache = _undecorated
    try:
        import _sqlite3
    except (ImportError, AttributeError):
        modules.pop("functools", None)
        import sqlite3 as _sqlite3  # type: ignore[no-redef]
    finally:
        if stand_in is not None and modules.get("functools") is stand_in:
            del modules["functools"]
    return _sqlite3
