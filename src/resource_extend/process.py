"""The edge: argv, the streams and the exit status of one call; nothing else touches them (specification, protocol 2).

Two lines make a program of a plugin class:

    from resource_extend.process import main
    main(MyPlugin)
"""

import posix
import sys
import time

from resource_extend.errors import InputError, PluginError, UsageError
from resource_extend.verbs import ANSWER_NOTHING, ANSWERED_UNLISTED, FIXED_ANSWER, REQUESTS, listed, method_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, NoReturn

    from resource_extend.plugin import Plugin
    from resource_extend.settings import Settings

FAILURE = 128
_CHUNK = 1 << 16  # what a pipe holds


def main(plugin: "type[Plugin]") -> "NoReturn":
    """Serve one call of core with a plugin class and end the process."""
    started = time.monotonic()
    error_to = None if sys.stderr is None else 2
    try:
        # Python makes a stream None when its descriptor is closed. The number may be reused by then, so it must not be
        # read or written. What anything else prints goes nowhere: both streams belong to the answer.
        nowhere = posix.open("/dev/null", posix.O_WRONLY | posix.O_CLOEXEC)
        answer_to = None if sys.stdout is None else _set_aside(1, nowhere)
        error_to = None if sys.stderr is None else _set_aside(2, nowhere)
        posix.close(nowhere)
        if answer_to is None:
            raise PluginError("stdout is closed: the answer has no place to go")
        _write(answer_to, respond(plugin, sys.argv[1:], posix.environ, read_stdin, started))
    except BaseException as error:
        _fail(error_to, error)
    posix._exit(0)


def respond(
    plugin: "type[Plugin]",
    arguments: list[str],
    environ: "Mapping[bytes, bytes]",
    read_request: "Callable[[], bytes]",
    started: float,
) -> bytes:
    """Answer one call: what to write to stdout.

    Args:
        plugin: the plugin class.
        arguments: the command line without the program.
        environ: the environment, as bytes.
        read_request: reads stdin to its end; raises OSError.
        started: `time.monotonic()` seconds at which the call began; the time limit counts from there.

    Raises:
        PluginError: the call failed; the text is the line for stderr once its control characters are escaped.
    """
    config, verb = _parse(arguments, plugin)
    if verb not in REQUESTS:
        return _about(plugin, verb)
    try:
        from resource_extend.settings import load

        settings = load(config, environ, plugin.name)
    except PluginError:
        # Whoever writes the request must not meet a closed pipe, whatever else is wrong.
        _drain(read_request)
        raise
    return _serve(plugin, verb, settings, read_request, started)


def _about(plugin: "type[Plugin]", verb: str) -> bytes:
    """Answer what needs no request."""
    from resource_extend.codec import encode

    if verb in ("name", "verbs"):
        return encode(plugin.name if verb == "name" else listed(plugin))
    from resource_extend.about import help_text, version_text

    return help_text(plugin) if verb == "--help" else version_text()


def _serve(
    plugin: "type[Plugin]", verb: str, settings: "Settings", read_request: "Callable[[], bytes]", started: float
) -> bytes:
    """Decode the request, call the plugin, encode the answer."""
    from resource_extend import wire
    from resource_extend.codec import encode

    try:
        data = read_request()
    except OSError as error:
        raise InputError(f"decode plugin input: read stdin: {_reason(error)}") from None
    method = getattr(plugin, method_name(verb), None)
    if method is None:
        return _answer_unlisted(plugin, verb, data)
    if verb == "get-metrics":
        arguments = {"nodes": wire.decode_nodes_of_pods(data)}
    else:
        arguments = wire.decode_request(data, REQUESTS[verb], plugin)
    store: Any = None
    if verb not in FIXED_ANSWER:
        from resource_extend.store import open_store

        store = open_store(settings, plugin.name, started + min(settings.call_timeout * 2 / 3, 20.0))
    answer = method(plugin(store, settings), **arguments)
    return b"{}" if verb in ANSWER_NOTHING else encode(answer)


def _answer_unlisted(plugin: "type[Plugin]", verb: str, data: bytes) -> bytes:
    """Answer ANSWERED_UNLISTED, the one verb that comes without a method: nothing to remap, on whichever node."""
    from resource_extend.wire import decode_request

    decode_request(data, [row for row in REQUESTS[verb] if row[0] != "nodename"], plugin)
    return b'{"engine_params_map":{}}'


