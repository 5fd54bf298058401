"""How many workloads each of many nodes can take (specification, storage 5.3).

A thousand nodes cost little more than reading them: equal records are computed once, a capacity that many records share
is decoded once (14.4, form 8), and what depends on its devices and mounts alone is worked out once.
"""

from msgspec import DecodeError
from msgspec.json import Decoder

from resource_extend.answers.capacity import NodeDeployCapacity, ratio
from resource_extend.codec import INT64_MAX, decode, is_text
from resource_extend.errors import Undecodable
from resource_extend.storage.binding import needs_scheduling
from resource_extend.storage.counting import counter
from resource_extend.storage.demand import Demand
from resource_extend.storage.layout import Layout
from resource_extend.storage.resource import Record, Resource
from resource_extend.storage.state import state_of
from resource_extend.storage.workload import Workload, total_size
from resource_extend.units import truncated

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from resource_extend.storage.disk import Quota

_CAPACITY = b'{"capacity":'
_USAGE = b',"usage":'
# Where every node has a capacity of its own there is nothing to find again, and the garbage collector would trace
# thousands of them over and over.
_KEPT = 256
_decode_usage = Decoder(Resource).decode


class _Whole:
    """A capacity, and what of the answers depends on it alone.

    Attributes:
        capacity: the resource.
        head: the bytes with which every record of this capacity begins, up to its usage.
        known: the answers so far, by the rest of the record's bytes.
        layout: the demand on these devices and mounts.
        devices: (integer of the whole device, name), ascending.
        disks: index, mounts and quota of each disk, by device; of a doubled one the first.
        left: each disk's integer while nothing of it is used; empty when nothing is scheduled.
        volumes: bytes of all volumes.
        rate: the part of the node that one workload takes.
    """

    __slots__ = ("capacity", "devices", "disks", "head", "known", "layout", "left", "rate", "volumes")

    def __init__(self, capacity: Resource, head: bytes, query: "CapacityQuery") -> None:
        self.capacity = capacity
        self.head = head
        self.known: dict[bytes, NodeDeployCapacity | None] = {}
        self.volumes = sum(capacity.volumes.values())
        self.rate = ratio(query.rated, self.volumes if query.by_volumes else capacity.storage)
        self.disks: dict[str, tuple[int, list[str], Quota]] = {}
        for index, disk in enumerate(capacity.disks):
            self.disks.setdefault(disk.device, (index, disk.mounts, disk.quota()))
        self.left: list[int] = []
        if not query.scheduled:
            return
        self.left = [*[query.demand.packed_left(disk.quota()) for disk in capacity.disks], query.demand.guard]
        self.layout = layout = query.layout(capacity)
        shift, ranks = layout.shift, layout.ranks
        self.devices = sorted([(size << shift | ranks[device], device) for device, size in capacity.volumes.items()])


