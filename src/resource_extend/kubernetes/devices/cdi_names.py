"""Names of the Container Device Interface: `vendor.tld/class=device`."""

from __future__ import annotations

import re

from resource_extend.errors import InputError

_PART = r"[A-Za-z](?:[A-Za-z0-9._-]*[A-Za-z0-9])?"
_KIND = re.compile(f"{_PART}/{_PART}")
_DEVICE = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._:-]*[A-Za-z0-9])?")


def cdi_kind(resource: str) -> str:
    """Give the CDI kind of a resource, which is its name. Raises InputError when CDI does not take it."""
    if not _KIND.fullmatch(resource):
        raise InputError(f"{resource!r} cannot be a CDI kind: both its parts must begin with a letter")
    return resource


def check_cdi_name(name: str) -> str:
    """Return a fully qualified CDI name. Raises InputError when it is none."""
    kind, _, device = name.partition("=")
    if not _KIND.fullmatch(kind) or not _DEVICE.fullmatch(device):
        raise InputError(f"{name!r} is no CDI name: write VENDOR/CLASS=DEVICE, as in nvidia.com/gpu=0")
    return name
