"""What became of a write whose reply was lost (protocol, 7.2)."""

from time import sleep

from resource_extend.errors import OutcomeUnknown, StoreError
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
    from resource_extend.store.client import Client


PAUSE = 0.05


def settle(client: "Client", key: str, revision: int, wanted: bytes | None) -> None:
    """Return when a conditional write that may have happened is known to have happened; it is never computed anew.

    The key is read again. Unmoved from `revision`, the same write is sent again: the condition lets only one of the two
    happen, also if the first is still under way somewhere. Moved, it must hold exactly `wanted`.

    Raises:
        OutcomeUnknown: `write outcome unknown: <key>`.
    """
    name = key.encode()
    request = write_request(name, revision, wanted)
    try:
        while True:
            found, value = state(parsed(range_answer, client.read(RANGE, range_request(name))))
            if found != revision:
                if value == wanted:
                    return
                break
            try:
                succeeded = parsed(write_answer, client.write(TXN, request))
            except Unanswered:
                sleep(PAUSE)
                continue
            if succeeded:
                return
    except StoreError:
        pass
    raise OutcomeUnknown(f"write outcome unknown: {key}")
