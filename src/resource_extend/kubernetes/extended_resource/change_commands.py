"""The commands that change nodes: `set`, `unset`, `clean`, `keep`."""

import sys
from collections.abc import Sequence
from functools import partial

import click

from resource_extend.kubernetes.extended_resource import options, output
from resource_extend.kubernetes.extended_resource.changing import DryRun, Result
from resource_extend.kubernetes.extended_resource.cluster import Cluster
from resource_extend.kubernetes.extended_resource.decisions import Wish
from resource_extend.kubernetes.extended_resource.errors import ClusterError, Unreachable
from resource_extend.kubernetes.extended_resource.keeping import Keeper, load_file
from resource_extend.kubernetes.extended_resource.many import Interrupted
from resource_extend.kubernetes.extended_resource.options import Edge
from resource_extend.kubernetes.extended_resource.progress import complain, say
from resource_extend.kubernetes.extended_resource.running import Runner, Selection, summary
from resource_extend.kubernetes.extended_resource.wanted import Terms, parse_wanted


@click.command("set")
@click.argument("assignment", metavar="NAME=N", type=options.ASSIGNMENT)
@options.required_selection
@options.force
@options.allocatable
@options.dry_run
@click.option("--wait", is_flag=True, help="Wait until allocatable has followed.")
@click.option("--timeout", type=click.FloatRange(0), default=60.0, show_default=True, help="Seconds to wait.")
@options.parallel
@options.output
@click.pass_obj
def set_(
    edge: Edge,
    assignment: tuple[str, int],
    selected: Selection,
    force: bool,
    with_allocatable: bool,
    dry_run: DryRun,
    wait: bool,
    timeout: float,
    parallel: int,
    form: str,
) -> None:
    """Make each node offer N of NAME, a whole number."""
    name, count = assignment
    cluster = edge.cluster()
    warnings = _dra_warnings(cluster, name)
    runner = Runner(cluster, edge.clock, parallel, dry_run)
    wish = Wish(name, count, force=force, with_allocatable=with_allocatable)
    results = runner.make(_some(selected.node_names(cluster)), wish)
    _show_results(runner.wait(results, count, timeout) if wait else results, dry_run, form, warnings)


@click.command()
@click.argument("name", type=options.NAME)
@options.required_selection
@options.force
@options.dry_run
@options.verify
@options.parallel
@options.output
@click.pass_obj
def unset(
    edge: Edge, name: str, selected: Selection, force: bool, dry_run: DryRun, verify: bool, parallel: int, form: str
) -> None:
    """Take NAME off each node."""
    cluster = edge.cluster()
    runner = Runner(cluster, edge.clock, parallel, dry_run)
    results = runner.make(_some(selected.node_names(cluster)), Wish(name, force=force))
    _show_results(runner.verify(results) if verify else results, dry_run, form)


@click.command()
@click.argument("names", metavar="[NAME]...", nargs=-1, type=options.NAME)
@options.required_selection
@options.force
@options.dry_run
@options.verify
@options.parallel
@options.output
@click.pass_obj
def clean(
    edge: Edge,
    names: tuple[str, ...],
    selected: Selection,
    force: bool,
    dry_run: DryRun,
    verify: bool,
    parallel: int,
    form: str,
) -> None:
    """Take away stale entries, of NAME or of any name: 0/0 as a stopped device plugin leaves them."""
    cluster = edge.cluster()
    runner = Runner(cluster, edge.clock, parallel, dry_run)
    results = runner.clean(_some(selected.node_names(cluster)), names, force=force)
    _show_results(runner.verify(results) if verify else results, dry_run, form)


@click.command()
@click.option("-f", "--file", metavar="FILE", required=True, help="What the nodes should offer, as YAML.")
@options.selection
@click.option("--once", is_flag=True, help="Look once, then exit.")
@click.option("--period", type=click.IntRange(5), default=300, show_default=True, help="Seconds between full looks.")
@click.option("--prune", is_flag=True, help="Take away what this tool set and no rule of the file wants.")
@options.force
@options.allocatable
@options.dry_run
@options.parallel
@options.output
@click.pass_obj
def keep(
    edge: Edge,
    file: str,
    selected: Selection,
    once: bool,
    period: int,
    prune: bool,
    force: bool,
    with_allocatable: bool,
    dry_run: DryRun,
    parallel: int,
    form: str,
) -> None:
    """Keep the nodes as FILE wants them, also after a node object was made anew. Runs until it is stopped."""
    if dry_run is not DryRun.NONE and not once:
        raise click.UsageError("--dry-run of a loop would say the same for ever: add --once")
    keeper = Keeper(
        edge.cluster(),
        edge.clock,
        partial(load_file, file, parse_wanted),
        report=(lambda _result: None) if once else partial(output.show_line, form=form),
        complain=lambda text: complain([text]),
        terms=Terms(prune, force, with_allocatable),
        selector=selected.selector,
        names=frozenset(selected.names),
        parallel=parallel,
        dry_run=dry_run,
    )
    if once:
        _show_results(keeper.once()[0], dry_run, form)
        return
    try:
        keeper.run(period)
    except (KeyboardInterrupt, Interrupted):
        complain(["stopped"])


def _show_results(results: Sequence[Result], dry_run: DryRun, form: str, warnings: Sequence[str] = ()) -> None:
    good = all(result.outcome.good for result in results)
    if form == "table":
        output.show_results(results, dry_run)
    else:
        document = {
            "dryRun": dry_run.value,
            "results": [output.result_document(result) for result in results],
            "summary": summary(results),
            "warnings": list(warnings),
        }
        output.show(document, form)
    complain(warnings)
    if len(results) != 1 or not good:
        say(summary(results) + output.dry_mark(dry_run))
    if not good:
        sys.exit(1)


def _dra_warnings(cluster: Cluster, name: str) -> list[str]:
    """What speaks against the name in dynamic resource allocation; not being allowed to look is worth a line, too.

    Raises:
        Unreachable: nobody answers, and would not on the nodes' behalf either.
    """
    try:
        classes = cluster.device_classes(name)
    except Unreachable:
        raise
    except ClusterError as error:
        return [f"not looked whether a DeviceClass maps {name}: {error}"]
    return [
        f"DeviceClass {item} maps {name} to dynamic resource allocation (DRA): on one node a name must come from DRA "
        "or from the node's capacity, not from both"
        for item in classes
    ]


def _some(nodes: list[str]) -> list[str]:
    if not nodes:
        raise ClusterError("no node matches: nothing was done")
    return nodes
