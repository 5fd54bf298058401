"""The cases of `scripts/bench exec`, in the order of its table, each with its goal."""

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.harness import Case, Execution
from benchmarks.summary import BARE
from benchmarks.surroundings import NODES, Place, Surroundings
from support.calls import call_here, plugin_class

# Nodes that the cases use: a whole deploy changes the first ten, the others leave those alone.
DEPLOYED, ASKED, CHANGED = NODES[:10], NODES[100], NODES[200]
REQUESTS: dict[str, dict[str, Any]] = {
    "gpu": {"prod_count_map": {"nvidia-3090": 1}},
    "storage": {"storage": "1G", "volumes": ["AUTO:/data:rw:10G", "AUTO:/logs:rwm:20G"]},
}
"""What one workload asks for."""


class Caller:
    """Makes executions of plugins, whose expected answers come from the same code in this process."""

    def __init__(self, surroundings: Surroundings) -> None:
        self._surroundings = surroundings
        self._stdin = surroundings.folder / "stdin"
        self._stdin.mkdir()

    def file(self, content: bytes) -> Path:
        """Return a file that holds a request."""
        path = self._stdin / f"{len(list(self._stdin.iterdir()))}.json"
        path.write_bytes(content)
        return path

    def bare(self, code: str = "pass") -> Execution:
        """Return an execution of the interpreter alone."""
        place = self._surroundings.nowhere
        arguments = (self._surroundings.interpreter, "-I", "-S", "-c", code)
        return Execution(arguments, place.folder, place.environment, self.file(b""), b"")

    def call(
        self, kind: str, place: Place, verb: str, request: "dict[str, Any] | None" = None, plugin: Path | None = None
    ) -> Execution:
        """Return an execution of a plugin; by that, what it changes has been changed once."""
        content = json.dumps(request or {}, separators=(",", ":")).encode()
        configuration = str(place.folder / f"{kind}.yaml")
        here = call_here(plugin_class(kind), ["--config", configuration, verb], content)
        if here.status:
            raise RuntimeError(f"{kind} {verb}: {here.stderr.decode(errors='replace')}")
        arguments = (str(plugin or self._surroundings.plugin(kind)), verb)
        return Execution(arguments, place.folder, place.environment, self.file(content), here.stdout)

    def deploy(
        self, kind: str, place: Place, node: str = ASKED, count: int = 3, plugin: Path | None = None
    ) -> Execution:
        """Return a calculate-deploy."""
        request = {"nodename": node, "deploy_count": count, "workload_resource_request": REQUESTS[kind]}
        return self.call(kind, place, "calculate-deploy", request, plugin)

    def use(self, kind: str, place: Place, node: str, deploy: Execution) -> Execution:
        """Return the set-node-resource-usage that follows a calculate-deploy."""
        workloads = json.loads(deploy.expected)["workloads_resource"]
        request = {"nodename": node, "resource": None, "resource_request": None, "workloads_resource": workloads}
        return self.call(kind, place, "set-node-resource-usage", {**request, "delta": True, "incr": True})


def no_store(caller: Caller, here: Surroundings, verb: str) -> Case:
    """Make the case of a verb that asks no store."""
    return Case("", [caller.call("gpu", here.etcd, verb)])


def deploy(caller: Caller, place: Place, kind: str) -> Case:
    """Make the case of a calculate-deploy."""
    return Case("", [caller.deploy(kind, place)])


def usage(caller: Caller, place: Place, kind: str) -> Case:
    """Make the case of a set-node-resource-usage, on a node that has nothing in use."""
    execution = caller.use(kind, place, CHANGED, caller.deploy(kind, place, CHANGED, 1))
    return Case("", [execution], partial(place.put, kind, [CHANGED]))


