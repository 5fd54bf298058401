"""The configuration file (specification, protocol 6)."""

from pathlib import Path

import pytest

from resource_extend.errors import SettingsError
from resource_extend.settings import Settings, load

ETCD = "etcd: {machines: [h:1]}\n"
COUNT = ETCD + "scheduler: {max_deploy_count: %s}"


def settings_of(folder: Path, text: str | bytes) -> Settings:
    """Load a configuration with some text in it, as `gpu.yaml`."""
    path = folder / "gpu.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return load(str(path), {}, "gpu")


def refusal(folder: Path, text: str | bytes) -> str:
    """Return why a configuration is refused, with the folder left out."""
    with pytest.raises(SettingsError) as caught:
        settings_of(folder, text)
    return str(caught.value).replace(f"{folder}/", "")


def test_defaults(tmp_path: Path) -> None:
    """Endpoints are all that is required."""
    expected = {
        "machines": ["h:1"],
        "prefix": "/eru",
        "lock_prefix": "__lock__/eru",
        **dict.fromkeys(("ca", "cert", "key", "username", "password", "sqlite_path"), ""),
        "call_timeout": 30.0,
        "max_deploy_count": 10000,
    }

    assert expected == vars(settings_of(tmp_path, ETCD))


def test_everything(tmp_path: Path) -> None:
    """Every key is read; unknown keys and sections are not looked at."""
    text = """
etcd:
  machines: [http://a:1, "https://b:2"]
  prefix: /p
  lock_prefix: l
  ca: ca.pem
  cert: cert.pem
  key: key.pem
  auth: {username: u, password: 0123, unknown: [1]}
  unknown: {a: b}
resource_plugin: {dir: /x, call_timeout: 1m30s}
scheduler: {maxshare: -1, max_deploy_count: 7}
unknown: [1, 2]
"""
    expected = {
        "machines": ["http://a:1", "https://b:2"],
        "prefix": "/p",
        "lock_prefix": "l",
        "ca": "ca.pem",
        "cert": "cert.pem",
        "key": "key.pem",
        "username": "u",
        "password": "0123",
        "sqlite_path": "",
        "call_timeout": 90.0,
        "max_deploy_count": 7,
    }

    assert expected == vars(settings_of(tmp_path, text))


@pytest.mark.parametrize("scalar", ["0123", "1e3", "true", "1.50", "0x1f", "2001-01-01", "+1", "1_0", "on"])
def test_texts_are_as_written(scalar: str, tmp_path: Path) -> None:
    """A text key takes a plain scalar as it is written, whatever YAML would make of it."""
    settings = settings_of(tmp_path, f"etcd:\n  machines: [h:1]\n  prefix: {scalar}\n  auth: {{password: {scalar}}}\n")

    assert (scalar, scalar) == (settings.prefix, settings.password)


@pytest.mark.parametrize("null", ["", "~", "null", "Null", "NULL"])
def test_null_keeps_the_default(null: str, tmp_path: Path) -> None:
    """An explicit null is the same as a missing key."""
    keys = ("prefix", "lock_prefix", "ca", "cert", "key", "auth")
    text = "etcd:\n  machines:\n  - h:1\n" + "".join(f"  {key}: {null}\n" for key in keys)
    text += f"sqlite: {null}\nresource_plugin:\n  call_timeout: {null}\nscheduler: {null}\n"

    assert vars(settings_of(tmp_path, ETCD)) == vars(settings_of(tmp_path, text))


