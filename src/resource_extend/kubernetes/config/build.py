"""From the values in the file to the configuration of the daemon, and the rules that span several keys."""

from __future__ import annotations

from typing import Any

from resource_extend.errors import InputError
from resource_extend.kubernetes.config import rules
from resource_extend.kubernetes.config.description import LEADERS, SOURCES
from resource_extend.kubernetes.config.kinds import Values
from resource_extend.kubernetes.devices.attributes import AttributesMember
from resource_extend.kubernetes.devices.check import Check
from resource_extend.kubernetes.devices.command import CommandMember
from resource_extend.kubernetes.devices.counter import CounterMember
from resource_extend.kubernetes.devices.groups import Group
from resource_extend.kubernetes.devices.hardware import NodeOptions
from resource_extend.kubernetes.devices.match import Member
from resource_extend.kubernetes.devices.paths import PathMember
from resource_extend.kubernetes.devices.pattern import GLOB, REGEX, PathPattern
from resource_extend.kubernetes.devices.pci import PciMember
from resource_extend.kubernetes.devices.source import GroupsConfig
from resource_extend.kubernetes.devices.usb import UsbMember
from resource_extend.kubernetes.model import Config, Folders, Hook, Resource, Roots
from resource_extend.kubernetes.names import check_name

SCAN_INTERVAL = 3.0  # seconds
COMMAND_INTERVAL = 30.0  # seconds; starting a program costs more than looking at files


def build(top: Values) -> Config:
    """Make the configuration. Raises ConfigError."""
    roots = Roots(top["roots"]["dev"], top["roots"]["sys"]) if top["roots"] else Roots()
    sections: tuple[Values, ...] = top["resources"] or top["devices"]
    named = [(section, _resource(section, top["domain"], roots)) for section in sections]
    rules.check_together(named)
    return Config(
        resources=tuple(resource for _, resource in named),
        roots=roots,
        folders=_folders(top["folders"]),
        listen=top["listen"],
        log_format=top["logFormat"],
    )


def _folders(values: Values | None) -> Folders:
    if values is None:
        return Folders()
    registry = values["registry"]
    return Folders(
        plugins=values["plugins"],
        registry=registry,
        registry_host=values["registryHost"] or registry,
        pod_resources=values["podResources"],
        cdi=values["cdi"],
        state=values["state"],
    )


def _resource(values: Values, domain: str, roots: Roots) -> Resource:
    name = _name(values, domain)
    groups = _groups(values)
    shared = any(group.count > 1 or any(count > 1 for _, count in group.counts) for group in groups)
    commands = any(isinstance(member, CommandMember) for group in groups for member in group.members)
    health, recovery = _health(values["health"])
    source = GroupsConfig(groups, values["numa"], recovery, health, values["envListing"], values["shared"])
    resource = Resource(
        name=name,
        source=source,
        allocation_policy=values["allocationPolicy"] or ("spread" if shared else "none"),
        single=values["single"],
        scan_interval=values["scanInterval"] or (COMMAND_INTERVAL if commands else SCAN_INTERVAL),
        pre_start=_hook(values["preStart"]),
        release=_hook(values["release"]),
        cdi=values["cdiSpec"],
    )
    rules.check_resource(values, resource, source, roots)
    return resource


def _name(values: Values, domain: str) -> str:
    name = values["name"] if "/" in values["name"] or not domain else f"{domain}/{values['name']}"
    try:
        return check_name(name + values["nameSuffix"])
    except InputError as error:
        hint = ", or set `domain`" if "/" not in name else ""
        values.at("name").fail(f"{error}{hint}")


def _groups(values: Values) -> tuple[Group, ...]:
    direct = values.given(*SOURCES)
    if values["groups"] is None:
        return (_group(values, values),)
    if direct:
        values.at(direct[0]).fail(f"{direct[0]!r} belongs into the groups: a resource has either 'groups' or one kind")
    return tuple(_group(group, values) for group in values["groups"])


def _group(values: Values, defaults: Values) -> Group:
    leaders = values.given(*LEADERS)
    if len(leaders) > 1:
        values.at(leaders[1]).fail(f"a group has one of {', '.join(LEADERS)}: put {leaders[1]!r} into another group")
    members = _members(values, bool(leaders))
    counts = values["counts"] if values["counts"] is not None else defaults["counts"] or ()
    group = Group(
        members=members,
        count=values["count"] or defaults["count"] or 1,
        counts=tuple((each["device"], each["count"]) for each in counts),
        env=_merged(defaults["env"], values["env"]),
        annotations=_merged(defaults["annotations"], values["annotations"]),
        cdi_names=tuple(dict.fromkeys((*defaults["cdiNames"], *values["cdiNames"]))),
    )
    rules.check_group(values, group)
    return group


def _merged(defaults: tuple[tuple[str, str], ...], own: tuple[tuple[str, str], ...]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted({**dict(defaults), **dict(own)}.items()))


def _members(values: Values, led: bool) -> tuple[Member, ...]:
    """Make the members of a group, the one that leads first. Paths beside another source go with all its devices."""
    members: list[Member] = []
    for name, make in (("usb", _usb), ("pci", _pci), ("sysfs", _sysfs)):
        members += [make(each) for each in values[name] or ()]
    if values["counter"]:
        members.append(CounterMember(values["counter"]))
    if values["command"]:
        members.append(CommandMember(values["command"]["command"], values["command"]["timeout"]))
    return (*members, *(_path(each, 0 if led else 1) for each in values["paths"] or ()))


def _path(values: Values, limit: int) -> PathMember:
    kind = REGEX if values["regex"] else GLOB
    return PathMember(
        PathPattern(values["regex"] or values["path"], kind),
        values["mountPath"],
        values["type"],
        values["permissions"],
        values["readOnly"],
        values["limit"] or limit,
        values["optional"],
        values["resolve"],
        values["shared"],
    )


def _usb(values: Values) -> UsbMember:
    return UsbMember(values["vendor"], values["product"], values["serial"], **_common(values))


def _pci(values: Values) -> PciMember:
    wanted = (values[key] for key in ("vendor", "device", "class", "driver", "address"))
    return PciMember(*wanted, **_common(values))


def _sysfs(values: Values) -> AttributesMember:
    return AttributesMember(values["subsystem"], values["name"], values["attributes"], **_common(values))


def _common(values: Values) -> dict[str, Any]:
    options = NodeOptions(values["nodes"], values["mountPath"], values["permissions"])
    return {"options": options, "optional": values["optional"], "limit": values["limit"] or 1}


def _health(values: Values | None) -> tuple[Check | None, int]:
    if values is None:
        return None, 1
    failures, window = values["failures"], values["window"] or values["failures"]
    if window < failures:
        values.at("window").fail(f"'window' ({window}) must be at least 'failures' ({failures})")
    if values["command"] is None:
        return None, values["recovery"]
    check = Check(values["command"], values["interval"], values["timeout"], failures, window, values["recovery"])
    return check, values["recovery"]


def _hook(values: Values | None) -> Hook | None:
    return Hook(values["command"], values["timeout"]) if values else None
