"""The recorded scenarios on the built files: one exec a step, over a real etcd."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.etcd import Etcd
from support.etcd_client import EtcdClient
from support.scenarios import EtcdCluster, first_difference, scenarios


@pytest.mark.parametrize(
    "scenario",
    [scenario for kind in ("gpu", "storage") for scenario in scenarios(kind)],
    ids=lambda scenario: scenario["name"],
)
def test_scenario(scenario: dict[str, Any], plugin: Callable[[str], Path], etcd: Etcd, etcd_client: EtcdClient) -> None:
    """Every step answers, fails and stores what was recorded."""
    kind = scenario["kind"]
    cluster = EtcdCluster(plugin(kind), kind, etcd_client, etcd.url, scenario.get("max_deploy_count"))

    assert None is first_difference(scenario, cluster)
