"""Adding a change to the bindings that a workload has (specification, storage 2.5)."""

from resource_extend.errors import ResourceError
from resource_extend.storage.binding import Binding
from resource_extend.storage.disk import OUT_OF_RANGE
from resource_extend.units import in_int64


def merge(change: list[Binding], origin: list[Binding]) -> list[Binding]:
    """Return a change added to what a workload has: bindings of equal identity summed, sizes below 0 dropped (2.5).

    Raises:
        ResourceError: a number outside int64.
    """
    merged: dict[tuple[str, str, str], Binding] = {}
    for binding in [*change, *origin]:
        identity = binding.identity()
        held = merged.get(identity)
        if held is not None:
            quota = [one + other for one, other in zip(held.quota, binding.quota, strict=True)]
            size = held.size + binding.size
            binding = Binding(*identity, size, (quota[0], quota[1], quota[2], quota[3]))  # noqa: PLW2901
        merged[identity] = binding
    for binding in merged.values():
        if not in_int64(binding.size):
            raise ResourceError("volume size is out of range: invalid volume")
        for number in binding.quota:
            if not in_int64(number):
                raise ResourceError(OUT_OF_RANGE)
    return sorted([binding for binding in merged.values() if binding.size >= 0], key=Binding.full)
