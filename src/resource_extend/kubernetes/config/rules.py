"""Rules of the configuration that span several keys or resources. Each raises ConfigError where the mistake is."""

from __future__ import annotations

from resource_extend.errors import InputError
from resource_extend.kubernetes.config.kinds import Values
from resource_extend.kubernetes.devices import identity
from resource_extend.kubernetes.devices.allocation import env_prefix
from resource_extend.kubernetes.devices.cdi_names import cdi_kind, check_cdi_name
from resource_extend.kubernetes.devices.check import Check
from resource_extend.kubernetes.devices.counter import CounterMember
from resource_extend.kubernetes.devices.groups import Group
from resource_extend.kubernetes.devices.match import check_template, fill
from resource_extend.kubernetes.devices.paths import DEVICE, PathMember
from resource_extend.kubernetes.devices.source import GroupsConfig
from resource_extend.kubernetes.model import Resource, Roots

MESSAGE_LIMIT = 4 * 1024 * 1024  # bytes; the kubelet's limit of one message (specification, kubernetes 1.1)
SNAPSHOT_LIMIT = MESSAGE_LIMIT * 39 // 40
DEVICE_OVERHEAD = 13  # bytes of a healthy device beside its id, as long as that has less than 115 characters


def check_group(values: Values, group: Group) -> None:
    """Check what the members of a group need of each other."""
    lead = group.members[group.leader]
    if lead.optional:
        values.place.fail("every member is optional: at least one must not be")
    if isinstance(lead, PathMember) and lead.follows:
        values.place.fail("{match} in a path stands for the match of another member, and there is none that has one")
    for template in group.cdi_names:
        try:
            check_cdi_name(fill(template, dict.fromkeys(("match", "id", "name"), "x")))
        except InputError as error:
            values.at("cdiNames").fail(str(error))


def check_resource(values: Values, resource: Resource, source: GroupsConfig, roots: Roots) -> None:
    """Check one resource."""
    counters = [m for group in source.groups for m in group.members if isinstance(m, CounterMember)]
    if len(counters) > 1:
        values.at("groups").fail("a resource can have one 'counter' only: add the numbers up")
    for group in source.groups:
        _check_size(values, resource, group)
        for member in group.members:
            if isinstance(member, PathMember):
                _check_visible(values, member, roots)
    if resource.cdi:
        try:
            cdi_kind(resource.name)
        except InputError as error:
            values.at("cdiSpec").fail(str(error))
    if source.check:
        _check_command(values, source.check)


def _check_command(values: Values, check: Check) -> None:
    for part in check.command:
        try:
            check_template(part)
        except InputError as error:
            values.at("health").fail(str(error))


def _check_size(values: Values, resource: Resource, group: Group) -> None:
    """Refuse what would not fit into one message to the kubelet, as far as the number is known beforehand."""
    number = next((member.count for member in group.members if isinstance(member, CounterMember)), 1)
    total = number * group.count
    last = identity.device_id(resource.name, str(number - 1))
    longest = len(identity.replica_id(last, group.count - 1) if group.count > 1 else last)
    size = total * (longest + DEVICE_OVERHEAD)
    if size > SNAPSHOT_LIMIT:
        key = "counter" if values["counter"] else "count" if values["count"] else "groups"
        most = SNAPSHOT_LIMIT // (longest + DEVICE_OVERHEAD)
        values.at(key).fail(
            f"{total} devices make a list of up to {size} bytes, and the kubelet takes {MESSAGE_LIMIT}: "
            f"at most {most} devices with ids of {longest} characters"
        )


def _check_visible(values: Values, member: PathMember, roots: Roots) -> None:
    """With the host's folders mounted elsewhere, nothing but /dev and /sys can be looked at."""
    text = member.pattern.text
    if roots == Roots() or text.startswith(("/dev/", "/sys/")) or text in {"/dev", "/sys"}:
        return
    if member.kind == DEVICE or not member.pattern.literal:
        values.place.fail(f"{text!r} cannot be looked at: with `roots` set, only /dev and /sys of the host are seen")


def check_together(named: list[tuple[Values, Resource]]) -> None:
    """Check that resources do not get in each other's way."""
    names: dict[str, Values] = {}
    hashes: dict[str, str] = {}
    prefixes: dict[str, str] = {}
    leaders: dict[str, Resource] = {}
    for values, resource in named:
        name, source = resource.name, resource.source
        if name in names:
            values.at("name").fail(f"{name!r} is there twice, first on line {names[name].at('name').line}")
        names[name] = values
        other = hashes.setdefault(identity.short_hash(name), name)
        if other != name:
            values.at("name").fail(f"{name!r} and {other!r} have the same hash: change one of the names")
        assert isinstance(source, GroupsConfig)
        if source.listing != "none":
            other = prefixes.setdefault(env_prefix(name), name)
            if other != name:
                keys = f"{env_prefix(name)}_..."
                values.at("name").fail(f"{name!r} and {other!r} make the same environment keys {keys}: change a name")
        _check_leaders(values, resource, source, leaders)


def _check_leaders(values: Values, resource: Resource, source: GroupsConfig, leaders: dict[str, Resource]) -> None:
    """Refuse devices that two resources would hand out independently of each other."""
    for group in source.groups:
        leader = group.members[group.leader]
        if not isinstance(leader, PathMember) or leader.kind != DEVICE or leader.shared:
            continue
        other = leaders.setdefault(leader.pattern.text, resource)
        both = isinstance(other.source, GroupsConfig) and other.source.shared and source.shared
        if other is not resource and not both:
            values.place.fail(
                f"{leader.pattern.text} is in {other.name} as well, and one device would be given to two pods: "
                "write `shared: true` to both resources if that is meant"
            )
