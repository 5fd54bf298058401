"""Writes whose reply is lost (specification, protocol 7.2): a proxy loses them on the way to a real etcd."""

import time

import pytest

from resource_extend.errors import OutcomeUnknown, StoreError
from support.etcd import Etcd
from support.peers import Proxy, Reaction, proxy
from support.stores import hasty_store_at, store_at


class Increment:
    """A change that adds one, or gives a fixed value, and counts how often it is computed."""

    def __init__(self, fixed: bytes = b"") -> None:
        self.computed = 0
        self.fixed = fixed

    def __call__(self, value: bytes | None) -> bytes:
        """Return one more than the value."""
        self.computed += 1
        return self.fixed or b"%d" % (int(value or b"0") + 1)


@pytest.fixture
def node(etcd: Etcd, request: pytest.FixtureRequest) -> str:
    """Return a node of this test's own, whose record holds 10."""
    name: str = request.node.name
    store_at(etcd.endpoint).update(name, lambda _: b"10")
    return name


def overwrite(etcd: Etcd, node: str, value: bytes) -> None:
    """Write as another writer does."""
    store_at(etcd.endpoint).update(node, lambda _: value)


def versions(etcd: Etcd, node: str) -> int:
    """Return how often the record has been written since it was created."""
    import json

    pairs = json.loads(etcd.control("get", f"/eru/resource/gpu/{node}", "--write-out=json"))["kvs"]
    version: int = pairs[0]["version"]
    return version


@pytest.mark.parametrize("close", [True, False])
def test_executed_and_reply_lost(etcd: Etcd, node: str, close: bool) -> None:
    """A write that etcd has executed is not made twice when its reply is lost, by a closed connection or by silence."""
    increment = Increment()
    with proxy(etcd.client_port, Reaction(close=close)) as way:
        hasty_store_at(way.endpoint).update(node, increment)

    assert 1 == increment.computed
    assert (b"11", 2) == (store_at(etcd.endpoint).get(node), versions(etcd, node))


@pytest.mark.parametrize("close", [True, False])
def test_never_executed(etcd: Etcd, node: str, close: bool) -> None:
    """A write that was lost on the way is sent again as it was, not computed anew."""
    increment = Increment()
    with proxy(etcd.client_port, Reaction(forward=False, close=close)) as way:
        hasty_store_at(way.endpoint).update(node, increment)

    assert 1 == increment.computed
    assert (b"11", 2) == (store_at(etcd.endpoint).get(node), versions(etcd, node))


def test_executed_late(etcd: Etcd, node: str) -> None:
    """A write that was given up and is executed after it was repeated changes nothing any more."""
    with proxy(etcd.client_port, Reaction(forward=False, close=False)) as way:
        hasty_store_at(way.endpoint).update(node, Increment())
        way.release()

    assert (b"11", 2) == (store_at(etcd.endpoint).get(node), versions(etcd, node))


def test_executed_while_it_is_repeated(etcd: Etcd, node: str) -> None:
    """A write that was given up and is executed just before its repetition is found done, by its bytes."""
    reactions = Reaction(forward=False, close=False), Reaction(reply=True, before=Proxy.release)
    with proxy(etcd.client_port, *reactions) as way:
        hasty_store_at(way.endpoint).update(node, Increment())

    assert (b"11", 2) == (store_at(etcd.endpoint).get(node), versions(etcd, node))


@pytest.mark.parametrize("forward", [True, False])
def test_overwritten_meanwhile(etcd: Etcd, node: str, forward: bool) -> None:
    """Whether a write happened that somebody else has overwritten cannot be told; it is not made again."""
    increment = Increment()
    reaction = Reaction(forward=forward, after=lambda _: overwrite(etcd, node, b"other"))
    with proxy(etcd.client_port, reaction) as way, pytest.raises(OutcomeUnknown) as caught:
        hasty_store_at(way.endpoint).update(node, increment)

    assert f"write outcome unknown: /eru/resource/gpu/{node}" == str(caught.value)
    assert 1 == increment.computed
    assert b"other" == store_at(etcd.endpoint).get(node)


def test_overwritten_before_it_is_repeated(etcd: Etcd, node: str) -> None:
    """A repeated write that meets somebody else's value is unknown too: the first one may have been executed."""
    reactions = Reaction(forward=False), Reaction(reply=True, before=lambda _: overwrite(etcd, node, b"other"))
    with proxy(etcd.client_port, *reactions) as way, pytest.raises(OutcomeUnknown):
        hasty_store_at(way.endpoint).update(node, Increment())

    assert b"other" == store_at(etcd.endpoint).get(node)


def test_nobody_left_to_ask(etcd: Etcd, node: str) -> None:
    """The outcome is unknown when nobody answers after the write."""
    reaction = Reaction(after=Proxy.stop_listening)
    with proxy(etcd.client_port, reaction) as way, pytest.raises(OutcomeUnknown) as caught:
        hasty_store_at(way.endpoint).update(node, Increment())

    assert f"write outcome unknown: /eru/resource/gpu/{node}" == str(caught.value)


