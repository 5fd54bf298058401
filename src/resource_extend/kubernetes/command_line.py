"""The commands of the device plugin. Each imports what it needs when it runs: `run` has to be quick."""

from __future__ import annotations

import dataclasses
import os
import sys
from typing import TYPE_CHECKING, Any

import click

from resource_extend.errors import PluginError
from resource_extend.kubernetes.options import load, rules, with_config

if TYPE_CHECKING:
    from collections.abc import Sequence

    from resource_extend.kubernetes.inspection import Found
    from resource_extend.kubernetes.model import Config

# gRPC's core writes lines of its own to stderr, in the middle of a JSON log.
os.environ.setdefault("GRPC_VERBOSITY", "NONE")

POD_RESOURCES_SOCKET = "/var/lib/kubelet/pod-resources/kubelet.sock"


class PluginCommands(click.Group):
    """A group whose commands end with one line on stderr and status 1 when something known goes wrong."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except PluginError as error:
            click.echo(f"device-plugin: {error}", err=True)
            ctx.exit(1)


@click.group(cls=PluginCommands, context_settings={"help_option_names": ["-h", "--help"]})
def device_plugin() -> None:
    """Offer devices of this node to the kubelet as extended resources."""


@device_plugin.command()
@with_config
@click.option("--listen", metavar="ADDRESS", help="Probes and metrics: host:port, :port or unix:/path.")
@click.option("--log-format", type=click.Choice(["text", "json"]), help="How log lines are written.")
@click.option("--registry", metavar="DIR", help="Have the kubelet find the sockets in its plugins_registry folder.")
@click.option("--registry-host", metavar="DIR", help="The same folder as the kubelet sees it.")
def run(path: str, **overrides: str | None) -> None:
    """Offer the configured resources until SIGTERM; SIGHUP reads the configuration again."""
    from resource_extend.kubernetes.lean import leave_out_tls

    leave_out_tls()
    import asyncio

    from resource_extend.kubernetes.daemon import Daemon
    from resource_extend.kubernetes.logs import start_logging

    async def live() -> None:
        daemon = Daemon(lambda: load(path, **overrides), rules(), path)
        start_logging(daemon.config.log_format)
        await daemon.run()

    asyncio.run(live())


def _scan(path: str, overrides: dict[str, str | None]) -> tuple[Config, list[Found]]:
    import asyncio

    from resource_extend.kubernetes.inspection import scan_all

    config = load(path, **overrides)
    return config, asyncio.run(scan_all(config))


@device_plugin.command()
@with_config
def check(path: str, **overrides: str | None) -> None:
    """Try the configuration on this node and say what is wrong or worth knowing."""
    from resource_extend.kubernetes.inspection import check as findings

    config, found = _scan(path, overrides)
    errors = 0
    for finding in findings(config, found):
        errors += finding.error
        click.echo(f"{'error: ' if finding.error else ''}{finding.text}")
    if errors:
        raise PluginError(f"{path}: {errors} error{'s' if errors > 1 else ''}")


@device_plugin.command("list")
@with_config
@click.option("--json", "as_json", is_flag=True, help="One JSON document instead of a table.")
def list_devices(path: str, as_json: bool, **overrides: str | None) -> None:
    """Show the devices that would be offered on this node."""
    _, found = _scan(path, overrides)
    if as_json:
        _print_json({f.resource.name: [dataclasses.asdict(device) for device in f.devices] for f in found})
    else:
        rows = [
            (
                item.resource.name,
                device.id,
                "healthy" if device.healthy else f"unhealthy: {device.reason}",
                ",".join(map(str, device.numa)) or "-",
                " ".join(node.host_path for node in device.answer.nodes) or "-",
            )
            for item in found
            for device in item.devices
        ]
        _print_table(("RESOURCE", "DEVICE", "HEALTH", "NUMA", "NODES"), rows)
    for item in found:
        if item.error:
            raise PluginError(f"{item.resource.name}: {item.error}")


@device_plugin.command()
@with_config
@click.argument("resource")
@click.argument("devices", nargs=-1, required=True)
def allocate(path: str, resource: str, devices: tuple[str, ...], **overrides: str | None) -> None:
    """Show what a container would get with DEVICES of RESOURCE, without any kubelet."""
    from resource_extend.kubernetes.inspection import dry_allocate

    _, found = _scan(path, overrides)
    _print_json(dataclasses.asdict(dry_allocate(found, resource, devices, rules())))


@device_plugin.command()
@click.option("--config", "path", metavar="FILE", help="Tell about the resources of this configuration only.")
@click.option("--pod-resources", metavar="SOCKET", default=POD_RESOURCES_SOCKET, show_default=True, help="Whom to ask.")
@click.option("--plugin-dir", metavar="DIR", help="The kubelet's device plugin folder.")
@click.option("--dev-root", metavar="DIR", help="Where the host's /dev is seen.")
@click.option("--sys-root", metavar="DIR", help="Where the host's /sys is seen.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document instead of a table.")
def status(path: str | None, pod_resources: str, as_json: bool, **overrides: str | None) -> None:
    """Show capacity, allocatable, in use and by whom, and free, as the kubelet of this node has it."""
    import asyncio

    from resource_extend.kubernetes.held import read_state, state_path
    from resource_extend.kubernetes.model import Folders
    from resource_extend.kubernetes.pod_resources import read_allocatable, read_holders
    from resource_extend.kubernetes.status import node_status

    async def ask() -> Any:
        return await read_allocatable(pod_resources), await read_holders(pod_resources)

    listed: dict[str, set[str]] = {}
    folders = Folders(plugins=overrides["plugin_dir"] or Folders().plugins)
    if path is not None:
        config, found = _scan(path, {**overrides, "pod_resources": pod_resources})
        listed = {item.resource.name: {device.id for device in item.devices} for item in found}
        folders = config.folders
    allocatable, holders = asyncio.run(ask())
    resources = node_status(allocatable, holders, listed, read_state(state_path(folders)))
    if as_json:
        _print_json([{**dataclasses.asdict(resource), "in_use": resource.in_use} for resource in resources])
        return
    rows = [(r.name, str(r.capacity), str(r.allocatable), str(r.in_use), str(len(r.free))) for r in resources]
    _print_table(("RESOURCE", "CAPACITY", "ALLOCATABLE", "IN USE", "FREE"), rows)
    for resource in resources:
        for device, pods in resource.holders.items():
            click.echo(f"{resource.name} {device}: {', '.join(pods)}")
        for remark in resource.remarks:
            click.echo(f"{resource.name}: {remark}", err=True)


@device_plugin.command()
@click.argument("probe", type=click.Choice(["livez", "readyz"]))
@click.option("--listen", required=True, metavar="ADDRESS", help="What `run` listens on.")
@click.option("--timeout", default=5.0, show_default=True, metavar="SECONDS")
def probe(probe: str, listen: str, timeout: float) -> None:
    """Ask a running device plugin whether it is well, for exec probes."""
    from resource_extend.kubernetes.ask import ask_probe

    well, text = ask_probe(listen, f"/{probe}", timeout)
    click.echo(text.strip())
    if not well:
        raise PluginError(f"{probe} failed")


@device_plugin.command("fake-kubelet")
@click.argument("folder")
@click.option("--generation", type=click.Choice(["le136", "ge137"]), default="ge137", show_default=True)
@click.option("--registry", default="", metavar="DIR", help="Also watch this plugins_registry folder.")
@click.option("--pod-resources", default="", metavar="SOCKET", help="Also serve pod resources here.")
def fake_kubelet(folder: str, generation: str, registry: str, pod_resources: str) -> None:
    """Play a kubelet on FOLDER for tests: commands on stdin, JSON lines on stdout (`help` lists them)."""
    import asyncio

    from resource_extend.kubernetes.fake_kubelet import FakeKubelet
    from resource_extend.kubernetes.fake_kubelet.console import Console

    kubelet = FakeKubelet(folder, generation, registry=registry, pod_resources=pod_resources)
    asyncio.run(Console(kubelet).run())


def _print_json(value: object) -> None:
    import json

    click.echo(json.dumps(value, indent=2, default=sorted))


def _print_table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> None:
    """Print columns; on a terminal as a table, otherwise as tab separated lines that other programs can cut."""
    if not sys.stdout.isatty():
        for row in (head, *rows):
            click.echo("\t".join(row))
        return
    from rich.console import Console
    from rich.table import Table

    table = Table(*head, box=None)
    for row in rows:
        table.add_row(*row)
    Console().print(table)