def test_values_are_not_expanded(tmp_path: Path) -> None:
    """There is no expansion of environment variables."""
    settings = settings_of(tmp_path, "etcd: {machines: ['h:1'], prefix: '$HOME/${X}', auth: {password: '%HOME~'}}")

    assert ("$HOME/${X}", "%HOME~") == (settings.prefix, settings.password)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "Machines is required, but blank (give etcd.machines or sqlite.path)"),
        ("# nothing\n", "Machines is required, but blank (give etcd.machines or sqlite.path)"),
        ("~", "Machines is required, but blank (give etcd.machines or sqlite.path)"),
        ("bind: x", "Machines is required, but blank (give etcd.machines or sqlite.path)"),
        ("etcd:", "Machines is required, but blank (give etcd.machines or sqlite.path)"),
        ("etcd: {}", "Machines is required, but blank (give etcd.machines or sqlite.path)"),
        ("etcd: {machines: null}", "Machines is required, but blank (give etcd.machines or sqlite.path)"),
        ("etcd: {machines: []}", "config invalid: etcd.machines is empty"),
        ("etcd: {machines: [h:1], prefix: ''}", "Prefix is required, but blank"),
        ("etcd: {machines: [h:1], prefix: ' '}", "Prefix is required, but blank"),
        ("etcd: {machines: [h:1], lock_prefix: ''}", "LockPrefix is required, but blank"),
        ("etcd: {machines: [h:1], cert: c}", "config invalid: etcd.cert and etcd.key go together"),
        ("etcd: {machines: [h:1], key: c}", "config invalid: etcd.cert and etcd.key go together"),
        ("etcd: {machines: [h]}", "config invalid: etcd.machines: h has no port"),
        ("etcd: {machines: [h:1, 'http://u:s3cret@i']}", "config invalid: etcd.machines: http://i has no port"),
        ("etcd: {machines: h:1}", "gpu.yaml: expected array, got str at etcd.machines"),
        ("etcd: {machines: 5}", "gpu.yaml: expected array, got int at etcd.machines"),
        ("etcd:\n  machines:\n    a: b", "gpu.yaml: expected array, got object at etcd.machines"),
        ("etcd:\n  machines:\n  - h:1\n  -", "gpu.yaml: expected str, got null at etcd.machines[1]"),
        ("etcd: {machines: [h:1, [x]]}", "gpu.yaml: expected str, got array at etcd.machines[1]"),
        ("etcd: [a]", "gpu.yaml: expected object, got array at etcd"),
        ("etcd: x", "gpu.yaml: expected object, got str at etcd"),
        ("etcd: {machines: [h:1], prefix: [a]}", "gpu.yaml: expected str, got array at etcd.prefix"),
        ("etcd: {machines: [h:1], auth: root}", "gpu.yaml: expected object, got str at etcd.auth"),
        ("etcd: {machines: [h:1], auth: {username: {}}}", "gpu.yaml: expected str, got object at etcd.auth.username"),
        ("sqlite: x.db", "gpu.yaml: expected object, got str at sqlite"),
        ("sqlite: {}", "config invalid: sqlite.path is required, but blank"),
        ("sqlite: {path: }", "config invalid: sqlite.path is required, but blank"),
        ("sqlite: {path: ''}", "config invalid: sqlite.path is required, but blank"),
        ("sqlite: {path: [a]}", "gpu.yaml: expected str, got array at sqlite.path"),
        ("sqlite: {path: a}\netcd: {machines: [h:1]}", "config invalid: etcd and sqlite exclude each other"),
        ("sqlite: {path: a}\netcd: {}", "config invalid: etcd and sqlite exclude each other"),
        (COUNT % "0", "config invalid: scheduler.max_deploy_count must be at least 1"),
        (COUNT % "-1", "config invalid: scheduler.max_deploy_count must be at least 1"),
        (COUNT % "'5'", "gpu.yaml: expected int, got str at scheduler.max_deploy_count"),
        (COUNT % "1.5", "gpu.yaml: expected int, got float at scheduler.max_deploy_count"),
        (COUNT % "true", "gpu.yaml: expected int, got bool at scheduler.max_deploy_count"),
        (COUNT % "[1]", "gpu.yaml: expected int, got array at scheduler.max_deploy_count"),
        (
            COUNT % ("9" * 5000),
            "gpu.yaml: integer out of range at scheduler.max_deploy_count",
        ),
        (COUNT % "9223372036854775808", "gpu.yaml: integer out of range at scheduler.max_deploy_count"),
        (COUNT % "-9223372036854775808", "config invalid: scheduler.max_deploy_count must be at least 1"),
        ('sqlite: {path: "a\\0b"}', "config invalid: sqlite.path holds a null character"),
        ('etcd: {machines: [h:1], ca: "a\\0b"}', "config invalid: etcd.ca holds a null character"),
        ("etcd:\n\tmachines: [h:1]", "gpu.yaml: found character '\\t' that cannot start any token at line 2"),
        (
            "sqlite: {path: a}\n---\nsqlite: {path: b}",
            "gpu.yaml: expected a single document in the stream but found another document at line 2",
        ),
        ("- a\n- b", "gpu.yaml: expected object, got array at line 1"),
        ("# c\n\n--- \nx", "gpu.yaml: expected object, got str at line 4"),
        ("etcd: {machines: [h:1]}\netcd: {}", "gpu.yaml: mapping key 'etcd' is doubled at line 2"),
        ("x:\n  a: 1\n  a: 2\n" + ETCD, "gpu.yaml: mapping key 'a' is doubled at line 3"),
        ("etcd: [", "gpu.yaml: expected the node content, but found '<stream end>' at line 1"),
        (b"etcd: \xff", "gpu.yaml: invalid UTF-8 at byte 6"),
    ],
)  # fmt: skip
def test_errors(text: str | bytes, reason: str, tmp_path: Path) -> None:
    """What is wrong with a configuration is said in the specified words, and nothing of a password."""
    assert reason == refusal(tmp_path, text)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("30s", 30),
        ("1m30s", 90),
        ("1h1m1s", 3661),
        ("1.5h", 5400),
        (".5s", 0.5),
        ("1.s", 1),
        ("100ms", 0.1),
        ("5us", 5e-6),
        ("5µs", 5e-6),
        ("1000000ns", 1e-3),
        ("1s1s", 2),
        ("'30s'", 30),
        ("9" * 5000 + "h", float("inf")),
    ],
)
def test_durations(text: str, seconds: float, tmp_path: Path) -> None:
    """A time limit is read as core writes durations."""
    found = settings_of(tmp_path, f"{ETCD}resource_plugin: {{call_timeout: {text}}}").call_timeout

    assert seconds == pytest.approx(found)


