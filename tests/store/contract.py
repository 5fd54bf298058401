"""What every store must do (specification, protocol 7.2), as one test class for all of them.

A test class of a store derives from `StoreContract` and overrides the two fixtures.
"""

import multiprocessing
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from resource_extend.store import Store

# Makes a store for a kind and a deadline. It is sent to other processes, so it must be picklable.
StoreFactory = Callable[[str, float], "Store"]

PROCESSES = 8
INCREMENTS = 100
# Of every three of a thousand nodes two have a record.
MANY = {f"node-{number}": b"value of %d" % number for number in range(1000) if number % 3}


def open_(factory: StoreFactory, kind: str = "gpu") -> "Store":
    """Return a store as a plugin call of 20 seconds gets it."""
    return factory(kind, time.monotonic() + 20.0)


def put(store: "Store", node: str, value: bytes) -> None:
    """Store a value whatever there was."""
    store.update(node, lambda _: value)


def increment(factory: StoreFactory, node: str, times: int) -> None:
    """Add one as often as asked, by a new store each time, as plugin calls do."""
    for _ in range(times):
        open_(factory, "counter").update(node, lambda value: b"%d" % (int(value or b"0") + 1))


class StoreContract:
    """One class of tests for every store."""

    @pytest.fixture
    def store_factory(self) -> StoreFactory:
        """Return what makes a store over one place, e.g. `functools.partial(open_store, settings)`."""
        raise NotImplementedError

    @pytest.fixture
    def revision_of(self) -> Callable[[str], int]:
        """Return what tells the revision of the record with a full key, which grows with each write."""
        raise NotImplementedError

    @pytest.fixture
    def store(self, store_factory: StoreFactory) -> "Store":
        """Return a store for the kind gpu."""
        return open_(store_factory)

    def test_unknown_node(self, store: "Store") -> None:
        """A node without a record has no value."""
        assert store.get("unknown") is None

    def test_update_creates(self, store: "Store") -> None:
        """An update of a node without a record is given None and creates the record."""
        seen = []

        def change(value: bytes | None) -> bytes:
            seen.append(value)
            return b"first"

        store.update("created", change)

        assert [None] == seen
        assert b"first" == store.get("created")

    def test_update_changes(self, store: "Store", store_factory: StoreFactory) -> None:
        """An update is given the stored value, and another store sees the new one at once."""
        put(store, "changed", b"1")
        store.update("changed", lambda value: (value or b"") + b"2")

        assert b"12" == open_(store_factory).get("changed")

    @pytest.mark.parametrize("value", [b"", b"\x00\xff\n", b"x" * 127, b"x" * 128, b"x" * 20_000, b"x" * 700_000])
    def test_values_are_bytes(self, store: "Store", value: bytes) -> None:
        """A value of any bytes comes back unchanged, the empty one too."""
        put(store, "bytes", value)

        assert value == store.get("bytes")
        assert {"bytes": value} == store.get_many(["bytes"])

    def test_unchanged_is_not_written(self, store: "Store", revision_of: Callable[[str], int]) -> None:
        """A result equal to the stored bytes is not written; the revision stays."""
        put(store, "same", b"value")
        before = revision_of(store.key("same"))
        put(store, "same", b"value")
        unchanged = revision_of(store.key("same"))
        put(store, "same", b"other")

        assert before == unchanged
        assert before < revision_of(store.key("same"))

    def test_change_that_fails(self, store: "Store") -> None:
        """What a change raises ends the update, nothing is written, and the store can be used on."""
        put(store, "kept", b"value")

        def fail(value: bytes | None) -> bytes:
            raise LookupError("no")

        with pytest.raises(LookupError, match="no"):
            store.update("kept", fail)
        with pytest.raises(LookupError, match="no"):
            store.update("not created", fail)

        assert {"kept": b"value"} == store.get_many(["kept", "not created"])

    def test_delete(self, store: "Store", store_factory: StoreFactory) -> None:
        """A deleted record is gone for everybody, and may be created again."""
        put(store, "deleted", b"value")
        store.delete("deleted")

        assert open_(store_factory).get("deleted") is None

        put(store, "deleted", b"again")

        assert b"again" == store.get("deleted")

    def test_delete_unknown(self, store: "Store") -> None:
        """To delete a record that does not exist is fine."""
        store.delete("never there")

        assert store.get("never there") is None

    NAMES = (
        "n1",
        "n1.example",
        "n10",
        "n1/x",
        "a/n1",
        "",
        " ",
        ".",
        "..",
        "/",
        "//",
        "n1/",
        "节点-1",
        "naïve",
        "x" * 300,
    )

    @pytest.mark.parametrize("name", NAMES)
    def test_name_is_exact(self, store: "Store", name: str) -> None:
        """A name is taken as it is: with slashes, dots, blanks, not ASCII, empty. Its neighbours are other nodes."""
        for other in self.NAMES:
            store.delete(other)
        put(store, name, b"mine")

        assert {name: b"mine"} == store.get_many(self.NAMES)
        for other in self.NAMES:
            assert (b"mine" if other == name else None) == store.get(other)

        store.delete(name)

        assert {} == store.get_many(self.NAMES)

    def test_kinds_are_apart(self, store_factory: StoreFactory) -> None:
        """Records of one node under two kinds have nothing to do with each other."""
        gpu, storage = open_(store_factory, "gpu"), open_(store_factory, "storage")
        put(gpu, "both", b"cards")
        put(storage, "both", b"disks")
        gpu.delete("both")

        assert gpu.get("both") is None
        assert b"disks" == storage.get("both")

    def test_key(self, store: "Store", store_factory: StoreFactory) -> None:
        """Keys are told for messages, and differ for every kind and node."""
        keys = {store.key(""), store.key("n"), store.key("n/"), open_(store_factory, "storage").key("n")}

        assert 4 == len(keys)
        assert store.key("n").endswith("/resource/gpu/n")

    @pytest.mark.parametrize("count", [0, 1, 2, 124, 125, 126, 127, 128, 129, 250, 1000])
    def test_many(self, store_factory: StoreFactory, count: int) -> None:
        """Any number of nodes is read at once; those without a record are left out, and doubled names count once."""
        store = open_(store_factory, "many")
        if MANY.keys() != store.get_many(MANY).keys():
            for node, value in MANY.items():
                put(store, node, value)
            put(store, "node-1.example", b"neighbour")
            put(store, "node-1/x", b"neighbour")
        asked = [f"node-{number}" for number in range(count)]
        wanted = {node: MANY[node] for node in asked if node in MANY}

        assert wanted == store.get_many(asked)
        assert wanted == store.get_many(asked + asked[: count // 2])
        assert wanted == store.get_many(node for node in reversed(asked))

    def test_many_in_any_iterable(self, store: "Store") -> None:
        """The nodes may come as any iterable, and no node gives no value."""
        put(store, "one", b"1")
        nodes: list[Iterable[str]] = [["one"], ("one",), {"one"}, {"one": 1}, iter(["one"])]

        assert [{"one": b"1"}] * len(nodes) == [store.get_many(each) for each in nodes]
        assert {} == store.get_many([])

    @pytest.mark.parametrize("count", [0, 2, 200])
    def test_prepare(self, store_factory: StoreFactory, count: int) -> None:
        """What there is to prepare is done once, whether or not there is anything to wait for."""
        store = open_(store_factory, "prepare")
        nodes = {f"node-{number}": b"%d" % number for number in range(count)}
        for node, value in nodes.items():
            put(store, node, value)
        done: list[object] = []
        looked: list[bytes] = []

        def prepare() -> Callable[[list[bytes]], object]:
            done.append("many")
            return looked.extend

        assert nodes == store.get_many(nodes, prepare)
        assert ["many"] == done
        assert set(looked) <= set(nodes.values())
        assert nodes.get("node-1") == store.get("node-1", lambda: done.append("one"))
        assert ["many", "one"] == done

    def test_concurrent_increments(self, store_factory: StoreFactory) -> None:
        """No increment is lost: 8 processes add 1 a hundred times each, and every call succeeds in its time."""
        open_(store_factory, "counter").delete("shared")
        context = multiprocessing.get_context("spawn")
        processes = [
            context.Process(target=increment, args=(store_factory, "shared", INCREMENTS)) for _ in range(PROCESSES)
        ]
        for process in processes:
            process.start()
        for process in processes:
            process.join()

        assert [0] * PROCESSES == [process.exitcode for process in processes]
        assert b"%d" % (PROCESSES * INCREMENTS) == open_(store_factory, "counter").get("shared")

    def test_killed_writers(self, store_factory: StoreFactory) -> None:
        """A writer that is killed at any moment leaves a whole record, which others go on to change."""
        open_(store_factory, "counter").delete("killed")
        context = multiprocessing.get_context("spawn")
        counts = []
        for pause in (0.0, 0.007):
            process = context.Process(target=increment, args=(store_factory, "killed", 1_000_000))
            process.start()
            begin = open_(store_factory, "counter").get("killed")
            while open_(store_factory, "counter").get("killed") == begin:
                time.sleep(0.01)
            time.sleep(pause)
            process.kill()
            process.join()
            increment(store_factory, "killed", 1)
            counts.append(int(open_(store_factory, "counter").get("killed") or b""))

        assert sorted(counts) == counts
        assert 2 <= counts[0]
