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
        if content and content[0] != "#":
            lines.append((len(line) - len(content), content.rstrip(" ")))
    if not lines:
        return None
    lines.append((-1, ""))  # ends every block
    value, rest = _block(lines, 0)
    if rest != len(lines) - 1:
        raise Unsure
    return value


def _block(lines: list[tuple[int, str]], at: int) -> "tuple[Any, int]":
    """Parse the block that starts at a line; return its value and the number of the line behind it."""
    indent, content = lines[at]
    if content.startswith("- "):
        return _list(lines, at)
    result: dict[str, Any] = {}
    level = indent
    while level == indent:
        key, colon, rest = content.partition(":")
        if key.strip(_KEY):
            key = _quoted_key(key)
        if not colon or not key or key[0] == "-" or key in result or (rest and rest[0] != " "):
            raise Unsure
        rest = rest.strip(" ")
        at += 1
        level, content = lines[at]
        if rest and rest[0] != "#":
            result[key] = _value(rest)
        elif level > indent or (level == indent and content.startswith("- ")):
            result[key], at = _block(lines, at)
            level, content = lines[at]
        else:
            result[key] = None
    if level > indent:
        raise Unsure
    return result, at


def _quoted_key(text: str) -> str:
    key = text[1:-1]
    if text[0] not in "\"'" or text[-1] != text[0] or key.strip(_KEY):
        raise Unsure
    return key


def _list(lines: list[tuple[int, str]], at: int) -> "tuple[list[Any], int]":
    indent, content = lines[at]
    result = []
    level = indent
    while level == indent and content.startswith("- "):
        result.append(_value(content[2:].strip(" ")))
        at += 1
        level, content = lines[at]
    if level > indent:
        raise Unsure
    return result, at


def _value(text: str) -> "Any":
    """Parse what stands on one line: a scalar, or a flow list or mapping of scalars."""
    if text[0] in "\"'":
        return _quoted(text)
    comment = text.find(" #")
    if comment >= 0:
        text = text[:comment].rstrip(" ")
    return _flow(text) if text[0] in "[{" else _plain(text)


def _quoted(text: str) -> tuple[str]:
    end = text.find(text[0], 1)
    rest = text[end + 1 :].strip(" ")
    if end < 0 or "\\" in text[:end] or (rest and (rest[0] != "#" or text[end + 1] != " ")):
        raise Unsure
    return (text[1:end],)


def _plain(text: str) -> str | None:
    start = text.removeprefix("-")  # a negative number
    if not start or start[0] not in _START or text.strip(_PLAIN) or text[-1] == ":" or start.startswith("..."):
        raise Unsure
    return None if text in NULLS else text


def _flow(text: str) -> "dict[str, Any] | list[Any]":
    inner = text[1:-1].strip(" ")
    items = inner.split(",") if inner else []
    if text[0] == "[" and text[-1] == "]":
        return [_scalar(item.strip(" ")) for item in items]
    if text[0] != "{" or text[-1] != "}":
        raise Unsure
    result: dict[str, Any] = {}
    for item in items:
        key, colon, rest = item.strip(" ").partition(": ")
        if not colon or not key or key.strip(_KEY) or key[0] == "-" or key in result:
            raise Unsure
        result[key] = _scalar(rest.strip(" "))
    return result


def _scalar(text: str) -> "str | tuple[str] | None":
    """Parse a part of a flow list or mapping."""
    if not text or text[0] not in "\"'":
        return _plain(text)
    if len(text) < 2 or text.find(text[0], 1) != len(text) - 1 or "\\" in text:
        raise Unsure
    return (text[1:-1],)
