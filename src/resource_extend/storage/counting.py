"""How many slots a node has, without plans: exact short cuts of the scheduler (specification, storage 14.3, 14.4).

Each form gives what plain enumeration gives for its class of demands, and looks only at what it needs of:

    layout: the demand on the devices and mounts of the node.
    devices: (integer of the device as if nothing of it were used, name), ascending; see `demand`.
    taken: bytes in use by device; devices that are missing, or have 0, are unused ones.
    left: what is left of each disk, that of the imaginary last one included.
    most: the cap.

None of them is changed.
"""

from resource_extend.storage.demand import times
from resource_extend.storage.passes import make_passes, monopoly_devices
from resource_extend.storage.schedule import bound_of, promotable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from resource_extend.storage.demand import Demand, Layout

    Devices = list[tuple[int, str]]
    Count = Callable[[Layout, Devices, dict[str, int], list[int], int], int]


def counter(demand: "Demand") -> "Count":
    """Return the function that counts the slots of a demand: (layout, devices, taken, left, most) -> slots."""
    if demand.monopoly:
        return count_beside_monopoly if demand.normals or demand.mounts else count_monopoly
    if demand.normals:
        return count_one_normal if len(demand.normals) == 1 and not demand.mounts else count_normals
    return count_mounts if demand.mounts else count_unlimited


def count_unlimited(layout: "Layout", devices: "Devices", taken: dict[str, int], left: list[int], most: int) -> int:  # noqa: ARG001
    """Count where nothing asks for bytes or quotas: any device will do."""
    return most if layout.names or not layout.demand.unlimited else 0


def count_mounts(layout: "Layout", devices: "Devices", taken: dict[str, int], left: list[int], most: int) -> int:
    """Count where only mounts ask for quotas: each disk holds what is left of it over what a slot takes of it."""
    count = count_unlimited(layout, devices, taken, left, most)
    for disk, need in layout.mount_totals.items():
        count = min(count, times(left[disk], need, layout.demand.guard))
    return count


def count_monopoly(layout: "Layout", devices: "Devices", taken: dict[str, int], left: list[int], most: int) -> int:
    """Count where monopoly bindings are alone: the unused devices that are large enough, as far as quotas go."""
    size = layout.monopoly_size
    unused = [key for key, device in devices if key >= size and (device not in taken or not taken[device])]
    if layout.monopoly_quota or min(left) < layout.demand.guard:
        return min(most, len(monopoly_devices(layout, unused, list(left))))
    return min(most, len(unused))


def count_one_normal(layout: "Layout", devices: "Devices", taken: dict[str, int], left: list[int], most: int) -> int:
    """Count where one normal binding is alone (14.4, form 1).

    The chosen device stays the first until its bytes or its disk run out, and neither recovers; so each disk gives the
    smaller of its quota and its devices' bytes, in whatever order, and opening devices only adds to that.
    """
    ((size, quota),) = layout.normals
    guard, shift = layout.demand.guard, layout.shift
    if not quota and min(left) >= guard:  # no disk is overbooked
        room = 0
        for key, device in devices:
            if device in taken:
                key -= taken[device] << shift  # noqa: PLW2901
            if key >= size:
                room += key // size
        return min(room, most)
    mask, disk_of = layout.mask, layout.disk_of
    rooms = [0] * len(left)
    for key, device in devices:
        if device in taken:
            key -= taken[device] << shift  # noqa: PLW2901
        if key >= size:
            rooms[disk_of[key & mask]] += key // size if size else most
    count = 0
    simple = quota > 0 and len(layout.demand.lanes) == 1
    for disk, room in enumerate(rooms):
        if room:
            rest = left[disk] - guard
            # The usual case of `times` written out: this runs for each disk of each node.
            fits = rest // quota if simple and rest >= 0 else times(left[disk], quota, guard)
            count += min(room, fits)
    return min(count, most)


def _divided(layout: "Layout", devices: "Devices", taken: dict[str, int]) -> tuple[list[int], list[int]]:
    """Return the integers of the used and of the unused devices, each ascending."""
    shift = layout.shift
    used, unused = [], []
    for key, device in devices:
        if device in taken and taken[device]:  # noqa: RUF019 - a look-up costs less than a call
            used.append(key - (taken[device] << shift))
        else:
            unused.append(key)
    used.sort()
    return used, unused


def count_normals(layout: "Layout", devices: "Devices", taken: dict[str, int], left: list[int], most: int) -> int:
    """Count where normal bindings are beside mounts or each other, and none wants its own device (14.4, form 4)."""
    used, unused = _divided(layout, devices, taken)
    smallest = layout.smallest
    openable = [key for key in unused if key >= smallest]
    if layout.pass_size:
        free = sum([key for key in used if key > 0]) + sum(openable)
        if free // layout.pass_size < most:
            # Not even all bytes together reach the cap, so every device that can be opened is opened.
            return make_passes(layout, sorted(used + openable), list(left), most)
    while True:
        count = make_passes(layout, list(used), list(left), most)
        if count >= most or not openable:
            return count
        used = sorted([*used, openable.pop(0)])


def count_beside_monopoly(
    layout: "Layout", devices: "Devices", taken: dict[str, int], left: list[int], most: int
) -> int:
    """Count where monopoly bindings are beside normal ones or mounts (14.4, form 5)."""
    used, unused = _divided(layout, devices, taken)
    demand = layout.demand
    bound = bound_of(demand, most, len(unused))
    while True:
        rest = list(left)
        chosen = monopoly_devices(layout, unused, rest)
        count = len(chosen)
        if not count:
            return 0  # passes and openings only make it less
        if not demand.coupled or _undisturbed(layout, used, chosen, rest):
            # What passes take changes nothing for the monopoly slots, so only passes up to their number matter.
            passes = make_passes(layout, list(used), list(left), min(count, most))
        else:
            rest = list(left)
            passes = make_passes(layout, list(used), rest, bound)
            count = len(monopoly_devices(layout, unused, rest))
        opened = promotable(layout, unused) if passes < min(count, most) else None
        if opened is None:
            return min(passes, count, most)
        unused = [key for key in unused if key != opened]
        used = sorted([*used, opened])


def _undisturbed(layout: "Layout", used: list[int], devices: list[int], rest: list[int]) -> bool:
    """Tell whether passes surely leave the quotas that the monopoly devices need, `rest` being what those leave.

    They do if each of their disks has enough beside them for all passes that the used devices have bytes for, and for
    one more that fails; or if no pass can ask any of their disks.
    """
    mask, disk_of, guard, totals = layout.mask, layout.disk_of, layout.demand.guard, layout.mount_totals
    reserved = {disk_of[key & mask] for key in devices}
    if layout.pass_size:
        passes = 1 + sum([key for key in used if key > 0]) // layout.pass_size
        for disk in reserved:
            if times(rest[disk], layout.pass_quota + totals.get(disk, 0), guard) < passes:
                break
        else:
            return True
    return reserved.isdisjoint(totals) and reserved.isdisjoint([disk_of[key & mask] for key in used])
