"""Built files at the same moment, and killed in the middle (specification, protocol 7.2 and 10)."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from support.calls import call_program
from support.etcd import Etcd
from support.etcd_client import EtcdClient
from support.histories import History
from support.scenarios import EtcdCluster

PROCESSES = 8
INCREMENTS = 100

# What one of the processes does: so many calls, each as core makes it; prints what went wrong.
CALLER = """
import subprocess, sys
program, verb, request, times = sys.argv[1], sys.argv[2], sys.argv[3].encode(), int(sys.argv[4])
for _ in range(times):
    done = subprocess.run([program, verb], input=request, capture_output=True, cwd=program.rpartition("/")[0])
    if done.returncode or done.stderr:
        print(done)
"""


@pytest.fixture(params=["sqlite", "etcd"])
def store(request: pytest.FixtureRequest) -> str:
    """Return the name of each store in turn."""
    return str(request.param)


def configure(program: Path, kind: str, store: str, etcd: Etcd) -> Path:
    """Write the configuration beside the program; each test has records of its own."""
    text = f"etcd: {{machines: ['{etcd.url}'], prefix: '/{program.parent.parent.name}'}}"
    (program.parent / f"{kind}.yaml").write_text(text if store == "etcd" else "sqlite: {path: ../records.db}")
    return program


def answer(program: Path, verb: str, **request: Any) -> Any:
    """Return the answer of a call that succeeds."""
    outcome = call_program(program, [verb], json.dumps(request).encode())
    assert (0, b"") == (outcome.status, outcome.stderr), outcome.stderr
    return json.loads(outcome.stdout)


def together(program: Path, verb: str, times: int, requests: list[Any]) -> None:
    """Make each of the requests so many times, all at the same moment; every call must succeed."""
    callers = [
        subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", CALLER, program, verb, json.dumps(request), str(times)],
            stdout=subprocess.PIPE,
        )
        for request in requests
    ]
    assert [b""] * len(callers) == [caller.communicate()[0] for caller in callers]
    assert {0} == {caller.returncode for caller in callers}


def test_no_increment_is_lost(store: str, plugin: Callable[[str], Path], etcd: Etcd) -> None:
    """8 processes book one card a hundred times each: the usage is exactly 800, and all calls succeed."""
    program = configure(plugin("gpu"), "gpu", store, etcd)
    booking = {
        "nodename": "n",
        "workloads_resource": [{"prod_count_map": {"a": 1}}],
        "resource": None,
        "resource_request": None,
        "delta": True,
        "incr": True,
    }
    together(program, "set-node-resource-usage", INCREMENTS, [booking] * PROCESSES)

    usage = answer(program, "get-node-resource-info", nodename="n")["usage"]
    assert {"prod_count_map": {"a": PROCESSES * INCREMENTS}} == usage


def test_bookings_and_capacity_at_the_same_moment(store: str, plugin: Callable[[str], Path], etcd: Etcd) -> None:
    """Writers of the capacity and of the usage of one storage node do not overwrite each other."""
    program = configure(plugin("storage"), "storage", store, etcd)
    volumes = {"volumes": ["/data0:1T"], "storage": "10T"}
    capacity = answer(program, "add-node", nodename="n", resource=volumes)["capacity"]
    placed = answer(
        program,
        "calculate-deploy",
        nodename="n",
        deploy_count=1,
        workload_resource_request={"volumes": ["AUTO:/d:rw:1G"], "storage": "1G"},
    )
    flags = {"nodename": "n", "delta": True, "incr": True}
    book = {**flags, "workloads_resource": placed["workloads_resource"]}
    grow = {**flags, "resource_request": {"storage": "1G"}}
    callers = [
        subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", CALLER, program, verb, json.dumps(request), "20"], stdout=subprocess.PIPE
        )
        for verb, request in [("set-node-resource-usage", book), ("set-node-resource-capacity", grow)] * 3
    ]
    assert [b""] * len(callers) == [caller.communicate()[0] for caller in callers]

    workloads = placed["workloads_resource"] * 60
    info = answer(program, "get-node-resource-info", nodename="n", workloads_resource=workloads)
    assert [] == info["diffs"]
    assert capacity["storage"] + 60 * 2**30 == info["capacity"]["storage"]


def test_one_of_many_creates(store: str, plugin: Callable[[str], Path], etcd: Etcd) -> None:
    """Of many that add one node at the same moment exactly one does."""
    program = configure(plugin("gpu"), "gpu", store, etcd)
    callers = []
    for number in range(PROCESSES):
        caller = subprocess.Popen(
            [program, "add-node"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=program.parent,
        )
        callers.append((number, caller))
    outcomes = []
    for number, caller in callers:
        request = {"nodename": "n", "resource": {"prod_count_map": {"a": number + 1}}}
        assert caller.stdin
        caller.stdin.write(json.dumps(request).encode())
        caller.stdin.flush()
    for _, caller in callers:
        out, err = caller.communicate()
        outcomes.append((caller.returncode, out, err))

    made = [json.loads(out)["capacity"] for status, out, _ in outcomes if status == 0]
    assert [(128, b"", b"node already exists\n")] * (PROCESSES - 1) == [each for each in outcomes if each[0] != 0]
    assert made == [answer(program, "get-node-resource-info", nodename="n")["capacity"]]


def test_killed_calls(store: str, plugin: Callable[[str], Path], etcd: Etcd) -> None:
    """A call killed at any moment has happened whole or not at all, and the next ones go on at once."""
    program = configure(plugin("gpu"), "gpu", store, etcd)
    products = {f"product-{number:03}": 1 for number in range(200)}
    booking = {"nodename": "n", "resource_request": {"prod_count_map": products}, "delta": True, "incr": True}
    answer(program, "set-node-resource-usage", **booking)
    source = random.Random(1)
    done = 1
    for started in range(1, 41):
        call = subprocess.Popen(
            [program, "set-node-resource-usage"],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=program.parent,
        )
        assert call.stdin
        call.stdin.write(json.dumps(booking).encode())
        call.stdin.close()
        time.sleep(source.uniform(0, 0.03))
        os.kill(call.pid, signal.SIGKILL)
        call.wait()
        usage = answer(program, "get-node-resource-info", nodename="n")["usage"]["prod_count_map"]
        (count,) = set(usage.values())
        assert set(products) == set(usage)
        # What etcd has received from a killed call it may write a moment later.
        assert done <= count <= 1 + started
        done = count
    changed = answer(program, "set-node-resource-usage", **booking)
    (before,), (after,) = (set(changed[when]["prod_count_map"].values()) for when in ("before", "after"))
    assert before + 1 == after
    assert done <= before <= 1 + started


@pytest.mark.parametrize("kind", ["gpu", "storage"])
def test_histories(kind: str, plugin: Callable[[str], Path], etcd: Etcd, etcd_client: EtcdClient) -> None:
    """Random histories on the built file over a real etcd keep records whole and true."""
    cluster = EtcdCluster(plugin(kind), kind, etcd_client, etcd.url)

    run_state_machine_as_test(  # type: ignore[no-untyped-call]
        lambda: History(kind, cluster), settings=settings(max_examples=4, stateful_step_count=12)
    )
