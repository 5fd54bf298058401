"""The configuration file and the environment, parsed into one object (specification, protocol 6)."""

import posix

from resource_extend.codec import INT64_MAX, INT64_MIN
from resource_extend.errors import SettingsError
from resource_extend.yaml_subset import Unsure, parse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    # A mapping of the file, None when it is not given; the file; the names of the mappings around, each with a dot.
    Section = tuple[dict[str, Any] | None, str, str]

# What a text key means in seconds, as core writes durations.
_UNITS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}


class Settings:
    """What a plugin call needs to know of its surroundings. Nothing changes it once it is made.

    Given is either `sqlite_path` or `machines`, the endpoints of an etcd, with all that it takes to use it, `prefix` to
    `password` (specification, protocol 6.2 and 6.4). `call_timeout` is in seconds, `max_deploy_count` in workloads.
    """

    __slots__ = (
        "ca", "call_timeout", "cert", "key", "lock_prefix", "machines", "max_deploy_count", "password", "prefix",
        "sqlite_path", "username",
    )  # fmt: skip

    def __init__(
        self,
        machines: "Sequence[str]" = (),
        prefix: str = "/eru",
        lock_prefix: str = "__lock__/eru",
        ca: str = "",
        cert: str = "",
        key: str = "",
        username: str = "",
        password: str = "",
        sqlite_path: str = "",
        call_timeout: float = 30.0,
        max_deploy_count: int = 10000,
    ):
        self.machines = machines
        self.prefix = prefix
        self.lock_prefix = lock_prefix
        self.ca = ca
        self.cert = cert
        self.key = key
        self.username = username
        self.password = password
        self.sqlite_path = sqlite_path
        self.call_timeout = call_timeout
        self.max_deploy_count = max_deploy_count


def load(path: str | None, environ: "Mapping[bytes, bytes]", kind: str) -> Settings:
    """Read the configuration of a plugin.

    Args:
        path: the file given on the command line, if any.
        environ: the environment, as bytes.
        kind: the plugin's kind, which names the file in the working directory.

    Raises:
        SettingsError: the file cannot be read or is wrong; the text names the file or the key.
    """
    if path is None:
        path = environ.get(b"ERU_RESOURCE_CONFIG_PATH", b"").decode("utf-8", "surrogateescape") or f"{kind}.yaml"
    return interpret(path, _document(path, _read(path)))


def interpret(path: str, document: "dict[str, Any]") -> Settings:
    """Check a parsed document, a mapping, and fill in the defaults. See `load`."""
    root = (document, path, "")
    sqlite, etcd = _section(root, "sqlite"), _section(root, "etcd")
    if sqlite[0] is None:
        settings = _etcd(etcd)
    elif etcd[0] is None:
        settings = Settings(sqlite_path=_sqlite_path(path, sqlite))
    else:
        raise SettingsError("config invalid: etcd and sqlite exclude each other")
    settings.call_timeout = _duration(_section(root, "resource_plugin"), "call_timeout", 30.0)
    settings.max_deploy_count = _integer(_section(root, "scheduler"), "max_deploy_count", 10000)
    if settings.max_deploy_count < 1:
        raise SettingsError("config invalid: scheduler.max_deploy_count must be at least 1")
    return settings


def _etcd(etcd: "Section") -> Settings:
    machines = _texts(etcd, "machines")
    if machines is None:
        raise SettingsError("Machines is required, but blank (give etcd.machines or sqlite.path)")
    if not machines:
        raise SettingsError("config invalid: etcd.machines is empty")
    auth = _section(etcd, "auth")
    settings = Settings(
        machines,
        _text(etcd, "prefix", "/eru"),
        _text(etcd, "lock_prefix", "__lock__/eru"),
        _path(etcd, "ca"),
        _path(etcd, "cert"),
        _path(etcd, "key"),
        _text(auth, "username", ""),
        _text(auth, "password", ""),
    )
    for value, name in ((settings.prefix, "Prefix"), (settings.lock_prefix, "LockPrefix")):
        if not value.strip():
            raise SettingsError(f"{name} is required, but blank")
    if bool(settings.cert) != bool(settings.key):
        raise SettingsError("config invalid: etcd.cert and etcd.key go together")
    from resource_extend.store.endpoints import parse_endpoint

    for machine in machines:
        parse_endpoint(machine)
    return settings


def _sqlite_path(path: str, sqlite: "Section") -> str:
    """Return the database's path; a relative one is relative to the configuration file."""
    database = _path(sqlite, "path")
    if not database.strip():
        raise SettingsError("config invalid: sqlite.path is required, but blank")
    # Never a bare name: SQLite takes some of them (":memory:", "file:...") for something else than a file.
    folder = path.rpartition("/")[0] + "/" if "/" in path else "./"
    return database if database.startswith("/") else folder + database


# What a section says under a key; a wrong type is an error that tells where it stands.


