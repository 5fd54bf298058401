"""What a plugin file says of itself to people: --help and --version (specification, protocol 2.1)."""

from resource_extend import __version__
from resource_extend.verbs import listed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from resource_extend.plugin import Plugin


def version_text() -> bytes:
    """Return the version and what this build knows: its commit and the interpreters it starts fast on."""
    lines = [f"Version: {__version__}"]
    try:
        from resource_extend import _build  # type: ignore[attr-defined]  # made by the packer
    except ImportError:
        lines.append("Commit: not built, run from source")
    else:
        lines += [f"Commit: {_build.COMMIT}", *(f"Interpreter: {name}" for name in _build.INTERPRETERS)]
    return ("\n".join(lines) + "\n").encode()


def help_text(plugin: "type[Plugin]") -> bytes:
    """Return how to call a plugin, and its verbs."""
    verbs = "\n".join(f"  {verb}" for verb in ["name", "verbs", *listed(plugin)])
    return f"""\
The {plugin.name} resource plugin of the Eru scheduler, which runs it once per call.

usage: [--config PATH] VERB    the request on stdin, the answer on stdout, both JSON
       --help | --version

The configuration is PATH, else the file that ERU_RESOURCE_CONFIG_PATH names, else {plugin.name}.yaml
in the working directory. On failure: one line on stderr and exit status 128.

verbs:
{verbs}
""".encode()
