"""One change on one node: read, decide, patch what was read, and again when it changed meanwhile."""

from dataclasses import dataclass, field, replace
from enum import Enum

from lightkube.models.core_v1 import Node

from resource_extend.errors import PluginError
from resource_extend.kubernetes.extended_resource.clock import Clock
from resource_extend.kubernetes.extended_resource.cluster import Cluster
from resource_extend.kubernetes.extended_resource.decisions import Decision, Refused, Wish, decide, needs_holders
from resource_extend.kubernetes.extended_resource.entries import Entry, entry
from resource_extend.kubernetes.extended_resource.errors import AnswerLost, Changed, Unreachable
from resource_extend.kubernetes.extended_resource.objects import node_name, takes_room
from resource_extend.kubernetes.extended_resource.patches import Operation
from resource_extend.kubernetes.extended_resource.quantities import whole
from resource_extend.kubernetes.extended_resource.requested import holders

TRY_DELAYS = (0.0, 0.2, 0.5, 1.0, 2.0)
"""Seconds to wait before each try of a change."""


class DryRun(str, Enum):
    """Where a change stops: nowhere, before it is sent, or in the server before it is stored."""

    NONE = "none"
    CLIENT = "client"
    SERVER = "server"


class Outcome(str, Enum):
    """What became of a change; the values are what people and programs read."""

    SET = "set"
    REMOVED = "removed"
    UNCHANGED = "unchanged"
    ABSENT = "already absent"
    REFUSED = "refused"
    FAILED = "failed"
    UNKNOWN = "unknown"
    NOT_TRIED = "not tried"
    NOT_SYNCED = "not synced"
    OVERWRITTEN = "overwritten"
    CAME_BACK = "came back"
    UNVERIFIED = "unverified"

    @property
    def good(self) -> bool:
        """The node is as wished."""
        return self in (Outcome.SET, Outcome.REMOVED, Outcome.UNCHANGED, Outcome.ABSENT)


@dataclass(frozen=True)
class Result:
    """What became of one wish on one node; `operations` are the patch, sent or (in a dry run) not."""

    node: str
    name: str
    outcome: Outcome
    before: Entry | None = None
    after: Entry | None = None
    message: str = ""
    warnings: list[str] = field(default_factory=list)
    operations: list[Operation] = field(default_factory=list)


def change(cluster: Cluster, clock: Clock, node: str, wish: Wish, dry_run: DryRun = DryRun.NONE) -> Result:
    """Make one wish true on one node.

    Each try rests on what was just read: a patch meets the node that was looked at, or changes nothing. So it may be
    sent again after a lost answer: when the first one was taken after all, the second one finds nothing to do.
    """
    before: Entry | None = None
    trouble: PluginError | None = None
    lost: AnswerLost | None = None
    for delay in TRY_DELAYS:
        clock.sleep(delay)
        try:
            now = cluster.node(node)
            before = before or entry(now, wish.name)
            decision = _decided(cluster, now, wish)
        except Refused as error:
            return Result(node, wish.name, Outcome.REFUSED, before=before, message=str(error))
        except PluginError as error:
            # Reads have been tried again already.
            trouble = error
            break
        try:
            result = replace(_result(node, wish, decision), before=before)
            if not decision.operations:
                return _nothing_to_do(wish, result, lost=lost is not None)
            if dry_run is DryRun.CLIENT:
                return result
            after = cluster.patch_status(node, decision.operations, dry_run=dry_run is DryRun.SERVER)
            return _checked(wish, result, after)
        except (Changed, Unreachable) as error:
            trouble = error
        except AnswerLost as error:
            trouble = lost = error
        except PluginError as error:
            trouble = error
            break
    return _given_up(Result(node, wish.name, Outcome.FAILED, before=before, message=str(trouble)), lost)


def _decided(cluster: Cluster, now: Node, wish: Wish) -> Decision:
    pods = cluster.pods_on(node_name(now)) if needs_holders(now, wish) else []
    return decide(now, wish, holders(filter(takes_room, pods), wish.name))


def _result(node: str, wish: Wish, decision: Decision) -> Result:
    outcome = Outcome.REMOVED if wish.count is None else Outcome.SET
    return Result(node, wish.name, outcome, warnings=decision.warnings, operations=decision.operations)


def _nothing_to_do(wish: Wish, result: Result, *, lost: bool) -> Result:
    if lost:
        return replace(result, after=None, message="the answer was lost; the node shows the change")
    if wish.count is not None:
        return replace(result, outcome=Outcome.UNCHANGED, after=result.before)
    if result.before and result.before.present:
        return replace(result, outcome=Outcome.UNCHANGED, after=result.before, message="not stale")
    return replace(result, outcome=Outcome.ABSENT, after=result.before)


def _checked(wish: Wish, result: Result, node: Node) -> Result:
    """Look at what the server made of the patch: an admission webhook may have had its say."""
    after = entry(node, wish.name)
    as_wished = not after.present if wish.count is None else whole(after.capacity) == wish.count
    if as_wished:
        return replace(result, after=after)
    message = f"the server took the patch, but the node shows capacity {after.capacity or '-'}"
    return replace(result, outcome=Outcome.FAILED, after=after, message=message)


def _given_up(result: Result, lost: AnswerLost | None) -> Result:
    """The tries are used up: what is known in the end."""
    if lost is None:
        return result
    then = "" if str(lost) == result.message else f"; then {result.message}"
    return replace(result, outcome=Outcome.UNKNOWN, message=f"{lost}{then}")
