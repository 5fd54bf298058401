"""What can go wrong between this tool and the API server.

ClusterError
Forbidden       403: the text holds the RBAC rule that is missing
NotFound        404
Changed         409, 422: the object is not what was read; read again and decide again
Expired         410: a list or watch has to start again
Unreachable     no connection, or none that lasted; nothing was changed
AnswerLost      a change was sent and its answer did not come: done or not, nobody knows yet
"""

from resource_extend.errors import PluginError


class ClusterError(PluginError):
    """The API server refused or could not be asked."""


class Forbidden(ClusterError):  # noqa: N818 - the API's own word
    """The user lacks a right; the text holds the rule to add."""


class NotFound(ClusterError):  # noqa: N818 - the API's own words
    """There is no such object."""


class Changed(ClusterError):  # noqa: N818 - what happened, not whose fault it is
    """The object is not what was read."""


class Expired(ClusterError):  # noqa: N818 - the API's own word
    """The server no longer has the version that a list or watch went on from."""


class Unreachable(ClusterError):  # noqa: N818 - a state of the network
    """The server cannot be reached; nothing was changed."""


class AnswerLost(ClusterError):  # noqa: N818 - what happened, not whose fault it is
    """A change was sent and the connection ended before the answer."""