class CapacityQuery:
    """One request, asked of many nodes."""

    def __init__(self, workload: Workload, most: int) -> None:
        """Prepare a query.

        Args:
            workload: the request, validated and folded.
            most: the cap on workloads of one node.
        """
        self.most = most
        self.storage = workload.storage_request
        self.by_volumes = bool(workload.request) or not self.storage
        self.rated = total_size(workload.request) if self.by_volumes else self.storage
        self.demand = Demand(workload.request)
        self.scheduled = needs_scheduling(workload.request)
        self.count = counter(self.demand)
        self._layouts: dict[object, Layout] = {}
        self._wholes: dict[bytes, _Whole] = {}
        self._last = _Whole(Resource(), b"\n", self)  # no record begins like this
        self._unknown = self._of_record(Record())

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
        before: bytes | None = None
        answer = self._unknown
        for node in nodes:
            value = values.get(node)
            if value == before:
                pass  # equal nodes often stand together
            elif value is None:
                answer = self._unknown
            else:
                try:
                    answer = self._of_value(value)
                except (DecodeError, Undecodable, UnicodeDecodeError, RecursionError):
                    answer = self._of_record(decoded(node, value))
            before = value
            if answer is not None:
                result[node] = answer
        return result

    def _of_record(self, record: Record) -> NodeDeployCapacity | None:
        whole = _Whole(record.capacity, b"", self)
        left = self._left(whole, record.usage)
        count = self.most
        if self.scheduled:
            count = self._irregular_slots(record) if left is None else self._slots(whole, record.usage, left)
        return self._answer(whole, record.usage, count)

    def _of_value(self, value: bytes) -> NodeDeployCapacity | None:
        """Return the answer for a stored value of the form that we and the Go plugins write.

        Raises:
            DecodeError, Undecodable, UnicodeDecodeError: it is not of that form, and must be decoded as a whole.
        """
        whole = self._last
        if not value.startswith(whole.head):
            self._last = whole = self._whole(value)
        rest = value[len(whole.head) :]
        if rest in whole.known:
            return whole.known[rest]
        if not is_text(rest) or rest[-1:] != b"}":
            raise DecodeError
        usage = _decode_usage(rest[:-1])
        left = self._left(whole, usage)
        if left is None:
            raise DecodeError
        count = self._slots(whole, usage, left) if self.scheduled else self.most
        answer = whole.known[rest] = self._answer(whole, usage, count)
        return answer

    def _whole(self, value: bytes) -> _Whole:
        """Return the capacity that a value begins with. Both halves must be complete JSON: that proves the cut."""
        end = value.find(_USAGE)
        if end < 0 or not value.startswith(_CAPACITY):
            raise DecodeError
        text = value[len(_CAPACITY) : end]
        whole = self._wholes.get(text)
        if whole is None:
            whole = _Whole(decode(text, Resource), value[: end + len(_USAGE)], self)
            if len(self._wholes) == _KEPT:
                self._wholes.clear()
            self._wholes[text] = whole
        return whole

    def _left(self, whole: _Whole, usage: Resource) -> list[int] | None:
        """Return what is left of each disk; None unless the usage lies within the capacity.

        Within means: its numbers, which so cannot leave int64, and its disks, each once, in order, with equal mounts.
        """
        if not 0 <= usage.storage <= INT64_MAX:
            return None
        sizes = whole.capacity.volumes
        for device, size in usage.volumes.items():
            if not 0 <= size <= sizes.get(device, -1):
                return None
        if not usage.disks:
            return whole.left
        left = list(whole.left)
        pack, scheduled = self.demand.packed, self.scheduled
        before = ""
        for disk in usage.disks:
            device = disk.device
            known = whole.disks.get(device)
            if known is None or device <= before:
                return None
            before = device
            index, mounts, (one, two, three, four) = known
            rest = (one - disk.read_iops, two - disk.write_iops, three - disk.read_bps, four - disk.write_bps)
            reads, writes, read_bytes, written_bytes = rest
            # Written out: this runs for each disk of each node.
            if (
                reads < 0
                or writes < 0
                or read_bytes < 0
                or written_bytes < 0
                or reads > one
                or writes > two
                or read_bytes > three
                or written_bytes > four
                or disk.mounts != mounts
            ):
                return None
            if scheduled:
                left[index] = pack(rest)
        return left

    def _slots(self, whole: _Whole, usage: Resource, left: list[int]) -> int:
        shift = whole.layout.shift
        taken = usage.volumes.get
        used, unused = [], []
        for key, device in whole.devices:
            size = taken(device)
            if size:
                used.append(key - (size << shift))
            else:
                unused.append(key)
        used.sort()
        return self.count(whole.layout, used, unused, left, self.most)

    def _answer(self, whole: _Whole, usage: Resource, count: int) -> NodeDeployCapacity | None:
        """Return the answer for a number of slots, None when there is none or no storage for one."""
        if self.storage > 0:
            count = min(count, truncated(whole.capacity.storage - usage.storage, self.storage))
        if count <= 0:
            return None
        if self.by_volumes:
            return NodeDeployCapacity(count, ratio(sum(usage.volumes.values()), whole.volumes), whole.rate)
        return NodeDeployCapacity(count, ratio(usage.storage, whole.capacity.storage), whole.rate)

    def _irregular_slots(self, record: Record) -> int:
        """Count on any record, however its usage exceeds its capacity and its disks are listed."""
        state = state_of(record)
        layout = Layout(state.free, state.disks, self.demand)

        def keys(devices: list[str]) -> list[int]:
            return [state.free[device] << layout.shift | layout.ranks[device] for device in devices]

        left = [*[self.demand.packed_left(left) for left in state.left], self.demand.guard]
        return self.count(layout, keys(state.used), keys(state.unused), left, self.most)
