"""How many workloads each of many nodes can take (specification, storage 5.3).

A thousand nodes cost little more than reading them: equal records are computed once, a capacity that many records share
is decoded once (14.4, form 8), and what depends on its devices and mounts alone is worked out once.
"""

from msgspec import DecodeError, Struct
from msgspec.json import Decoder

from resource_extend.answers.capacity import NodeDeployCapacity, ratio
from resource_extend.codec import decode, holds_long_number
from resource_extend.errors import Undecodable
from resource_extend.storage.binding import needs_scheduling, total_size
from resource_extend.storage.counting import counter
from resource_extend.storage.demand import Demand, Layout
from resource_extend.storage.disk import Disk
from resource_extend.storage.resource import Record, Resource
from resource_extend.storage.schedule import state_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from resource_extend.storage.disk import Quota
    from resource_extend.storage.workload import Workload

_CAPACITY = b'{"capacity":'
_USAGE = b',"usage":'
# Where every node has a capacity of its own there is nothing to find again, and the garbage collector would trace
# thousands of them over and over.
_KEPT = 256
# Bytes at the end of a record by which an equal one is found: they tell most apart, and are quickly hashed.
_TAIL = 48


class _Unusual(Exception):  # noqa: N818 - no error: the record has to be looked at as a whole
    """A record is not of the form in which everybody writes them, or its usage is not of its capacity's devices."""


class _Usage(Struct, gc=False):
    """The usage half of a record (specification, storage 4.2), without what making it a Resource costs."""

    volumes: dict[str, int] | None = None
    disks: list[Disk] | None = None
    storage: int = 0


_decode_usage = Decoder(_Usage).decode


class _Whole:
    """A capacity, and what of the answers depends on it alone.

    Attributes:
        capacity: the resource.
        head: the bytes with which every record of this capacity begins, up to its usage.
        layout: the demand on these devices and mounts.
        devices: (integer of the whole device, name), ascending.
        disks: index, mounts and quota of each disk, by device; of a doubled one the first.
        untouched: each disk's integer while nothing of it is used, once it has been asked for.
        rated: bytes that usage and rate are parts of: those of all volumes, or the storage.
        rate: the part of the node that one workload takes.
    """

    __slots__ = ("capacity", "devices", "disks", "head", "layout", "rate", "rated", "untouched")

    def __init__(self, capacity: Resource, head: bytes, query: "CapacityQuery") -> None:
        self.capacity = capacity
        self.head = head
        self.rated = sum(capacity.volumes.values()) if query.by_volumes else capacity.storage
        self.rate = ratio(query.rated, self.rated)
        self.disks: dict[str, tuple[int, list[str], Quota]] = {}
        for index, disk in enumerate(capacity.disks):
            self.disks.setdefault(disk.device, (index, disk.mounts, disk.quota()))
        self.untouched: list[int] = []
        if query.scheduled:
            self.layout = layout = query.layout(capacity)
            self.devices = layout.devices(capacity.volumes)

    def left(self, demand: Demand) -> list[int]:
        """Return what is left of each disk while nothing of it is used, that of the imaginary last one included."""
        if not self.untouched:
            self.untouched = [*[demand.packed_left(disk.quota()) for disk in self.capacity.disks], demand.guard]
        return self.untouched


