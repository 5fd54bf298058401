"""The two readers of configuration files: what the fast one accepts, PyYAML reads the same (specification, 6.2)."""

import random
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from resource_extend.errors import SettingsError
from resource_extend.settings import load
from resource_extend.yaml_full import parse_fully
from resource_extend.yaml_subset import Unsure, parse

CORE = """\
# Eru's own configuration, with what the plugins do not look at
bind: ":5001"
log_level: "DEBUG"
profile: ":12346"

etcd:
    machines:
        - http://127.0.0.1:2379   # the first
        - "http://127.0.0.1:22379"
    prefix: '/core'
    lock_prefix: __lock__/eru
    auth: {username: root, password: 0123}
resource_plugin:
  dir: /etc/eru/plugins
  whitelist: [resource-gpu, "resource-storage"]
  call_timeout: 1m30s
docker:
  log:
    type: "json-file"
    config:
      "max-size": "10m"
scheduler:
  maxshare: -1
  sharebase: 100
empty:
list:
- a
- ~
"""


def same(a: Any, b: Any) -> bool:
    """Compare values with their types and the order of keys."""
    if isinstance(a, dict) and isinstance(b, dict):
        return list(a) == list(b) and all(same(a[key], b[key]) for key in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(same, a, b))
    return type(a) is type(b) and bool(a == b)


def agree(text: str) -> bool:
    """Check that both readers read a text alike; tell whether the fast one read it at all."""
    try:
        value = parse(text)
    except Unsure:
        return False
    assert same(value, parse_fully("file", text)), text
    return True


def test_core_configuration_is_read_fast() -> None:
    """A configuration as people write it, core's own included, needs no PyYAML."""
    assert agree(CORE)
    value = parse(CORE)
    assert ["http://127.0.0.1:2379", ("http://127.0.0.1:22379",)] == value["etcd"]["machines"]
    assert {"username": "root", "password": "0123"} == value["etcd"]["auth"]
    assert ["resource-gpu", ("resource-storage",)] == value["resource_plugin"]["whitelist"]
    assert (None, ["a", None], "-1") == (value["empty"], value["list"], value["scheduler"]["maxshare"])


# Pieces that meet at the borders of the subset: indicators, quotes, comments, indents, document marks, odd characters.
PIECES = [
    *("a", "b", "etcd", "x", "y", "key", "k: v\n", "e: {p: q}\n", "a: [x, y]\n", "- x\n", "- a: b\n", "a: ", "b: "),
    *("-", "- ", "--", "---", "...", ".", "..", ":", ": ", "x:", ":x", "a:b", "a: b: c", ",", ", ", "[", "]", "{", "}"),
    *("\n", "\n", "\n  ", "\n    ", "\n- ", "\n  - ", "\n\n", " ", "  ", "#", " #", " # c", "\n#c\n", "\t", "\r\n"),
    *('"', "'", "''", "\\", "!", "&a", "*a", "|", ">", "%", "@", "`", "?", "? ", "<<", "<<: ", "=", "+", "-_", "/"),
    *("~", "null", "Null", "NULL", "null: ", "1", "0123", "1e3", "0x1", "1:2", "true", "yes", "on", "http://a:1"),
    *("\u00e9", "\ufeff", "\x00", "\x07", "\x0b", "\x0c", "\x1c", "\x7f", "\x85", "\u2028"),
]


def test_readers_agree_on_random_pieces() -> None:
    """Tens of thousands of random texts: whatever the fast reader accepts, PyYAML reads the same."""
    source = random.Random(1)
    accepted = sum(agree("".join(source.choices(PIECES, k=source.randint(0, 12)))) for _ in range(60_000))

    assert accepted > 3_000


def test_readers_agree_on_damaged_configurations() -> None:
    """A real configuration with pieces cut out, doubled and put elsewhere is read alike, or not read fast."""
    source = random.Random(2)
    accepted = 0
    for _ in range(4_000):
        text = CORE
        for _ in range(source.randint(1, 3)):
            start, end = sorted(source.sample(range(len(text) + 1), 2))
            end = min(end, start + source.choice((1, 2, 5, 30)))
            text = text[:start] + source.choice(["", text[start:end] * 2, *PIECES]) + text[end:]
        accepted += agree(text)

    assert accepted > 500


words = st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=8)
documents = st.recursive(
    st.one_of(st.none(), words, st.integers(), st.booleans(), st.floats(), st.text(max_size=5)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(words, inner, max_size=3)),
    max_leaves=8,
)


@settings(max_examples=500)
@given(documents, st.booleans(), st.sampled_from([None, '"', "'"]))
def test_readers_agree_on_what_pyyaml_writes(document: Any, flow: bool, style: str | None) -> None:
    """What PyYAML writes in any style is read alike."""
    agree(yaml.safe_dump(document, default_flow_style=flow, default_style=style, allow_unicode=True))


