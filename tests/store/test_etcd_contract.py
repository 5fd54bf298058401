"""The etcd store keeps the contract of all stores, on a real etcd."""

import functools
from collections.abc import Callable

import pytest

from resource_extend.store import open_store
from store.contract import StoreContract, StoreFactory
from support.etcd import Etcd


class TestEtcdStore(StoreContract):
    """The contract on etcd."""

    @pytest.fixture
    def store_factory(self, etcd: Etcd) -> StoreFactory:
        """Return stores under a prefix of their own."""
        return functools.partial(open_store, etcd.settings(prefix="/contract"))

    @pytest.fixture
    def revision_of(self, etcd: Etcd) -> Callable[[str], int]:
        """Return what asks etcdctl for a key's mod revision."""

        def revision(key: str) -> int:
            record = etcd.record(key)
            return record[0] if record else 0

        return revision
