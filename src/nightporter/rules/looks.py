"""looks: what a look's answer means. Something, nothing and "it cannot be said" are never taken for one another."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import timedelta
from decimal import Decimal
from typing import Any

from nightporter.rules.legible import legible, legible_value
from nightporter.words import Ended, Ending, ErrorClass, Outcome, Reason, Seen, Sight

TIMEOUT = timedelta(seconds=30)
TEXT_LIMIT = 8_192
"""Bytes of what there is to do that the target is told."""
STATE_LIMIT = 16_384
"""Bytes of JSON that are kept for the next look."""
OUTPUT_LIMIT = 65_536
"""Bytes of output that are read: text and state, however they are written."""
ROWS = 100
"""Rows of a query that are told; whether there are more is said."""


def something(text: str = "", state: Any = None) -> Seen:
    return Seen(Sight.SOMETHING, text, state)


def nothing(state: Any = None) -> Seen:
    return Seen(Sight.NOTHING, state=state)


def failed(error_class: ErrorClass, error: str, retry_after: timedelta | None = None) -> Seen:
    return Seen(Sight.FAILED, error=error, error_class=error_class, retry_after=retry_after)


# -- what each kind found ------------------------------------------------------------------------------------------


def of_output(text: str) -> Seen:
    """What a program printed that ended with 0: nothing; or a JSON object, see `of_value`; or what there is to do."""
    said = text.strip()
    if not said:
        return nothing()
    if not said.startswith("{"):
        return something(text)
    try:
        value = json.loads(said)
    except (ValueError, RecursionError) as error:
        return failed(ErrorClass.EXCEPTION, f"what it printed begins as JSON and is none: {error}")
    return of_value(value)


def of_value(value: Any) -> Seen:
    """What a function returned, or a program printed as JSON. What is empty is nothing. An object with `wake` says so
    itself, with `text` and `state` beside it; any other is what there is to do."""
    if isinstance(value, Mapping) and "wake" in value:
        return _in_so_many_words(value)
    if not value:
        return nothing()
    if value is True:
        return something()
    return something(value if isinstance(value, str) else _json(value))


def _in_so_many_words(value: Mapping[str, Any]) -> Seen:
    wake, state = value["wake"], value.get("state")
    if not isinstance(wake, bool):
        return failed(ErrorClass.EXCEPTION, f"its `wake` is {_short(wake)}; it is true or false")
    if not wake:
        return nothing(state)
    text = value.get("text")
    if text is None:
        others = {key: item for key, item in value.items() if key not in ("wake", "text", "state")}
        text = _json(others) if others else ""
    return something(text if isinstance(text, str) else _json(text), state)


def of_rows(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> Seen:
    """What a query gave, at most one row more than `ROWS`. A single number is a count; otherwise there is something
    where there are rows."""
    if len(rows) == 1 and len(rows[0]) == 1:
        value = rows[0][0]
        if value is None:
            return nothing()
        if isinstance(value, (bool, int, float, Decimal)):
            return something(str(value)) if value > 0 else nothing()
    if not rows:
        return nothing()
    lines = [_json(dict(zip(columns, row, strict=True))) for row in rows[:ROWS]]
    if len(rows) > ROWS:
        lines.append(f"[cut here: more than {ROWS} rows]")
    return something("\n".join(lines))


def of_watermark(before: Any, now: Mapping[str, Any], text: str, *, first_wakes: bool) -> Seen:
    """Whether `mark` is another one than before. The first look only takes it down, unless `first_wakes`."""
    known = before.get("mark") if isinstance(before, Mapping) else None
    if known == now["mark"] or (known is None and not first_wakes):
        return nothing(None if before == now else dict(now))
    return something(text, dict(now))


# -- what follows --------------------------------------------------------------------------------------------------


def bounded(seen: Seen) -> Seen:
    """The same, its text as a target can take it; one that wants to keep more than may be kept has failed."""
    try:
        text, error, state = legible(seen.text), legible(seen.error), legible_value(seen.state)
        kept = len(json.dumps(state, ensure_ascii=False, allow_nan=False).encode())
    except (TypeError, ValueError, RecursionError) as problem:
        return failed(ErrorClass.EXCEPTION, f"what it wants to keep is no JSON value: {problem}")
    if kept > STATE_LIMIT:
        return failed(ErrorClass.EXCEPTION, f"it wants to keep {kept} bytes; {STATE_LIMIT} are the most")
    encoded = text.encode()
    if len(encoded) > TEXT_LIMIT:
        text = f"{encoded[:TEXT_LIMIT].decode(errors='ignore')}\n[cut here: {len(encoded) - TEXT_LIMIT} more bytes]"
    return Seen(seen.sight, text, state, error, seen.error_class, seen.retry_after)


def ended_by(seen: Seen) -> Ended | None:
    """How an attempt ends whose look has answered so; None: it goes on."""
    match seen.sight:
        case Sight.SOMETHING | Sight.SKIPPED:
            return None
        case Sight.NOTHING:
            return Ended(Ending.OK, reason=Reason.PRECONDITION_UNMET, outcome=Outcome.NOOP)
        case Sight.FAILED:
            return Ended(Ending.ERROR, error=seen.error, error_class=seen.error_class or ErrorClass.EXCEPTION,
                         reason=Reason.CHECK_FAILED, retry_after=seen.retry_after)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


def _short(value: Any) -> str:
    text = _json(value)
    return text if len(text) <= 40 else text[:37] + "..."
