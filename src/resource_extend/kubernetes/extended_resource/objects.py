"""What nodes and pods are called, and the fields of them that this tool looks at, with "absent" turned into "empty"."""

import re

from lightkube.models.core_v1 import Node, Pod

from resource_extend.errors import InputError

ENDED = ("Succeeded", "Failed")

_OBJECT_NAME = re.compile(r"[a-z0-9](?:[-a-z0-9.]{0,251}[a-z0-9])?")


def check_object_name(text: str) -> str:
    """Return `text` when an object can be called so.

    Raises:
        InputError: it cannot.
    """
    if not _OBJECT_NAME.fullmatch(text):
        raise InputError(f"{text!r} is not the name of an object: lower-case letters, digits, '-' and '.'")
    return text


def node_name(node: Node) -> str:
    """The node's name."""
    return (node.metadata.name if node.metadata else None) or ""


def labels(node: Node) -> dict[str, str]:
    """The node's labels."""
    return (node.metadata.labels if node.metadata else None) or {}


def annotations(node: Node) -> dict[str, str]:
    """The node's annotations."""
    return (node.metadata.annotations if node.metadata else None) or {}


def capacity(node: Node) -> dict[str, str]:
    """The node's capacity, as stored."""
    return (node.status.capacity if node.status else None) or {}


def allocatable(node: Node) -> dict[str, str]:
    """The node's allocatable, as stored."""
    return (node.status.allocatable if node.status else None) or {}


def pod_name(pod: Pod) -> str:
    """NAMESPACE/NAME."""
    return f"{pod.metadata.namespace}/{pod.metadata.name}" if pod.metadata else "?"


def pod_uid(pod: Pod) -> str:
    """What tells this pod from another one of the same name."""
    return (pod.metadata.uid if pod.metadata else None) or ""


def priority(pod: Pod) -> int:
    """The pod's priority."""
    return (pod.spec.priority if pod.spec else None) or 0


def bound_to(pod: Pod) -> str:
    """The node that the pod is bound to, "" before that."""
    return (pod.spec.nodeName if pod.spec else None) or ""


def nominated_for(pod: Pod) -> str:
    """The node on which the scheduler made room for the pod by preemption, "" mostly."""
    return (pod.status.nominatedNodeName if pod.status else None) or ""


def phase(pod: Pod) -> str:
    """`Pending`, `Running`, `Succeeded`, `Failed`."""
    return (pod.status.phase if pod.status else None) or "Pending"


def takes_room(pod: Pod) -> bool:
    """The pod counts on its node: it is bound and has not ended. A pod being deleted counts until it is gone."""
    return bool(bound_to(pod)) and phase(pod) not in ENDED
