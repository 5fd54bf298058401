"""The benchmarks on real plugin files: a short run of everything, and callgrind."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest

sys.path.append(str(Path(__file__).parents[2] / "scripts"))

from benchmarks import exec as exec_benchmark
from benchmarks import harness, instructions
from benchmarks.calls import CASES, Caller
from benchmarks.harness import Case
from benchmarks.summary import BARE
from benchmarks.surroundings import Surroundings


@pytest.fixture
def plugins(built: Callable[[str], Path], tmp_path: Path) -> Path:
    """Return a folder with both plugin files."""
    for kind in ("gpu", "storage"):
        (tmp_path / f"resource-{kind}.pyz").symlink_to(built(kind))
    return tmp_path


def test_short_run(plugins: Path) -> None:
    """Two rounds of every case check all answers and leave the table, the samples and the picture."""
    folder = plugins / "out"

    assert 0 == exec_benchmark.main(["--rounds", "2", "--plugins", str(plugins), "--output", str(folder)])

    found = json.loads((folder / "exec.json").read_text())
    assert [name for name, _, _ in CASES] == list(found["cases"])
    assert {2} == {len(case["runs"][0]["wall_s"]) for case in found["cases"].values()}
    assert set(exec_benchmark.WATCHED) == set(found["phases_ms"])
    assert (folder / "exec.md").read_text().startswith("Measured on ")
    assert ElementTree.parse(folder / "exec.svg").getroot().tag.endswith("svg")


def test_counted_instructions(plugins: Path) -> None:
    """Callgrind counts what the kernel would start, twice alike, and the answer is checked under it too."""
    with Surroundings(plugins) as surroundings:
        caller = Caller(surroundings)
        case = Case("name", [caller.call("gpu", surroundings.nowhere, "name")])
        harness.once(case, harness.spawn)
        bare, first, second = (instructions.count(each) for each in (Case(BARE, [caller.bare()]), case, case))
        wrong = case.executions[0]._replace(expected=b"another answer")

        assert second == pytest.approx(first, rel=0.02)
        assert 0.5 < first / bare < 2
        with pytest.raises(RuntimeError, match="another answer"):
            instructions.count(Case("name", [wrong]))
