"""What goes to standard output: tables for people, JSON and YAML for programs. The same words in all three."""

import json
from collections.abc import Sequence
from typing import Any

import yaml
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from resource_extend.kubernetes.extended_resource.changing import DryRun, Result
from resource_extend.kubernetes.extended_resource.entries import Entry
from resource_extend.kubernetes.extended_resource.explain import Room, Verdict, number
from resource_extend.kubernetes.extended_resource.quantities import whole
from resource_extend.kubernetes.extended_resource.reading import Explanation, Row

UNLIMITED = 10_000
"""Characters a line may have when nobody's screen breaks it."""

Document = dict[str, Any]


def console() -> Console:
    """Standard output: as wide as the screen, or as long as it takes for a program that reads it."""
    screen = Console(highlight=False, markup=False)
    return screen if screen.is_terminal else Console(highlight=False, markup=False, width=UNLIMITED)


def show(document: Document, form: str) -> None:
    """Print a document as `json` or `yaml`."""
    text = json.dumps(document, indent=2) if form == "json" else yaml.safe_dump(document, sort_keys=False)
    show_text(text.rstrip())


def show_table(columns: Sequence[str], lines: Sequence[Sequence[str]]) -> None:
    """Print lines under their columns; a name is folded on a narrow screen, never cut."""
    screen = console()
    table = Table(box=box.SIMPLE_HEAD if screen.is_terminal else None, pad_edge=False, show_edge=False)
    for column in columns:
        table.add_column(column, overflow="fold")
    for line in lines:
        table.add_row(*(Text(cell) for cell in line))
    if screen.is_terminal:
        screen.print(table)
        return
    with screen.capture() as captured:
        screen.print(table)
    # The blanks that fill up the last column are of no use to a program.
    show_text("\n".join(line.rstrip() for line in captured.get().splitlines()))


def show_text(text: str) -> None:
    """Print lines as they are."""
    print(text, flush=True)  # noqa: T201 - this is where output goes


def show_rows(rows: Sequence[Row]) -> None:
    """The table of `get` and `list`."""
    show_table(
        ("NODE", "RESOURCE", "CAPACITY", "ALLOCATABLE", "REQUESTED", "FREE", "SET BY"),
        [
            (
                row.node,
                row.name,
                _cell(row.capacity),
                _cell(row.allocatable),
                _cell(row.requested, "?"),
                _cell(row.free, "?"),
                row.owner.words,
            )
            for row in rows
        ],
    )


def show_results(results: Sequence[Result], dry_run: DryRun) -> None:
    """The table of what was changed, and for a dry run in the client the commands that kubectl would need."""
    show_table(
        ("NODE", "RESOURCE", "OUTCOME", "BEFORE", "AFTER", "NOTE"),
        [
            (
                result.node,
                result.name,
                result.outcome.value + dry_mark(dry_run),
                _count_cell(result.before),
                _count_cell(result.after),
                "; ".join([*([result.message] if result.message else []), *result.warnings]),
            )
            for result in results
        ],
    )
    if dry_run is DryRun.CLIENT:
        for result in results:
            if result.operations:
                console().print(_kubectl(result), soft_wrap=True)


def dry_mark(dry_run: DryRun) -> str:
    """What is added to an outcome that was not brought about."""
    return "" if dry_run is DryRun.NONE else " (dry run)"


def show_line(result: Result, form: str) -> None:
    """One line for one result, while `keep` runs: words, or JSON (also for `yaml`, which has no lines)."""
    if form == "table":
        note = f": {result.message}" if result.message else ""
        change = f"{_count_cell(result.before)} -> {_count_cell(result.after)}"
        text = f"{result.node} {result.name} {result.outcome.value} ({change}){note}"
    else:
        text = json.dumps(result_document(result))
    show_text(text)


def show_explanation(explanation: Explanation) -> None:
    """An explanation for people: the sentence, the nodes, who holds what, and the scheduler's own words."""
    out = console()
    out.print(f"{explanation.pod}: {explanation.state}", soft_wrap=True)
    if explanation.verdicts:
        show_table(("NODE", "REASON", "DETAIL"), [line for item in explanation.verdicts for line in _lines(item)])
    for label, text in (
        ("by the rule:  ", explanation.summary),
        ("the scheduler:", explanation.event or ("(no event about this pod)" if explanation.verdicts else "")),
        ("not looked at:", ", ".join(explanation.unjudged)),
    ):
        if text:
            out.print(f"{label} {text}", soft_wrap=True)


def row_document(row: Row) -> Document:
    """A row for programs."""
    return {
        "node": row.node,
        "resource": row.name,
        "capacity": row.capacity,
        "allocatable": row.allocatable,
        "requested": row.requested,
        "free": row.free,
        "owner": row.owner.value,
        "marked": row.mark,
    }


def result_document(result: Result) -> Document:
    """A result for programs."""
    return {
        "node": result.node,
        "resource": result.name,
        "outcome": result.outcome.value,
        "ok": result.outcome.good,
        "before": _entry_document(result.before),
        "after": _entry_document(result.after),
        "message": result.message,
        "warnings": list(result.warnings),
        "patch": list(result.operations),
    }


def explanation_document(explanation: Explanation) -> Document:
    """An explanation for programs."""
    return {
        "pod": explanation.pod,
        "state": explanation.state,
        "nodes": [_verdict_document(item) for item in explanation.verdicts],
        "summary": explanation.summary,
        "schedulerEvent": explanation.event,
        "notLookedAt": list(explanation.unjudged),
        "warnings": list(explanation.warnings),
    }


def _verdict_document(verdict: Verdict) -> Document:
    return {
        "node": verdict.node,
        "fits": verdict.fits,
        "reasons": [{"text": reason.text, "detail": reason.detail} for reason in verdict.reasons],
        "resources": [_room_document(room) for room in verdict.rooms],
        "holders": {
            name: [{"pod": holder.pod, "count": holder.count} for holder in holders]
            for name, holders in verdict.holders.items()
        },
    }


def _room_document(room: Room) -> Document:
    return {
        "resource": room.name,
        "wanted": number(room.wanted),
        "allocatable": number(room.allocatable),
        "requested": number(room.requested),
        "free": number(room.free),
        "lacking": room.lacking,
    }


def _entry_document(entry: Entry | None) -> Document | None:
    if entry is None:
        return None
    return {
        "capacity": None if entry.capacity is None else whole(entry.capacity),
        "allocatable": None if entry.allocatable is None else whole(entry.allocatable),
    }


def _lines(verdict: Verdict) -> list[tuple[str, str, str]]:
    if verdict.fits:
        return [(verdict.node, "fits", "")]
    held = {
        f"Insufficient {name}": "; held by " + ", ".join(str(holder) for holder in holders)
        for name, holders in verdict.holders.items()
        if holders
    }
    return [(verdict.node, reason.text, reason.detail + held.get(reason.text, "")) for reason in verdict.reasons]


def _kubectl(result: Result) -> str:
    """What a person would have to type; the names in it are checked and hold no quote."""
    return f"kubectl patch node {result.node} --subresource=status --type=json -p '{json.dumps(result.operations)}'"


def _cell(count: int | None, unknown: str = "-") -> str:
    return unknown if count is None else str(count)


def _count_cell(entry: Entry | None) -> str:
    return "-" if entry is None or entry.capacity is None else str(whole(entry.capacity))
