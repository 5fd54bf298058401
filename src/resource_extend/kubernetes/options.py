"""The options that most commands of the device plugin share: the configuration, and where this node's things are."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from collections.abc import Callable

    from resource_extend.kubernetes.model import Config, Device, Resource
    from resource_extend.kubernetes.runner import Rules

Value = TypeVar("Value")


def with_config(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options that say where the configuration is and where this node's things are."""
    options = (
        click.option("--config", "path", required=True, metavar="FILE", help="The configuration, YAML."),
        click.option("--plugin-dir", metavar="DIR", help="The kubelet's device plugin folder."),
        click.option("--dev-root", metavar="DIR", help="Where the host's /dev is seen."),
        click.option("--sys-root", metavar="DIR", help="Where the host's /sys is seen."),
        click.option("--pod-resources", metavar="SOCKET", help="The kubelet's pod resources socket."),
    )
    for option in reversed(options):
        command = option(command)
    return command


def load(
    path: str,
    plugin_dir: str | None,
    dev_root: str | None,
    sys_root: str | None,
    pod_resources: str | None,
    **more: str | None,
) -> Config:
    """Read the configuration; what the command line says goes before it. Raises ConfigError, or InputError for that."""
    from resource_extend.kubernetes.config import load_config
    from resource_extend.kubernetes.config.checks import listen as check_listen

    config = load_config(path)
    if address := more.get("listen"):
        check_listen(address)
    roots = _replace(config.roots, dev=dev_root, sys=sys_root)
    folders = _replace(
        config.folders,
        plugins=plugin_dir,
        pod_resources=pod_resources,
        registry=more.pop("registry", None),
        registry_host=more.pop("registry_host", None),
    )
    return dataclasses.replace(_replace(config, **more), roots=roots, folders=folders)


def _replace(value: Value, **fields: str | None) -> Value:
    said: dict[str, Any] = {name: text for name, text in fields.items() if text is not None}
    return dataclasses.replace(value, **said)  # type: ignore[type-var]


def rules() -> Rules:
    """Give the rules that devices are handed out by."""
    from resource_extend.kubernetes.devices.allocation import combine, preferred
    from resource_extend.kubernetes.runner import Rules

    return Rules(combine, preferred, _write_cdi, _remove_cdi)


def _write_cdi(folder: str, resource: Resource, devices: list[Device]) -> object:
    from resource_extend.kubernetes.cdi import write_spec

    return write_spec(folder, resource, devices)


def _remove_cdi(folder: str, name: str) -> object:
    from resource_extend.kubernetes.cdi import remove_spec

    return remove_spec(folder, name)
