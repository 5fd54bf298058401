"""What workloads ask for and what they hold (specification, storage 6)."""

from msgspec import UNSET, Struct, UnsetType

from resource_extend.errors import InputError, ResourceError
from resource_extend.storage.binding import Binding, parse_bindings, total_size
from resource_extend.units import in_int64, size_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    # What one workload asks for: bindings of requests and of limits, which may be one list; bytes of storage requested
    # and limited. No class: making one would cost a call more than all that is done here.
    Workload = tuple[list[Binding], list[Binding], int, int]

_Texts = list[str] | None
_Size = int | str | None
_KEYS = {
    "volumes_request": "volumes-request",
    "volume_request": "volume-request",
    "volume_limit": "volume-limit",
    "volumes_limit": "volumes-limit",
    "storage_request": "storage-request",
    "storage_limit": "storage-limit",
}


class WorkloadRequest(Struct, rename=_KEYS):
    """A workload request as it arrives: clients spell the same thing in several ways (specification, storage 6.1)."""

    volumes_request: _Texts = None
    volume_request: _Texts = None
    volumes: _Texts = None
    volume: _Texts = None
    volume_limit: _Texts = None
    volumes_limit: _Texts = None
    storage_request: _Size = None
    storage_limit: _Size = None
    storage: int | str | None | UnsetType = UNSET


def parse_request(request: WorkloadRequest) -> "Workload":
    """Return what a request asks for, not yet validated.

    Raises:
        InputError: a text that does not parse, or one destination twice in a list.
    """
    asked = parse_bindings(request.volumes_request or request.volume_request or ())
    limit = parse_bindings(request.volumes or request.volume or request.volume_limit or request.volumes_limit or ())
    for bindings in (asked, limit):
        _distinct_destinations(bindings)
    if isinstance(request.storage, UnsetType):
        return asked or limit, limit, size_of(request.storage_request), size_of(request.storage_limit)
    storage = size_of(request.storage)
    return asked or limit, limit, storage, storage


def _distinct_destinations(bindings: list[Binding]) -> None:
    seen = set()
    for binding in bindings:
        if binding.destination in seen:
            raise InputError(f"duplicate destination {binding.destination}: invalid volume")
        seen.add(binding.destination)


def validate(workload: "Workload") -> "Workload":
    """Return a request whose lists are sorted and pair by index, and whose limits are not below the requests.

    Raises:
        InputError: the first fault, the volumes' before the storage's (specification, storage 6.2).
    """
    asked, limit, storage_request, storage_limit = workload
    if not (asked or limit or storage_request or storage_limit):
        return workload
    if len(asked) != len(limit):
        raise InputError("different length of request and limit: invalid volume")
    _check(asked)
    if asked is limit:  # it is not above itself, and its destinations are distinct
        asked = limit = sorted(asked, key=Binding.full)
    else:
        _check(limit)
        asked, limit = _paired(sorted(asked, key=Binding.full), sorted(limit, key=Binding.full))
    if storage_request < 0 or storage_limit < 0:
        raise InputError("storage limit or request less than 0: invalid storage")
    storage_request = storage_request or storage_limit
    return asked, limit, storage_request, storage_limit and max(storage_limit, storage_request)


def folded(workload: "Workload") -> "Workload":
    """Return a validated request whose storages include its volumes: once in a deploy, never in a realloc.

    Raises:
        ResourceError: a storage outside int64.
    """
    asked, limit, storage_request, storage_limit = workload
    storage_request += total_size(asked)
    storage_limit += total_size(limit)
    return asked, limit, in_range(storage_request), in_range(storage_limit)


def in_range(storage: int) -> int:
    """Return bytes of storage that are to be answered.

    Raises:
        ResourceError: they lie outside int64 (specification, storage 1.3).
    """
    if not in_int64(storage):
        raise ResourceError("storage is out of range: invalid storage")
    return storage


def _check(bindings: list[Binding]) -> None:
    for binding in bindings:
        if binding.size < 0 or min(binding.quota) < 0 or (not binding.size and binding.monopoly()):
            raise _fault(binding)


def _fault(binding: Binding) -> InputError:
    if binding.size <= 0 and binding.monopoly():
        return InputError(f"monopoly volume requires a positive size: {binding.full()}: invalid volume")
    if min(binding.quota) < 0:
        return InputError(f"invalid io parameters: {binding.full()}: invalid volume")
    return InputError(f"negative size: {binding.full()}: invalid volume")


def _paired(asked: list[Binding], limit: list[Binding]) -> tuple[list[Binding], list[Binding]]:
    """Return requests and limits, both sorted, with limits that are not below the requests."""
    raised = []
    for one, other in zip(asked, limit, strict=True):
        if one.identity() != other.identity():
            raise InputError("request and limit not match: invalid volume")
        size = max(one.size, other.size) if other.size > 0 else other.size
        raised.append(Binding(other.source, other.destination, other.flags, size, _larger(one.quota, other.quota)))
    for bindings in (asked, limit):
        _distinct_destinations(bindings)
    return asked, raised


def _larger(one: tuple[int, int, int, int], other: tuple[int, int, int, int]) -> tuple[int, int, int, int]:
    return (max(one[0], other[0]), max(one[1], other[1]), max(one[2], other[2]), max(one[3], other[3]))
