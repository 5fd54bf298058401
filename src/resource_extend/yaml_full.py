"""All of YAML, by PyYAML, into the same values as `yaml_subset`: scalars as they are written (protocol 6.2).

Loaded only when the subset parser is unsure, which includes every error.
"""

import yaml

from resource_extend.errors import SettingsError
from resource_extend.yaml_subset import NULLS, Quoted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def parse_fully(path: str, text: str) -> "Any":
    """Return the value of one YAML document.

    Raises:
        SettingsError: the text is not YAML, doubles a key, or uses what a configuration cannot hold; names the line.
    """
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
        return None if node is None else _plain(path, node, ())
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        raise SettingsError(f"{path}: {error.problem or error.context} at line {line}") from None
    except yaml.YAMLError as error:
        raise SettingsError(f"{path}: {' '.join(str(error).split())}") from None
    except RecursionError:
        raise SettingsError(f"{path}: nested too deeply") from None


def _plain(path: str, node: yaml.Node, within: "tuple[yaml.Node, ...]") -> "Any":
    if node in within:
        raise SettingsError(f"{path}: an alias inside its own anchor at line {node.start_mark.line + 1}")
    within = (*within, node)
    if isinstance(node, yaml.SequenceNode):
        return [_plain(path, item, within) for item in node.value]
    if isinstance(node, yaml.MappingNode):
        return _mapping(path, node, within)
    plain = isinstance(node, yaml.ScalarNode) and node.style is None
    if plain and node.value in NULLS:
        return None
    return node.value if plain else Quoted(node.value)


def _mapping(path: str, node: yaml.MappingNode, within: "tuple[yaml.Node, ...]") -> "dict[str, Any]":
    result: dict[str, Any] = {}
    merged: dict[str, Any] = {}
    for key, item in node.value:
        value = _plain(path, item, within)
        if key.tag == "tag:yaml.org,2002:merge":
            for source in reversed(value if isinstance(value, list) else [value]):
                merged.update(source or {})
            continue
        if not isinstance(key, yaml.ScalarNode):
            raise SettingsError(f"{path}: a mapping key that is no text at line {key.start_mark.line + 1}")
        if key.value in result:
            raise SettingsError(f"{path}: mapping key {key.value!r} is doubled at line {key.start_mark.line + 1}")
        result[key.value] = value
    return {**merged, **result}
