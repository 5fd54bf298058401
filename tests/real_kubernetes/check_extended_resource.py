"""The extended-resource tool against a real kube-apiserver and kube-scheduler: the whole story, one scene a function.

Every scene has nodes of its own, calls the program as a process, and asserts on what the API server holds then.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import yaml

from kubernetes.extended_resource.server_facts import FACTS, check
from real_kubernetes.control_plane import ControlPlane, wait_until
from real_kubernetes.program import NAME, PROGRAM, read_line, run, say, succeed
from real_kubernetes.rights import rights

MARK = "resource-extend/extended-resources"


def facts_of_the_server(plane: ControlPlane) -> None:
    """Every fact of the table that the fake server is checked against holds on the real one."""
    for number, fact in enumerate(FACTS):
        check(fact, plane.client().request, f"fact-{number}")


def set_bind_pend_explain_unset(plane: ControlPlane) -> None:
    """w-one is bound after `set`, w-two is Pending and explained in the scheduler's words, `unset` ends it."""
    plane.make_node("n1")
    succeed(plane, "set", f"{NAME}=2", "--node", "n1", "--allocatable", "--wait")
    assert ("2", "2") == plane.shows("n1", NAME)

    plane.make_pod("w-one", {NAME: "1"})
    assert "n1" == plane.node_of("w-one")
    plane.make_pod("w-two", {NAME: "2"})
    said = plane.unschedulable("w-two")
    assert f"Insufficient {NAME}" in said
    assert "Pending" == plane.pod("w-two")["status"]["phase"]

    explained = succeed(plane, "explain", "w-two", "-o", "json").document
    assert said.startswith(explained["summary"]), (said, explained["summary"])
    assert said == explained["schedulerEvent"]
    assert [{"pod": "default/w-one", "count": 1}] == explained["nodes"][0]["holders"][NAME]
    assert "wants 2, free 1 = allocatable 2 - requested 1" in succeed(plane, "explain", "w-two").out

    refused = run(plane, "unset", NAME, "--node", "n1")
    assert 1 == refused.code
    assert "default/w-one 1" in refused.out
    lowered = run(plane, "set", f"{NAME}=0", "--node", "n1")
    assert 1 == lowered.code

    succeed(plane, "set", f"{NAME}=3", "--node", "n1", "--allocatable")
    assert "n1" == plane.node_of("w-two")
    rows = succeed(plane, "list", "-o", "json").document["resources"]
    assert [("n1", 3, 3, 3, 0, "tool")] == [
        (row["node"], row["capacity"], row["allocatable"], row["requested"], row["free"], row["owner"]) for row in rows
    ]
    plane.delete_pod("w-one")
    plane.delete_pod("w-two")
    began = time.monotonic()
    succeed(plane, "unset", NAME, "--node", "n1")
    assert time.monotonic() - began > 15
    assert (None, None) == plane.shows("n1", NAME)
    assert MARK not in plane.client().get("/api/v1/nodes/n1")["metadata"].get("annotations", {})


def explain_other_reasons(plane: ControlPlane) -> None:
    """For nodes that fail for other reasons the tool's sentence is the beginning of the scheduler's."""
    plane.make_node("n1", labels={"pool": "a"})
    plane.make_node("n2", spec={"unschedulable": True})
    plane.make_node("n3", spec={"taints": [{"key": "k", "value": "v", "effect": "NoSchedule"}]})
    plane.make_node("n4", spec={"taints": [{"key": "soft", "effect": "PreferNoSchedule"}]})
    succeed(plane, "set", f"{NAME}=1", "--node", "n1", "--node", "n3", "--allocatable")
    by_name = {"key": "metadata.name", "operator": "In", "values": ["n4"]}
    by_label = {"key": "pool", "operator": "NotIn", "values": ["a"]}
    pods: dict[str, dict[str, Any]] = {
        "plain": {},
        "selecting": {"nodeSelector": {"pool": "a"}},
        "tolerant": {"tolerations": [{"operator": "Exists"}]},
        "one-node": {"affinity": _affinity({"matchFields": [by_name]})},
        "not-a": {"affinity": _affinity({"matchExpressions": [by_label]})},
        "greedy": {},
    }
    for name, spec in pods.items():
        requests = {NAME: "2", "cpu": "5", "memory": "9Gi"} if name == "greedy" else {NAME: "2"}
        plane.make_pod(name, requests, **spec)
    for name in pods:
        said = plane.unschedulable(name)
        explained = succeed(plane, "explain", name, "-o", "json").document
        assert said.startswith(explained["summary"]), f"{name}: {said!r} / {explained['summary']!r}"


def _affinity(term: dict[str, Any]) -> dict[str, Any]:
    required = {"nodeSelectorTerms": [term]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}


def clean_stale_entries(plane: ControlPlane) -> None:
    """A 0/0 entry as a stopped device plugin leaves it goes; live ones and a zero set on purpose stay."""
    plane.make_node("n1")
    _by_hand(plane, "n1", {"a.b/stale": "0", "a.b/live": "2"})
    succeed(plane, "set", "a.b/zero=0", "--node", "n1", "--allocatable")

    done = succeed(plane, "clean", "--all", "-o", "json").document["results"]

    assert [("a.b/stale", "removed")] == [(item["resource"], item["outcome"]) for item in done]
    assert [(None, None), ("2", "2"), ("0", "0")] == [
        plane.shows("n1", f"a.b/{name}") for name in ("stale", "live", "zero")
    ]
    refused = run(plane, "unset", "a.b/live", "--node", "n1")
    assert "was not set by this tool" in refused.out


