"""Normal passes in runs, and monopoly devices: one evaluation of the scheduler (specification, storage 7.3, 7.4, 14.2).

A pass is one slot: each normal binding takes its bytes and its quota from the first used device that fits, each mount
its quota. Passes repeat themselves, so one is made step by step, and then as many more as make the same choices are
taken in one subtraction: the cost does not depend on how many slots there are. All in integers, so that the result is
that of making every pass.
"""

from resource_extend.storage.demand import UNBOUNDED, times

TYPE_CHECKING = False
if TYPE_CHECKING:
    from resource_extend.storage.demand import Layout

    # The ranks of the devices that the normal bindings chose, in order, and how many passes chose them.
    Run = tuple[tuple[int, ...], int]


def make_passes(layout: "Layout", keys: list[int], left: list[int], bound: int, runs: "list[Run] | None" = None) -> int:
    """Make passes until there are `bound` slots or one fails, and return the number of slots.

    Args:
        layout: the demand on this node.
        keys: the used devices' integers, ascending; used up.
        left: what is left of each disk; lowered, also by what a failing pass has taken before it failed.
        bound: the most slots.
        runs: where the choices go, None to count only.
    """
    count = 0
    while count < bound:
        repeated = _on_first(layout, keys, left, bound - count)
        if repeated:
            if runs is None:
                count += repeated
                continue
            choices = [keys[0]] * len(layout.normals)
        else:
            if keys and layout.normals and not _fits_any(layout, keys[0], left):
                del keys[0]
                continue
            chosen = _one_pass(layout, keys, left)
            if chosen is None:
                return count
            choices = chosen
            repeated = 1 + _repeat(layout, keys, left, choices, bound - count - 1)
        count += repeated
        if runs is not None:
            mask = layout.mask
            runs.append((tuple([key & mask for key in choices]), repeated))
    return count


def _on_first(layout: "Layout", keys: list[int], left: list[int], bound: int) -> int:
    """Make as many passes as land on the first device with all their bindings, and return their number.

    What a pass takes makes the first device still smaller, so it stays the first (14.4, form 6).
    """
    if not keys or not layout.normals:
        return 0
    key = keys[0]
    if key < 0:
        return 0
    if layout.pass_size:
        bound = min(bound, key // layout.pass_size)
        if not bound:
            return 0
    disk = layout.disk_of[key & layout.mask]
    guard, totals = layout.demand.guard, layout.mount_totals
    need = layout.pass_quota
    if totals:
        need += totals.get(disk, 0)
        for other, total in totals.items():
            if other != disk:
                bound = min(bound, times(left[other], total, guard))
    bound = min(bound, times(left[disk], need, guard))
    keys[0] = key - bound * layout.pass_size
    left[disk] -= bound * need
    for other, total in totals.items():
        if other != disk:
            left[other] -= bound * total
    return bound


def _fits_any(layout: "Layout", key: int, left: list[int]) -> bool:
    """Tell whether a device can still take any of the normal bindings: bytes and quotas only shrink."""
    have = left[layout.disk_of[key & layout.mask]]
    guard = layout.demand.guard
    return any([key >= size and (have - quota) & guard == guard for size, quota in layout.normals])  # noqa: C419


def _one_pass(layout: "Layout", keys: list[int], left: list[int]) -> list[int] | None:
    """Make one pass; return the integer of each chosen device as it was before it was taken from, None on failure."""
    mask, guard, disk_of = layout.mask, layout.demand.guard, layout.disk_of
    chosen = []
    for size, quota in layout.normals:
        for index, key in enumerate(keys):
            if key >= size:
                disk = disk_of[key & mask]
                rest = left[disk] - quota
                if rest & guard == guard:
                    left[disk] = rest
                    chosen.append(key)
                    _replace(keys, index, key - size)
                    break
        else:
            return None
    for disk, quota in layout.mounts:
        rest = left[disk] - quota
        if rest & guard != guard:
            return None
        left[disk] = rest
    return chosen


def _replace(keys: list[int], index: int, key: int) -> None:
    """Put a smaller integer in the place of another one and keep the order."""
    while index and keys[index - 1] > key:
        keys[index] = keys[index - 1]
        index -= 1
    keys[index] = key


def _repeat(layout: "Layout", keys: list[int], left: list[int], chosen: list[int], bound: int) -> int:
    """Make as many passes more as surely choose the same devices, and return their number (14.2).

    They do as long as every chosen device and every disk can give what a whole pass takes of it, and no device that
    shrinks faster overtakes one that was chosen before it.
    """
    mask, disk_of = layout.mask, layout.disk_of
    taken: dict[int, int] = {}
    needs = dict(layout.mount_totals)
    for key, (size, quota) in zip(chosen, layout.normals, strict=True):
        rank = key & mask
        taken[rank] = taken.get(rank, 0) + size
        needs[disk_of[rank]] = needs.get(disk_of[rank], 0) + quota
    count = bound
    now = {rank: key for key in keys if (rank := key & mask) in taken}
    for rank, size in taken.items():
        if size:
            count = min(count, now[rank] // size)
    for disk, need in needs.items():
        count = min(count, times(left[disk], need, layout.demand.guard))
    if len(taken) > 1:
        count = min(count, _until_overtaken(layout, now, chosen, taken))
    if count <= 0:
        return 0
    for index, key in enumerate(keys):
        size = taken.get(key & mask, 0)
        if size:
            keys[index] = key - count * size
    keys.sort()
    for disk, need in needs.items():
        left[disk] -= count * need
    return count


def _until_overtaken(layout: "Layout", now: dict[int, int], chosen: list[int], taken: dict[int, int]) -> int:
    """Return how many more passes keep the order of the chosen devices at each choice of the pass just made."""
    count = UNBOUNDED
    then = dict(now)  # the devices as they were when the binding at hand chose: from the last choice back to the first
    for key, (size, _) in zip(reversed(chosen), reversed(layout.normals), strict=True):
        rank = key & layout.mask
        then[rank] += size
        for other, other_key in then.items():
            faster = taken[other] - taken[rank]
            if faster > 0 and other_key > key:
                count = min(count, (other_key - key - 1) // faster)
    return count


def monopoly_devices(layout: "Layout", unused: list[int], left: list[int]) -> list[int]:
    """Return the unused devices, in their order, that monopoly slots take; lowers what is left of their disks (7.4)."""
    mask, guard, disk_of = layout.mask, layout.demand.guard, layout.disk_of
    size, quota = layout.monopoly_size, layout.monopoly_quota
    taken = []
    for key in unused:
        if key >= size:
            disk = disk_of[key & mask]
            rest = left[disk] - quota
            if rest & guard == guard:
                left[disk] = rest
                taken.append(key)
    return taken
