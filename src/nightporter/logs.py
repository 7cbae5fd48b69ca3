"""Logs: state changes, one event a line, through the standard library's logger `nightporter`.

A program that embeds the desk configures that logger as it does its others; the command line calls `configure`. A
log line is never the record of anything: the ledger is.
"""

from __future__ import annotations

import json
import logging
import re
import sys
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, TextIO, cast

if TYPE_CHECKING:
    from structlog.stdlib import BoundLogger as Log
    from structlog.typing import EventDict, WrappedLogger

_COMMANDS = r"\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff"
_HARMFUL = re.compile(rf"[\x00-\x08\x0b-\x1f{_COMMANDS}]")
_AT_THE_EDGE = re.compile(r"\n(?! )")
"""Further lines of one event are indented: nothing that comes from elsewhere looks like an event of its own."""
_HARMFUL_IN_JSON = re.compile(rf"[{_COMMANDS}]")


def harmless(text: str) -> str:
    """The text as any terminal shows it: what would command one, or turn letters around, stands as its escape. Results,
    names and payloads come from anywhere, and whoever reads them is not to be led by the nose."""
    return text if text.isascii() and text.isprintable() else _HARMFUL.sub(_escape, text)


def harmless_json(text: str) -> str:
    """JSON text, the same value, with escapes for what `harmless` escapes."""
    if text.isascii() and "\x7f" not in text:
        return text
    return _HARMFUL_IN_JSON.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _escape(found: re.Match[str]) -> str:
    return repr(found[0])[1:-1]


def get(name: str) -> Log:
    """The logger of a module; events are named `part.what_happened` and carry plain values."""
    return cast("Log", _AtFirstUse(name))


class _AtFirstUse:
    """Becomes a logger when something is said: a command that says nothing does without the imports, which take as long
    as all else that it does."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, method: str) -> Any:
        found = getattr(_bound(self._name), method)
        setattr(self, method, found)
        return found


def _bound(name: str) -> Log:
    import structlog

    logger: Log = structlog.wrap_logger(
        logging.getLogger(name),
        processors=[structlog.stdlib.filter_by_level, _hand_over],
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )
    return logger.bind()


class Seldom:
    """Says what comes again each second, such as an ill store, once a minute for each cause, and then how often it
    came: a log that fills the disk makes a full one no better."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._said: dict[tuple[str, str], tuple[float, int]] = {}
        self._lock = threading.Lock()

    def warning(self, event: str, *, error: str, **facts: Any) -> None:
        self._say(self._log.warning, event, error, facts)

    def error(self, event: str, *, error: str, **facts: Any) -> None:
        self._say(self._log.error, event, error, facts)

    def _say(self, say: Callable[..., Any], event: str, error: str, facts: dict[str, Any]) -> None:
        cause, now = (event, error.partition("\n")[0]), time.monotonic()
        with self._lock:
            since, held_back = self._said.get(cause, (-_A_MINUTE, 0))
            quiet = now - since < _A_MINUTE
            if len(self._said) >= _CAUSES:
                self._said.clear()
            self._said[cause] = (since, held_back + 1) if quiet else (now, 0)
        if not quiet:
            say(event, **facts, error=error, held_back=held_back or None)


_A_MINUTE = 60.0
_CAUSES = 100
"""Causes that are remembered at once."""


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
    text = _AT_THE_EDGE.sub("\n  ", text)
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
        return harmless(f"{self.formatTime(record, '%H:%M:%S')}  {mark}{super().format(record)}")


class _Json(logging.Formatter):
    """One object a line: ts, level, event, and the event's facts."""

    def format(self, record: logging.LogRecord) -> str:
        facts = dict(getattr(record, "facts", {}))
        if record.exc_info:
            facts["exception"] = self.formatException(record.exc_info)
        stamp = self.formatTime(record, "%Y-%m-%dT%H:%M:%S%z")
        event = getattr(record, "happened", record.getMessage())
        return harmless_json(json.dumps(
            {"ts": stamp, "level": record.levelname.lower(), "event": event, **facts}, default=str, ensure_ascii=False
        ))
