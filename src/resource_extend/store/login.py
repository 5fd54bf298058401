"""Logging in to etcd with user name and password (protocol, 6.4)."""

from resource_extend.errors import StoreError
from resource_extend.store.failures import Refusal, Unanswered
from resource_extend.store.frames import text_field
from resource_extend.store.protobuf import field, fields, parsed
from resource_extend.store.token import cached_token, is_token, keep_token

TYPE_CHECKING = False
if TYPE_CHECKING:
    from resource_extend.settings import Settings
    from resource_extend.store.client import Client
    from resource_extend.store.http2 import Connection

AUTHENTICATE = b"/etcdserverpb.Auth/Authenticate"
FAILED_PRECONDITION = 9


def cached_login(client: "Client") -> bytes | None:
    """Return the header field of the login made by an earlier call, None if there is none."""
    token = cached_token(client.settings, client.environ)
    return token_field(token) if token else None


def login_request(settings: "Settings") -> tuple[bytes, bytes]:
    """Return the method and the message of a login."""
    return AUTHENTICATE, field(1, settings.username.encode()) + field(2, settings.password.encode())


def authenticate_answer(message: bytes) -> bytes:
    """Return the token of AuthenticateResponse. ValueError or IndexError if it is none."""
    token = b""
    for tag, at, stop in fields(message, 0, len(message)):
        if tag == 0x12:
            token = message[at:stop]
    return token


def logged_in(client: "Client", connection: "Connection") -> bool:
    """Take in the answer to a login and return whether it is there; keep the token for later calls.

    An etcd with authentication off wants no token.

    Raises:
        StoreError: user name or password is wrong, or etcd refuses for another reason.
        Unanswered: this endpoint cannot tell.
    """
    from resource_extend.store.failover import UNAVAILABLE, refused

    try:
        message = connection.outcome()
    except Refusal as refusal:
        if refusal.code == FAILED_PRECONDITION and "authentication is not enabled" in str(refusal):
            client.metadata = b""
            keep_token(client.settings, client.environ, b"")
            return True
        if refusal.code in UNAVAILABLE:
            raise Unanswered(str(refusal)) from None
        raise refused(client, refusal) from None
    if message is None:
        return False
    token = parsed(authenticate_answer, message)
    if not is_token(token):
        raise StoreError("etcd: the login's answer holds no token")
    client.metadata = token_field(token)
    keep_token(client.settings, client.environ, token)
    return True


def token_field(token: bytes) -> bytes:
    """Return the header field that carries a token, marked as never to be indexed by a proxy."""
    return b"\x10\x05token" + text_field(token)
