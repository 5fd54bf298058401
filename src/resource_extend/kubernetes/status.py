"""What the `status` command tells: capacity, allocatable, in use by whom, free; and what does not add up.

Allocatable does not fall when pods take devices, which surprises many (specification, kubernetes 2.5): so what is
free is told beside it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from resource_extend.kubernetes.pod_resources import Holders


@dataclass(frozen=True)
class ResourceStatus:
    """One resource on this node. `holders`: id -> namespace/pod/container. `free`: healthy and held by nobody.

    `capacity` is what the plugin lists when its configuration is known, otherwise what the kubelet hands out or has
    handed out: the pod resources API does not tell unhealthy devices that nobody holds.
    """

    name: str
    capacity: int
    allocatable: int
    free: tuple[str, ...]
    holders: Mapping[str, tuple[str, ...]]
    remarks: tuple[str, ...]

    @property
    def in_use(self) -> int:
        """The number of devices that pods hold."""
        return len(self.holders)


def node_status(
    allocatable: Mapping[str, set[str]],
    holders: Holders,
    listed: Mapping[str, set[str]],
    remembered: Mapping[str, Mapping[str, Iterable[str]]],
) -> list[ResourceStatus]:
    """Put together what the kubelet says (allocatable, holders), what the plugin lists, and what it remembers.

    `listed` holds the plugin's own resources, when its configuration is known; only these are told then. `remembered`
    is what pods held when the plugin looked last: a pod that still runs and holds less makes a remark.
    """
    names = set(listed) or set(allocatable) | set(holders)
    pods = {pod for devices in holders.values() for named in devices.values() for pod in named}
    return [
        _resource_status(
            name, allocatable.get(name, set()), holders.get(name, {}), listed.get(name), remembered.get(name, {}), pods
        )
        for name in sorted(names)
    ]


def _resource_status(
    name: str,
    healthy: set[str],
    held: Mapping[str, set[str]],
    listed: set[str] | None,
    remembered: Mapping[str, Iterable[str]],
    pods: set[str],
) -> ResourceStatus:
    known = healthy | set(held) if listed is None else listed
    remarks = [
        f"{device} is held by {len(named)} containers: {', '.join(sorted(named))}"
        for device, named in sorted(held.items())
        if len(named) > 1
    ]
    remarks += [f"{device} is held, and not listed any more" for device in sorted(set(held) - known)]
    for device, named in sorted(remembered.items()):
        lost = sorted(set(named) & pods - held.get(device, set()))
        if lost:
            remarks.append(f"the kubelet has forgotten that {', '.join(lost)} got {device} (checkpoint lost?)")
    return ResourceStatus(
        name=name,
        capacity=len(known),
        allocatable=len(healthy),
        free=tuple(sorted(healthy - set(held))),
        holders={device: tuple(sorted(named)) for device, named in sorted(held.items())},
        remarks=tuple(remarks),
    )
