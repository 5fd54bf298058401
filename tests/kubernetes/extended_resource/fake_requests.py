"""The fake API server's answers: which route, who may, which objects. No HTTP here."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from kubernetes.extended_resource.fake_cluster import FakeCluster
from kubernetes.extended_resource.fake_objects import Object, StatusError
from resource_extend.errors import InputError
from resource_extend.kubernetes.extended_resource.selectors import parse_selector

Right = tuple[str, str, str]
"""(API group, resource, verb)"""

ROUTES = (
    ("nodes", "", re.compile(r"/api/v1/nodes(?:/(?P<name>[^/]+))?(?P<sub>/status)?")),
    ("pods", "", re.compile(r"/api/v1(?:/namespaces/(?P<namespace>[^/]+))?/pods(?:/(?P<name>[^/]+))?")),
    ("events", "", re.compile(r"/api/v1/namespaces/(?P<namespace>[^/]+)/events")),
    ("deviceclasses", "resource.k8s.io", re.compile(r"/apis/resource.k8s.io/v1/deviceclasses")),
)
VERBS = {"POST": "create", "PATCH": "patch", "DELETE": "delete"}
FIELDS: dict[str, Callable[[Object], Any]] = {
    "metadata.name": lambda item: item["metadata"]["name"],
    "spec.nodeName": lambda item: item["spec"].get("nodeName", ""),
    "involvedObject.kind": lambda item: item["involvedObject"].get("kind", ""),
    "involvedObject.name": lambda item: item["involvedObject"].get("name", ""),
}


@dataclass(frozen=True)
class Call:
    """One call, taken apart: what it is about and what it wants."""

    method: str
    kind: str
    group: str
    name: str
    namespace: str
    status: bool
    query: Mapping[str, str]

    @property
    def right(self) -> Right:
        """What a role has to allow."""
        verb = VERBS.get(self.method, "get" if self.name else "watch" if self.watches else "list")
        return self.group, self.kind + ("/status" if self.status else ""), verb

    @property
    def watches(self) -> bool:
        """The call is a watch."""
        return self.query.get("watch") == "true"


def parse_call(method: str, path: str, query: Mapping[str, str]) -> Call:
    """Find the route."""
    for kind, group, pattern in ROUTES:
        match = pattern.fullmatch(path)
        if match:
            found = {key: value or "" for key, value in match.groupdict().items()}
            return Call(
                method, kind, group, found.get("name", ""), found.get("namespace", ""), bool(found.get("sub")), query
            )
    raise StatusError(404, "NotFound", "the server could not find the requested resource")


def authorize(call: Call, user: str, rights: Mapping[str, set[Right]]) -> None:
    """Refuse what the user may not do, in the real server's words."""
    if user == "admin":
        return
    if user not in rights:
        raise StatusError(401, "Unauthorized", "Unauthorized")
    if call.right not in rights[user]:
        group, resource, verb = call.right
        about = f'{call.kind} "{call.name}"' if call.name else call.kind
        message = f'{about} is forbidden: User "{user}" cannot {verb} resource "{resource}" in API group "{group}"'
        raise StatusError(403, "Forbidden", message + " at the cluster scope")


def answer(cluster: FakeCluster, call: Call, body: Any, content_type: str) -> Object:
    """Do what the call wants."""
    key = f"{call.namespace}/{call.name}" if call.namespace else call.name
    if call.method == "POST":
        return cluster.create(call.kind, body)
    if call.method == "DELETE":
        return cluster.delete(call.kind, key)
    if call.method == "PATCH":
        dry_run = call.query.get("dryRun") == "All"
        return cluster.patch_node(call.name, content_type, body, status=call.status, dry_run=dry_run)
    return cluster.get(call.kind, key) if call.name else _listed(cluster, call)


def _listed(cluster: FakeCluster, call: Call) -> Object:
    with cluster.changed:
        items = [item for item in cluster.all(call.kind) if selected(item, call)]
        start, version = 0, cluster.version
        if "continue" in call.query:
            start, version = (int(part) for part in call.query["continue"].split("."))
            if version < cluster.oldest:
                raise StatusError(410, "Expired", "The provided continue parameter is too old")
        end = start + (int(call.query.get("limit", 0)) or len(items))
        metadata: Object = {"resourceVersion": str(version)}
        if end < len(items):
            metadata["continue"] = f"{end}.{version}"
        return {"kind": "List", "apiVersion": "v1", "metadata": metadata, "items": items[start:end]}


def selected(item: Object, call: Call) -> bool:
    """The object is in the call's namespace and matches its selectors."""
    if call.namespace and item["metadata"].get("namespace") != call.namespace:
        return False
    if call.query.get("labelSelector"):
        try:
            selector = parse_selector(call.query["labelSelector"])
        except InputError as error:
            raise StatusError(400, "BadRequest", f"unable to parse requirement: {error}") from error
        if not selector.matches(item["metadata"].get("labels") or {}):
            return False
    for part in filter(None, call.query.get("fieldSelector", "").split(",")):
        key, _, value = part.partition("=")
        if key not in FIELDS:
            raise StatusError(400, "BadRequest", f"field label not supported: {key}")
        if FIELDS[key](item) != value:
            return False
    return True