@pytest.mark.parametrize(
    "text",
    [
        "a: 1\na: 2",
        "a:b",
        "a: b: c",
        "a: [b",
        "a: 'b",
        'a: "b\\n"',
        "a: 'it''s'",
        "a: &x b",
        "a: *x",
        "a: !!str b",
        "a: |\n  b",
        "? a\n: b",
        "a: b\n  c",
        "a\nb",
        "- - a",
        "- a: b",
        "a:\n  - b\n c: d",
        "---\na: b",
        "a: [[b]]",
        "a: {b: {c: d}}",
        "a: [b, ]",
        "<<: {a: b}",
        "a: b#c",
        "a: é",
        "\ta: b",
        "a: -",
        "a: -1",
        "a: --1",
        "a: -...",
        "- -1",
        "a: [-1, -b]",
        '"a": b',
        '"a" : b',
        '"a: b',
        '": b',
        "a: 1\n'a': 2",
        "'a:b': c",
        "a: #",
    ],
)
def test_the_border_of_the_subset(text: str) -> None:
    """At and beyond the border the fast reader gives up or reads what PyYAML reads."""
    agree(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", None),
        ("# only\n", None),
        ("a: 0123", {"a": "0123"}),
        ("a: 1_0", {"a": "1_0"}),
        ("a: '0123'", {"a": ("0123",)}),
        ("a: ~", {"a": None}),
        ("a: '~'", {"a": ("~",)}),
        ("a: !!str null", {"a": "null"}),
        ("a: !!null ''", {"a": None}),
        ("a: |\n  b\n  c\n", {"a": ("b\nc\n",)}),
        ("\ufeffa: b", {"a": "b"}),
        ("a: b\r\nc: d\r\n", {"a": "b", "c": "d"}),
        ("---\na: b\n...\n", {"a": "b"}),
        ("%YAML 1.1\n---\na: b", {"a": "b"}),
        ("a: &x {b: c}\nd: *x", {"a": {"b": "c"}, "d": {"b": "c"}}),
        ("a: &x\nb: *x", {"a": None, "b": None}),
        ("x: &x {b: 1, c: 2}\ny: {c: 3, <<: *x}", {"x": {"b": "1", "c": "2"}, "y": {"b": "1", "c": "3"}}),
        ("y: {<<: [{b: 1}, {b: 2, c: 3}]}", {"y": {"b": "1", "c": "3"}}),
        ("'<<': a", {"<<": "a"}),
        ("1: a\nnull: b", {"1": "a", "null": "b"}),
        ("a: \\d", {"a": "\\d"}),
        ('a: "\\x41\\n"', {"a": ("A\n",)}),
        ("a: !custom b", {"a": "b"}),
        ("é: 节点", {"é": "节点"}),
    ],
)
def test_all_of_yaml(text: str, value: Any) -> None:
    """Whatever YAML can say is understood, scalars as they are written."""
    assert same(value, parse_fully("file", text))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a: [", "expected the node content, but found '<stream end>' at line 1"),
        ("a: b\n\tc: d", "found character '\\t' that cannot start any token at line 2"),
        ("a: b\nc: d: e", "mapping values are not allowed here at line 2"),
        ("a: 1\nb: 2\na: 3", "mapping key 'a' is doubled at line 3"),
        ("x:\n  a: 1\n  'a': 3", "mapping key 'a' is doubled at line 3"),
        ("a: b\n[c]: d", "a mapping key that is no text at line 2"),
        ("x: y\na: &x [*x]", "an alias inside its own anchor at line 2"),
        ("a: 1\n<<: foo", "<< merges mappings only at line 2"),
        ("a: 1\n<<: [{b: c}, ~]", "<< merges mappings only at line 2"),
        ("a: b\n---\nc: d", "expected a single document in the stream but found another document at line 2"),
        ("a: b\nc: \x07", "character 0x7 is not allowed at line 2"),
        ("a: 'b", "found unexpected end of stream at line 1"),
    ],
)
def test_errors_name_the_line(text: str, reason: str) -> None:
    """A fault of the file is told with its line."""
    with pytest.raises(SettingsError) as caught:
        parse_fully("x/gpu.yaml", text)

    assert f"x/gpu.yaml: {reason}" == str(caught.value)


@pytest.mark.parametrize(
    "password", ["*s3cret", "!s3cret!x y", "&s3cret &s3cret x", "'s3cret", "[s3cret", "%s3cret", "s3cret: s3cret",
                 "@s3cret", '"\\s3cret"', "{s3cret", "| s3cret", "`s3cret", "!<s3cret y"]
)  # fmt: skip
def test_errors_keep_secrets(password: str) -> None:
    """A password that is no YAML as it stands is not repeated in the message."""
    with pytest.raises(SettingsError) as caught:
        parse_fully("gpu.yaml", f"etcd:\n  auth:\n    password: {password}\n")

    assert "s3cret" not in str(caught.value)


def test_depth_and_repetition(tmp_path: Path) -> None:
    """Very deep nesting is an error; aliases that would unfold to billions of values are read at once."""
    with pytest.raises(SettingsError, match=r"^gpu\.yaml: nested too deeply$"):
        parse_fully("gpu.yaml", "a: " + "[" * 10_000)
    blocks = "".join([f"{' ' * depth}a:\n" for depth in range(1000)])
    (tmp_path / "gpu.yaml").write_text(blocks)
    with pytest.raises(SettingsError, match=r"gpu\.yaml: nested too deeply$"):
        load(str(tmp_path / "gpu.yaml"), {}, "gpu")
    lines = ["a0: &a0 [x, x]"] + [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 40)]
    assert 40 == len(parse_fully("gpu.yaml", "\n".join(lines)))
