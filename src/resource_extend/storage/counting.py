"""How many slots a node has, without plans: exact short cuts of the scheduler (specification, storage 14.3, 14.4).

Each form gives what plain enumeration gives for its class of demands. Used and unused devices come as integers in
ascending order, see `layout`; `left` is what is left of each disk, that of the imaginary last one included. None of the
arguments is changed.
"""

from resource_extend.storage.demand import times
from resource_extend.storage.passes import make_passes, monopoly_devices
from resource_extend.storage.schedule import bound_of, promotable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from resource_extend.storage.demand import Demand
    from resource_extend.storage.layout import Layout

    Count = Callable[[Layout, list[int], list[int], list[int], int], int]


def counter(demand: "Demand") -> "Count":
    """Return the function that counts the slots of a demand: (layout, used, unused, left, most) -> slots."""
    if demand.monopoly:
        return count_beside_monopoly if demand.normals or demand.mounts else count_monopoly
    if demand.normals:
        return count_one_normal if len(demand.normals) == 1 and not demand.mounts else count_normals
    return count_mounts if demand.mounts else count_unlimited


def count_unlimited(layout: "Layout", used: list[int], unused: list[int], left: list[int], most: int) -> int:  # noqa: ARG001
    """Count where nothing asks for bytes or quotas: any device will do."""
    return most if layout.names or not layout.demand.needs_device else 0


def count_mounts(layout: "Layout", used: list[int], unused: list[int], left: list[int], most: int) -> int:
    """Count where only mounts ask for quotas: each disk holds what is left of it over what a slot takes of it."""
    count = count_unlimited(layout, used, unused, left, most)
    for disk, need in layout.mount_totals.items():
        count = min(count, times(left[disk], need, layout.demand.guard))
    return count


def count_monopoly(layout: "Layout", used: list[int], unused: list[int], left: list[int], most: int) -> int:  # noqa: ARG001
    """Count where monopoly bindings are alone: the unused devices that are large enough, as far as quotas go."""
    return min(most, len(monopoly_devices(layout, unused, list(left))))


def count_one_normal(layout: "Layout", used: list[int], unused: list[int], left: list[int], most: int) -> int:
    """Count where one normal binding is alone (14.4, form 1).

    The chosen device stays the first until its bytes or its disk run out, and neither recovers; so each disk gives the
    smaller of its quota and its devices' bytes, in whatever order, and opening devices only adds to that.
    """
    ((size, quota),) = layout.normals
    mask, guard, disk_of = layout.mask, layout.demand.guard, layout.disk_of
    if not quota and min(left) >= guard:  # no disk is overbooked
        return min(most, sum([key // size for keys in (used, unused) for key in keys if key >= size]))
    rooms = [0] * len(left)
    for keys in (used, unused):
        for key in keys:
            if key >= size:
                rooms[disk_of[key & mask]] += key // size if size else most
    count = 0
    for disk, room in enumerate(rooms):
        if room:
            count += min(room, times(left[disk], quota, guard))
    return min(count, most)


def count_normals(layout: "Layout", used: list[int], unused: list[int], left: list[int], most: int) -> int:
    """Count where normal bindings are beside mounts or each other, and none wants its own device (14.4, form 4)."""
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


def count_beside_monopoly(layout: "Layout", used: list[int], unused: list[int], left: list[int], most: int) -> int:
    """Count where monopoly bindings are beside normal ones or mounts (14.4, form 5)."""
    demand = layout.demand
    bound = bound_of(demand, most, len(unused))
    while True:
        rest = list(left)
        devices = monopoly_devices(layout, unused, rest)
        count = len(devices)
        if not count:
            return 0  # passes and openings only make it less
        if not demand.coupled or _undisturbed(layout, used, devices, rest):
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