def _by_hand(plane: ControlPlane, node: str, counts: dict[str, str]) -> None:
    body = {"status": {"capacity": counts, "allocatable": counts}}
    plane.client().call("PATCH", f"/api/v1/nodes/{node}/status", body, "application/merge-patch+json")


def keep_after_the_node_was_made_anew(plane: ControlPlane) -> None:
    """The loop gives a node object that was deleted and made anew its resources back, and ends with SIGTERM."""
    plane.make_node("n1", labels={"pool": "a"})
    plane.make_node("n2")
    file = plane.folder / "keep.yaml"
    file.write_text(yaml.safe_dump({"rules": [{"selector": "pool=a", "resources": {NAME: 2}}]}))
    words = [*PROGRAM, "--kubeconfig", plane.kubeconfig(), "keep", "-f", str(file), "--allocatable", "-o", "json"]
    loop = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        lines = [read_line(loop)]
        assert ("2", "2") == plane.shows("n1", NAME)
        plane.delete_node("n1")
        plane.make_node("n1", labels={"pool": "a"})
        began = time.monotonic()
        wait_until(lambda: plane.shows("n1", NAME) == ("2", "2"), 20, "keep after the node was made anew")
        say(f"    back {time.monotonic() - began:.2f} s after the node was made anew")
        lines.append(read_line(loop))
    finally:
        loop.send_signal(signal.SIGTERM)
        out, err = loop.communicate(timeout=20)
    assert 0 == loop.returncode, err
    assert "" == out
    assert ["set", "set"] == [json.loads(line)["outcome"] for line in lines]
    assert (None, None) == plane.shows("n2", NAME)


def many_at_once(plane: ControlPlane) -> None:
    """Eight processes that set eight names on one node at once lose nothing: neither a count nor a mark."""
    plane.make_node("n1")
    names = [f"a.b/c{number}" for number in range(8)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda name: succeed(plane, "set", f"{name}=1000", "--node", "n1"), names))

    assert ["1k"] * 8 == [plane.shows("n1", name)[0] for name in names]
    marks = json.loads(plane.client().get("/api/v1/nodes/n1")["metadata"]["annotations"][MARK])
    assert dict.fromkeys(names, 1000) == marks


def many_nodes(plane: ControlPlane) -> None:
    """A selector over forty nodes, a dry run in the server, and a summary that names the node that failed."""
    for number in range(40):
        plane.make_node(f"m{number:02}", labels={"pool": "many"})

    dry = succeed(plane, "set", f"{NAME}=2", "-l", "pool=many", "--dry-run=server", "-o", "json").document
    assert "40 set" == dry["summary"]
    assert (None, None) == plane.shows("m00", NAME)
    began = time.monotonic()
    done = succeed(plane, "set", f"{NAME}=2", "-l", "pool=many", "-o", "json").document
    say(f"    forty nodes in {time.monotonic() - began:.2f} s")
    assert 40 == len(done["results"])
    failed = run(plane, "set", f"{NAME}=3", "--node", "m00", "--node", "m99")
    assert 1 == failed.code
    assert "1 set, 1 failed (m99)" in failed.err


def dra_conflict(plane: ControlPlane) -> None:
    """A DeviceClass that maps the name is warned of."""
    plane.make_node("n1")
    classes = "/apis/resource.k8s.io/v1/deviceclasses"
    plane.client().post(classes, {"metadata": {"name": "widgets"}, "spec": {"extendedResourceName": NAME}})
    try:
        assert f"DeviceClass widgets maps {NAME}" in succeed(plane, "set", f"{NAME}=1", "--node", "n1").err
    finally:
        plane.client().delete(f"{classes}/widgets")


def the_command_beside_ours(plane: ControlPlane) -> None:
    """What --dry-run=client prints for kubectl does the same when it is typed (where there is a kubectl)."""
    plane.make_node("n1")
    lines = succeed(plane, "set", f"{NAME}=2", "--node", "n1", "--dry-run=client").out.splitlines()
    (command,) = (line for line in lines if line.startswith("kubectl "))
    if not shutil.which("kubectl"):
        say("    no kubectl here: the command was not typed")
        return
    environment = {**os.environ, "KUBECONFIG": plane.kubeconfig()}
    subprocess.run(command, shell=True, check=True, env=environment, capture_output=True)
    assert "2" == plane.shows("n1", NAME)[0]
    assert "tool" == succeed(plane, "get", NAME, "--node", "n1", "-o", "json").document["resources"][0]["owner"]


SCENES = (
    facts_of_the_server,
    set_bind_pend_explain_unset,
    explain_other_reasons,
    clean_stale_entries,
    keep_after_the_node_was_made_anew,
    rights,
    many_at_once,
    many_nodes,
    dra_conflict,
    the_command_beside_ours,
)


def sweep(plane: ControlPlane) -> None:
    """No pods and nodes from one scene in the next."""
    admin = plane.client()
    for pod in admin.get("/api/v1/namespaces/default/pods")["items"]:
        plane.delete_pod(pod["metadata"]["name"])
    for node in admin.get("/api/v1/nodes")["items"]:
        plane.delete_node(node["metadata"]["name"])
    wait_until(lambda: not admin.get("/api/v1/nodes")["items"], 20, "an empty cluster")


def main() -> None:
    """Play every scene, or those named on the command line; exit status 1 when one fails."""
    wanted = sys.argv[1:]
    failed = 0
    with ControlPlane() as plane:
        say(f"kube-apiserver {plane.client().get('/version')['gitVersion']}")
        for scene in SCENES:
            if wanted and scene.__name__ not in wanted:
                continue
            try:
                scene(plane)
                say(f"ok      {scene.__doc__}")
            except Exception:
                failed += 1
                say(f"FAILED  {scene.__doc__}\n{traceback.format_exc()}")
            sweep(plane)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
