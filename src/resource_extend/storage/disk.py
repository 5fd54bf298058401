"""Disks and their quotas: shape, texts, arithmetic, and which disk covers a path (specification, storage 3).

A *quota* is four numbers in a fixed order: read IOPS, write IOPS, read bytes per second, write bytes per second.
"""

from msgspec import Struct

from resource_extend.errors import InputError, ResourceError
from resource_extend.units import in_int64, parse_size, plain_integer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    Quota = tuple[int, int, int, int]

NO_QUOTA = (0, 0, 0, 0)
OUT_OF_RANGE = "disk IOPS / BPS is out of range: invalid disk"


class Disk(Struct, rename={"read_iops": "read_IOPS", "write_iops": "write_IOPS"}):
    """One disk: what it can do, or how much of that is used (specification, storage 3.1)."""

    device: str = ""
    mounts: list[str] = []
    read_iops: int = 0
    write_iops: int = 0
    read_bps: int = 0
    write_bps: int = 0

    def quota(self) -> "Quota":
        """Return the four numbers."""
        return (self.read_iops, self.write_iops, self.read_bps, self.write_bps)

    def text(self) -> str:
        """Return the text form, used in differences."""
        return f"{self.device}:{','.join(self.mounts)}:{quota_text(self.quota())}"


def quota_text(quota: "Quota") -> str:
    """Return `read_IOPS:write_IOPS:read_bps:write_bps`."""
    return f"{quota[0]}:{quota[1]}:{quota[2]}:{quota[3]}"


def parse_disk(text: str) -> Disk:
    """Return the disk that `device:mounts:read_IOPS:write_IOPS:read_BPS:write_BPS` means.

    Raises:
        InputError: `wrong disk format: …: invalid disk` with the cause (specification, storage 3.2).
    """
    parts = text.split(":")
    try:
        if len(parts) != 6:
            raise InputError(f"expected 6 parts, got {len(parts)}")
        device, mounts, read_iops, write_iops, read_bps, write_bps = parts
        return Disk(
            device, mounts.split(","), _iops(read_iops), _iops(write_iops), parse_size(read_bps), parse_size(write_bps)
        )
    except InputError as cause:
        raise InputError(f"wrong disk format: {text}, {cause}: invalid disk") from None


def _iops(field: str) -> int:
    number = plain_integer(field)
    if number is None:
        raise InputError(f"invalid IOPS: '{field}'")
    return number


def combined(disks: "Sequence[Disk]", others: "Iterable[Disk]", sign: int) -> list[Disk]:
    """Return disks plus (`sign` 1) or minus (-1) others, numbers unbounded (specification, storage 3.3).

    Of a doubled device the first counts. Devices that only others have come at the end, looked up before anything is
    appended.
    """
    place: dict[str, int] = {}
    for index, disk in enumerate(disks):
        place.setdefault(disk.device, index)
    result = list(disks)
    for entry in others:
        index = place.get(entry.device, -1)
        held = Disk(entry.device) if index < 0 else result[index]
        total = Disk(
            entry.device,
            entry.mounts or held.mounts,
            held.read_iops + sign * entry.read_iops,
            held.write_iops + sign * entry.write_iops,
            held.read_bps + sign * entry.read_bps,
            held.write_bps + sign * entry.write_bps,
        )
        if index < 0:
            result.append(total)
        else:
            result[index] = total
    return result


def add(disks: "Sequence[Disk]", others: "Iterable[Disk]", sign: int = 1) -> list[Disk]:
    """Return disks plus (or minus) others, to be stored or answered.

    Raises:
        ResourceError: a number outside int64 (specification, storage 1.3).
    """
    result = combined(disks, others, sign)
    for disk in result:
        for number in disk.quota():
            if not in_int64(number):
                raise ResourceError(OUT_OF_RANGE)
    return result


def summed(entries: "Iterable[tuple[Disk, Quota]]") -> list[Disk]:
    """Return a row for each disk with the sum of the quotas asked of it, in order of first mention.

    Raises:
        ResourceError: a number outside int64 (specification, storage 1.3).
    """
    rows: list[Disk] = []
    for disk, quota in entries:
        rows = add(rows, [Disk(disk.device, disk.mounts, *quota)])
    return rows


def covering(disks: "Sequence[Disk]", path: str) -> int:
    """Return the index of the disk that covers a path, -1 when none does (specification, storage 3.4)."""
    path = path.removesuffix("/")
    best = -1
    best_depth = 0
    for index, disk in enumerate(disks):
        for mount in disk.mounts:
            base = mount.removesuffix("/")
            if path == base or (path.startswith(base) and path.startswith("/", len(base))):
                depth = base.count("/") + 1
                if depth >= best_depth:
                    best = index
                    best_depth = depth
    return best
