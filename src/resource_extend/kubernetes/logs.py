"""Log lines of the device plugin: one event a line, as text or JSON, on stderr.

A line has a time, a level, an event in a few fixed words and its fields: the resource, the device ids, the reason. Each
state change and each Allocate is one line; what repeats is logged where it changes only.
"""

from __future__ import annotations

import json
import logging
import sys
import time
from typing import TextIO

LOGGER = logging.getLogger("resource_extend.device_plugin")


def note(event: str, *, level: int = logging.INFO, **fields: object) -> None:
    """Log an event with its fields; values are strings, numbers or sequences of strings."""
    if LOGGER.isEnabledFor(level):
        LOGGER.log(level, event, extra={"fields": fields})


def warn(event: str, **fields: object) -> None:
    """Log an event that somebody may want to do something about."""
    note(event, level=logging.WARNING, **fields)


def _stamp(record: logging.LogRecord) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created)) + f".{int(record.msecs):03d}Z"


def _fields(record: logging.LogRecord) -> dict[str, object]:
    fields = dict(getattr(record, "fields", {}))
    if record.exc_info and record.exc_info[1] is not None:
        fields["error"] = repr(record.exc_info[1])
    return fields


class JsonLines(logging.Formatter):
    """Each record as one JSON object: `time`, `level`, `event` and the event's fields."""

    def format(self, record: logging.LogRecord) -> str:
        """Format a record."""
        line = {"time": _stamp(record), "level": record.levelname.lower(), "event": record.getMessage()}
        return json.dumps(line | _fields(record), default=str)


class TextLines(logging.Formatter):
    """Each record as `time level event: name=value ...`; values with spaces are quoted as in JSON."""

    def format(self, record: logging.LogRecord) -> str:
        """Format a record."""
        words = [f"{name}={_word(value)}" for name, value in _fields(record).items()]
        event = " ".join(record.getMessage().split())
        head = f"{_stamp(record)} {record.levelname.lower()} {event}"
        return f"{head}: {' '.join(words)}" if words else head


def _word(value: object) -> str:
    text = ",".join(map(str, value)) if isinstance(value, (list, tuple, set, frozenset)) else str(value)
    return text if text and text.isprintable() and not set(text) & set(' "=') else json.dumps(text)


def start_logging(style: str, stream: TextIO | None = None) -> None:
    """Send the log of this process (also what libraries warn about) to `stream`, stderr when none is given."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonLines() if style == "json" else TextLines())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    LOGGER.setLevel(logging.INFO)
