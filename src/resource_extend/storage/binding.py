"""Volume bindings: `source:destination:flags:size` and four quotas (specification, storage 2.1 to 2.3)."""

from msgspec import Struct

from resource_extend.errors import InputError
from resource_extend.storage.disk import NO_QUOTA, quota_text
from resource_extend.units import parse_size

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from resource_extend.storage.disk import Quota

    # Source, destination, held flags, size, quota.
    Fields = tuple[str, str, str, int, Quota]


class Binding(Struct, frozen=True):
    """One volume of a workload.

    `flags` is the held form: sorted and without doubles. `size` is in bytes; `quota` is read IOPS, write IOPS, read and
    write bytes per second.
    """

    source: str
    destination: str
    flags: str
    size: int
    quota: tuple[int, int, int, int]

    def scheduled(self) -> bool:
        """Tell whether the scheduler chooses the device."""
        return self.source.endswith("AUTO") or not self.source

    def has_iops(self) -> bool:
        """Tell whether any quota is asked for."""
        return max(self.quota) > 0

    def monopoly(self) -> bool:
        """Tell whether the binding wants a device of its own."""
        return "m" in self.flags and self.scheduled()

    def unlimited(self) -> bool:
        """Tell whether the binding takes whatever device has most left."""
        return self.size == 0 and self.quota == NO_QUOTA and self.scheduled()

    def identity(self) -> tuple[str, str, str]:
        """Return what makes two bindings the same one: source, destination, held flags."""
        return (self.source, self.destination, self.flags)

    def full(self) -> str:
        """Return the full form, 8 parts: the form of answers, plan keys and sorting."""
        # Most have plain flags and ask for no quota; what is written out here saves two calls for each text.
        flags = _rendered(self.flags) if "o" in self.flags else self.flags
        quota = "0:0:0:0" if self.quota == NO_QUOTA else quota_text(self.quota)
        return f"{self.source}:{self.destination}:{flags}:{self.size}:{quota}"

    def normalized(self) -> str:
        """Return the form that engines read: without `m`, and 4 parts when no quota is set."""
        flags = self.flags.replace("m", "")
        flags = _rendered(flags) if "o" in flags else flags
        text = f"{self.source}:{self.destination}:{flags}:{self.size}"
        return text if self.quota == NO_QUOTA else f"{text}:{quota_text(self.quota)}"


def _rendered(flags: str) -> str:
    """Return held flags with an `o` in the form of texts."""
    return flags.replace("o", "").replace("r", "ro").replace("w", "wo")


def needs_scheduling(bindings: "Iterable[Binding]") -> bool:
    """Tell whether one of the bindings is scheduled or asks for a quota."""
    for binding in bindings:  # noqa: SIM110 - a generator costs more than all it does
        if binding.scheduled() or binding.has_iops():
            return True
    return False


def total_size(bindings: "Iterable[Binding]") -> int:
    """Return the sum of the bindings' bytes."""
    return sum([binding.size for binding in bindings])


def total_quota(bindings: "Iterable[Binding]") -> "Quota":
    """Return the quotas of bindings together."""
    read_iops = write_iops = read_bps = write_bps = 0
    for binding in bindings:
        quota = binding.quota
        read_iops += quota[0]
        write_iops += quota[1]
        read_bps += quota[2]
        write_bps += quota[3]
    return (read_iops, write_iops, read_bps, write_bps)


def parse_fields(text: str) -> "Fields":
    """Return what the binding is made of that a text means. Calls that only book workloads need no more of it.

    Raises:
        InputError: `<text>: invalid volume`, `dest must be provided: …`, or the text of a size that does not parse.
    """
    parts = text.split(":")
    if not 2 <= len(parts) <= 8:
        raise InputError(f"{text}: invalid volume")
    source, destination = parts[0], parts[1]
    flags = "".join(sorted(set(parts[2]))) if len(parts) > 2 else ""
    size, *quota = [parse_size(part) for part in parts[3:]] or [0]
    quota += [0] * (4 - len(quota))
    fields = source, destination, flags or "rw", size, (quota[0], quota[1], quota[2], quota[3])
    if not destination:
        raise _without_destination(fields)
    return fields


def _without_destination(fields: "Fields") -> InputError:
    source, _, flags, size, quota = fields
    return InputError(
        f"dest must be provided: {{Source:{source} Destination: Flags:{flags} SizeInBytes:{size}"
        f" ReadIOPS:{quota[0]} WriteIOPS:{quota[1]} ReadBPS:{quota[2]} WriteBPS:{quota[3]}}}: invalid volume"
    )


def parse_binding(text: str) -> Binding:
    """Return the binding that a text means; raises what `parse_fields` does."""
    return Binding(*parse_fields(text))


def parse_bindings(texts: "Iterable[str]", known: dict[str, Binding] | None = None) -> list[Binding]:
    """Return the bindings of a list of texts; the first fault ends it.

    Args:
        texts: the texts, in order.
        known: texts parsed before in this call, filled further: many workloads of one deploy have equal texts.
    """
    known = {} if known is None else known
    bindings = []
    for text in texts:
        binding = known.get(text)
        if binding is None:
            binding = known[text] = parse_binding(text)
        bindings.append(binding)
    return bindings