def _parse(arguments: list[str], plugin: "type[Plugin]") -> tuple[str | None, str]:
    """Return the configuration path given, if any, and the verb or the option that stands for one."""
    config, verb = None, ""
    if len(arguments) == 1:
        verb = arguments[0]
    elif len(arguments) == 3 and arguments[0] == "--config":
        _, config, verb = arguments
    if config != "" and verb in REQUESTS and hasattr(plugin, method_name(verb)):
        return config, verb
    return _parse_fully(arguments, plugin)


def _parse_fully(arguments: list[str], plugin: "type[Plugin]") -> tuple[str | None, str]:
    config = None
    rest = list(arguments)
    while rest:
        argument = rest.pop(0)
        if argument == "--config":
            if not rest:
                raise UsageError("--config needs a path")
            config = rest.pop(0)
        elif argument.startswith("--config="):
            config = argument[len("--config=") :]
        else:
            break
        if not config:
            raise UsageError("--config needs a path")
    else:
        return config, "--help"
    if argument in ("--help", "-h"):
        return config, "--help"
    if argument in ("--version", "-v"):
        return config, "--version"
    if argument.startswith("-"):
        raise UsageError(f"unknown option {argument}, the options are: --config PATH, --help, --version")
    implemented = argument in REQUESTS and hasattr(plugin, method_name(argument))
    if not implemented and argument not in ("name", "verbs", ANSWERED_UNLISTED):
        verbs = " ".join(["name", "verbs", *listed(plugin)])
        raise UsageError(f"unknown verb {argument}, the verbs are: {verbs}")
    if rest:
        raise UsageError(f"unexpected argument {rest[0]} after the verb {argument}")
    return config, argument


def read_stdin() -> bytes:
    """Read descriptor 0 to its end."""
    if sys.stdin is None:
        return b""
    chunks: list[bytes] = []
    while True:
        try:
            chunk = posix.read(0, _CHUNK)
        except BlockingIOError:  # whoever made the pipe left it so
            posix.set_blocking(0, True)
            continue
        if not chunk:
            return b"".join(chunks)
        chunks.append(chunk)


def _drain(read_request: "Callable[[], bytes]") -> None:
    try:
        read_request()
    except OSError:
        pass


def _set_aside(descriptor: int, nowhere: int) -> int:
    """Move a stream to another descriptor and put another one in its place."""
    moved = posix.dup(descriptor)
    posix.dup2(nowhere, descriptor)
    return moved


def _write(descriptor: int, data: "bytes | memoryview") -> None:
    """Write everything.

    Raises:
        PluginError: it cannot be written.
    """
    rest = memoryview(data)
    try:
        while rest:
            rest = rest[posix.write(descriptor, rest) :]
    except BlockingIOError:
        posix.set_blocking(descriptor, True)
        _write(descriptor, rest)
    except OSError as error:
        raise PluginError(f"write stdout: {_reason(error)}") from None


def _fail(descriptor: int | None, error: BaseException) -> "NoReturn":
    """Write one line, whatever the text holds, and end."""
    text = str(error)
    if isinstance(error, KeyboardInterrupt):
        text = "interrupted"
    elif not isinstance(error, PluginError):  # a bug is a failure like any other
        _trace(error)
        text = f"internal error: {type(error).__name__}: {error}"
    line = "".join(character if character.isprintable() else _escaped(character) for character in text)
    if descriptor is not None:
        try:
            _write(descriptor, line.encode("utf-8", "backslashreplace") + b"\n")
        except PluginError:
            pass
    posix._exit(FAILURE)


def _escaped(character: str) -> str:
    """Escape what would break the line or hide in it; spaces and letters of all scripts stay."""
    if ord(character) < 32 or 0x7F <= ord(character) < 0xA0 or character in "\u2028\u2029":
        return character.encode("unicode_escape").decode()
    return character


def _reason(error: OSError) -> str:
    return (error.strerror or str(error)).lower()


def _trace(error: BaseException) -> None:
    """Append the traceback of a bug to the file that RESOURCE_EXTEND_DEBUG names, if any (protocol 8)."""
    path = posix.environ.get(b"RESOURCE_EXTEND_DEBUG")
    if not path:
        return
    import traceback

    try:
        descriptor = posix.open(path, posix.O_WRONLY | posix.O_CREAT | posix.O_APPEND | posix.O_CLOEXEC, 0o600)
        _write(descriptor, "".join(traceback.format_exception(error)).encode("utf-8", "backslashreplace"))
        posix.close(descriptor)
    except (OSError, PluginError):
        pass
