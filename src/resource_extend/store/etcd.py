"""The node store in etcd: keys, reads, and writes that only happen if nobody else wrote meanwhile (protocol, 7)."""

from posix import environ
from time import monotonic_ns, sleep

from resource_extend.errors import OutcomeUnknown, StoreError
from resource_extend.store.client import LIMITS, Client, Limits
from resource_extend.store.failures import Unanswered
from resource_extend.store.protobuf import (
    RANGE,
    TXN,
    parsed,
    range_answer,
    range_request,
    state,
    write_answer,
    write_request,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from resource_extend.settings import Settings

# etcd takes 128 operations in a transaction unless told otherwise; core splits at the same number as this.
READS_IN_TRANSACTION = 125
LONGEST_PAUSE = 0.05


class EtcdStore:
    """Records in etcd under `<prefix>/resource/<kind>/<node>`. The contract is that of `store.Store`.

    Nothing is connected before the first operation. The connection is kept from one operation to the next.

    Args:
        settings: endpoints, prefix, TLS files and login.
        kind: the plugin's kind.
        deadline: `time.monotonic()` seconds at which the whole call must have ended.
        limits: other waiting times than the specified ones.
        environ: tells where the login's token is kept.
    """

    __slots__ = ("_client", "_directory")

    def __init__(
        self,
        settings: "Settings",
        kind: str,
        deadline: float,
        limits: Limits = LIMITS,
        environ: "Mapping[bytes, bytes]" = environ,
    ):
        self._directory = f"{settings.prefix}/resource/{kind}/"
        self._client = Client(settings, self._directory, deadline, limits, environ)

    def key(self, node: str) -> str:
        """Return the full key of a node's record: plain concatenation."""
        return self._directory + node

    def get(self, node: str, prepare: "Callable[[], object] | None" = None) -> bytes | None:
        """Return the value of one node, None when there is none."""
        return self._read(self.key(node).encode(), prepare)[1]

    def get_many(
        self, nodes: "Iterable[str]", prepare: "Callable[[], Callable[[list[bytes]], object]] | None" = None
    ) -> dict[str, bytes]:
        """Return the values of the nodes that have one, read at one revision."""
        from resource_extend.store.many import Records, read_request

        names = list(nodes)
        directory = self._directory.encode()
        records = Records()

        def begun() -> None:
            records.wanted = {directory + node.encode(): node for node in names}
            if prepare is not None:
                records.look = prepare()

        if not names:
            begun()
        elif len(names) <= READS_IN_TRANSACTION:
            keys = [directory + node.encode() for node in names]
            message = self._client.read(TXN, read_request(dict.fromkeys(keys)), begun)
            parsed(records.all_of_transaction, message)
        else:
            request = range_request(directory, directory[:-1] + b"0")
            message = self._client.read(RANGE, request, begun, records.part)
            parsed(lambda _: records.finish(), message)
        return records.values

    def update(self, node: str, change: "Callable[[bytes | None], bytes]") -> None:
        """Store what `change` makes of the value, computed anew whenever somebody else wrote meanwhile."""
        self._write(node, change)

    def delete(self, node: str) -> None:
        """Remove the value."""
        self._write(node, lambda _: None)

    def _write(self, node: str, change: "Callable[[bytes | None], bytes | None]") -> None:
        """Read, compute, and write if the mod revision is still the same, until that succeeds; None deletes."""
        client, key = self._client, self.key(node)
        conflicts = 0
        while True:
            try:
                if self._written(key, change):
                    return
            except OutcomeUnknown:
                raise
            except StoreError:
                if conflicts and not client.has_time():
                    raise contended(key, conflicts) from None
                raise
            conflicts += 1
            pause(client, key, conflicts)

    def _written(self, key: str, change: "Callable[[bytes | None], bytes | None]") -> bool:
        """Return whether the record is as `change` wants it, False when somebody else wrote after it was read."""
        name = key.encode()
        while True:
            revision, value = self._read(name)
            wanted = change(value)
            if wanted == value:
                return True
            try:
                return write_answer(self._client.write(TXN, write_request(name, revision, wanted)))
            except (Unanswered, ValueError, IndexError) as failure:
                if not isinstance(failure, Unanswered) or failure.processed:
                    from resource_extend.store.outcome import settle

                    settle(self._client, key, revision, wanted)
                    return True

    def _read(self, name: bytes, prepare: "Callable[[], object] | None" = None) -> tuple[int, bytes | None]:
        """Return the mod revision and the value of a key."""
        return state(parsed(range_answer, self._client.read(RANGE, range_request(name), prepare)))


def pause(client: Client, key: str, conflicts: int) -> None:
    """Wait for a random time after the write of another, longer each time, so that all writers get their turn.

    Raises:
        StoreError: there is no time for another attempt.
    """
    # The digits below a microsecond are as good as dice, and cost no import.
    sleep(min(0.002 * conflicts, LONGEST_PAUSE) * (monotonic_ns() % 1000) / 1000)
    if not client.has_time():
        raise contended(key, conflicts)


def contended(key: str, conflicts: int) -> StoreError:
    """Return the error of an update that others got ahead of every time."""
    return StoreError(f"{key}: changed by other writers in {conflicts} attempts")
