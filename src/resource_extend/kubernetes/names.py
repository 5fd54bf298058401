"""The name rule of extended resources (specification, kubernetes 2.3): one rule for the device plugin and for the tool.

The API server accepts any name in a node's capacity (specification, kubernetes 2.13), so this check is the only guard
between a typing mistake and an entry that no pod can ever ask for.
"""

import re

from resource_extend.errors import InputError

BUILT_IN_DOMAIN = "kubernetes.io/"
QUOTA_PREFIX = "requests."
SUBDOMAIN_LIMIT = 253
PREFIX_LIMIT = SUBDOMAIN_LIMIT - len(QUOTA_PREFIX)
NAME_LIMIT = 63

_BUILT_IN = re.compile(r"cpu|memory|pods|storage|ephemeral-storage|hugepages-.*|attachable-volumes-.*")
_LABEL = r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = re.compile(rf"{_LABEL}(?:\.{_LABEL})*")
_NAME = re.compile(r"[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?")


def name_fault(text: str) -> str:
    """Say which part of the name rule `text` breaks, or return "" for a good extended resource name."""
    prefix, slash, name = text.partition("/")
    if _BUILT_IN.fullmatch(text):
        return "it is a built-in resource, which only Kubernetes itself sets"
    if not slash:
        return "it has no domain: an extended resource is written DOMAIN/NAME, as in example.com/widget"
    if BUILT_IN_DOMAIN in text:
        return f"{BUILT_IN_DOMAIN!r} may not occur in it: such names belong to Kubernetes"
    if text.startswith(QUOTA_PREFIX):
        return f"it may not begin with {QUOTA_PREFIX!r}, which quotas use"
    if "/" in name:
        return "it must have exactly one slash"
    return _prefix_fault(prefix) or _own_name_fault(name)


def check_name(text: str) -> str:
    """Return `text` when it is an extended resource name.

    Raises:
        InputError: it is not; the text names it and the part of the rule that it breaks.
    """
    fault = name_fault(text)
    if fault:
        raise InputError(f"{text!r} is not an extended resource name: {fault}")
    return text


def is_extended(text: str) -> bool:
    """Tell whether Kubernetes takes `text` for an extended resource."""
    return not name_fault(text)


def _prefix_fault(prefix: str) -> str:
    if len(prefix) > PREFIX_LIMIT:
        return f"the domain has {len(prefix)} characters, at most {PREFIX_LIMIT} are allowed"
    if not _SUBDOMAIN.fullmatch(prefix):
        return (
            f"the domain {prefix!r} must be a DNS name: lower-case letters, digits and '-' in parts joined by '.', "
            "each part beginning and ending with a letter or digit"
        )
    return ""


def _own_name_fault(name: str) -> str:
    if len(name) > NAME_LIMIT:
        return f"the part after the slash has {len(name)} characters, at most {NAME_LIMIT} are allowed"
    if not _NAME.fullmatch(name):
        return (
            f"the part after the slash, {name!r}, must be letters, digits, '-', '_' and '.', "
            "beginning and ending with a letter or digit"
        )
    return ""
