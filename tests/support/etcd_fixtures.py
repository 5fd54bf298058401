"""The etcds that tests share, started when the first test asks for one."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from support.etcd import Etcd, running

if TYPE_CHECKING:
    from support.certificates import Certificates


@pytest.fixture(scope="session")
def etcd() -> Iterator[Etcd]:
    """Return a plain etcd. Whoever writes uses a prefix or node names of their own."""
    with running() as server:
        yield server


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> "Certificates":
    """Return a certificate authority with a server's and clients' certificates."""
    from support.certificates import Certificates

    return Certificates(tmp_path_factory.mktemp("certificates"))
