"""The commands that only look: `list`, `get`, `explain`."""

import sys
from collections.abc import Sequence

import click

from resource_extend.kubernetes.extended_resource import options, output
from resource_extend.kubernetes.extended_resource.cluster import Cluster
from resource_extend.kubernetes.extended_resource.errors import ClusterError
from resource_extend.kubernetes.extended_resource.options import Edge
from resource_extend.kubernetes.extended_resource.progress import complain
from resource_extend.kubernetes.extended_resource.reading import Row, explain_pod, rows
from resource_extend.kubernetes.extended_resource.running import Selection


@click.command("list")
@options.selection
@options.parallel
@options.output
@click.pass_obj
def list_(edge: Edge, selected: Selection, parallel: int, form: str) -> None:
    """Show every extended resource on the nodes, how much of it is requested, and who set it."""
    _show_rows(edge.cluster(), selected, parallel, form, [])


@click.command()
@click.argument("name", type=options.NAME)
@options.selection
@options.parallel
@options.output
@click.pass_obj
def get(edge: Edge, name: str, selected: Selection, parallel: int, form: str) -> None:
    """Show the extended resource NAME on the nodes."""
    _show_rows(edge.cluster(), selected, parallel, form, [name])


@click.command()
@click.argument("pod", type=options.OBJECT)
@click.option("-n", "--namespace", type=options.OBJECT, default=None, help="Instead of the kubeconfig's namespace.")
@options.selection
@options.parallel
@options.output
@click.pass_obj
def explain(edge: Edge, pod: str, namespace: str | None, selected: Selection, parallel: int, form: str) -> None:
    """Say which node lacks what for POD, by the scheduler's own rule, and quote the scheduler beside it."""
    cluster = edge.cluster()
    nodes, complaints = selected.nodes(cluster, parallel)
    complain(complaints)
    explanation = explain_pod(cluster, namespace or cluster.namespace, pod, nodes)
    if form == "table":
        output.show_explanation(explanation)
    else:
        output.show(output.explanation_document(explanation), form)
    complain(explanation.warnings)
    if complaints:
        sys.exit(1)


def _show_rows(cluster: Cluster, selected: Selection, parallel: int, form: str, names: Sequence[str]) -> None:
    nodes, complaints = selected.nodes(cluster, parallel)
    pods = None
    try:
        pods = selected.pods(cluster, parallel)
    except ClusterError as error:
        complaints.append(f"REQUESTED and FREE are not known: {error}")
    found, unreadable = rows(nodes, pods, names)
    complaints += unreadable
    shown = [row for row in found if selected.names or _there(row)]
    if form == "table":
        output.show_rows(shown)
    else:
        output.show({"resources": [output.row_document(row) for row in shown], "errors": complaints}, form)
    complain(complaints)
    if complaints:
        sys.exit(1)


def _there(row: Row) -> bool:
    return (row.capacity, row.allocatable, row.mark) != (None, None, None)