class CapacityQuery:
    """One request, asked of many nodes."""

    def __init__(self, workload: "Workload", most: int) -> None:
        """Prepare a query.

        Args:
            workload: the request, validated and folded.
            most: the cap on workloads of one node.
        """
        self.most = most
        asked, _, self.storage, _ = workload
        self.by_volumes = bool(asked) or not self.storage
        self.rated = total_size(asked) if self.by_volumes else self.storage
        self.demand = Demand(asked)
        self.scheduled = needs_scheduling(asked)
        self.count = counter(self.demand)
        # Where all four numbers of a quota are asked for in one proportion, as usual, a disk is one small number.
        lanes = self.demand.lanes
        self._units = [unit for _, unit in lanes[0]] if len(lanes) == 1 and len(lanes[0]) == 4 else None
        self._layouts: dict[object, Layout] = {}
        self._wholes: dict[bytes, _Whole] = {}
        self._last = _Whole(Resource(), b"\n", self)  # no record begins like this
        self._unknown = self._of_record(Record())
        # By the end of a value: the last one that ends so, and its answer.
        self._known: dict[bytes, tuple[bytes, NodeDeployCapacity | None]] = {}

    def layout(self, capacity: Resource) -> Layout:
        """Return the demand on the devices and mounts of a capacity."""
        shape = (tuple(capacity.volumes), tuple([tuple(disk.mounts) for disk in capacity.disks]))
        layout = self._layouts.get(shape)
        if layout is None:
            layout = self._layouts[shape] = Layout(capacity.volumes, capacity.disks, self.demand)
        return layout

    def answers(
        self, nodes: "Iterable[str]", values: "Mapping[str, bytes]", decoded: "Callable[[str, bytes], Record]"
    ) -> dict[str, NodeDeployCapacity]:
        """Return the answer of every node that can take at least one workload.

        Args:
            nodes: the nodes asked for.
            values: the stored value of each that has one; the others have the empty record.
            decoded: decodes a node's value strictly; for those that are not of the form in which everybody writes them.
        """
        result = {}
        known = self._known
        for node in nodes:
            if node not in values:
                answer = self._unknown
            else:
                value = values[node]
                tail = value[-_TAIL:]
                if tail not in known or known[tail][0] != value:
                    self.look([value])
                    if tail not in known or known[tail][0] != value:
                        known[tail] = value, self._of_record(decoded(node, value))
                answer = known[tail][1]
            if answer is not None:
                result[node] = answer
        return result

    def look(self, values: "Iterable[bytes]") -> None:
        """Find the answers for those stored values that are of the usual form; `answers` will ask for them."""
        known = self._known
        for value in values:
            tail = value[-_TAIL:]
            if tail not in known or known[tail][0] != value:
                try:
                    known[tail] = value, self._of_value(value)
                except (_Unusual, Undecodable):
                    pass  # `answers` decodes it as a whole

    def _of_record(self, record: Record) -> NodeDeployCapacity | None:
        whole = _Whole(record.capacity, b"", self)
        count = self._irregular_slots(record) if self.scheduled else self.most
        return self._answer(whole, record.usage.volumes, record.usage.storage, count)

    def _of_value(self, value: bytes) -> NodeDeployCapacity | None:
        """Return the answer for a stored value of the form that we and the Go plugins write.

        Raises:
            _Unusual, Undecodable: it is not of that form, and must be decoded as a whole.
        """
        whole = self._last
        if not value.startswith(whole.head):
            self._last = whole = self._whole(value)
        if value[-1] != 0x7D:
            raise _Unusual
        rest = value[len(whole.head) : -1]
        # What `codec.decode` does with a plain text, written out: this runs for each node.
        if not rest.isascii() or rest.find(b"\\") >= 0 or holds_long_number(rest):
            raise _Unusual
        try:
            usage = _decode_usage(rest)
        except (DecodeError, RecursionError):
            raise _Unusual from None
        volumes = usage.volumes or {}
        count = self.most
        if self.scheduled:
            count = self.count(whole.layout, whole.devices, volumes, self._left(whole, usage.disks), count)
        return self._answer(whole, volumes, usage.storage, count)

    def _whole(self, value: bytes) -> _Whole:
        """Return the capacity that a value begins with. Both halves must be complete JSON: that proves the cut."""
        end = value.find(_USAGE)
        if end < 0 or not value.startswith(_CAPACITY):
            raise _Unusual
        text = value[len(_CAPACITY) : end]
        whole = self._wholes.get(text)
        if whole is None:
            whole = _Whole(decode(text, Resource), value[: end + len(_USAGE)], self)
            if len(self._wholes) == _KEPT:
                self._wholes.clear()
            self._wholes[text] = whole
        return whole

    def _left(self, whole: _Whole, disks: list[Disk] | None) -> list[int]:
        """Return what is left of each disk.

        Raises:
            _Unusual: the disks in use are not some of the capacity's, each once, in order, with equal mounts.
        """
        demand, units = self.demand, self._units
        guard = demand.guard
        left = untouched = whole.untouched or whole.left(demand)
        before = ""
        for disk in disks or ():
            device = disk.device
            known = whole.disks.get(device)
            if known is None or device <= before or disk.mounts != known[1]:
                raise _Unusual
            before = device
            index, _, (reads, writes, read_bytes, written_bytes) = known
            # Written out: this runs for each disk of each node.
            if (
                reads < disk.read_iops
                or writes < disk.write_iops
                or read_bytes < disk.read_bps
                or written_bytes < disk.write_bps
            ):
                rest = demand.overbooked
            elif not demand.lanes:
                rest = guard
            else:
                reads -= disk.read_iops
                writes -= disk.write_iops
                read_bytes -= disk.read_bps
                written_bytes -= disk.write_bps
                if units:
                    one, two, three, four = units
                    rest = guard + min(reads // one, writes // two, read_bytes // three, written_bytes // four)
                else:
                    rest = demand.packed_left((reads, writes, read_bytes, written_bytes))
            if left is untouched:
                if rest == left[index]:
                    continue
                left = list(left)
            left[index] = rest
        return left

    def _answer(self, whole: _Whole, volumes: dict[str, int], storage: int, count: int) -> NodeDeployCapacity | None:
        """Return the answer for a number of slots, None when there is none or no storage for one."""
        asked = self.storage
        if asked > 0:
            available = whole.capacity.storage - storage
            if available < count * asked:
                if available < asked:
                    return None
                count = available // asked
        if count <= 0:
            return None
        part = sum(volumes.values()) if self.by_volumes else storage
        return NodeDeployCapacity(count, ratio(part, whole.rated), whole.rate)

    def _irregular_slots(self, record: Record) -> int:
        """Count on any record, however its usage exceeds its capacity and its disks are listed."""
        _, _, free, disks, quotas_left = state_of(record)
        layout = Layout(free, disks, self.demand)
        left = [*map(self.demand.packed_left, quotas_left), self.demand.guard]
        return self.count(layout, layout.devices(record.capacity.volumes), record.usage.volumes, left, self.most)
