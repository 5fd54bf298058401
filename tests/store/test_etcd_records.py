"""Records in etcd as others see them: keys, values, sizes, a full database (specification, protocol 7.1 and 7.2)."""

import json
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import resource_extend
from resource_extend.errors import StoreError
from resource_extend.store.etcd import EtcdStore
from support.etcd import Etcd, running
from support.stores import NOWHERE, store_at

VECTORS = Path(__file__).parents[1] / "vectors"
GO_RECORDS = [row for row in json.loads((VECTORS / "go-records.json").read_text()) if "key" in row]


@pytest.mark.parametrize("prefix", ["/eru", "/eru/", "eru", "/eru//x", "节点"])
def test_key(etcd: Etcd, prefix: str) -> None:
    """The key is the plain concatenation of prefix, `/resource/`, kind, `/` and node name."""
    store = store_at(etcd.endpoint, prefix=prefix)
    store.update("n1//x", lambda _: b"value")

    assert f"{prefix}/resource/gpu/n1//x" == store.key("n1//x")
    record = etcd.record(f"{prefix}/resource/gpu/n1//x")

    assert record is not None
    assert "value" == record[1]


@pytest.mark.parametrize("record", GO_RECORDS, ids=[record["after"] for record in GO_RECORDS])
def test_records_of_go_plugins(etcd: Etcd, record: dict[str, str]) -> None:
    """What another client wrote is read as it is, changed, and read back by that client; no other key appears."""
    prefix, kind, node = "/go", record["key"].split("/")[3], record["key"].split("/", 4)[4]
    key = f"{prefix}/resource/{kind}/{node}"
    etcd.control("del", prefix, "--prefix")
    etcd.control("put", key, data=record["value"].encode())
    store = EtcdStore(etcd.settings(prefix=prefix), kind, 1e12, environ=NOWHERE)

    assert record["value"].encode() == store.get(node)

    store.update(node, lambda value: (value or b"") + b" ")

    assert (record["value"] + " ") == (etcd.record(key) or (0, ""))[1]
    assert [key] == etcd.control("get", prefix, "--prefix", "--keys-only").split()


def test_no_lease(etcd: Etcd) -> None:
    """A record has no lease: it stays until it is deleted."""
    store_at(etcd.endpoint).update("stays", lambda _: b"value")
    pairs = json.loads(etcd.control("get", "/eru/resource/gpu/stays", "--write-out=json"))["kvs"]

    assert not pairs[0].get("lease")


@pytest.mark.parametrize("asked", [20, 125, 126, 3000])
def test_answers_of_several_megabytes(etcd: Etcd, asked: int) -> None:
    """Answers of several megabytes are read whole, by transaction and by prefix."""
    prefix = "/large"
    store = store_at(etcd.endpoint, prefix=prefix)
    values = {f"large-{number}": bytes((number,)) * 1_000_000 for number in range(8)}
    if not store.get("large-7"):
        for node, value in values.items():
            store.update(node, lambda _, value=value: value)  # type: ignore[misc]

    assert values == store.get_many(f"large-{number}" for number in range(asked))


def test_long_prefix(etcd: Etcd) -> None:
    """Only the asked records of a long prefix come back."""
    keys = 2000
    text = "".join(f'put /long/resource/gpu/node-{number} "{number}"\n' for number in range(keys))
    for start in range(0, keys, 100):
        lines = text.splitlines()[start : start + 100]
        etcd.control("txn", data=("\n" + "\n".join(lines) + "\n\n\n").encode())
    store = store_at(etcd.endpoint, prefix="/long")
    asked = [f"node-{number}" for number in range(0, keys, 7)] + ["node-", "node-1.example"]

    assert {f"node-{number}": b"%d" % number for number in range(0, keys, 7)} == store.get_many(asked)
    assert keys == len(store.get_many(f"node-{number}" for number in range(keys + 500)))


