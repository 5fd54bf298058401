"""What may be done to one name on one node: pure rules (specification, kubernetes 4.3 and 8.3)."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from lightkube.models.core_v1 import Node

from resource_extend.errors import ResourceError
from resource_extend.kubernetes.extended_resource.entries import Entry, Owner, entry
from resource_extend.kubernetes.extended_resource.patches import Operation, set_patch, unset_patch
from resource_extend.kubernetes.extended_resource.quantities import whole
from resource_extend.kubernetes.extended_resource.requested import Holder


class Refused(ResourceError):  # noqa: N818 - a rule says no, which is no fault of the program
    """A rule says no and nothing was sent; the text says which and what to do."""


@dataclass(frozen=True)
class Decision:
    """What to send: no operations when the node is as wanted. `warnings` are for people."""

    before: Entry
    operations: list[Operation]
    warnings: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Wish:
    """How one name should be on a node: `count` things, or not there (None).

    `stale_only` takes away what is stale and nothing else. `own_only` leaves alone what somebody else set. `force`
    overrides what pods hold and who set the entry. `with_allocatable` writes allocatable too, for a node without a
    kubelet.
    """

    name: str
    count: int | None = None
    stale_only: bool = False
    own_only: bool = False
    force: bool = False
    with_allocatable: bool = False


def needs_holders(node: Node, wish: Wish) -> bool:
    """The wish takes something away, so what pods hold has to be looked at first.

    Raises:
        ResourceError: the ownership annotation is unreadable.
    """
    now = entry(node, wish.name)
    if wish.count is not None:
        return wish.count < max(whole(now.capacity), whole(now.allocatable))
    return is_stale(now, force=wish.force) if wish.stale_only else now.present


def decide(node: Node, wish: Wish, holders: Sequence[Holder]) -> Decision:
    """How to make the wish true; `holders` are the pods that hold the name, where `needs_holders` says so.

    Raises:
        Refused: pods hold more than would be left, or the entry is live and not ours; `force` overrides both.
        ResourceError: the ownership annotation is unreadable.
    """
    now = entry(node, wish.name)
    if wish.own_only and not wish.force and now.present and now.mark is None:
        return _leave_alone(now, wish)
    if wish.count is not None:
        return _decide_set(node, now, wish, wish.count, holders)
    if wish.stale_only and not is_stale(now, force=wish.force):
        return Decision(now, [])
    warnings = _check_held(now, holders, 0, force=wish.force)
    if not wish.force:
        _check_owner(now)
    return Decision(now, unset_patch(node, wish.name), warnings)


def _leave_alone(now: Entry, wish: Wish) -> Decision:
    if wish.count is not None and now.capacity is not None and whole(now.capacity) == wish.count:
        return Decision(now, [])
    raise Refused(f"{now.name} = {now.capacity or '-'} was not set by this tool: adopt it with `set`, or use --force")


def _decide_set(node: Node, now: Entry, wish: Wish, count: int, holders: Sequence[Holder]) -> Decision:
    warnings = _check_held(now, holders, count, force=wish.force)
    if now.owner in (Owner.UNKNOWN, Owner.LEAVING):
        warnings.append(
            f"{wish.name} was there with {now.capacity}, not set by this tool: if a device plugin serves it, the "
            "kubelet writes its own count back within seconds"
        )
    return Decision(now, set_patch(node, wish.name, count, with_allocatable=wish.with_allocatable), warnings)


def _check_owner(now: Entry) -> None:
    """Let a live entry that is not ours alone.

    Raises:
        Refused: it is one.
    """
    if now.owner is Owner.UNKNOWN:
        raise Refused(
            f"{now.name} = {now.capacity} was not set by this tool: it was set by hand, or a live device plugin serves "
            "it and the kubelet would write it back; adopt it first with `set`, or use --force"
        )
    if now.owner is Owner.LEAVING:
        raise Refused(
            f"{now.name} has capacity {now.capacity} and nothing allocatable: its device plugin left less than five "
            "minutes ago, or all its devices are unhealthy, and the kubelet would write it back: try again later, or "
            "use --force"
        )


def is_stale(now: Entry, *, force: bool = False) -> bool:
    """`clean` would take the entry away (specification, kubernetes 4.3)."""
    if not now.present:
        return now.mark is not None
    zero = whole(now.capacity) == 0 and whole(now.allocatable) == 0
    return zero and (now.mark is None or force)


def _check_held(now: Entry, holders: Sequence[Holder], left: int, *, force: bool) -> list[str]:
    """Warnings about pods that hold more than `left`.

    Raises:
        Refused: they do, and `force` is not given.
    """
    held = sum(holder.count for holder in holders)
    if held <= left:
        return []
    shown = ", ".join(str(holder) for holder in holders[:3]) + (", ..." if len(holders) > 3 else "")
    text = f"pods on the node hold {held} of {now.name} ({shown})"
    if not force:
        raise Refused(f"{text}, {left} would be left: end them first, or use --force")
    return [f"{text}, {left} are left: bound pods are not touched"]
