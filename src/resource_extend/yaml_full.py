"""All of YAML, by PyYAML, into the same values as `yaml_subset`: scalars as they are written (protocol 6.2).

Loaded only when the subset parser is unsure, which includes every error.
"""

import re

import yaml

from resource_extend.errors import SettingsError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_UNFINISHED = object()
_TAG = "tag:yaml.org,2002:"


def parse_fully(path: str, text: str) -> "Any":
    """Return the value of one YAML document.

    Raises:
        SettingsError: the text is not YAML, doubles a key, or uses what a configuration cannot hold; names the line.
    """
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
        return None if node is None else _value(path, node, {})
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        reason = str(error.problem or error.context)
        if reason.startswith("but "):
            reason = f"{error.context} {reason}"
        # PyYAML quotes names of anchors and tags, and `password: *s3cret` must not show: single characters and its own
        # `<block end>` may.
        reason = re.sub(r"('(?:[^']?|\\.|<[^']*)')|'[^']*'", lambda quoted: quoted[1] or "'...'", reason)
        raise SettingsError(f"{path}: {reason} at line {mark.line + 1 if mark else 1}") from None
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise SettingsError(f"{path}: character {error.character:#x} is not allowed at line {line}") from None
    except RecursionError:
        raise SettingsError(f"{path}: nested too deeply") from None


def _value(path: str, node: yaml.Node, values: "dict[yaml.Node, Any]") -> "Any":
    """Return the value of a node; `values` holds those of all nodes so far, since aliases name a node again."""
    value = values.get(node)
    if value is _UNFINISHED:
        raise SettingsError(f"{path}: an alias inside its own anchor at line {node.start_mark.line + 1}")
    if value is None:
        values[node] = _UNFINISHED
        if isinstance(node, yaml.SequenceNode):
            value = [_value(path, item, values) for item in node.value]
        elif isinstance(node, yaml.MappingNode):
            value = _mapping(path, node, values)
        elif isinstance(node, yaml.ScalarNode) and node.tag != _TAG + "null":
            value = node.value if node.style is None else (node.value,)
        values[node] = value
    return value


def _mapping(path: str, node: yaml.MappingNode, values: "dict[yaml.Node, Any]") -> "dict[str, Any]":
    result: dict[str, Any] = {}
    merged: dict[str, Any] = {}
    for key, item in node.value:
        line = key.start_mark.line + 1
        value = _value(path, item, values)
        if key.tag == _TAG + "merge":
            for source in reversed(value if isinstance(value, list) else [value]):
                if not isinstance(source, dict):
                    raise SettingsError(f"{path}: << merges mappings only at line {line}")
                merged.update(source)
            continue
        if not isinstance(key, yaml.ScalarNode):
            raise SettingsError(f"{path}: a mapping key that is no text at line {line}")
        if key.value in result:
            raise SettingsError(f"{path}: mapping key {key.value!r} is doubled at line {line}")
        result[key.value] = value
    return {**merged, **result}
