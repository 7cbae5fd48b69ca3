"""Logs: state changes, one event a line, through the standard library's logger `nightporter`.

A program that embeds the desk configures that logger as it does its others; the command line calls `configure`. A
log line is never the record of anything: the ledger is.
"""

from __future__ import annotations

import logging
from typing import Any, Literal, TextIO

import structlog
from structlog.typing import EventDict, WrappedLogger

Log = structlog.stdlib.BoundLogger


def get(name: str) -> Log:
    """The logger of a module; events are named `part.what_happened` and carry plain values."""
    logger: Log = structlog.wrap_logger(
        logging.getLogger(name),
        processors=[
            structlog.stdlib.filter_by_level,
            structlog.stdlib.add_log_level,
            structlog.processors.format_exc_info,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )
    return logger


def configure(form: Literal["text", "json"], stream: TextIO, *, level: int = logging.INFO) -> None:
    """Send the desk's events to a stream: a plain line each for people, JSON lines for programs."""
    stamp = structlog.processors.TimeStamper(fmt="%H:%M:%S" if form == "text" else "iso", utc=form == "json", key="ts")
    last: Any = _plain if form == "text" else structlog.processors.JSONRenderer()
    formatter = structlog.stdlib.ProcessorFormatter(
        processors=[stamp, structlog.stdlib.ProcessorFormatter.remove_processors_meta, last]
    )
    handler = logging.StreamHandler(stream)
    handler.setFormatter(formatter)
    logger = logging.getLogger("nightporter")
    logger.handlers[:] = [handler]
    logger.setLevel(level)
    logger.propagate = False


def _plain(_: WrappedLogger, __: str, event: EventDict) -> str:
    stamp, name, level = event.pop("ts"), event.pop("event"), event.pop("level", "info")
    exception = event.pop("exception", "")
    facts = "  ".join(f"{key}={value}" for key, value in event.items() if value not in ("", None))
    mark = "" if level in ("info", "debug") else f"{level.upper()} "
    return f"{stamp}  {mark}{name:<22} {facts}".rstrip() + (f"\n{exception}" if exception else "")
