"""Random histories, in process over SQLite."""

from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from support.histories import History
from support.scenarios import SqliteCluster


@pytest.mark.parametrize("kind", ["gpu", "storage"])
def test_histories(kind: str, tmp_path: Path) -> None:
    """Whatever happens to a cluster, its records stay whole and true."""
    cluster = SqliteCluster(tmp_path, kind)

    run_state_machine_as_test(  # type: ignore[no-untyped-call]
        lambda: History(kind, cluster), settings=settings(max_examples=30, stateful_step_count=25)
    )