def _value(section: "Section", key: str) -> "Any":
    values, _, _ = section
    return None if values is None else values.get(key)


def _section(section: "Section", key: str) -> "Section":
    value = _value(section, key)
    if value is not None and not isinstance(value, dict):
        raise _wrong(section, key, "object", value)
    _, file, prefix = section
    return value, file, f"{prefix}{key}."


def _text(section: "Section", key: str, default: str) -> str:
    value = _value(section, key)
    if isinstance(value, str):
        return value
    if value is None:
        return default
    if not isinstance(value, tuple):
        raise _wrong(section, key, "str", value)
    return str(value[0])


def _path(section: "Section", key: str) -> str:
    value = _text(section, key, "")
    if "\0" in value:  # the system takes it for the path's end
        _, _, prefix = section
        raise SettingsError(f"config invalid: {prefix}{key} holds a null character")
    return value


def _texts(section: "Section", key: str) -> list[str] | None:
    value = _value(section, key)
    if value is None:
        return None
    if not isinstance(value, list):
        raise _wrong(section, key, "array", value)
    for index, item in enumerate(value):
        if not isinstance(item, (str, tuple)):
            raise _wrong(section, f"{key}[{index}]", "str", item)
    return [item if isinstance(item, str) else item[0] for item in value]


def _integer(section: "Section", key: str, default: int) -> int:
    value = _value(section, key)
    if value is None:
        return default
    if _type_name(value) != "int":
        raise _wrong(section, key, "int", value)
    # The length first: Python refuses to read thousands of digits.
    if len(value) > 20 or not INT64_MIN <= int(value) <= INT64_MAX:
        _, file, prefix = section
        raise SettingsError(f"{file}: integer out of range at {prefix}{key}")
    return int(value)


def _duration(section: "Section", key: str, default: float) -> float:
    value = _value(section, key)
    if value is None:
        return default
    text = value[0] if isinstance(value, tuple) else value
    seconds = _seconds(text) if isinstance(text, str) else None
    if seconds is None or seconds <= 0:
        _, file, prefix = section
        raise SettingsError(f"{file}: expected a duration such as 30s or 1m30s at {prefix}{key}")
    return seconds


def _wrong(section: "Section", key: str, expected: str, value: "Any") -> SettingsError:
    _, file, prefix = section
    return SettingsError(f"{file}: expected {expected}, got {_type_name(value)} at {prefix}{key}")


def _seconds(text: str) -> float | None:
    """Return the length of a duration as core writes it (`1m30s`, `1.5h`), None when it is none."""
    total, rest = 0.0, text
    while rest:
        number = rest[: len(rest) - len(rest.lstrip("0123456789."))]
        rest = rest[len(number) :]
        unit = rest[: len(rest) - len(rest.lstrip("hmsuµn"))]
        rest = rest[len(unit) :]
        if unit not in _UNITS or number.count(".") > 1 or not number.strip("."):
            return None
        total += float(number) * _UNITS[unit]
    return total if text else None


def _type_name(value: "Any") -> str:
    """Return what a YAML value is, in the words of JSON."""
    if isinstance(value, (dict, list)):
        return "object" if isinstance(value, dict) else "array"
    if value is None:
        return "null"
    if isinstance(value, tuple):
        return "str"
    digits = value[1:] if value[:1] in ("+", "-") else value
    if digits.isascii() and digits.isdigit():
        return "int"
    if digits.isascii() and digits.replace(".", "", 1).isdigit():
        return "float"
    return "bool" if value in ("true", "false", "True", "False", "TRUE", "FALSE") else "str"


def _read(path: str) -> bytes:
    try:
        descriptor = posix.open(path, posix.O_RDONLY | posix.O_CLOEXEC)
        try:
            chunks = []
            while chunk := posix.read(descriptor, 1 << 16):
                chunks.append(chunk)
        finally:
            posix.close(descriptor)
    except (OSError, ValueError) as error:  # ValueError: a null byte in the path
        reason = error.strerror.lower() if isinstance(error, OSError) and error.strerror else str(error)
        raise SettingsError(f"open {path}: {reason}") from None
    return b"".join(chunks)


def _document(path: str, data: bytes) -> "dict[str, Any]":
    """Parse the bytes of the file; an empty document is an empty mapping."""
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise SettingsError(f"{path}: invalid UTF-8 at byte {error.start}") from None
    try:
        document = parse(text)
    except Unsure:
        from resource_extend.yaml_full import parse_fully

        document = parse_fully(path, text)
    if document is None:
        return {}
    if not isinstance(document, dict):
        lines = enumerate(text.split("\n"), 1)
        line = next((number for number, line in lines if line.strip() not in ("", "---") and line[0] not in "#%"), 1)
        raise SettingsError(f"{path}: expected object, got {_type_name(document)} at line {line}")
    return document
