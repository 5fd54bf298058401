"""Calls of etcd's API off the straight road: large ones, those by TLS or by name, what is left after a failure.

A call that began on the straight road goes on here as if it had begun here (protocol, 7.3): a `Connection` is told all
that was sent and received.
"""

from time import monotonic, sleep

from resource_extend.store.endpoints import authority
from resource_extend.store.failures import Refusal, Unanswered
from resource_extend.store.http2 import Connection

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from resource_extend.store.client import Client
    from resource_extend.store.http2 import Receiver

SHORTEST_PAUSE, LONGEST_PAUSE = 0.05, 0.5


def read(
    client: "Client",
    path: bytes,
    body: bytes,
    prepare: "Callable[[], object] | None",
    receiver: "Receiver | None",
) -> bytes:
    """Return what `Client.read` does."""
    failure: Exception | None = None
    try:
        connection = begin(client, path, body)
    except (OSError, Unanswered, Refusal) as error:
        failure = error
    if prepare is not None:
        prepare()
    message = b""
    if failure is None:
        try:
            connection.receiver = receiver
            message = connection.answer(client.until())
        except (OSError, Unanswered, Refusal) as error:
            failure = error
    if failure is not None:
        message = _read_again(client, path, body, failure)
    if receiver is not None and (message or failure is not None):
        receiver(message, True)
    return message


def read_on(client: "Client", failure: OSError | ValueError, prepare: "Callable[[], object] | None") -> bytes:
    """Return what `Client.read` does, after a failure on the straight road; `prepare` is still to be called, if any."""
    path, body, _ = client.calls[-1]
    last: Exception | None = None
    try:
        goes_on = _going_on if client.step == "answering" else _connected
        connection = client.connection = goes_on(client, failure)
    except (OSError, Unanswered, Refusal) as error:
        last = error
    if prepare is not None:
        prepare()
    if last is None:
        try:
            return connection.answer(client.limit)
        except (OSError, Unanswered, Refusal) as error:
            last = error
    return _read_again(client, path, body, last)


def write(client: "Client", path: bytes, body: bytes, share: float) -> bytes:
    """Return what `Client.write` does; it may take a share of the time that is left."""
    try:
        return begin(client, path, body, share).answer(client.until(share))
    except (OSError, Unanswered, Refusal) as failure:
        from resource_extend.store.failover import unwritten

        raise unwritten(client, failure) from None


def write_on(client: "Client", failure: OSError | ValueError) -> bytes:
    """Return what `Client.write` does, after a failure on the straight road."""
    try:
        return _going_on(client, failure).answer(client.limit)
    except (OSError, Unanswered, Refusal) as last:
        from resource_extend.store.failover import unwritten

        raise unwritten(client, last) from None


def begin(client: "Client", path: bytes, body: bytes, share: float = 1.0) -> Connection:
    """Send a request and return the connection on which its answer will come. The share is that of `Client.until`."""
    if client.sock is not None:
        _told(client)
    connection = client.connection
    if connection is None or connection.closing:
        client.connection = connection = _connect(client, path, body)
    else:
        connection.send(path, body, client.metadata or b"", client.until(share))
    return connection


def _told(client: "Client") -> Connection:
    """Return a connection that knows all that was sent and received on the straight road, which is left by that.

    Raises:
        Unanswered: what was received says that there will be no answer.
    """
    if client.sock is None:
        raise Unanswered("not connected", processed=False)
    connection = client.connection = Connection(client.sock, authority(client.endpoint), tls=False)
    client.sock = None
    for path, body, received in client.calls:
        connection.request(path, body, client.metadata or b"", 0.0)
        connection.digest(received)
    return connection


def _going_on(client: "Client", failure: OSError | ValueError) -> Connection:
    """Return the connection that was used on the straight road, to wait there for the answer of the last request.

    Raises:
        OSError, Unanswered: there will be none.
    """
    from resource_extend.store.failover import is_late

    connection = _told(client)
    if is_late(failure):
        connection.acknowledge()
    elif not isinstance(failure, (ValueError, ConnectionError)):
        raise failure
    return connection


def _connected(client: "Client", failure: OSError | ValueError) -> Connection:
    """Return a connection with the request under way on it, after a failure to connect on the straight road.

    Raises:
        OSError: there can be no sockets.
        StoreError: no endpoint can be reached.
    """
    from resource_extend.store.race import resume

    path, body, _ = client.calls[-1]
    sock, connection = client.sock, None
    reason: Exception = failure
    if sock is None:
        raise failure
    if client.step == "sending":
        try:
            connection = _told(client)
            # What ends a connection before a word is best said by what comes last on it.
            while len(client.endpoints) > 1 and isinstance(failure, (ValueError, ConnectionError)):
                if connection.greeted:
                    return connection
                connection.receive(client.patience())
        except (OSError, Unanswered) as error:
            connection, reason = client.connection, error
    client.sock = client.connection = None
    connection = resume(client, (path, body), client.started, sock, connection, reason)
    client.limit = client.until()
    return connection


def _connect(client: "Client", path: bytes, body: bytes) -> Connection:
    """Return a new connection with the request under way on it."""
    client.connection = connection = None
    if not client.is_straight(body):
        from resource_extend.store.race import race

        return race(client, path, body)
    try:
        connection = Connection(client.connect(), authority(client.endpoint), tls=False)
        connection.send(path, body, client.metadata or b"", client.until())
        while not (connection.greeted or len(client.endpoints) == 1):
            connection.receive(client.patience())
    except (OSError, Unanswered) as failure:
        sock, client.sock = client.sock, None
        if sock is None:
            raise
        from resource_extend.store.race import resume

        return resume(client, (path, body), client.started, sock, connection, failure)
    client.sock = None
    return connection


def _read_again(client: "Client", path: bytes, body: bytes, failure: Exception) -> bytes:
    """Return the answer to a request that has failed, from whichever endpoint gives one before the deadline.

    Raises:
        StoreError: none did, or etcd refused.
    """
    from resource_extend.store.failover import dismissed, unreachable

    attempts = 0
    while True:
        attempts += 1
        elsewhere = dismissed(client, failure)
        # All endpoints have been tried: give them a moment, an election takes about a second.
        if elsewhere and attempts % len(client.endpoints) == 0:
            seconds = min(SHORTEST_PAUSE * 2 ** (attempts // len(client.endpoints)), LONGEST_PAUSE)
            sleep(max(min(seconds, client.deadline - monotonic()), 0.0))
        if monotonic() >= client.deadline:
            raise unreachable(client)
        try:
            answer = begin(client, path, body).answer(client.until())
        except (OSError, Unanswered, Refusal) as again:
            failure = again
        else:
            client.strikes.clear()
            return answer
