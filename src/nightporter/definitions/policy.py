"""`limits:`, `retry:` and the other bounds of an automation."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any, Final

from nightporter.definitions import grammar
from nightporter.definitions.moments import end_of
from nightporter.definitions.written import (
    Entries,
    Items,
    Scalar,
    Value,
    bad,
    choices_of,
    entries_of,
    is_none,
    misread,
    text_of,
    whole_number_of,
    wrong_type,
)
from nightporter.errors import BadInput, BadSchedule
from nightporter.rules import durations
from nightporter.words import Limits, Retry

MOST_COUNTED: Final = 1_000_000
MOST_ATTEMPTS: Final = 100
MOST_OUTPUT: Final = 100_000_000
"""Bytes. `output: none` means this: what a run prints is kept in the store, which has its own bounds."""
LONGEST: Final = timedelta(days=365)

RETRIED: Final = ("transient", "nonzero_exit", "exception")
_NEVER_RETRIED: Final = ("timeout", "configuration", "permission", "budget")

_SIZE: Final = re.compile(r"(\d{1,9}(?:\.\d{1,3})?)\s*(B|KB|MB)", re.IGNORECASE)
_UNITS: Final = {"b": 1, "kb": 1000, "mb": 1_000_000}


def limits_of(value: Value) -> Limits:
    """The bounds of an automation; those not named keep their defaults."""
    entries = entries_of("limits", value)
    grammar.check_keys(entries, grammar.LIMITS, "in `limits`", grammar.NOT_YET_LIMITS)
    chosen: dict[str, Any] = {}
    for key, limit in entries.values.items():
        if key == "output":
            chosen[key] = MOST_OUTPUT if is_none(limit) else _size(limit)
        elif is_none(limit):
            chosen[key] = None
        elif key == "timeout":
            chosen[key] = duration_of(key, limit, least=timedelta(milliseconds=1))
        else:
            chosen[key] = whole_number_of(key, limit, least=1, most=MOST_COUNTED)
    return Limits(**chosen)


def retry_of(value: Value) -> Retry:
    """When a failed attempt is tried again; `none` is one attempt."""
    if is_none(value):
        return Retry(attempts=1)
    if not isinstance(value, Entries):
        raise wrong_type("retry", value, "a map, or none", next="write `retry: {attempts: 3}`")
    grammar.check_keys(value, grammar.RETRY, "in `retry`", {})
    retry = Retry()
    attempts, delays, on = value.get("attempts"), value.get("delays"), value.get("on")
    if on is not None:
        for item in on if isinstance(on, Items) else (on,):
            if isinstance(item, Scalar) and item.text in _NEVER_RETRIED:
                raise bad(item.place, f"`{item.text}` is never tried again",
                          why="a second try of it would end as the first one did", next="remove it from `on`")
    return Retry(
        attempts=retry.attempts if attempts is None
        else whole_number_of("attempts", attempts, least=1, most=MOST_ATTEMPTS),
        delays=retry.delays if delays is None else _delays(delays),
        on=retry.on if on is None else choices_of("on", on, RETRIED),
    )


def _delays(value: Value) -> tuple[timedelta, ...]:
    if isinstance(value, Scalar):
        return (duration_of("delays", value),)
    if not isinstance(value, Items) or not value.items:
        raise wrong_type("delays", value, "a list of durations", next="write `delays: [30s, 1m, 5m]`")
    return tuple(duration_of("delays", item) for item in value)


def cooldown_of(value: Value) -> timedelta:
    """The least time between two starts; `none` is none."""
    return timedelta(0) if is_none(value) else duration_of("cooldown", value)


SHORTEST_LIFE: Final = timedelta(hours=1)


def expiry_of(value: Value, timezone: str) -> dict[str, Any]:
    """`lasts`, for a duration since it was last renewed; or `expires`, for a date or an instant."""
    written = text_of("expires", value)
    try:
        durations.parse_duration(written)
    except BadSchedule:
        try:
            return {"expires": end_of(written, timezone)}
        except BadSchedule as error:
            misread(value.place, error)
    return {"lasts": duration_of("expires", value, least=SHORTEST_LIFE)}


def duration_of(key: str, value: Value, *, least: timedelta = timedelta(0)) -> timedelta:
    """A duration in words, a year at most."""
    if isinstance(value, Scalar) and value.kind == "number":
        raise bad(value.place, f"`{key}: {value.text}` does not say how long", why="a number alone names no unit",
                  next=f"write {value.text}s, {value.text}m or {value.text}h")
    if not isinstance(value, Scalar) or value.kind != "text":
        raise wrong_type(key, value, "a duration such as 5m")
    try:
        duration = durations.parse_duration(value.text)
    except BadInput as error:
        misread(value.place, error)
    if not least <= duration <= LONGEST:
        bounds = f"from {durations.format_duration(least)} to {durations.format_duration(LONGEST)}"
        raise bad(value.place, f"`{key}` wants a duration {bounds}, and here is {value.text[:40]}")
    return duration


def _size(value: Value) -> int:
    if isinstance(value, Scalar) and value.kind == "text":
        found = _SIZE.fullmatch(text_of("output", value).strip())
        if found is None:
            raise wrong_type("output", value, "a size", next="write a number of bytes, or 500KB, or 1MB")
        size = round(float(found[1]) * _UNITS[found[2].lower()])
    else:
        size = whole_number_of("output", value, least=0, most=MOST_OUTPUT)
    if not 1000 <= size <= MOST_OUTPUT:
        raise bad(value.place, f"`output` wants from 1000 bytes to 100MB, and here is {size}")
    return size