def test_silence_until_the_deadline(etcd: Etcd, node: str) -> None:
    """A write that is never answered ends before the deadline, with an outcome that is unknown."""
    with proxy(etcd.client_port, *[Reaction(forward=False, close=False)] * 100) as way:
        begin = time.monotonic()
        with pytest.raises(OutcomeUnknown):
            hasty_store_at(way.endpoint, seconds=2.5).update(node, Increment())

    assert time.monotonic() - begin < 5


def test_another_endpoint_is_asked(etcd: Etcd, node: str) -> None:
    """The outcome is looked up at the next endpoint when the first has gone silent."""
    with proxy(etcd.client_port, Reaction(close=False)) as way:
        hasty_store_at(way.endpoint, etcd.endpoint).update(node, Increment())

        assert 1 == way.connections
    assert (b"11", 2) == (store_at(etcd.endpoint).get(node), versions(etcd, node))


@pytest.mark.parametrize("forward", [True, False])
def test_create(etcd: Etcd, forward: bool) -> None:
    """A record whose creation got no reply exists once."""
    node = f"created-{forward}"
    with proxy(etcd.client_port, Reaction(forward=forward)) as way:
        hasty_store_at(way.endpoint).update(node, Increment())

    assert (b"1", 1) == (store_at(etcd.endpoint).get(node), versions(etcd, node))


@pytest.mark.parametrize("forward", [True, False])
def test_delete(etcd: Etcd, node: str, forward: bool) -> None:
    """A record whose deletion got no reply is gone."""
    with proxy(etcd.client_port, Reaction(forward=forward)) as way:
        hasty_store_at(way.endpoint).delete(node)

    assert store_at(etcd.endpoint).get(node) is None


def test_delete_of_a_record_created_again(etcd: Etcd, node: str) -> None:
    """A deletion without reply does not take a record away that somebody has created since."""
    reaction = Reaction(after=lambda _: overwrite(etcd, node, b"new"))
    with proxy(etcd.client_port, reaction) as way, pytest.raises(OutcomeUnknown):
        hasty_store_at(way.endpoint).delete(node)

    assert b"new" == store_at(etcd.endpoint).get(node)


def test_conflict_is_computed_anew(etcd: Etcd, node: str) -> None:
    """A value that somebody else wrote after the read is read, and the change computed anew with it."""
    increment = Increment()
    with proxy(etcd.client_port, Reaction(reply=True, before=lambda _: overwrite(etcd, node, b"20"))) as way:
        hasty_store_at(way.endpoint).update(node, increment)

    assert 2 == increment.computed
    assert b"21" == store_at(etcd.endpoint).get(node)


def test_conflict_with_a_deletion(etcd: Etcd, node: str) -> None:
    """A record that somebody else deleted after the read is created again from nothing."""
    with proxy(etcd.client_port, Reaction(reply=True, before=lambda _: store_at(etcd.endpoint).delete(node))) as way:
        hasty_store_at(way.endpoint).update(node, Increment())

    assert b"1" == store_at(etcd.endpoint).get(node)


def test_conflicts_without_end(etcd: Etcd, node: str) -> None:
    """An update that meets a change of others every time ends at the time limit and says how often it tried."""
    counter = iter(range(10_000))
    reaction = Reaction(reply=True, before=lambda _: overwrite(etcd, node, b"other %d" % next(counter)))
    error: StoreError = OutcomeUnknown("")
    # On a machine that is slow the last write may meet the time limit, and then its outcome is unknown.
    while isinstance(error, OutcomeUnknown):
        increment = Increment(b" mine")
        with proxy(etcd.client_port, *[reaction] * 1000) as way, pytest.raises(StoreError) as caught:
            hasty_store_at(way.endpoint, seconds=1.5).update(node, increment)
        error = caught.value
    start, end = f"/eru/resource/gpu/{node}: changed by other writers in ", " attempts"

    assert str(error).startswith(start)
    # What was computed last may not have been sent for lack of time.
    attempts = int(str(error).removeprefix(start).removesuffix(end))

    assert 3 < attempts
    assert attempts in (increment.computed, increment.computed - 1)


def test_no_time_to_write(etcd: Etcd, node: str) -> None:
    """A write for which there is no time left is not sent, so its outcome is known."""
    store = store_at(etcd.endpoint, seconds=0.5)

    def change(value: bytes | None) -> bytes:
        time.sleep(0.45)
        return b"late"

    with pytest.raises(StoreError) as caught:
        store.update(node, change)

    assert f"etcd unreachable: {etcd.endpoint}: no answer before the time limit" == str(caught.value)
    assert b"10" == store_at(etcd.endpoint).get(node)