def whole_deploy(caller: Caller, place: Place, kind: str) -> Case:
    """Make the case of a deploy of one workload onto each of ten nodes, as core makes its calls."""
    prepare = partial(place.put, kind, DEPLOYED)
    prepare()
    request = {"nodenames": DEPLOYED, "workload_resource": REQUESTS[kind]}
    executions = [caller.call(kind, place, "get-nodes-deploy-capacity", request)]
    for node in DEPLOYED:
        calculated = caller.deploy(kind, place, node, 1)
        executions += [calculated, caller.use(kind, place, node, calculated)]
    return Case("", executions, prepare)


def first_run(caller: Caller, here: Surroundings) -> Case:
    """Make the case of a calculate-deploy that finds no cache folder and leaves one."""
    place = here.place("first-run", here.etcd)
    return Case("", [caller.deploy("gpu", place)], partial(shutil.rmtree, place.home / ".shiv", ignore_errors=True))


def no_cache(caller: Caller, here: Surroundings) -> Case:
    """Make the case of a calculate-deploy whose home is no folder."""
    place = here.place("no-cache", here.etcd)
    place.home = Path("/dev/null")
    return Case("", [caller.deploy("gpu", place)])


def plain_shiv(caller: Caller, here: Surroundings) -> Case:
    """Make the case of a calculate-deploy by the file that shiv alone makes."""
    place = here.place("plain", here.etcd)
    return Case("", [caller.deploy("gpu", place, plugin=here.plain)])


Build = Callable[[Caller, Surroundings], Case]
CASES: "list[tuple[str, float | None, Build]]" = [
    (BARE, None, lambda caller, _: Case("", [caller.bare()])),
    ("bare, immediate exit", None, lambda caller, _: Case("", [caller.bare("import posix;posix._exit(0)")])),
    ("gpu name", 1.05, lambda caller, here: no_store(caller, here, "name")),
    ("gpu verbs", 1.05, lambda caller, here: no_store(caller, here, "verbs")),
    ("gpu get-metrics-description", 1.05, lambda caller, here: no_store(caller, here, "get-metrics-description")),
    ("gpu calculate-deploy, SQLite", 1.25, lambda caller, here: deploy(caller, here.sqlite, "gpu")),
    ("storage calculate-deploy, SQLite", 1.25, lambda caller, here: deploy(caller, here.sqlite, "storage")),
    ("gpu calculate-deploy, etcd", 1.20, lambda caller, here: deploy(caller, here.etcd, "gpu")),
    ("storage calculate-deploy, etcd", 1.30, lambda caller, here: deploy(caller, here.etcd, "storage")),
    ("gpu set-node-resource-usage, etcd", 1.28, lambda caller, here: usage(caller, here.etcd, "gpu")),
    ("storage set-node-resource-usage, etcd", 1.28, lambda caller, here: usage(caller, here.etcd, "storage")),
    ("gpu deploy onto 10 nodes, per call", None, lambda caller, here: whole_deploy(caller, here.etcd, "gpu")),
    ("storage deploy onto 10 nodes, per call", None, lambda caller, here: whole_deploy(caller, here.etcd, "storage")),
    ("gpu calculate-deploy, password", 1.25, lambda caller, here: deploy(caller, here.login, "gpu")),
    ("gpu calculate-deploy, TLS, EC keys", 2.4, lambda caller, here: deploy(caller, here.tls, "gpu")),
    ("gpu calculate-deploy, TLS, RSA keys", 2.5, lambda caller, here: deploy(caller, here.tls_rsa, "gpu")),
    ("gpu calculate-deploy, no cache folder", 1.4, no_cache),
    ("gpu calculate-deploy, first run", 1.7, first_run),
    ("gpu calculate-deploy, plain shiv file", None, plain_shiv),
]
"""Name, goal, and how it is made. A goal is the highest ratio to the bare interpreter's wall time."""


def cases(surroundings: Surroundings, wanted: "Callable[[str], bool]") -> "list[Case]":
    """Make the cases whose name is wanted, and the bare interpreter."""
    caller = Caller(surroundings)
    return [
        replace(build(caller, surroundings), name=name, goal=goal)
        for name, goal, build in CASES
        if name == BARE or wanted(name)
    ]