@pytest.mark.parametrize("size", [1_600_000, 2_500_000])
def test_record_that_is_too_large(etcd: Etcd, size: int) -> None:
    """A record larger than etcd takes is refused with a reason; the store can be used on."""
    store = store_at(etcd.endpoint)
    store.delete("too large")
    with pytest.raises(StoreError, match=r"^etcd: .*larg.* \(the record is larger than etcd takes\)$"):
        store.update("too large", lambda _: b"x" * size)

    assert store.get("too large") is None

    store.update("too large", lambda _: b"x" * 1_400_000)

    assert 1_400_000 == len(store.get("too large") or b"")


def test_database_that_is_full() -> None:
    """When etcd has no space left reads work, writes are refused with what to do, and unchanged records need none."""
    with running([f"--quota-backend-bytes={256 * 1024}"]) as etcd:
        store = store_at(etcd.endpoint)
        store.update("small", lambda _: b"value")

        def fill() -> None:
            for number in range(100):
                store.update("filling", lambda _, number=number: b"%d" % number * 20_000)  # type: ignore[misc]

        with pytest.raises(StoreError) as caught:
            fill()

        assert (
            "etcd: etcdserver: mvcc: database space exceeded (compact and defragment etcd, then disarm its alarm)"
            == str(caught.value)
        )
        store.update("small", lambda _: b"value")

        assert b"value" == store.get("small")


def test_restart() -> None:
    """An etcd that restarts between two requests of a call is connected to again, also between read and write."""
    with running() as etcd:
        store = store_at(etcd.endpoint)
        store.update("restart", lambda _: b"1")

        def restart(value: bytes | None) -> bytes:
            etcd.terminate()
            assert etcd.process is not None
            etcd.process.wait()
            etcd.start()
            etcd.wait()
            return (value or b"") + b"2"

        restart(None)

        assert b"1" == store.get("restart")

        store.update("restart", restart)

        assert b"12" == store_at(etcd.endpoint).get("restart")


def test_transactions_of_128(etcd: Etcd) -> None:
    """What is read in one transaction stays below etcd's limit of operations, which is as low as 128."""
    with running(["--max-txn-ops=125"]) as small:
        names = [f"n{number}" for number in range(125)]

        assert {} == store_at(small.endpoint).get_many(names)


def test_stores_in_threads(etcd: Etcd) -> None:
    """Stores are apart: many may be used at the same time in one process."""

    def increments() -> None:
        for _ in range(20):
            store_at(etcd.endpoint).update("threads", lambda value: b"%d" % (int(value or b"0") + 1))

    threads = [threading.Thread(target=increments) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert b"160" == store_at(etcd.endpoint).get("threads")


HOT = """
import sys, time
sys.path.insert(0, sys.argv[1])
before = set(sys.modules)
from resource_extend.store.etcd import EtcdStore
class Settings:
    machines, prefix, ca, cert, key, username, password = [sys.argv[2]], "/hot", "", "", "", "", ""
store = EtcdStore(Settings, "gpu", time.monotonic() + 20)
store.update("n", lambda value: (value or b"") + b"1")
store.update("n", lambda value: value)
store.get_many(["n", "m"])
store.get_many(str(number) for number in range(1000))
store.delete("n")
print(store.get("n"), *sorted(set(sys.modules) - before))
"""


def test_what_is_loaded(etcd: Etcd) -> None:
    """Reads and writes that meet nothing unusual load small modules only, and nothing of the standard library."""
    source = str(Path(resource_extend.__file__).parents[1])
    command = [sys.executable, "-I", "-S", "-B", "-c", HOT, source, etcd.endpoint]
    done = subprocess.run(command, capture_output=True, check=True, text=True)
    ours = ["client", "detour", "endpoints", "etcd", "failures", "frames", "http2", "many", "protobuf"]
    wanted = ["resource_extend", "resource_extend.errors", "resource_extend.store"]
    wanted += [f"resource_extend.store.{name}" for name in ours]

    assert ["None", *wanted] == [name for name in done.stdout.split() if name != "_socket"]
