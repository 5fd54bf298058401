"""The configuration file and the environment, parsed into one object (specification, protocol 6)."""

import posix

from resource_extend.errors import SettingsError
from resource_extend.yaml_subset import Unsure, parse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    # A mapping of the file, empty when it is not given; the file; the names of the mappings around, each with a dot.
    Section = tuple[dict[str, Any], str, str]


class Settings:
    """What a plugin call needs to know of its surroundings. Nothing changes it once it is read.

    Given is either `sqlite_path` or `machines`, the endpoints of an etcd, with all that it takes to use it, `prefix` to
    `password` (specification, protocol 6.2 and 6.4). `call_timeout` is in seconds, `max_deploy_count` in workloads.
    """

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
    settings = _etcd(_section(root, "etcd")) if document.get("sqlite") is None else _sqlite(root)
    if document.get("resource_plugin") is not None or document.get("scheduler") is not None:
        _set_limits(settings, root)
    return settings


def _etcd(etcd: "Section") -> Settings:
    machines, auth = _machines(etcd), _section(etcd, "auth")
    texts = _texts(etcd, "prefix", "lock_prefix", "ca", "cert", "key")
    settings = Settings(machines, **texts, **_texts(auth, "username", "password"))
    if not settings.prefix.strip() or not settings.lock_prefix.strip() or bool(settings.cert) != bool(settings.key):
        raise _unusable(settings)
    from resource_extend.store.endpoints import parse_endpoint

    for machine in machines:
        parse_endpoint(machine)
    return settings


def _machines(etcd: "Section") -> list[str]:
    values = etcd[0].get("machines")
    if not isinstance(values, list) or not values:
        raise _no_machines(etcd, values)
    machines: list[str] = []
    for value in values:
        text = value[0] if isinstance(value, tuple) else value
        if not isinstance(text, str):
            raise _wrong(etcd, f"machines[{len(machines)}]", "str", value)
        machines.append(text)
    return machines


def _no_machines(etcd: "Section", values: "Any") -> SettingsError:
    if values is None:
        return SettingsError("Machines is required, but blank (give etcd.machines or sqlite.path)")
    if isinstance(values, list):
        return SettingsError("config invalid: etcd.machines is empty")
    return _wrong(etcd, "machines", "array", values)


def _unusable(settings: Settings) -> SettingsError:
    """Return what is wrong with an etcd's settings."""
    for value, name in ((settings.prefix, "Prefix"), (settings.lock_prefix, "LockPrefix")):
        if not value.strip():
            return SettingsError(f"{name} is required, but blank")
    return SettingsError("config invalid: etcd.cert and etcd.key go together")


def _sqlite(root: "Section") -> Settings:
    """Return settings with the database's path; a relative one is relative to the configuration file."""
    document, path, _ = root
    sqlite, _ = _section(root, "sqlite"), _section(root, "etcd")
    if document.get("etcd") is not None:
        raise SettingsError("config invalid: etcd and sqlite exclude each other")
    database: str = _texts(sqlite, "path").get("path", "")
    if not database.strip():
        raise SettingsError("config invalid: sqlite.path is required, but blank")
    # Never a bare name: SQLite takes some of them (":memory:", "file:...") for something else than a file.
    folder = path.rpartition("/")[0] + "/" if "/" in path else "./"
    return Settings(sqlite_path=database if database.startswith("/") else folder + database)


def _set_limits(settings: Settings, root: "Section") -> None:
    """Take over the limits that a document gives."""
    settings.call_timeout = _duration(_section(root, "resource_plugin"), "call_timeout", settings.call_timeout)
    settings.max_deploy_count = _integer(_section(root, "scheduler"), "max_deploy_count", settings.max_deploy_count)
    if settings.max_deploy_count < 1:
        raise SettingsError("config invalid: scheduler.max_deploy_count must be at least 1")


# What a section says under a key; a wrong type is an error that tells where it stands.


def _section(section: "Section", key: str) -> "Section":
    values, file, prefix = section
    value = values.get(key)
    if value is None:
        value = {}
    elif not isinstance(value, dict):
        raise _wrong(section, key, "object", value)
    return value, file, f"{prefix}{key}."


def _texts(section: "Section", *keys: str) -> "dict[str, Any]":
    """Return those of some texts that are given."""
    texts = {}
    for key in keys:
        value = section[0].get(key)
        if value is not None:
            text = value[0] if isinstance(value, tuple) else value
            if not isinstance(text, str):
                raise _wrong(section, key, "str", value)
            if "\0" in text:
                _allow_null_character(section, key)
            texts[key] = text
    return texts


def _allow_null_character(section: "Section", key: str) -> None:
    if key in ("ca", "cert", "key", "path"):  # the system takes it for the path's end
        raise SettingsError(f"config invalid: {section[2]}{key} holds a null character")


def _integer(section: "Section", key: str, default: int) -> int:
    from resource_extend.codec import INT64_MAX, INT64_MIN

    value = section[0].get(key)
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
    value = section[0].get(key)
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
    units = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}
    total, rest = 0.0, text
    while rest:
        number = rest[: len(rest) - len(rest.lstrip("0123456789."))]
        rest = rest[len(number) :]
        unit = rest[: len(rest) - len(rest.lstrip("hmsuµn"))]
        rest = rest[len(unit) :]
        if unit not in units or number.count(".") > 1 or not number.strip("."):
            return None
        total += float(number) * units[unit]
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
            data = b""
            while chunk := posix.read(descriptor, 1 << 16):
                data += chunk
        finally:
            posix.close(descriptor)
    except (OSError, ValueError) as error:  # ValueError: a null byte in the path
        raise _unreadable(path, error) from None
    return data


def _unreadable(path: str, error: Exception) -> SettingsError:
    reason = error.strerror.lower() if isinstance(error, OSError) and error.strerror else str(error)
    return SettingsError(f"open {path}: {reason}")


def _document(path: str, data: bytes) -> "dict[str, Any]":
    """Parse the bytes of the file; an empty document is an empty mapping."""
    try:
        document = parse(data.decode())
    except (Unsure, UnicodeDecodeError, RecursionError):
        document = _document_in_full(path, data)
    return document if isinstance(document, dict) else _without_mapping(path, data, document)


def _document_in_full(path: str, data: bytes) -> "Any":
    """Parse what the fast reader does not."""
    from resource_extend.yaml_full import parse_fully

    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise SettingsError(f"{path}: invalid UTF-8 at byte {error.start}") from None
    return parse_fully(path, text)


def _without_mapping(path: str, data: bytes, document: "Any") -> "dict[str, Any]":
    """Return what a document of nothing is; anything else is an error."""
    if document is None:
        return {}
    lines = enumerate(data.decode().split("\n"), 1)
    line = next((number for number, line in lines if line.strip() not in ("", "---") and line[0] not in "#%"), 1)
    raise SettingsError(f"{path}: expected object, got {_type_name(document)} at line {line}")
