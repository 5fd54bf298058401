"""The configuration file and the environment, parsed into one frozen struct (specification, protocol 6)."""

from msgspec import Struct


class EtcdSettings(Struct, frozen=True):
    """How to reach an etcd (specification, protocol 6.2 and 6.4)."""

    machines: list[str]
    prefix: str = "/eru"
    lock_prefix: str = "__lock__/eru"
    ca: str = ""
    cert: str = ""
    key: str = ""
    username: str = ""
    password: str = ""


class Settings(Struct, frozen=True):
    """What a plugin call needs to know of its surroundings.

    Exactly one of `etcd` and `sqlite_path` is set. `call_timeout` is in seconds, `max_deploy_count` in workloads.
    """

    etcd: EtcdSettings | None = None
    sqlite_path: str = ""
    call_timeout: float = 30.0
    max_deploy_count: int = 10000