@pytest.mark.parametrize(
    "text",
    ["30", "0s", "-1s", "s", "1 s", "1x", "30 seconds", ".s", "1..5s", "[30s]", "''", "true", "1e3s", "٣s", "1ss"],
)
def test_wrong_durations(text: str, tmp_path: Path) -> None:
    """What is no duration, or none that is longer than nothing, is an error with an example."""
    reason = refusal(tmp_path, f"{ETCD}resource_plugin: {{call_timeout: {text}}}")

    assert "gpu.yaml: expected a duration such as 30s or 1m30s at resource_plugin.call_timeout" == reason


def test_where_the_database_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A relative path is relative to the configuration file, and always that of a file."""

    def path_of(config: str, path: str) -> str:
        Path(config).write_text(f"sqlite: {{path: '{path}'}}")
        return load(config, {}, "gpu").sqlite_path

    (tmp_path / "a").mkdir()
    monkeypatch.chdir(tmp_path)
    assert "./x.db" == path_of("gpu.yaml", "x.db")
    assert "a/x.db" == path_of("a/gpu.yaml", "x.db")
    assert "a/../x.db" == path_of("a/gpu.yaml", "../x.db")
    assert f"{tmp_path}/x.db" == path_of(f"{tmp_path}/gpu.yaml", "x.db")
    assert "/x.db" == path_of("a/gpu.yaml", "/x.db")
    assert "./:memory:" == path_of("gpu.yaml", ":memory:")
    assert "./file:x?mode=ro" == path_of("gpu.yaml", "file:x?mode=ro")


def test_which_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The path given, else the environment's, else `<kind>.yaml` in the working directory; there is no falling back."""
    given, named, default = (tmp_path / name for name in ("given.yaml", "named.yaml", "storage.yaml"))
    for number, path in enumerate((given, named, default)):
        path.write_text(f"etcd: {{machines: [h:1], prefix: '{number}'}}")
    environ = {b"ERU_RESOURCE_CONFIG_PATH": bytes(named)}

    def prefix(path: str | None, environ: dict[bytes, bytes]) -> str:
        return load(path, environ, "storage").prefix

    monkeypatch.chdir(tmp_path)
    assert "0" == prefix(str(given), environ)
    assert "1" == prefix(None, environ)
    assert "2" == prefix(None, {})
    assert "2" == prefix(None, {b"ERU_RESOURCE_CONFIG_PATH": b""})
    for file, names in (("no.yaml", environ), (None, {b"ERU_RESOURCE_CONFIG_PATH": b"no.yaml"})):
        with pytest.raises(SettingsError, match=r"^open no\.yaml: no such file or directory$"):
            load(file, names, "storage")
    with pytest.raises(SettingsError, match=r"^open gpu\.yaml: no such file or directory$"):
        load(None, {}, "gpu")


def test_unreadable_files(tmp_path: Path) -> None:
    """A file that cannot be read is an error with its path and the system's reason."""
    (tmp_path / "loop").symlink_to("loop")
    for path, reason in (
        (tmp_path, "is a directory"),
        (tmp_path / "loop", "too many levels of symbolic links"),
        (tmp_path / ("x" * 300), "file name too long"),
    ):
        with pytest.raises(SettingsError) as caught:
            load(str(path), {}, "gpu")
        assert f"open {path}: {reason}" == str(caught.value)


def test_large_file(tmp_path: Path) -> None:
    """A file is read to its end, however long."""
    assert 7 == settings_of(tmp_path, ETCD + "# x\n" * 50_000 + "scheduler: {max_deploy_count: 7}\n").max_deploy_count
