"""The node as the scheduler sees it: free devices and what is left of disk quotas (specification, storage 7.1)."""

from resource_extend.storage.disk import combined, covering

TYPE_CHECKING = False
if TYPE_CHECKING:
    from resource_extend.storage.disk import Disk
    from resource_extend.storage.resource import Record


class State:
    """Devices and disks of one node. A copy may be changed in place, which is how a workload is given back.

    `used` and `unused` are device names, each list in ascending order of (free, name) at the start; `free` is bytes by
    device. `disks` have the mounts of the node and in `left` the four numbers that are left of each.
    """

    __slots__ = ("disks", "free", "left", "unused", "used")

    def __init__(
        self, used: list[str], unused: list[str], free: dict[str, int], disks: "list[Disk]", left: list[list[int]]
    ) -> None:
        self.used = used
        self.unused = unused
        self.free = free
        self.disks = disks
        self.left = left

    def cover(self, path: str) -> int:
        """Return the index of the disk that covers a path, -1 when none does."""
        return covering(self.disks, path)


def state_of(record: "Record") -> State:
    """Return the state of a node. Usage of devices that the capacity lacks is ignored."""
    free = {}
    used: list[str] = []
    unused: list[str] = []
    for device, size in record.capacity.volumes.items():
        taken = record.usage.volumes.get(device, 0)
        free[device] = size - taken
        (used if taken else unused).append(device)
    disks = combined(record.capacity.disks, record.usage.disks, -1)

    def order(device: str) -> tuple[int, str]:
        return free[device], device

    return State(sorted(used, key=order), sorted(unused, key=order), free, disks, [[*disk.quota()] for disk in disks])
