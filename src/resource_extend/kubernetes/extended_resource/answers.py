"""From what lightkube raises to errors that say what is known and what to do."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import httpx2
import msgspec
from lightkube.core.exceptions import ApiError, ConfigError

from resource_extend.kubernetes.extended_resource.errors import (
    AnswerLost,
    Changed,
    ClusterError,
    Expired,
    Forbidden,
    NotFound,
    Unreachable,
)

BUSY = (429, 503)
"""The server did not take the call up: it may be sent again."""


@dataclass(frozen=True)
class Call:
    """One API call, in the words of RBAC: what a role has to allow for it."""

    verb: str
    resource: str
    about: str
    group: str = ""

    @property
    def rule(self) -> str:
        """The RBAC rule that allows the call."""
        return f'{{apiGroups: ["{self.group}"], resources: ["{self.resource}"], verbs: ["{self.verb}"]}}'

    @property
    def changes(self) -> bool:
        """The call may leave something behind when its answer is lost."""
        return self.verb == "patch"


@contextmanager
def translated(call: Call) -> Iterator[None]:
    """Raise a ClusterError for whatever goes wrong inside.

    Raises:
        ClusterError: one of the tree in `errors`.
    """
    try:
        yield
    except ApiError as error:
        status = error.status
        if status.code == 422 and status.details and status.details.causes:
            # A failed `test` comes without causes; with them the server found fault with the object itself.
            raise ClusterError(f"{call.about}: 422 {status.message}") from error
        raise _answer(call, status.code or 0, status.message or status.reason or "") from error
    except httpx2.HTTPStatusError as error:
        raise _answer(call, error.response.status_code, error.response.reason_phrase) from error
    except KeyError as error:
        if error.args[0] in ("status", "token"):
            text = "the credential program's answer is no ExecCredential with a token"
            raise ClusterError(f"{call.about}: no credentials: {text}") from error
        # lightkube looks at the content type of an error's answer; one without that header is no API server's.
        raise Unreachable(f"{call.about}: an answer without {error}: is a proxy in the way?") from error
    except (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout, httpx2.UnsupportedProtocol) as error:
        raise Unreachable(f"{call.about}: the API server cannot be reached: {_first_line(error)}") from error
    except httpx2.HTTPError as error:
        raise _lost(call, f"the connection ended before the answer ({_first_line(error)})") from error
    except (msgspec.DecodeError, ValueError) as error:
        raise _lost(call, f"the answer is not what an API server sends ({_first_line(error)})") from error
    except (ConfigError, OSError) as error:
        raise ClusterError(f"{call.about}: no credentials: {_first_line(error)}") from error


def _answer(call: Call, code: int, message: str) -> ClusterError:
    text = f"{call.about}: {code} {message}".rstrip()
    if code == 401:
        return ClusterError(f"{call.about}: 401: the API server does not know this user: check the kubeconfig's user")
    if code == 403:
        return Forbidden(f"{call.about}: 403: missing RBAC rule {call.rule}; the server says: {message}")
    if code == 404:
        return NotFound(text)
    if code in (409, 422):
        return Changed(text)
    if code == 410:
        return Expired(text)
    if code in BUSY:
        return Unreachable(f"{text}: the API server is busy")
    if code >= 500:
        return _lost(call, f"the server answered {code} {message}".rstrip())
    return ClusterError(text)


def _lost(call: Call, why: str) -> ClusterError:
    if call.changes:
        return AnswerLost(f"{call.about}: {why}: the change was sent and may or may not have been made")
    return Unreachable(f"{call.about}: {why}")


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
