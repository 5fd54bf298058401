"""What the samples of a case say: pure functions of numbers."""

import statistics
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from benchmarks.harness import Sample

BARE = "bare interpreter"


class Summary(NamedTuple):
    """One case in one run: milliseconds of wall and processor time, and medians of the ratios of each round."""

    median: float
    low: float
    high: float
    ratio: float
    processor: float
    processor_ratio: float


class Spread(NamedTuple):
    """The same figure of several runs: their median, lowest and highest."""

    median: float
    low: float
    high: float


def percentile(values: Sequence[float], percent: float) -> float:
    """Return the value below which a share of the values lies, between two of them where it must be."""
    ordered = sorted(values)
    place = (len(ordered) - 1) * percent / 100
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)


def ratios(values: Sequence[float], bare: Sequence[float]) -> list[float]:
    """Divide each value by the bare interpreter's of the same round."""
    return [value / base for value, base in zip(values, bare, strict=True)]


def summarize(samples: Sequence[Sample], bare: Sequence[Sample]) -> Summary:
    """Sum up one case of one run beside the bare interpreter."""
    walls = [sample.wall for sample in samples]
    processors = [sample.processor for sample in samples]
    return Summary(
        statistics.median(walls) * 1e3,
        percentile(walls, 10) * 1e3,
        percentile(walls, 90) * 1e3,
        statistics.median(ratios(walls, [sample.wall for sample in bare])),
        statistics.median(processors) * 1e3,
        statistics.median(ratios(processors, [sample.processor for sample in bare])),
    )


def summarize_all(run: Mapping[str, Sequence[Sample]]) -> dict[str, Summary]:
    """Sum up all cases of one run."""
    return {name: summarize(samples, run[BARE]) for name, samples in run.items()}


def spread(values: Sequence[float]) -> Spread:
    """Bring a figure of several runs together."""
    return Spread(statistics.median(values), min(values), max(values))


def combine(runs: Sequence[Mapping[str, Summary]]) -> dict[str, Summary]:
    """Bring runs together: each figure is the median of theirs."""
    return {
        name: Summary(*(statistics.median(figures) for figures in zip(*(run[name] for run in runs), strict=True)))
        for name in runs[0]
    }


def ratio_spread(runs: Sequence[Mapping[str, Summary]], name: str) -> Spread:
    """Return how far the ratio of a case differs between runs."""
    return spread([run[name].ratio for run in runs])
