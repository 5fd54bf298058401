"""A cluster of three of which members stop or die (specification, protocol 7.3)."""

import itertools
import json
import threading
import time
from collections.abc import Iterator

import pytest

from resource_extend.errors import OutcomeUnknown, StoreError
from support.etcd import Etcd, running_cluster
from support.stores import SHORT, store_at


@pytest.fixture(scope="module")
def cluster() -> Iterator[list[Etcd]]:
    """Return a cluster of three."""
    with running_cluster() as members:
        yield members


def leader_of(members: list[Etcd]) -> Etcd:
    """Return the member that leads, as etcdctl tells it."""
    for member in members:
        status = json.loads(member.control("endpoint", "status", "--write-out=json"))[0]["Status"]
        if status["header"]["member_id"] == status.get("leader"):
            return member
    raise RuntimeError("nobody leads")


def followers_of(members: list[Etcd]) -> list[Etcd]:
    """Return the members that do not lead."""
    leader = leader_of(members)
    return [member for member in members if member is not leader]


def test_reads_are_linearizable(cluster: list[Etcd]) -> None:
    """What was written at one member is read at any other right afterwards, every time."""
    writers = [store_at(member.endpoint) for member in cluster]
    for number in range(60):
        writer, reader = writers[number % 3], writers[(number + 1 + number // 3 % 2) % 3]
        value = b"%d" % number
        writer.update("moving", lambda _, value=value: value)  # type: ignore[misc]

        assert value == reader.get("moving")
        assert {"moving": value} == reader.get_many(["moving", "other"])


@pytest.mark.parametrize("stopped", ["follower", "leader"])
def test_member_that_is_stopped(cluster: list[Etcd], stopped: str) -> None:
    """With one member stopped (SIGSTOP) reads and writes succeed, wherever it stands in the configuration."""
    victim = leader_of(cluster) if stopped == "leader" else followers_of(cluster)[0]
    others = [member for member in cluster if member is not victim]
    victim.pause()
    try:
        for place, number in itertools.product(range(3), range(2)):
            machines = [member.endpoint for member in others]
            machines.insert(place, victim.endpoint)
            node = f"stopped-{stopped}-{place}-{number}"
            store_at(*machines).update(node, lambda _: b"value")

            assert b"value" == store_at(*machines).get(node)
    finally:
        victim.resume()
        victim.wait()


def test_leader_that_stops_after_the_read(cluster: list[Etcd]) -> None:
    """A write that meets a new election is made once, or its outcome is said to be unknown."""
    leader = leader_of(cluster)
    followers = [member for member in cluster if member is not leader]
    store = store_at(*[member.endpoint for member in [leader, *followers]], limits=SHORT)
    store.update("election", lambda _: b"1")

    def change(value: bytes | None) -> bytes:
        leader.pause()
        return b"2"

    try:
        store.update("election", change)
        known = True
    except OutcomeUnknown:
        known = False
    finally:
        leader.resume()
    leader.wait()

    assert store_at(followers[0].endpoint).get("election") in ((b"2",) if known else (b"1", b"2"))


def test_increments_while_the_leader_stops(cluster: list[Etcd]) -> None:
    """While leaders stop and come back every increment is made once, or is said to be unknown."""
    done = threading.Event()
    machines = [member.endpoint for member in cluster]

    def trouble() -> None:
        while not done.wait(0.3):
            leader = leader_of(cluster)
            leader.pause()
            time.sleep(0.8)
            leader.resume()
            leader.wait()

    thread = threading.Thread(target=trouble)
    thread.start()
    made = unknown = 0
    try:
        end = time.monotonic() + 5
        while time.monotonic() < end:
            store = store_at(*machines[made % 3 :], *machines[: made % 3], limits=SHORT)
            try:
                store.update("trouble", lambda value: b"%d" % (int(value or b"0") + 1))
                made += 1
            except OutcomeUnknown:
                unknown += 1
    finally:
        done.set()
        thread.join()
    counted = int(store_at(*machines).get("trouble") or b"0")

    assert made > 5
    assert made <= counted <= made + unknown


def test_member_that_is_killed() -> None:
    """With the leader dead reads and writes succeed; with two of three dead there is no quorum, and a clean error."""
    with running_cluster() as members:
        leader = leader_of(members)
        followers = [member for member in members if member is not leader]
        leader.kill()
        for machines in itertools.permutations([member.endpoint for member in members]):
            store_at(*machines).update("killed", lambda _, machines=machines: machines[0].encode())  # type: ignore[misc]

            assert machines[0].encode() == store_at(*machines).get("killed")

        followers[0].kill()
        machines = (leader.endpoint, followers[0].endpoint, followers[1].endpoint)
        begin = time.monotonic()
        with pytest.raises(StoreError) as caught:
            store_at(*machines, seconds=2.5).get("killed")

        assert 2 < time.monotonic() - begin < 5
        start = (
            f"etcd unreachable: {machines[0]}: connection refused; {machines[1]}: connection refused; {machines[2]}: "
        )
        assert str(caught.value).startswith(start)
        assert str(caught.value).removeprefix(start) in (
            "etcdserver: no leader",
            "no answer before the time limit",
            "etcdserver: request timed out",
            "etcdserver: leader changed",
            "context deadline exceeded",
        )
        with pytest.raises(StoreError, match=r"^etcd unreachable: "):
            store_at(*machines, seconds=1.0).update("killed", lambda _: b"never")
