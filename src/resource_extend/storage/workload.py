"""What workloads ask for and what they hold (specification, storage 6)."""

from msgspec import UNSET, Struct, UnsetType

from resource_extend.errors import InputError, ResourceError
from resource_extend.storage.binding import Binding, full_form, parse_bindings
from resource_extend.units import in_int64, size_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

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

    volumes_request: list[str] | None = None
    volume_request: list[str] | None = None
    volumes: list[str] | None = None
    volume: list[str] | None = None
    volume_limit: list[str] | None = None
    volumes_limit: list[str] | None = None
    storage_request: int | str | None = None
    storage_limit: int | str | None = None
    storage: int | str | None | UnsetType = UNSET


class Workload:
    """What one workload asks for: bindings of requests and limits, bytes of storage."""

    __slots__ = ("_texts", "limit", "request", "storage_limit", "storage_request")

    def __init__(self, request: list[Binding], limit: list[Binding], storage_request: int, storage_limit: int) -> None:
        self.request = request
        self.limit = limit
        self.storage_request = storage_request
        self.storage_limit = storage_limit
        self._texts: tuple[list[str], list[str]] | None = None

    def texts(self) -> tuple[list[str], list[str]]:
        """Return the full forms of the requests and of the limits; equal workloads share them."""
        if self._texts is None:
            asked = [binding.full() for binding in self.request]
            same = self.limit is self.request
            self._texts = asked, asked if same else [binding.full() for binding in self.limit]
        return self._texts


def parse_request(request: WorkloadRequest) -> Workload:
    """Return what a request asks for, not yet validated.

    Raises:
        InputError: a text that does not parse, or one destination twice in a list.
    """
    asked = parse_bindings(request.volumes_request or request.volume_request or ())
    limit = parse_bindings(request.volumes or request.volume or request.volume_limit or request.volumes_limit or ())
    for bindings in (asked, limit):
        _distinct_destinations(bindings)
    if isinstance(request.storage, UnsetType):
        storage_request, storage_limit = size_of(request.storage_request), size_of(request.storage_limit)
    else:
        storage_request = storage_limit = size_of(request.storage)
    return Workload(asked or limit, limit, storage_request, storage_limit)


def _distinct_destinations(bindings: list[Binding]) -> None:
    seen = set()
    for binding in bindings:
        if binding.destination in seen:
            raise InputError(f"duplicate destination {binding.destination}: invalid volume")
        seen.add(binding.destination)


def validate(workload: Workload) -> Workload:
    """Return a request whose lists are sorted and pair by index, and whose limits are not below the requests.

    Raises:
        InputError: the first fault, the volumes' before the storage's (specification, storage 6.2).
    """
    if not (workload.request or workload.limit or workload.storage_request or workload.storage_limit):
        return workload
    asked, limit = _validated_volumes(workload.request, workload.limit)
    storage_request, storage_limit = workload.storage_request, workload.storage_limit
    if storage_request < 0 or storage_limit < 0:
        raise InputError("storage limit or request less than 0: invalid storage")
    storage_request = storage_request or storage_limit
    if storage_limit:
        storage_limit = max(storage_limit, storage_request)
    return Workload(asked, limit, storage_request, storage_limit)


def folded(workload: Workload) -> Workload:
    """Return a validated request whose storages include its volumes: once in a deploy, never in a realloc.

    Raises:
        ResourceError: a storage outside int64.
    """
    storage_request = workload.storage_request + total_size(workload.request)
    storage_limit = workload.storage_limit + total_size(workload.limit)
    return Workload(workload.request, workload.limit, in_range(storage_request), in_range(storage_limit))


def total_size(bindings: "Iterable[Binding]") -> int:
    """Return the sum of the bindings' bytes."""
    return sum([binding.size for binding in bindings])


def in_range(storage: int) -> int:
    """Return bytes of storage that are to be answered.

    Raises:
        ResourceError: they lie outside int64 (specification, storage 1.3).
    """
    if not in_int64(storage):
        raise ResourceError("storage is out of range: invalid storage")
    return storage


def _validated_volumes(asked: list[Binding], limit: list[Binding]) -> tuple[list[Binding], list[Binding]]:
    if len(asked) != len(limit):
        raise InputError("different length of request and limit: invalid volume")
    for binding in asked:
        _check(binding)
    if asked is limit:  # usually one list stands for both; it is not above itself, and its destinations are distinct
        asked = sorted(asked, key=full_form)
        return asked, asked
    for binding in limit:
        _check(binding)
    asked = sorted(asked, key=full_form)
    limit = sorted(limit, key=full_form)
    raised = []
    for one, other in zip(asked, limit, strict=True):
        if one.identity() != other.identity():
            raise InputError("request and limit not match: invalid volume")
        size = max(one.size, other.size) if other.size > 0 else other.size
        raised.append(Binding(other.source, other.destination, other.flags, size, _larger(one.quota, other.quota)))
    for bindings in (asked, limit):
        _distinct_destinations(bindings)
    return asked, raised


def _check(binding: Binding) -> None:
    if binding.size <= 0 and binding.monopoly():
        raise InputError(f"monopoly volume requires a positive size: {binding.full()}: invalid volume")
    if min(binding.quota) < 0:
        raise InputError(f"invalid io parameters: {binding.full()}: invalid volume")
    if binding.size < 0:
        raise InputError(f"negative size: {binding.full()}: invalid volume")


def _larger(one: tuple[int, int, int, int], other: tuple[int, int, int, int]) -> tuple[int, int, int, int]:
    return (max(one[0], other[0]), max(one[1], other[1]), max(one[2], other[2]), max(one[3], other[3]))
