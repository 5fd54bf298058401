"""What a workload holds, as it is answered and read back (specification, storage 6.3)."""

from msgspec import Struct

from resource_extend.storage.binding import Binding, parse_bindings, parse_fields
from resource_extend.storage.disk import Disk
from resource_extend.storage.resource import Resource

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from resource_extend.storage.binding import Fields

    Plan = dict[Binding, dict[str, int]]

# Answers of the existing Go plugins hold null for what is empty.
_Texts = list[str] | None
_PlanTexts = dict[str, dict[str, int]] | None
_Disks = list[Disk] | None


class WorkloadResource(Struct):
    """The resource of one workload: bindings as full forms, bytes by device for each of them, rows of disk quotas."""

    volumes_request: _Texts = []
    volumes_limit: _Texts = []
    volume_plan_request: _PlanTexts = {}
    volume_plan_limit: _PlanTexts = {}
    storage_request: int = 0
    storage_limit: int = 0
    disks_request: _Disks = []
    disks_limit: _Disks = []


def parse_plan(texts: "Mapping[str, dict[str, int]]", known: dict[str, Binding]) -> "Plan":
    """Return a plan with its keys parsed; of two that mean one binding the last holds (specification, storage 2.4).

    Args:
        texts: the plan by binding text.
        known: texts parsed before in this call, filled further.

    Raises:
        InputError: a key is no binding.
    """
    return dict(zip(parse_bindings(texts, known), texts.values(), strict=True))


def plan_texts(plan: "Plan") -> dict[str, dict[str, int]]:
    """Return a plan keyed by full forms."""
    return {binding.full(): devices for binding, devices in plan.items()}


def booked(workloads: list[WorkloadResource]) -> list[Resource]:
    """Return what each of the workloads takes of its node: its plan, its storage request, its disk rows.

    Raises:
        InputError: a text that is no binding.
    """
    known: dict[str, Fields] = {}
    result = []
    for workload in workloads:
        plan = workload.volume_plan_request or {}
        for texts in (workload.volumes_request, workload.volumes_limit, workload.volume_plan_limit, plan):
            for text in texts or ():
                if text not in known:
                    known[text] = parse_fields(text)
        volumes: dict[str, int] = {}
        # Of two texts that mean one binding the last holds, as in `parse_plan`.
        for devices in {known[text]: devices for text, devices in plan.items()}.values():
            for device, size in devices.items():
                volumes[device] = volumes.get(device, 0) + size
        result.append(Resource(volumes, workload.disks_request or [], workload.storage_request))
    return result
