"""Checks of single texts in the configuration. Each gives the text back or raises InputError with the rule."""

from __future__ import annotations

import re

from resource_extend.errors import InputError
from resource_extend.kubernetes.devices.match import check_template, travels
from resource_extend.kubernetes.devices.pattern import GLOB, REGEX, PathPattern
from resource_extend.kubernetes.names import check_name

ENV_KEY = "^[A-Za-z_][A-Za-z0-9_]*$"


def word(text: str) -> str:
    """Check for a text that is not empty and has no control characters."""
    if not text or not text.isprintable():
        raise InputError(f"{text!r} must be a text without control characters, and not empty")
    return text


def absolute(text: str) -> str:
    """Check for an absolute path."""
    if not word(text).startswith("/"):
        raise InputError(f"{text!r} must be an absolute path")
    return text.rstrip("/") or "/"


def template(text: str) -> str:
    """Check the variables of a template, and that its text can travel to the kubelet and into a container."""
    if not travels(text):
        raise InputError(f"{text!r} has a NUL character or half of a surrogate pair, which no container can get")
    return check_template(text)


def alias(text: str) -> str:
    """Check a template of a path in the container."""
    return check_template(absolute(text))


def permissions(text: str) -> str:
    """Check device permissions; give them in the usual order."""
    if not text or set(text) - set("rwm") or len(set(text)) != len(text):
        raise InputError(f"{text!r} must be one or more of r, w, m")
    return "".join(letter for letter in "rwm" if letter in text)


def glob(text: str) -> str:
    """Check a glob of host paths."""
    PathPattern(word(text), GLOB).check()
    return _match_only(text)


def regex(text: str) -> str:
    """Check a regular expression of host paths."""
    PathPattern(word(text), REGEX).check()
    return _match_only(text)


def _match_only(text: str) -> str:
    """In a path only `{match}` can be known, the other variables come from what the path leads to."""
    for name in re.findall(r"\{([A-Za-z_]+)\}", text):
        if name != "match":
            raise InputError(f"unknown variable {{{name}}} in {text!r}: only {{match}} can be used here")
    return text


def folder(text: str) -> str:
    """Check the name of a single folder."""
    if not re.fullmatch(r"[A-Za-z0-9_.:+-]+", text) or text in {".", ".."}:
        raise InputError(f"{text!r} must be a kernel class or bus, such as tty")
    return text


def attribute(text: str) -> str:
    """Check the name of a sysfs attribute, which may be one of a folder below the device."""
    if ".." in text or not re.fullmatch(r"[A-Za-z0-9_.:+-]+(/[A-Za-z0-9_.:+-]+)*", text):
        raise InputError(f"{text!r} must be the name of a sysfs attribute, such as idVendor")
    return text


def env_key(text: str) -> str:
    """Check the name of an environment variable."""
    if not re.fullmatch(ENV_KEY, text):
        raise InputError(f"{text!r} must be letters, digits and '_', not beginning with a digit")
    return text


def domain(text: str) -> str:
    """Check the domain of resource names."""
    try:
        check_name(f"{text}/x")
    except InputError as error:
        raise InputError(f"{text!r} cannot be the domain of resources: {str(error).partition(': ')[2]}") from error
    return text


def suffix(text: str) -> str:
    """Check what may be added to a resource's name."""
    if not re.fullmatch(r"[A-Za-z0-9._-]*[A-Za-z0-9]", text):
        raise InputError(f"{text!r} must be letters, digits, '.', '_' and '-', ending with a letter or digit")
    return text


def listen(text: str) -> str:
    """Check HOST:PORT or unix:/PATH."""
    if text.startswith("unix:/"):
        return text
    host, colon, port = text.rpartition(":")
    bare = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    if not colon or not port.isdecimal() or not 0 <= int(port) <= 65535 or (":" in host and bare == host):
        raise InputError(f"{text!r} must be HOST:PORT, as in 0.0.0.0:9100, :9100 or [::1]:9100, or unix:/PATH")
    return text
