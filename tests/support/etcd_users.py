"""Users and roles in a test's etcd, made with etcdctl."""

from support.etcd import Etcd

ROOT = "root"
ROOT_PASSWORD = "r00t-s3cret"
USER = "plugin"
PASSWORD = "s3cret%ü"


def add_users(etcd: Etcd) -> None:
    """Create root, and a user that may read and write the records of the kind gpu only."""
    etcd.control("user", "add", f"{ROOT}:{ROOT_PASSWORD}")
    etcd.control("user", "grant-role", ROOT, "root")
    etcd.control("role", "add", "gpu")
    etcd.control("role", "grant-permission", "gpu", "readwrite", "/eru/resource/gpu/", "--prefix=true")
    etcd.control("user", "add", f"{USER}:{PASSWORD}")
    etcd.control("user", "grant-role", USER, "gpu")


def enable_login(etcd: Etcd) -> None:
    """Let etcd ask for a login, from etcdctl too."""
    etcd.control("auth", "enable")
    etcd.login = [f"--user={ROOT}:{ROOT_PASSWORD}"]
