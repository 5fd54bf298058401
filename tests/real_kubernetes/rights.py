"""The roles in the manifests, on a real API server: each command with its role, and a user without any."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from real_kubernetes.control_plane import ControlPlane, wait_until
from real_kubernetes.program import NAME, run, succeed

ROLES = Path(__file__).parents[2] / "build" / "manifests" / "extended-resource" / "roles.yaml"
RBAC = "/apis/rbac.authorization.k8s.io/v1"


def rights(plane: ControlPlane) -> None:
    """A user without rights is told the missing rule; with the role of a command the command works."""
    plane.make_node("n1")
    refused = run(plane, "set", f"{NAME}=2", "--node", "n1", user="nobody")
    assert 1 == refused.code
    assert 'missing RBAC rule {apiGroups: [""], resources: ["nodes"], verbs: ["get"]}' in refused.out, refused.out

    file = plane.folder / "rights.yaml"
    file.write_text(yaml.safe_dump({"rules": [{"resources": {NAME: 1}}]}))
    plane.make_pod("w-rights", {NAME: "9"})
    calls = {
        "list": [["list"], ["get", NAME, "--node", "n1"]],
        "set": [["set", f"{NAME}=2", "--all"], ["set", f"{NAME}=1", "--all"]],
        "unset": [["unset", NAME, "--all", "--no-verify"]],
        "clean": [["clean", "--all", "--no-verify"]],
        "keep": [["keep", "-f", str(file), "--once", "--prune"]],
        "explain": [["explain", "w-rights"]],
    }
    for role in yaml.safe_load_all(ROLES.read_text()):
        command = role["metadata"]["name"].removeprefix("extended-resource-")
        with role_for_nobody(plane, role):
            for words in calls[command]:
                ran = succeed(plane, *words, user="nobody")
                assert "RBAC" not in ran.out + ran.err, ran.out + ran.err


@contextmanager
def role_for_nobody(plane: ControlPlane, role: Any) -> Iterator[None]:
    """The user `nobody` has a role for a while."""
    name, admin = role["metadata"]["name"], plane.client()
    admin.post(f"{RBAC}/clusterroles", role)
    binding = {
        "metadata": {"name": name},
        "subjects": [{"kind": "User", "name": "nobody", "apiGroup": "rbac.authorization.k8s.io"}],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
    }
    admin.post(f"{RBAC}/clusterrolebindings", binding)
    try:
        group = role["rules"][0]
        wait_until(lambda: plane.client("nobody").get(f"/api/v1/{group['resources'][0]}"), 20, f"role {name}")
        yield
    finally:
        admin.delete(f"{RBAC}/clusterrolebindings/{name}")
        admin.delete(f"{RBAC}/clusterroles/{name}")
        wait_until(lambda: plane.client("nobody").request("GET", "/api/v1/nodes")[0] == 403, 20, f"role {name} gone")
