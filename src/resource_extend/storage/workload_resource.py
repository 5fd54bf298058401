"""What a workload holds, as it is answered and read back (specification, storage 6.3)."""

from msgspec import Struct

from resource_extend.storage.binding import Binding, parse_bindings
from resource_extend.storage.disk import Disk
from resource_extend.storage.resource import Resource

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    Texts = list[str]
    PlanTexts = dict[str, dict[str, int]]
    Disks = list[Disk]
    Plan = dict[Binding, dict[str, int]]
else:
    # Answers of the existing Go plugins hold null here; __post_init__ makes it empty before anything else sees it.
    Texts = list[str] | None
    PlanTexts = dict[str, dict[str, int]] | None
    Disks = list[Disk] | None


class WorkloadResource(Struct):
    """The resource of one workload: bindings as full forms, bytes by device for each of them, rows of disk quotas."""

    volumes_request: Texts = []
    volumes_limit: Texts = []
    volume_plan_request: PlanTexts = {}
    volume_plan_limit: PlanTexts = {}
    storage_request: int = 0
    storage_limit: int = 0
    disks_request: Disks = []
    disks_limit: Disks = []

    def __post_init__(self) -> None:
        self.volumes_request = self.volumes_request or []
        self.volumes_limit = self.volumes_limit or []
        self.volume_plan_request = self.volume_plan_request or {}
        self.volume_plan_limit = self.volume_plan_limit or {}
        self.disks_request = self.disks_request or []
        self.disks_limit = self.disks_limit or []


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
    known: dict[str, Binding] = {}
    result = []
    for workload in workloads:
        volumes: dict[str, int] = {}
        parse_bindings([*workload.volumes_request, *workload.volumes_limit, *workload.volume_plan_limit], known)
        for devices in parse_plan(workload.volume_plan_request, known).values():
            for device, size in devices.items():
                volumes[device] = volumes.get(device, 0) + size
        result.append(Resource(volumes, workload.disks_request, workload.storage_request))
    return result
