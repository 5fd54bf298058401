"""The program `extended-resource`: its commands, and the one place where errors become exit statuses.

Exit status 0: done. 1: something failed or was refused, on some node at least. 2: the command line or a file is wrong.
"""

import signal
import sys
from typing import Any

import click

from resource_extend import __version__
from resource_extend.errors import InputError, PluginError
from resource_extend.kubernetes.extended_resource import change_commands, read_commands
from resource_extend.kubernetes.extended_resource.many import Interrupted
from resource_extend.kubernetes.extended_resource.options import Edge
from resource_extend.kubernetes.extended_resource.progress import PROGRAM, complain


class _Group(click.Group):
    """Commands whose errors end as one line on standard error and an exit status."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except InputError as error:
            raise click.UsageError(str(error), ctx) from error
        except PluginError as error:
            complain([str(error)])
            ctx.exit(1)
        except (KeyboardInterrupt, Interrupted):
            complain(["stopped"])
            ctx.exit(1)


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name=PROGRAM)
@click.option(
    "--kubeconfig", metavar="FILE", default="", help="Instead of the pod's account, $KUBECONFIG, ~/.kube/config."
)
@click.option("--context", "context_name", metavar="NAME", default="", help="A context of the kubeconfig.")
@click.pass_context
def main(ctx: click.Context, kubeconfig: str, context_name: str) -> None:
    """Extended resources set by hand: counts on nodes that the scheduler hands out and nothing else.

    Nothing is injected into a container. For a count that has to outlast the node object use `keep`, or the device
    plugin's counter.
    """
    edge = ctx.ensure_object(Edge)
    edge.kubeconfig, edge.context = kubeconfig, context_name


for command in (
    read_commands.list_,
    read_commands.get,
    change_commands.set_,
    change_commands.unset,
    change_commands.clean,
    change_commands.keep,
    read_commands.explain,
):
    main.add_command(command)


def run() -> None:
    """The console script: SIGTERM ends a run as Ctrl-C does, with an account of what was done."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        main(prog_name=PROGRAM)
    except OSError as error:
        # Whatever else is read or written turns its errors into ours; click ends quietly when the reader is gone.
        complain([f"standard output: {error.strerror}"])
        sys.stdout = None  # At its end Python would try once more to write, and complain
        sys.exit(1)
