"""What shows only after the kubelet's next sync: allocatable that follows, a removal that stays."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from resource_extend.errors import PluginError
from resource_extend.kubernetes.extended_resource.changing import Outcome, Result
from resource_extend.kubernetes.extended_resource.clock import Clock
from resource_extend.kubernetes.extended_resource.cluster import Cluster
from resource_extend.kubernetes.extended_resource.entries import entry
from resource_extend.kubernetes.extended_resource.errors import NotFound
from resource_extend.kubernetes.extended_resource.many import on_each
from resource_extend.kubernetes.extended_resource.quantities import whole

SYNC_WAIT = 16.0
"""Seconds after which a kubelet (it syncs every 10 s) would have written a removed entry back."""

POLL = 2.0
"""Seconds between two looks at a node."""


def wait_for_allocatable(
    cluster: Cluster, clock: Clock, results: Sequence[Result], count: int, limit: float, parallel: int
) -> list[Result]:
    """The results after allocatable has followed capacity on their nodes, or `limit` seconds have passed."""
    waiting = {place: result for place, result in enumerate(results) if result.outcome.good}
    settled = dict(enumerate(results))
    end = clock.now() + limit
    while waiting:
        places = list(waiting)
        looked = on_each(places, lambda place: _followed(cluster, waiting[place], count), parallel)
        for place, result in zip(places, looked, strict=True):
            if result is not None:
                settled[place] = result
                del waiting[place]
        if waiting and clock.now() >= end:
            settled.update({place: _not_synced(result, limit) for place, result in waiting.items()})
            break
        if waiting:
            clock.sleep(POLL)
    return [settled[place] for place in sorted(settled)]


def _followed(cluster: Cluster, result: Result, count: int) -> Result | None:
    """The result when there is nothing more to wait for."""
    try:
        after = entry(cluster.node(result.node), result.name)
    except PluginError as error:
        return replace(result, outcome=Outcome.UNVERIFIED, message=str(error))
    if whole(after.capacity) != count or after.capacity is None:
        message = (
            f"capacity was {count} and is {after.capacity or '-'} now: a device plugin serves this name, or somebody "
            "changed it"
        )
        return replace(result, outcome=Outcome.OVERWRITTEN, after=after, message=message)
    if after.allocatable is not None and whole(after.allocatable) == count:
        return replace(result, after=after)
    return None


def _not_synced(result: Result, limit: float) -> Result:
    message = (
        f"allocatable did not follow in {limit:.0f} s: no kubelet seems to sync this node (for a node without one, use "
        "--allocatable)"
    )
    return replace(result, outcome=Outcome.NOT_SYNCED, message=message)


def verify_removed(
    cluster: Cluster, clock: Clock, results: Sequence[Result], parallel: int, step: Callable[[], None] = lambda: None
) -> list[Result]:
    """The results after a kubelet has had the time to write back what was removed."""
    if any(result.outcome is Outcome.REMOVED for result in results):
        clock.sleep(SYNC_WAIT)
    return on_each(results, lambda result: _stayed_away(cluster, result), parallel, step)


def _stayed_away(cluster: Cluster, result: Result) -> Result:
    if result.outcome is not Outcome.REMOVED:
        return result
    try:
        after = entry(cluster.node(result.node), result.name)
    except NotFound:
        return replace(result, message="the node is gone as well")
    except PluginError as error:
        return replace(result, outcome=Outcome.UNVERIFIED, message=f"removed, then not seen again: {error}")
    if not after.present:
        return replace(result, after=after)
    message = (
        f"the kubelet wrote it back (capacity {after.capacity or '-'}, allocatable {after.allocatable or '-'}): a "
        "device plugin serves it or left less than five minutes ago, or the kubelet started less than five minutes "
        "ago; stop the plugin and try again after that"
    )
    return replace(result, outcome=Outcome.CAME_BACK, after=after, message=message)
