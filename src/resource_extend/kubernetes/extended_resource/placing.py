"""The scheduler's rules that keep a pod off a node apart from room: cordon, taints, labels.

Each rule answers in the scheduler's own words, so that an explanation reads like the event on the pod.
"""

from collections.abc import Callable, Mapping, Sequence

from lightkube.models.core_v1 import Node, NodeSelectorRequirement, NodeSelectorTerm, Pod, Taint, Toleration

from resource_extend.kubernetes.extended_resource.objects import labels, node_name

UNSCHEDULABLE_TAINT = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")
HARD_EFFECTS = ("NoSchedule", "NoExecute")

NOT_NAMED = "node(s) didn't satisfy plugin(s) [NodeAffinity]"
UNSCHEDULABLE = "node(s) were unschedulable"
TAINTED = "node(s) had untolerated taint(s)"
WRONG_LABELS = "node(s) didn't match Pod's node affinity/selector"


def obstacles(pod: Pod, node: Node) -> list[tuple[str, str]]:
    """What keeps the pod off the node, in the order the scheduler looks: (its words, the particulars)."""
    rules = (_not_named, _cordoned, _tainted, _wrong_labels)
    return [found for rule in rules if (found := rule(pod, node))]


def _not_named(pod: Pod, node: Node) -> tuple[str, str] | None:
    """The scheduler looks first whether each term of the affinity names nodes, as those of daemon pods do."""
    names: set[str] = set()
    for term in _required_terms(pod) or []:
        named = [set(field.values or []) for field in term.matchFields or [] if _names_node(field)]
        if not named:
            return None
        names |= set.intersection(*named)
    if not names or node_name(node) in names:
        return None
    return NOT_NAMED, f"the pod's affinity names {', '.join(sorted(names))}"


def _names_node(field: NodeSelectorRequirement) -> bool:
    return field.key == "metadata.name" and field.operator == "In"


def _cordoned(pod: Pod, node: Node) -> tuple[str, str] | None:
    if not (node.spec and node.spec.unschedulable) or _tolerated(pod, UNSCHEDULABLE_TAINT):
        return None
    return UNSCHEDULABLE, "the node is cordoned"


def _tainted(pod: Pod, node: Node) -> tuple[str, str] | None:
    taints = [taint for taint in (node.spec.taints if node.spec else None) or [] if taint.effect in HARD_EFFECTS]
    repelling = [taint for taint in taints if not _tolerated(pod, taint)]
    return (TAINTED, ", ".join(_shown(taint) for taint in repelling)) if repelling else None


def _shown(taint: Taint) -> str:
    value = f"={taint.value}" if taint.value else ""
    return f"{taint.key}{value}:{taint.effect}"


def _tolerated(pod: Pod, taint: Taint) -> bool:
    return any(tolerates(toleration, taint) for toleration in (pod.spec.tolerations if pod.spec else None) or [])


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    """The toleration lets a pod onto a node with the taint."""
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    operator = toleration.operator or "Equal"
    if operator == "Exists":
        return True
    if operator == "Equal":
        return bool(toleration.key) and (toleration.value or "") == (taint.value or "")
    return _compared(operator, taint.value, toleration.value)


def _wrong_labels(pod: Pod, node: Node) -> tuple[str, str] | None:
    there = labels(node)
    selector = (pod.spec.nodeSelector if pod.spec else None) or {}
    missing = [f"{key}={value}" for key, value in sorted(selector.items()) if there.get(key) != value]
    if missing:
        return WRONG_LABELS, f"nodeSelector wants {', '.join(missing)}"
    terms = _required_terms(pod)
    if terms is None or any(_term_matches(term, there, node_name(node)) for term in terms):
        return None
    return WRONG_LABELS, "no term of the pod's required node affinity matches"


def _required_terms(pod: Pod) -> Sequence[NodeSelectorTerm] | None:
    affinity = pod.spec.affinity if pod.spec else None
    node_affinity = affinity.nodeAffinity if affinity else None
    required = node_affinity.requiredDuringSchedulingIgnoredDuringExecution if node_affinity else None
    return required.nodeSelectorTerms if required else None


def _term_matches(term: NodeSelectorTerm, there: Mapping[str, str], name: str) -> bool:
    """A term matches when all it asks for does; one that asks for nothing matches no node."""
    expressions, fields = term.matchExpressions or [], term.matchFields or []
    if not expressions and not fields:
        return False
    return all(_matches(wanted, there) for wanted in expressions) and all(
        _matches(wanted, {"metadata.name": name}) for wanted in fields
    )


def _matches(wanted: NodeSelectorRequirement, there: Mapping[str, str]) -> bool:
    value, values = there.get(wanted.key), wanted.values or []
    answers: dict[str, Callable[[], bool]] = {
        "In": lambda: value in values,
        "NotIn": lambda: value not in values,
        "Exists": lambda: value is not None,
        "DoesNotExist": lambda: value is None,
    }
    if wanted.operator in answers:
        return answers[wanted.operator]()
    return len(values) == 1 and _compared(wanted.operator, value, values[0])


def _compared(operator: str, value: str | None, bound: str | None) -> bool:
    """`value` is greater (Gt) or less (Lt) than `bound`, both being whole numbers."""
    try:
        number, limit = int(value or ""), int(bound or "")
    except ValueError:
        return False
    return number > limit if operator == "Gt" else number < limit if operator == "Lt" else False
