"""The YAML that configuration files are written in, read in microseconds: 25 ms of PyYAML are two starts of Python.

Understood: block mappings and lists, scalars on their line, one level of `[...]` and `{...}`, comments. Anything else
is `Unsure` and left to PyYAML, and so is every error: what this parser accepts, PyYAML reads the same (a property test
holds the two together).

The result is made of dict, list, None, str for a plain scalar as it is written, and a tuple of one str for a scalar in
quotes: a text, whatever it looks like.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_KEY = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"
_START = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_/.~"
_PLAIN = _KEY + "/.~+=@:"
NULLS = ("", "~", "null", "Null", "NULL")


class Unsure(Exception):  # noqa: N818 - it is an answer, not a fault
    """The text needs a real YAML parser."""


def parse(text: str) -> "Any":
    """Return the value of one YAML document, None for an empty one.

    Raises:
        Unsure: the text holds something outside the subset, or something wrong.
    """
    if not text.isascii() or not text.replace("\n", "").isprintable():
        raise Unsure
    lines = []
    for line in text.split("\n"):
        content = line.lstrip(" ")
        if content and not content.startswith("#"):
            lines.append((len(line) - len(content), content.rstrip(" ")))
    if not lines:
        return None
    value, rest = _block(lines, 0, lines[0][0])
    if rest != len(lines):
        raise Unsure
    return value


def _block(lines: list[tuple[int, str]], at: int, indent: int) -> "tuple[Any, int]":
    """Parse the block that starts at a line; return its value and the number of the line behind it."""
    if lines[at][1].startswith("- "):
        return _list(lines, at, indent)
    result: dict[str, Any] = {}
    while at < len(lines) and lines[at][0] == indent:
        key, colon, rest = lines[at][1].partition(":")
        if key[:1] in ("'", '"') and key[-1] == key[0]:
            key = key[1:-1]
        if not colon or not key or key.strip(_KEY) or key[0] == "-" or key in result or (rest and rest[0] != " "):
            raise Unsure
        at += 1
        rest = rest.strip(" ")
        if rest and not rest.startswith("#"):
            result[key] = _value(rest)
        elif at < len(lines) and (lines[at][0] > indent or (lines[at][0] == indent and lines[at][1].startswith("- "))):
            result[key], at = _block(lines, at, lines[at][0])
        else:
            result[key] = None
    if at < len(lines) and lines[at][0] > indent:
        raise Unsure
    return result, at


def _list(lines: list[tuple[int, str]], at: int, indent: int) -> "tuple[list[Any], int]":
    result = []
    while at < len(lines) and lines[at][0] == indent and lines[at][1].startswith("- "):
        result.append(_value(lines[at][1][2:].strip(" ")))
        at += 1
    if at < len(lines) and lines[at][0] > indent:
        raise Unsure
    return result, at


def _value(text: str) -> "Any":
    """Parse what stands on one line: a scalar, or a flow list or mapping of scalars."""
    if text[0] in "\"'":
        return _quoted(text)
    comment = text.find(" #")
    if comment >= 0:
        text = text[:comment].rstrip(" ")
    if text[0] == "[" and text[-1] == "]":
        return [_scalar(item.strip(" ")) for item in _items(text)]
    if text[0] == "{" and text[-1] == "}":
        result: dict[str, Any] = {}
        for item in _items(text):
            key, colon, rest = item.strip(" ").partition(": ")
            if not colon or not key or key.strip(_KEY) or key[0] == "-" or key in result:
                raise Unsure
            result[key] = _scalar(rest.strip(" "))
        return result
    return _scalar(text)


def _items(text: str) -> list[str]:
    inner = text[1:-1].strip(" ")
    return inner.split(",") if inner else []


def _quoted(text: str) -> tuple[str]:
    end = text.find(text[0], 1)
    rest = text[end + 1 :].strip(" ")
    if end < 0 or "\\" in text[:end] or (rest and (not rest.startswith("#") or text[end + 1] != " ")):
        raise Unsure
    return (text[1:end],)


def _scalar(text: str) -> "str | tuple[str] | None":
    if text and text[0] in "\"'":
        if len(text) < 2 or text.find(text[0], 1) != len(text) - 1 or "\\" in text:
            raise Unsure
        return (text[1:-1],)
    start = text[1:] if text[:1] == "-" else text  # a negative number
    if not start or start[0] not in _START or text.strip(_PLAIN) or text[-1] == ":" or start.startswith("..."):
        raise Unsure
    return None if text in NULLS else text
