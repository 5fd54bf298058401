"""The benchmark of exec latency: its figures are pure functions, and what it times is checked."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

SCRIPTS = Path(__file__).parents[1] / "scripts"
sys.path.append(str(SCRIPTS))

from benchmarks import harness, instructions, phases, picture, report, summary  # noqa: E402
from benchmarks.calls import CASES  # noqa: E402
from benchmarks.harness import Case, Execution, Sample  # noqa: E402
from benchmarks.summary import BARE, Summary  # noqa: E402

MACHINE = report.Machine("A Processor", 2, "Linux 6", "Python 3.11.2", "etcd 3.5.1")
MARKS = [
    ("begin", 10.006),
    ("marked", 10.010),
    ("core", 10.0104),
    ("loaded", 10.0109),
    ("main", 10.0114),
    ("main", 10.0115),
    ("open", 10.0115),
    ("request", 10.0118),
    ("request", 10.0119),
    ("connect", 10.0120),
    ("received", 10.0125),
    ("received", 10.0130),
    ("end", 10.0132),
]


def samples(*walls: float) -> list[Sample]:
    """Make samples whose processor time is half of their wall time."""
    return [Sample(wall, wall / 2) for wall in walls]


def execution(folder: Path, code: str, expected: bytes, request: bytes = b"") -> Execution:
    """Make an execution of Python code."""
    stdin = folder / "stdin"
    stdin.write_bytes(request)
    return Execution((sys.executable, "-I", "-S", "-c", code), folder, {"PATH": "/bin", "A": "b"}, stdin, expected)


# --- statistics


@pytest.mark.parametrize(
    ("values", "percent", "expected"),
    [
        ([5], 10, 5),
        ([1, 2, 3], 50, 2),
        ([4, 1, 3, 2], 50, 2.5),
        ([0, 10], 90, 9),
        ([3, 1, 2], 0, 1),
        ([3, 1, 2], 100, 3),
    ],
)
def test_percentile(values: list[float], percent: float, expected: float) -> None:
    """A percentile lies between the two values beside its place."""
    assert expected == pytest.approx(summary.percentile(values, percent))


@given(st.lists(st.floats(0.001, 1000), min_size=1), st.floats(0, 100))
def test_percentile_is_within(values: list[float], percent: float) -> None:
    """A percentile is never outside of the values, up to rounding."""
    found = summary.percentile(values, percent)

    assert min(values) * (1 - 1e-12) <= found <= max(values) * (1 + 1e-12)


def test_ratio_is_of_the_same_round() -> None:
    """A machine that becomes slow changes no ratio: each round has its own yardstick."""
    bare, called = samples(0.010, 0.020, 0.040), samples(0.012, 0.024, 0.048)

    found = summary.summarize(called, bare)

    assert 1.2 == pytest.approx(found.ratio)
    assert 1.2 == pytest.approx(found.processor_ratio)
    assert (24.0, 12.0) == pytest.approx((found.median, found.processor))
    assert (14.4, 43.2) == pytest.approx((found.low, found.high))


def test_ratios_need_as_many_rounds() -> None:
    """Samples of different rounds are never divided."""
    with pytest.raises(ValueError, match="longer than"):
        summary.ratios([1, 2], [1, 2, 3])


def test_runs_are_combined_by_their_medians() -> None:
    """Of three runs the middle one counts, figure by figure, and the spread is told."""
    runs = [{"x": Summary(*[float(figure)] * 6)} for figure in (3, 1, 2)]

    assert {"x": Summary(*[2.0] * 6)} == summary.combine(runs)
    assert (2, 1, 3) == summary.ratio_spread(runs, "x")


# --- the phases of a call


def test_phases_fill_the_call() -> None:
    """The phases are everything but the time that setting the marks took."""
    found = phases.split(10.0, MARKS, 10.0140)

    assert list(phases.PHASES) == list(found)
    assert [6, 0.4, 0.5, 0.5, 0.4, 0.2, 1.0, 0.2, 0.8] == pytest.approx(list(found.values()))


@pytest.mark.parametrize("lost", ["core", "received", "end"])
def test_a_call_without_a_mark_is_told(lost: str) -> None:
    """A call that takes another road is no measurement."""
    with pytest.raises(ValueError, match=f"never came to '{lost}'"):
        phases.split(10.0, [mark for mark in MARKS if mark[0] != lost], 10.014)


# --- the report


def measured(runs: int) -> Any:
    """Return runs of the bare interpreter and two calls, one of which misses its goal."""
    run = {BARE: samples(0.01, 0.01), "good": samples(0.012, 0.012), "bad": samples(0.02, 0.02)}
    return [run] * runs, {BARE: None, "good": 1.2, "bad": 1.25}, {"good": dict.fromkeys(phases.PHASES, 1.0)}


def test_table_says_which_goals_are_met() -> None:
    """Each row holds the figures of a call and whether its goal is met."""
    runs, goals, spent = measured(1)

    page = report.markdown(MACHINE, "a test", 2, [summary.summarize_all(run) for run in runs], goals, spent)

    assert "| good | 12.0 | 12.0 to 12.0 | 1.20 | 1.20, met | 6.0 | 1.20 |" in page
    assert "| bad | 20.0 | 20.0 to 20.0 | 2.00 | 1.25, **missed** | 10.0 | 2.00 |" in page
    assert f"| {BARE} | 10.0 | 10.0 to 10.0 | 1.00 |  | 5.0 | 1.00 |" in page
    assert "2 cores of A Processor, Linux 6, Python 3.11.2, etcd 3.5.1" in page
    assert "| launcher | 1.00 |" in page


def test_table_tells_the_spread_of_runs() -> None:
    """With several runs a ratio comes with the lowest and the highest run."""
    runs, goals, spent = measured(3)

    page = report.markdown(MACHINE, "a test", 2, [summary.summarize_all(run) for run in runs], goals, spent)

    assert "1.20 (1.20 to 1.20)" in page
    assert "3 runs of 2 rounds" in page


def test_document_holds_every_sample() -> None:
    """The JSON file has all that another evaluation needs."""
    runs, goals, spent = measured(1)

    found = json.loads(
        report.document(MACHINE, "a test", runs, [summary.summarize_all(run) for run in runs], goals, spent)
    )

    assert [0.02, 0.02] == found["cases"]["bad"]["runs"][0]["wall_s"]
    assert 2.0 == pytest.approx(found["cases"]["bad"]["summary"]["ratio"])
    assert "Python 3.11.2" == found["machine"]["interpreter"]


def test_picture_is_svg_with_every_case() -> None:
    """The picture is well-formed and names each call; a dot stands for each round."""
    runs, goals, spent = measured(1)

    root = ElementTree.fromstring(picture.draw(runs, goals, spent))

    texts = [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]
    assert {"good", "bad", "1.20", "2.00", "launcher"} <= set(texts)
    assert BARE not in texts
    assert 4 == len(list(root.iter("{http://www.w3.org/2000/svg}circle")))


def test_processor_is_named() -> None:
    """The processor is told as the kernel names it."""
    assert "EPYC 1" == report.processor_name(
        "processor : 0\nmodel name\t: EPYC 1\nprocessor : 1\nmodel name\t: EPYC 1\n"
    )


def test_limit_is_told() -> None:
    """The guard names each call above its limit and lets pass what is at it."""
    limits = {name: instructions.Limit(1.0, 1.03) for name in ("at", "above")}

    found = instructions.above({BARE: 1000, "at": 1030, "above": 1031}, limits)

    assert ["above: 1.031 of the bare interpreter's instructions, the limit is 1.030"] == found


# --- execution


@pytest.fixture(scope="module", params=["python", "go"])
def execute(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Return both ways of executing in turn."""
    if request.param == "python":
        yield harness.spawn
        return
    if shutil.which("go") is None:
        pytest.skip("there is no Go here; .ci/run needs it")
    with harness.core_client(tmp_path_factory.mktemp("go")) as through_go:
        yield through_go


