"""What the measured calls meet: plugin files, stores full of nodes, a folder of its own for each way of calling."""

import contextlib
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path

import trustme

import pyz
from resource_extend.pack import packer
from resource_extend.settings import Settings, load
from resource_extend.store import open_store
from support.calls import source_files
from support.certificates import Certificates
from support.etcd import Etcd, running
from support.etcd_users import add_users, enable_login

ROOT = Path(__file__).parents[2]
KINDS = ("gpu", "storage")
NODES = [f"node-{number:04}" for number in range(1000)]
RECORDS = {
    "gpu": b'{"capacity":{"prod_count_map":{"nvidia-3090":8,"nvidia-a100":4}},"usage":{"prod_count_map":{}}}',
    "storage": (
        b'{"capacity":{"disks":[{"device":"/dev/vda","mounts":["/data0","/data1"],"read_IOPS":1000,"read_bps":1073741824'
        b',"write_IOPS":1000,"write_bps":1073741824},{"device":"/dev/vdb","mounts":["/data2","/data3"],"read_IOPS":500,'
        b'"read_bps":536870912,"write_IOPS":500,"write_bps":536870912}],"storage":1099511627776,"volumes":{"/data0":'
        b'107374182400,"/data1":107374182400,"/data2":53687091200,"/data3":64424509440}},"usage":{"disks":[],"storage":0'
        b',"volumes":{"/data0":0,"/data1":0,"/data2":0,"/data3":0}}}'
    ),
}


class Place:
    """A plugin folder, which core makes the working directory, and the home folder of whoever calls."""

    def __init__(self, folder: Path, configuration: str = "") -> None:
        self.folder = folder
        self.home = folder / "home"
        self.home.mkdir(parents=True, mode=0o700)
        for kind in KINDS:
            (folder / f"{kind}.yaml").write_text(configuration, encoding="utf-8")

    @property
    def environment(self) -> Mapping[str, str]:
        """The whole environment of a call."""
        return {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "HOME": str(self.home)}

    def settings(self, kind: str) -> Settings:
        """Return what a plugin reads here."""
        return load(str(self.folder / f"{kind}.yaml"), {}, kind)

    def put(self, kind: str, nodes: list[str]) -> None:
        """Give nodes their first record, whatever they have."""
        store = open_store(self.settings(kind), kind, time.monotonic() + 600)
        for node in nodes:
            store.update(node, lambda _: RECORDS[kind])


class Surroundings:
    """Everything the cases need, made when first asked for. Leave the `with` block and it is gone."""

    def __init__(self, plugins: Path) -> None:
        self._plugins = plugins
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> "Surroundings":
        self.folder = Path(self._stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-")))
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def plugin(self, kind: str) -> Path:
        """Return the file of a plugin."""
        return self._plugins / f"resource-{kind}.pyz"

    @property
    def interpreter(self) -> str:
        """The interpreter that the plugin files name."""
        return interpreter_of(self.plugin("gpu"))

    def place(self, name: str, like: Place | None = None) -> Place:
        """Return a new place, with the configuration of another."""
        return Place(self.folder / name, (like.folder / "gpu.yaml").read_text(encoding="utf-8") if like else "")

    @cached_property
    def nowhere(self) -> Place:
        """A place without a store."""
        return self.place("nowhere")

    @cached_property
    def etcd(self) -> Place:
        """A place at a plain etcd."""
        return self._at(self._stack.enter_context(running()), "etcd")

    @cached_property
    def tls(self) -> Place:
        """A place at an etcd that wants client certificates, with keys on elliptic curves."""
        return self._tls("tls-ec", trustme.KeyType.ECDSA)

    @cached_property
    def tls_rsa(self) -> Place:
        """A place at an etcd that wants client certificates, with RSA keys of 2048 bits."""
        return self._tls("tls-rsa", trustme.KeyType.RSA)

    @cached_property
    def login(self) -> Place:
        """A place at an etcd that wants user and password."""
        etcd = self._stack.enter_context(running())
        add_users(etcd)
        # Theirs has a password that needs the whole of YAML.
        etcd.control("user", "add", "bench:bench-password")
        etcd.control("user", "grant-role", "bench", "gpu")
        enable_login(etcd)
        return self._at(etcd, "login", ("gpu",), "  auth:\n    username: bench\n    password: bench-password\n")

    @cached_property
    def sqlite(self) -> Place:
        """A place with a SQLite file."""
        database = self.folder / "nodes.db"
        place = Place(self.folder / "sqlite", f"sqlite:\n  path: {database}\n")
        for kind in KINDS:
            place.put(kind, NODES[:1])
        # The rest in one transaction: a synced one each would take a minute on many disks.
        with contextlib.closing(sqlite3.connect(database)) as connection, connection:
            copy = "INSERT INTO record SELECT kind, ?, value, revision FROM record WHERE node = ?"
            connection.executemany(copy, [(node, NODES[0]) for node in NODES[1:]])
        return place

    @cached_property
    def plain(self) -> Path:
        """The gpu plugin as shiv alone makes it: the same code, the same requirements, the same interpreter."""
        name = "resource-gpu.pyz"
        file = pyz.plugin_file(name, pyz.read_recipes()["plugin"][name])
        site_packages = self.folder / "site-packages"
        site_packages.mkdir()
        packer.stage(file, {}, "unknown", pyz.CACHE / "wheels", site_packages)
        target = self.folder / "plain.pyz"
        command = [sys.executable, "-W", "ignore", "-m", "shiv", "--entry-point", "resource_extend._main:run"]
        command += ["--python", self.interpreter, "--site-packages", str(site_packages), "--output-file", str(target)]
        subprocess.run(command, check=True, capture_output=True)
        return target

    def _tls(self, name: str, key_type: trustme.KeyType) -> Place:
        files = Certificates(self.folder / f"{name}-keys", key_type)
        etcd = self._stack.enter_context(running(["--client-cert-auth", f"--trusted-ca-file={files.ca}"], tls=files))
        return self._at(etcd, name, ("gpu",), f"  ca: {files.ca}\n  cert: {files.root_cert}\n  key: {files.root_key}\n")

    def _at(self, etcd: Etcd, name: str, kinds: tuple[str, ...] = KINDS, more: str = "") -> Place:
        place = Place(self.folder / name, f"etcd:\n  machines:\n    - {etcd.url}\n  prefix: /eru\n{more}")
        for kind in kinds:
            place.put(kind, NODES)
        return place


def interpreter_of(plugin: Path) -> str:
    """Return the interpreter that a plugin file's first line names."""
    with plugin.open("rb") as file:
        return file.readline().decode().removeprefix("#!").split()[0]


def build_if_stale(plugins: Path) -> None:
    """Build both plugins again if they are missing or older than what they are built from."""
    built = [plugins / f"resource-{kind}.pyz" for kind in KINDS]
    newest = max(source.stat().st_mtime for source in source_files())
    if not all(file.exists() and file.stat().st_mtime > newest for file in built):
        print("Building the plugins, for their sources have changed", flush=True)
        subprocess.run([ROOT / "scripts/build"], check=True, stdout=subprocess.DEVNULL)
