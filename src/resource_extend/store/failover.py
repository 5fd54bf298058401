"""What to do after a request has failed: try elsewhere, log in anew, or say so (protocol, 7.2, 7.3 and 6.4)."""

from time import monotonic

from resource_extend.errors import StoreError
from resource_extend.store.endpoints import parse_endpoint
from resource_extend.store.failures import Refusal, Unanswered

TYPE_CHECKING = False
if TYPE_CHECKING:
    from resource_extend.store.client import Client

OUT_OF_TIME = "no answer before the time limit"

# gRPC codes by which a server says that it could not, rather than that it does not want to: cancelled, unknown,
# deadline exceeded, aborted, internal, unavailable.
UNAVAILABLE = (1, 2, 4, 10, 13, 14)
UNAUTHENTICATED = 16
# Texts of servers that want a new login, beside code 16.
STALE_LOGIN = ("etcdserver: revision of auth store is old", "etcdserver: user name is empty")
NO_LEADER = "etcdserver: no leader"

# Strikes: an endpoint that could not be reached or did not answer in time is out, one that closed the connection may be
# asked once more, one that says that it cannot now (there is no leader) is asked until the deadline.
OUT = 2

ADVICE = (
    ("authentication failed", "check etcd.auth.username and etcd.auth.password"),
    ("user name is empty", "set etcd.auth.username and etcd.auth.password"),
    ("invalid auth token", "the login was accepted, its token was not: look into etcd's log"),
    ("permission denied", "the user needs read and write rights on {directory}"),
    ("database space exceeded", "compact and defragment etcd, then disarm its alarm"),
    ("too many requests", "etcd is overloaded"),
    ("too large", "the record is larger than etcd takes"),
    ("larger than max", "the record is larger than etcd takes"),
)


def unwritten(client: "Client", failure: Exception) -> Unanswered | StoreError:
    """Return how a write has failed: Unanswered when it may have happened or may be tried anew, else StoreError."""
    surely = isinstance(failure, Unanswered) and not failure.processed
    if isinstance(failure, Refusal):
        surely = failure.code not in UNAVAILABLE or str(failure) == NO_LEADER
    try:
        dismissed(client, failure)
    except StoreError as final:
        if surely:
            return final
    return Unanswered(str(failure), processed=not surely)


def dismissed(client: "Client", failure: Exception) -> bool:
    """Give the connection up on which a request has failed, and return whether to go on with the next endpoint.

    Returns False when the same endpoint is to be asked again after a new login.

    Raises:
        StoreError: there is no point in going on.
    """
    endpoint = client.endpoint
    _, _, _, text = endpoint
    late = is_late(failure)
    if client.connection is not None:
        client.connection.channel.close()
        client.connection = None
    if isinstance(failure, Refusal) and failure.code not in UNAVAILABLE:
        if not _wants_login(failure) or not _renew_login(client):
            raise refused(client, failure)
        return False
    client.endpoints.remove(endpoint)
    client.endpoints.append(endpoint)
    client.reasons[text] = waited(client) if late else reason(failure)
    if isinstance(failure, Refusal):
        client.strikes.pop(text, None)
        return True
    # Some members answer a login that they do not like by closing the connection.
    if client.settings.username and not late:
        _renew_login(client)
        client.reasons[text] += " (possibly because of the login)"
    strike(client, text, OUT if late else 1)
    return True


def strike(client: "Client", text: str, count: int) -> None:
    """Hold a failure against an endpoint. Raises StoreError when all endpoints are out."""
    client.strikes[text] = client.strikes.get(text, 0) + count
    if all(client.strikes.get(endpoint, 0) >= OUT for _, _, _, endpoint in client.endpoints):
        raise unreachable(client)


def _wants_login(refusal: Refusal) -> bool:
    """Return whether a server refuses because of the token, or because there is none."""
    return refusal.code == UNAUTHENTICATED or str(refusal) in STALE_LOGIN


def _renew_login(client: "Client") -> bool:
    """Drop the login so that the next connection makes a new one, and return False if that has been done before."""
    if not client.settings.username or client.renewed:
        return False
    client.renewed = True
    client.metadata = None
    return True


def refused(client: "Client", refusal: Refusal) -> StoreError:
    """Return the error for an answer that is an error, with what to do where that is known."""
    text = str(refusal)
    for part, advice in ADVICE:
        if part in text:
            text += f" ({advice.format(directory=client.directory)})"
            break
    return StoreError(f"etcd: {text}")


def unreachable(client: "Client") -> StoreError:
    """Return the error that says for each endpoint, in the order of the configuration, why it is of no use."""
    texts = dict.fromkeys([text for _, _, _, text in map(parse_endpoint, client.settings.machines)])
    return StoreError(
        "etcd unreachable: " + "; ".join([f"{text}: {client.reasons.get(text, OUT_OF_TIME)}" for text in texts])
    )


def out_of_time(client: "Client") -> StoreError:
    """Return the error of a call that has no time left for what it would have to do at its endpoint."""
    _, _, _, text = client.endpoint
    client.reasons[text] = OUT_OF_TIME
    return unreachable(client)


def is_late(failure: Exception) -> bool:
    """Return whether our own time limit is the failure, rather than one of the system's."""
    return isinstance(failure, TimeoutError) and not failure.errno


def waited(client: "Client") -> str:
    """Return the reason of a request that got no answer in time."""
    return OUT_OF_TIME if monotonic() >= client.deadline else f"no answer within {client.answer_limit:g} s"


def reason(failure: Exception) -> str:
    """Return a failure in words, as they stand behind a colon."""
    text = (failure.strerror if isinstance(failure, OSError) else "") or str(failure)
    return text if text[1:2].isupper() else text[:1].lower() + text[1:]  # "TLS: ..." stays
