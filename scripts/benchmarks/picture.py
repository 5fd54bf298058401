"""Draws the results as SVG: how the ratios of each call are distributed, and where the time of one call goes."""

import math
from collections.abc import Mapping, Sequence
from html import escape

from benchmarks.harness import Sample
from benchmarks.summary import BARE, percentile, ratios

WIDTH = 1000
LABELS = 290
RIGHT = 90
ROW = 26
TICKS = (0.8, 1, 1.25, 1.5, 2, 3, 5, 8, 12, 20)
COLOURS = ("#4c6a92", "#7a9cc6", "#b4c7e0", "#5b9279", "#8fc0a9", "#c8ddbb", "#e0a458", "#c8553d", "#9a9a9a")
MOST_DOTS = 150


def draw(
    runs: "Sequence[Mapping[str, Sequence[Sample]]]",
    goals: "Mapping[str, float | None]",
    phases: "Mapping[str, Mapping[str, float]]",
) -> str:
    """Draw a picture of all runs together.

    Args:
        runs: the samples of each case.
        goals: the highest ratio promised for each case.
        phases: milliseconds of each phase of some calls.
    """
    spread = {
        name: [ratio for run in runs for ratio in ratios(_walls(run[name]), _walls(run[BARE]))]
        for name in runs[0]
        if name != BARE
    }
    upper, height = _distributions(spread, goals)
    lower, height = _stacks(phases, height)
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
        'font-family="sans-serif" font-size="12">'
    )
    background = f'<rect width="{WIDTH}" height="{height}" fill="white"/>'
    return "\n".join([head, background, *upper, *lower, "</svg>"]) + "\n"


def _walls(samples: Sequence[Sample]) -> list[float]:
    return [sample.wall for sample in samples]


def _text(x: float, y: float, content: str, more: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}"{more and " " + more}>{escape(content)}</text>'


def _line(x1: float, y1: float, x2: float, y2: float, style: str) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" {style}/>'


def _rect(x: float, y: float, width: float, height: float, style: str) -> str:
    return f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" {style}/>'


def _distributions(
    spread: "Mapping[str, Sequence[float]]", goals: "Mapping[str, float | None]"
) -> "tuple[list[str], int]":
    """Draw a row for each case: a dot a round, a bar from p10 to p90, the median; the axis is logarithmic."""
    inner = [value for values in spread.values() for value in (percentile(values, 2), percentile(values, 98))]
    low, high = min(0.75, *inner), max(1.6, *inner)
    scale = (WIDTH - LABELS - RIGHT) / math.log(high / low)

    def place(ratio: float) -> float:
        return LABELS + math.log(min(max(ratio, low), high) / low) * scale

    top, bottom = 70, 70 + ROW * len(spread)
    parts = [
        _text(10, 24, "Wall time of a call over the bare interpreter's of the same round", 'font-size="16"'),
        _text(10, 44, "dot: a round; bar: p10 to p90; line: median, at the right; triangle: goal", 'fill="#666"'),
    ]
    for tick in TICKS:
        if low <= tick <= high:
            style = 'stroke="#333"' if tick == 1 else 'stroke="#ddd"'
            parts.append(_line(place(tick), top - 6, place(tick), bottom, style))
            parts.append(_text(place(tick), top - 10, f"{tick:g}", 'text-anchor="middle" fill="#666"'))
    for number, (name, values) in enumerate(spread.items()):
        middle = top + ROW * number + ROW / 2
        median = percentile(values, 50)
        from_, until = place(percentile(values, 10)), place(percentile(values, 90))
        parts.append(_text(LABELS - 12, middle + 4, name, 'text-anchor="end"'))
        parts.append(_rect(from_, middle - 7, until - from_, 14, 'fill="#b4c7e0"'))
        # Which dot is higher means nothing: it keeps them apart.
        step = max(1, math.ceil(len(values) / MOST_DOTS))
        for index, value in enumerate(values[::step]):
            height = middle + (index * 7 % 17 - 8) * 0.8
            parts.append(f'<circle cx="{place(value):.1f}" cy="{height:.1f}" r="1.4" fill="#4c6a92" opacity="0.5"/>')
        parts.append(_line(place(median), middle - 10, place(median), middle + 10, 'stroke="#c8553d" stroke-width="2"'))
        parts.append(_text(WIDTH - RIGHT + 14, middle + 4, f"{median:.2f}"))
        goal = goals.get(name)
        if goal is not None:
            x = place(goal)
            shape = f"{x:.1f},{middle + 7:.1f} {x - 4:.1f},{middle + 13:.1f} {x + 4:.1f},{middle + 13:.1f}"
            parts.append(f'<polygon points="{shape}" fill="#333"/>')
    return parts, bottom + 20


def _stacks(phases: "Mapping[str, Mapping[str, float]]", top: int) -> "tuple[list[str], int]":
    """Draw a bar for each call, divided into its phases, and the legend."""
    if not phases:
        return [], top
    longest = max(sum(each.values()) for each in phases.values())
    scale = (WIDTH - LABELS - RIGHT) / longest
    parts = [_text(10, top + 30, "Where the time of one call goes, milliseconds", 'font-size="16"')]
    top += 46
    for number, (name, each) in enumerate(phases.items()):
        y = top + 34 * number
        parts.append(_text(LABELS - 12, y + 18, name, 'text-anchor="end"'))
        x = float(LABELS)
        for colour, milliseconds in zip(COLOURS, each.values(), strict=True):
            width = milliseconds * scale
            parts.append(_rect(x, y, width, 26, f'fill="{colour}" stroke="white" stroke-width="0.5"'))
            if width > 30:
                parts.append(_text(x + width / 2, y + 17, f"{milliseconds:.1f}", 'text-anchor="middle" font-size="11"'))
            x += width
        parts.append(_text(x + 8, y + 18, f"{sum(each.values()):.1f}"))
    top += 34 * len(phases) + 10
    for index, (name, colour) in enumerate(zip(next(iter(phases.values())), COLOURS, strict=True)):
        x, y = LABELS + index % 3 * 230, top + index // 3 * 20
        parts.append(_rect(x, y, 12, 12, f'fill="{colour}"'))
        parts.append(_text(x + 18, y + 11, name))
    return parts, top + 70
