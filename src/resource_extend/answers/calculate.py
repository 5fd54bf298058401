"""Answers of the pure calculations: calculate-deploy, calculate-realloc, calculate-remap."""

from msgspec import Struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class CalculateDeploy(Struct):
    """Engine params and workload resource for each of the workloads, in order, both in the plugin's shapes."""

    engines_params: "Sequence[Struct]"
    workloads_resource: "Sequence[Struct]"


class CalculateRealloc(Struct):
    """The new engine params, the difference to book on the node, and what the workload then holds."""

    engine_params: Struct
    delta_resource: Struct
    workload_resource: Struct


class CalculateRemap(Struct):
    """New engine params by workload id, for the workloads that have any."""

    engine_params_map: "Mapping[str, Struct]"
