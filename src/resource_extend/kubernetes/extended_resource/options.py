"""The command line's words, parsed once: what each option is called, and what it turns into."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial, wraps
from typing import Any, TypeVar, cast

import click
from lightkube import Client

from resource_extend.errors import InputError
from resource_extend.kubernetes.extended_resource.changing import DryRun
from resource_extend.kubernetes.extended_resource.clock import Clock, SystemClock
from resource_extend.kubernetes.extended_resource.cluster import Cluster
from resource_extend.kubernetes.extended_resource.connection import connect
from resource_extend.kubernetes.extended_resource.objects import check_object_name
from resource_extend.kubernetes.extended_resource.quantities import parse_count
from resource_extend.kubernetes.extended_resource.running import Selection
from resource_extend.kubernetes.extended_resource.selectors import parse_selector
from resource_extend.kubernetes.names import check_name

Command = TypeVar("Command", bound=Callable[..., Any])

LARGEST_PARALLEL = 64


@dataclass
class Edge:
    """The outside world of one call: how to reach a cluster, and the time."""

    connect: Callable[[str, str], Client] = connect
    clock: Clock = field(default_factory=SystemClock)
    kubeconfig: str = ""
    context: str = ""

    def cluster(self) -> Cluster:
        """The cluster that the options point at, closed when the command is over.

        Raises:
            ClusterError: there is no usable configuration.
        """
        cluster = Cluster(partial(self.connect, self.kubeconfig, self.context), self.clock)
        return click.get_current_context().with_resource(cluster)


class _Checked(click.ParamType[Any]):
    """A text that one of our parsers turns into a value; its refusal is the option's."""

    def __init__(self, name: str, parse: Callable[[str], Any]) -> None:
        self.name = name
        self._parse = parse

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The parsed value."""
        try:
            return self._parse(value) if isinstance(value, str) else value
        except InputError as error:
            self.fail(str(error), param, ctx)


def _assignment(text: str) -> tuple[str, int]:
    name, equals, count = text.partition("=")
    if not equals:
        raise InputError(f"{text!r} is not NAME=N, as in example.com/widget=2")
    return check_name(name), parse_count(count)


def _selector(text: str) -> str:
    return parse_selector(text).text if text else ""


NAME = _Checked("NAME", check_name)
ASSIGNMENT = _Checked("NAME=N", _assignment)
OBJECT = _Checked("NAME", check_object_name)

output = click.option(
    "-o",
    "--output",
    "form",
    type=click.Choice(["table", "json", "yaml"]),
    default="table",
    show_default=True,
    help="A table for people, or a document for programs.",
)
parallel = click.option(
    "--parallel",
    type=click.IntRange(1, LARGEST_PARALLEL),
    default=8,
    show_default=True,
    help="Nodes worked on at the same time.",
)
force = click.option("--force", is_flag=True, help="Even if pods hold it, or somebody else set it.")
allocatable = click.option(
    "--allocatable", "with_allocatable", is_flag=True, help="Write allocatable too: for a node without a kubelet."
)
dry_run = click.option(
    "--dry-run",
    type=click.Choice([item.value for item in DryRun]),
    default=DryRun.NONE.value,
    callback=lambda _ctx, _param, value: DryRun(value),
    help="client: show what would be sent. server: let the server check it and store nothing.",
)
verify = click.option(
    "--verify/--no-verify",
    default=True,
    show_default=True,
    help="After a removal, wait for the kubelet's next sync and look whether it came back.",
)


def selection(command: Command) -> Command:
    """The options that choose nodes, as one Selection; all nodes when none is given."""
    return _with_selection(command, required=False)


def required_selection(command: Command) -> Command:
    """The same for commands that change nodes: all nodes have to be asked for."""
    return _with_selection(command, required=True)


def _with_selection(command: Command, *, required: bool) -> Command:
    @wraps(command)
    def chosen(*args: Any, node_names: tuple[str, ...], selector: str, everything: bool, **options: Any) -> Any:
        given = bool(node_names) + bool(selector) + everything
        if given > 1:
            raise click.UsageError("--node, --selector and --all exclude each other")
        if required and not given:
            raise click.UsageError("say which nodes: --node NODE (may be repeated), --selector SELECTOR or --all")
        return command(*args, selected=Selection(node_names, selector), **options)

    for option in (
        click.option("--all", "everything", is_flag=True, help="All nodes."),
        click.option(
            "-l",
            "--selector",
            type=_Checked("SELECTOR", _selector),
            default="",
            help="The nodes whose labels match, as in pool=licences.",
        ),
        click.option("--node", "node_names", multiple=True, type=OBJECT, help="A node; may be repeated."),
    ):
        chosen = option(chosen)
    return cast(Command, chosen)
