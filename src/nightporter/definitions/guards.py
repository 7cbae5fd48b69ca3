"""`quiet_hours:`, `threshold:`, `coalesce:` and `debounce:`: when not to start, and how many arrivals make a run."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final

from nightporter.definitions import grammar
from nightporter.definitions.policy import duration_of
from nightporter.definitions.written import (
    Entries,
    Items,
    Scalar,
    Value,
    bad,
    flag_of,
    is_none,
    misread,
    text_of,
    whole_number_of,
    wrong_type,
)
from nightporter.errors import BadInput
from nightporter.rules import quiet, stagger, zones
from nightporter.words import Coalesce, QuietHours, Threshold

_SHORTEST: Final = timedelta(milliseconds=100)
_MOST_COUNTED: Final = 1_000_000
_MOST_STAGGER: Final = timedelta(microseconds=stagger.MOST)
_WINDOWS: Final = 10
"""How many windows a run waits at most, where nothing else is said."""
_SAYS_NOTHING: Final[Mapping[str, str]] = {
    "overlap": "whatever is going", "quiet_hours": "at any hour", "threshold": "and is not counted",
    "coalesce": "at once",
}


def guards_of(options: Entries, timezone: str) -> dict[str, Any]:
    """What an entry of `triggers` says of them, as fields of a TriggerSpec."""
    found: dict[str, Any] = {}
    if (value := options.get("quiet_hours")) is not None:
        found["quiet_hours"] = quiet_hours_of(value, timezone)
    if (value := options.get("threshold")) is not None:
        found["threshold"] = threshold_of(value)
    if (value := options.get("stagger")) is not None:
        found["stagger"] = duration_of("stagger", value, least=timedelta(seconds=1))
        if found["stagger"] > _MOST_STAGGER:
            raise bad(value.place, "`stagger` goes up to 5m", why="what is due at a time is still due about then",
                      next="write `stagger: 5m`, or another time")
    if (value := options.get("exact")) is not None and flag_of("exact", value):
        if "stagger" in found:
            raise bad(options.keys["exact"], "`exact` and `stagger` cannot stand together", next="choose one of them")
        found["exact"] = True
    gathered = [key for key in ("coalesce", "debounce") if key in options.values]
    if len(gathered) > 1:
        raise bad(options.keys["debounce"], "`coalesce` and `debounce` cannot stand together",
                  why="one keeps what came last, and the other the words of all", next="choose one of them")
    if gathered and "threshold" in found:
        raise bad(options.keys[gathered[0]], f"`threshold` and `{gathered[0]}` cannot stand together",
                  why="what is folded into another is no arrival of its own", next="choose one of them")
    for key in gathered:
        read = coalesce_of if key == "coalesce" else debounce_of
        found["coalesce"] = read(options.values[key])
    return found


def check_sense(kind: str, options: Entries) -> None:
    """Refuse options that say nothing for a kind of trigger, with the reason."""
    for key, spared in _SAYS_NOTHING.items():
        if kind == "manual" and key in options.values:
            raise bad(options.keys[key], f"`{key}` says nothing for `manual`",
                      why=f"a run that a person asks for passes {key}, {spared}", next="remove it")
    for key in ("stagger", "exact"):
        if kind == "at" and key in options.values:
            raise bad(options.keys[key], f"`{key}` says nothing for `at`", why="a moment is always kept exactly",
                      next="remove it")
    for key in ("coalesce", "debounce"):
        if kind in grammar.SCHEDULES and key in options.values:
            raise bad(options.keys[key], f"`{key}` says nothing for a schedule",
                      why="its times do not come in bursts, and to wait for more of them would only make each late",
                      next="remove it; `cooldown` keeps starts apart")


def quiet_hours_of(value: Value, timezone: str, *, of_destination: bool = False) -> QuietHours:
    """Spans of hours, in the zone of the automation; `none` lifts those that stand at the automation."""
    failures, hours = False, value
    if isinstance(value, Entries):
        known = grammar.QUIET_HOURS if of_destination else grammar.QUIET_HOURS[:2]
        grammar.check_keys(value, known, "in `quiet_hours`", {})
        written = value.get("hours")
        if written is None:
            raise bad(value.place, "`quiet_hours` has no `hours`", next='write `quiet_hours: "22:00-07:00"`')
        hours = written
        if (zone := value.get("timezone")) is not None:
            timezone = _zone(zone)
        if (flag := value.get("failures")) is not None:
            failures = flag_of("failures", flag)
    if is_none(hours):
        return QuietHours((), timezone)
    items = hours.items if isinstance(hours, Items) else (hours,)
    if not items:
        raise wrong_type("quiet_hours", hours, "hours", next='write `quiet_hours: "22:00-07:00"`')
    spans = tuple(_span(item) for item in items)
    if any(each == "00:00-24:00" for each in spans):
        raise bad(hours.place, "these hours never end", why="they are the whole of every day",
                  next="write fewer, or pause it: nightporter disable")
    return QuietHours(spans, timezone, failures)


def threshold_of(value: Value) -> Threshold:
    """Of how many arrivals one makes a run: a number, or a map of `every` and `within`."""
    if not isinstance(value, Entries):
        return Threshold(whole_number_of("threshold", value, least=2, most=_MOST_COUNTED))
    grammar.check_keys(value, grammar.THRESHOLD, "in `threshold`", {})
    every, within = value.get("every"), value.get("within")
    if every is None:
        raise bad(value.place, "`threshold` has no `every`", next="write `threshold: {every: 3, within: 1h}`")
    return Threshold(
        whole_number_of("every", every, least=2, most=_MOST_COUNTED),
        None if within is None else duration_of("within", within, least=_SHORTEST),
    )


def coalesce_of(value: Value) -> Coalesce:
    """Which arrivals are folded together, and how long their run waits for more."""
    if not isinstance(value, Entries):
        window = duration_of("coalesce", value, least=_SHORTEST)
        return Coalesce(window, window * _WINDOWS)
    grammar.check_keys(value, grammar.COALESCE, "in `coalesce`", {})
    written, longest, key = value.get("window"), value.get("max_wait"), value.get("key")
    if written is None:
        raise bad(value.place, "`coalesce` has no `window`", next="write `coalesce: {window: 30s, max_wait: 5m}`")
    window = duration_of("window", written, least=_SHORTEST)
    max_wait = window * _WINDOWS if longest is None else duration_of("max_wait", longest, least=_SHORTEST)
    if longest is not None and max_wait < window:
        raise bad(longest.place, "`max_wait` is shorter than `window`", why="then no arrival would be waited for",
                  next="write a longer one")
    return Coalesce(window, max_wait, "" if key is None or is_none(key) else _path(key))


def debounce_of(value: Value) -> Coalesce:
    """How long a run waits for further words of the same person."""
    window = duration_of("debounce", value, least=_SHORTEST)
    return Coalesce(window, window * _WINDOWS, joins=True)


def _path(value: Value) -> str:
    key = text_of("key", value)
    first, *rest = key.split(".")
    if first != "payload" or not rest or not all(rest):
        raise bad(value.place, f"{key[:60]!r} is no field of the payload", next="write `key: payload.order.id`")
    return key


def _span(value: Value) -> str:
    if not isinstance(value, Scalar) or value.kind != "text":
        raise wrong_type("quiet_hours", value, "hours", next='write them in quotes: "22:00-07:00"')
    try:
        return quiet.written(value.text)
    except BadInput as error:
        misread(value.place, error)


def _zone(value: Value) -> str:
    name = text_of("timezone", value)
    try:
        zones.zone(name)
    except BadInput as error:
        misread(value.place, error)
    return name