@pytest.mark.parametrize(
    ("code", "request_", "status", "output"),
    [
        ("import sys;sys.stdout.write(sys.stdin.read()*2)", b"ab", 0, b"abab"),
        ("import posix;posix.write(2,b'no');posix._exit(128)", b"", 128, b"no"),
        ("import posix;print(sorted(posix.environ)[0],posix.getcwd()[-6:])", b"", 0, b"b'A' folder\n"),
    ],
)
def test_execution(
    execute: harness.Execute, tmp_path: Path, code: str, request_: bytes, status: int, output: bytes
) -> None:
    """A program runs in its folder with its environment and request alone; status and both streams come back."""
    folder = tmp_path / "folder"
    folder.mkdir()
    here = Path.cwd()

    finished = execute(execution(folder, code, b"", request_))

    assert here == Path.cwd()
    assert (status, output) == (finished.status, finished.output)
    assert 0 < finished.processor
    assert 0 < finished.wall


def test_every_case_runs_once_a_round(tmp_path: Path) -> None:
    """A round runs each case once, after its preparation; one more round is not measured."""
    prepared: list[str] = []
    cases = [
        Case(name, [execution(tmp_path, "print(1)", b"1\n")] * 2, lambda name=name: prepared.append(name))  # type: ignore[misc]
        for name in ("a", "b")
    ]

    found = harness.rounds(cases, 3)

    assert {"a": 3, "b": 3} == {name: len(each) for name, each in found.items()}
    assert [["a", "b"]] * 4 == [sorted(prepared[place : place + 2]) for place in range(0, 8, 2)]


@pytest.mark.parametrize("code", ["print(2)", "print(1);import posix;posix.write(2,b'!')", "print(1);exit(1)"])
def test_another_answer_ends_the_run(tmp_path: Path, code: str) -> None:
    """A wrong byte on either stream or another status is an error that shows both answers, not a measurement."""
    with pytest.raises(RuntimeError, match=r"(?s)case: .* wrote\n.*\nnot\n1\n"):
        harness.rounds([Case("case", [execution(tmp_path, code, b"1\n")])], 1)


def test_help_lists_the_cases() -> None:
    """--help names every case, so that --only can be used."""
    command = [sys.executable, "-m", "benchmarks.exec", "--help"]
    environment = {"PYTHONPATH": f"{SCRIPTS}:{SCRIPTS.parent / 'tests'}:{SCRIPTS.parent / 'build'}"}
    shown = subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout

    assert [name for name, _, _ in CASES] == re.findall(r"(?m)^  (\S.*)$", shown.partition("The cases:\n")[2])
