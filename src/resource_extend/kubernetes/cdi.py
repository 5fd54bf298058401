"""CDI spec files: what the container runtime has to do for each device of a resource, for those who prefer CDI names.

One file a resource, named after the resource's hash, in the runtime's folder for generated specs. It is replaced by a
rename, so that a runtime never reads half of it. Nodes and mounts are in the file; environment and annotations stay in
the Allocate answer, where the values of several devices are put together.
"""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from typing import Any

from resource_extend.kubernetes.devices.allocation import distinct_mounts, distinct_nodes, env_prefix
from resource_extend.kubernetes.devices.cdi_names import cdi_kind
from resource_extend.kubernetes.devices.identity import short_hash
from resource_extend.kubernetes.model import Device, Resource

CDI_VERSION = "0.5.0"  # the oldest with hostPath, so that older runtimes take it
FILE_PREFIX = "resource-extend-"


def spec_path(folder: str, name: str) -> str:
    """Give the path of the spec file of the resource called `name`."""
    return f"{folder}/{FILE_PREFIX}{short_hash(name)}.json"


def spec(resource: Resource, devices: list[Device]) -> dict[str, Any]:
    """Describe the devices of a resource, replicas once, as a CDI spec."""
    hardware = {device.physical or device.id: device for device in devices}
    listed = [
        {"name": name, "containerEdits": _edits(resource, name, device)} for name, device in sorted(hardware.items())
    ]
    return {"cdiVersion": CDI_VERSION, "kind": cdi_kind(resource.name), "devices": listed}


def write_spec(folder: str, resource: Resource, devices: list[Device]) -> bool:
    """Write the spec file of a resource unless it is there with the same content; tell whether it was written.

    Without devices there is no file: an empty spec is an error to CDI. Raises OSError.
    """
    if not devices:
        return remove_spec(folder, resource.name)
    path = spec_path(folder, resource.name)
    content = json.dumps(spec(resource, devices), indent=1).encode()
    with contextlib.suppress(FileNotFoundError), open(path, "rb") as file:
        if file.read() == content:
            return False
    os.makedirs(folder, exist_ok=True)
    # A name that CDI does not read until it is renamed.
    descriptor, unfinished = tempfile.mkstemp(prefix=f".{FILE_PREFIX}", dir=folder)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        os.chmod(unfinished, 0o644)
        os.rename(unfinished, path)
    except BaseException:
        os.unlink(unfinished)
        raise
    return True


def remove_spec(folder: str, name: str) -> bool:
    """Remove the spec file of the resource called `name`; tell whether there was one. Raises OSError."""
    try:
        os.unlink(spec_path(folder, name))
    except FileNotFoundError:
        return False
    return True


def _edits(resource: Resource, name: str, device: Device) -> dict[str, Any]:
    nodes = [
        {"path": node.container_path, "hostPath": node.host_path, "permissions": node.permissions}
        for node in distinct_nodes(device.answer.nodes)
    ]
    mounts = [
        {
            "hostPath": mount.host_path,
            "containerPath": mount.container_path,
            "options": ["rbind", "nosuid", "ro" if mount.read_only else "rw"],
        }
        for mount in distinct_mounts(device.answer.mounts)
    ]
    edits = {"deviceNodes": nodes, "mounts": mounts}
    # CDI refuses a device that changes nothing.
    return {key: value for key, value in edits.items() if value} or {"env": [f"{env_prefix(resource.name)}_CDI={name}"]}
