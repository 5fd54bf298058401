"""The file of `keep`: what is wrong with it is said before anything is sent."""

from pathlib import Path

import pytest

from kubernetes.extended_resource.conftest import Nodes, Run


def rules(folder: Path, text: str) -> str:
    """A keep file; its path."""
    (folder / "keep.yaml").write_text(text)
    return str(folder / "keep.yaml")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "the file: must hold `rules`"),
        ("rules: []", "rules: must be a list"),
        ("rules: [1]", "rules[0]: must hold"),
        ("a: [", "not YAML"),
        ("rules: [{resources: {a.b/c: 1, a.b/c: 2}}]", "'a.b/c' is there twice"),
        ("rules: [{resources: {a.b/c: 1}, nodes: n1}]", "rules[0].nodes: must be a list of node names"),
        ("rules: [{resources: {a.b/c: 1}, node: [n1]}]", "unknown key: node (known: nodes, resources, selector)"),
        ("rules: [{resources: {a.b/c: 1}, selector: 'pool in ('}]", "rules[0]: 'pool in (' is not a label selector"),
        ("rules: [{resources: {a.b/c: 1}, selector: {pool: a}}]", "rules[0].selector: must be a text"),
        ("rules: [{resources: {a.b/c: 1.5}}]", "rules[0]: '1.5' is not a count"),
        ("rules: [{resources: {a.b/c: true}}]", "rules[0]: 'true' is not a count"),
        ("rules: [{resources: {a.b/c: 2020-13-45}}]", "rules[0]: '2020-13-45' is not a count"),
        (f"rules: [{{resources: {{a.b/c: {'9' * 5000}}}}}]", "is too large for a count"),
        ("rules: [{resources: {a.b/c: 0x10}}]", "rules[0]: '0x10' is not a count"),
        ("rules: [{resources: {a.b/c: 1_000}}]", "rules[0]: '1_000' is not a count"),
        ("rules: [{resources: {a.b/c: [1]}}]", "rules[0]: ['1'] is not a count"),
        ("rules: [{resources: {a.b/c: 1}, nodes: [N_1]}]", "rules[0]: 'N_1' is not the name of an object"),
        ("rules: [{resources: {a.b/c: 1}, selector: }]", "rules[0]: an empty label selector"),
        ("[" * 5000, "nested too deeply"),
        ("rules: [{resources: {a.b/c: -1}}]", "rules[0]: '-1' is not a count"),
        ("rules: [{resources: {cpu: 1}}]", "'cpu' is not an extended resource name: it is a built-in resource"),
        ("rules: [{resources: {}}]", "rules[0].resources: must map names to counts"),
    ],
)
def test_a_wrong_file_is_a_usage_error(run: Run, tmp_path: Path, text: str, says: str) -> None:
    """Every fault of a file has its place and its rule, and exit status 2."""
    ran = run("keep", "-f", rules(tmp_path, text), "--once")

    assert 2 == ran.code
    assert says in ran.err
    assert "keep.yaml" in ran.err


def test_a_count_is_what_stands_there(run: Run, nodes: Nodes, tmp_path: Path) -> None:
    """YAML's octal and base-60 numbers do not apply: 010 is ten, as on the command line."""
    nodes.make("n1")

    ran = run("keep", "-f", rules(tmp_path, "rules: [{resources: {a.b/c: 010}}]"), "--once")

    assert 0 == ran.code, ran.err
    assert "10" == nodes.shows("n1", "a.b/c")[0]


def test_a_missing_file_is_a_usage_error(run: Run, tmp_path: Path) -> None:
    """The file's name is in the text."""
    ran = run("keep", "-f", str(tmp_path / "none.yaml"), "--once")

    assert 2 == ran.code
    assert "none.yaml" in ran.err
