"""Logs: state changes, one event a line, through the standard library's logger `nightporter`.

A program that embeds the desk configures that logger as it does its others; the command line calls `configure`. A
log line is never the record of anything: the ledger is.
"""

from __future__ import annotations

import json
import logging
import sys
from typing import Any, Literal, TextIO

import structlog
from structlog.typing import EventDict, WrappedLogger

Log = structlog.stdlib.BoundLogger


def get(name: str) -> Log:
    """The logger of a module; events are named `part.what_happened` and carry plain values."""
    logger: Log = structlog.wrap_logger(
        logging.getLogger(name),
        processors=[structlog.stdlib.filter_by_level, _hand_over],
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )
    return logger


def configure(form: Literal["text", "json"], stream: TextIO, *, level: int = logging.INFO) -> None:
    """Send the desk's events to a stream: a plain line each for people, JSON lines for programs."""
    handler = _Stream(stream)
    handler.setFormatter(_Lines() if form == "text" else _Json())
    logger = logging.getLogger("nightporter")
    logger.handlers[:] = [handler]
    logger.setLevel(level)
    logger.propagate = False


def _hand_over(_: WrappedLogger, __: str, event: EventDict) -> tuple[tuple[str], dict[str, Any]]:
    """To the standard library: the line as text for any handler, its facts beside it for ours."""
    name, raised = str(event.pop("event")), event.pop("exc_info", None)
    facts = {key: value for key, value in event.items() if value not in ("", None)}
    text = f"{name:<22} {'  '.join(f'{key}={value}' for key, value in facts.items())}".rstrip()
    return (text,), {"exc_info": raised, "extra": {"happened": name, "facts": facts}}


class _Stream(logging.StreamHandler[TextIO]):
    """A stream whose reader may go away, as `head` does: the desk works on, and says no more there."""

    def handleError(self, record: logging.LogRecord) -> None:
        if isinstance(sys.exc_info()[1], (BrokenPipeError, ValueError)):
            logging.getLogger("nightporter").handlers[:] = [logging.NullHandler()]
        else:
            super().handleError(record)


class _Lines(logging.Formatter):
    """`15:04:35  run.started  automation=hello ...`; the level only where it is more than a note."""

    def format(self, record: logging.LogRecord) -> str:
        mark = "" if record.levelno <= logging.INFO else f"{record.levelname} "
        return f"{self.formatTime(record, '%H:%M:%S')}  {mark}{super().format(record)}"


class _Json(logging.Formatter):
    """One object a line: ts, level, event, and the event's facts."""

    def format(self, record: logging.LogRecord) -> str:
        facts = dict(getattr(record, "facts", {}))
        if record.exc_info:
            facts["exception"] = self.formatException(record.exc_info)
        stamp = self.formatTime(record, "%Y-%m-%dT%H:%M:%S%z")
        event = getattr(record, "happened", record.getMessage())
        return json.dumps(
            {"ts": stamp, "level": record.levelname.lower(), "event": event, **facts}, default=str, ensure_ascii=False
        )
