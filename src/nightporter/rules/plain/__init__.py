"""Schedules as people write them: plain words, and every other form that one line of text can have.

    understand   `weekdays at 07:30`, `first monday at 10`, `in 20m`: all of it is understood, or refused
    read_words   the same, and cron, intervals, instants, systemd's OnCalendar and the presets: what `when:` takes

docs/schedules.md has the forms.
"""

from __future__ import annotations

import re
from datetime import timedelta
from functools import lru_cache
from typing import Final

from nightporter.clock import Instant, micros, moment
from nightporter.errors import BadSchedule
from nightporter.rules import durations
from nightporter.rules.on_calendar import is_on_calendar, on_calendar
from nightporter.rules.plain.lexicon import MONTHS
from nightporter.rules.plain.once import NeedsNow
from nightporter.rules.plain.presets import PRESETS
from nightporter.rules.plain.understood import Understood
from nightporter.rules.schedule import next_due, parse
from nightporter.rules.zones import zone
from nightporter.words.automation import Schedule

__all__ = ["BareDuration", "NeedsNow", "Understood", "from_now_on", "normalised", "read_words", "understand"]

LONGEST: Final = 200
"""Characters of plain words."""
_INSTANT: Final = re.compile(r"(?:at )?(\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d\S*(?: ?(?:[Zz]|[+-]\d\d:?\d\d))?)")
_RULE: Final = re.compile(r"(?:RRULE:)?FREQ=", re.IGNORECASE)
_CRON: Final = re.compile(r"[\d*/,?~-]+ +[\d*/,?~LW#-]+( |$)|@[a-zA-Z]")
"""The first two fields of a cron expression, minutes and hours, have no words in them."""


_NUMERIC_DATE: Final = re.compile(r"(?<![\d/.])(\d{1,2})[/.](\d{1,2})[/.](\d{4})(?!\d)")


def _numeric(found: re.Match[str]) -> BadSchedule:
    """A date in numbers, which day and month stand in either order in."""
    first, second, year = (int(part) for part in found.groups())
    readings = list(dict.fromkeys(
        f"{day} {MONTHS[month - 1]} {year}" for day, month in ((first, second), (second, first))
        if 1 <= month <= 12 and 1 <= day <= 31
    ))
    return BadSchedule(f"the date {found[0]!r} is written in numbers", why="countries differ in which one is the month",
                       next=f"write {' or '.join(f'`{each}`' for each in readings) or '24 december 2026'}")


class BareDuration(BadSchedule):
    """A duration alone: how long is said, and neither how often nor when."""


def read_words(text: str, timezone: str, *, now: Instant | None = None) -> Understood:
    """The schedule that a line of text says, in that zone where it names none.

    `now` is what `tomorrow` and `in 20m` are counted from; without one they are refused (NeedsNow). Raises
    BadSchedule with what was not understood, or with both readings of what is ambiguous.
    """
    words = text.strip()
    if any(not character.isprintable() and character != "\t" for character in words):
        raise BadSchedule("the schedule has characters that cannot be seen", why="it is one line of text",
                          next="type it again on one line")
    words = " ".join(words.split())
    if not words:
        raise BadSchedule("the schedule is empty", next="write something like every 15m or weekdays at 07:30")
    zone(timezone)
    if _CRON.match(words):
        return Understood(parse("cron", words, timezone))
    if _RULE.match(words):
        return Understood(parse("rrule", words, timezone))
    if instant := _INSTANT.fullmatch(words):
        return Understood(parse("at", instant[1], timezone))
    every = words[6:] if words.lower().startswith("every ") else ""
    if _is_duration(every) or every.isdigit():
        return Understood(parse("every", every, timezone))
    if _is_duration(words):
        raise BareDuration(f"`{words}` is ambiguous", why=f"it may mean every {words}, or once, in {words}",
                           next=f"write `every {words}` or `in {words}`")
    if preset := PRESETS.get(words.lower().replace("-", "_")):
        return Understood(parse("cron", preset, timezone))
    if numbers := _NUMERIC_DATE.search(words):
        raise _numeric(numbers)
    if is_on_calendar(words):
        return on_calendar(words, timezone)
    return understand(words, timezone, now=now)


def understand(text: str, timezone: str, *, now: Instant | None = None) -> Understood:
    """The schedule of plain words. Raises as `read_words` does."""
    if len(text) > LONGEST:
        raise BadSchedule(f"the schedule {text[:40]!r}... is too long", why=f"{LONGEST} characters are the most",
                          next="shorten it")
    return _understood(text, timezone, now)


@lru_cache(maxsize=1024)
def _understood(text: str, timezone: str, now: Instant | None) -> Understood:
    from nightporter.rules.plain.compose import composed
    from nightporter.rules.plain.forms import explained
    from nightporter.rules.plain.gather import said_by
    from nightporter.rules.plain.grammar import tree_of
    from nightporter.rules.plain.tokens import NotUnderstood, pieces_of, plain_text

    plain = plain_text(text)
    try:
        said = said_by(tree_of(pieces_of(plain)))
    except NotUnderstood as error:
        raise explained(error, plain) from None
    return composed(said, timezone, now)


def from_now_on(text: str, timezone: str, now: Instant) -> str | None:
    """For words that depend on the moment: the one-shot to write where they are kept; None where they are none."""
    try:
        found = read_words(text, timezone, now=now).schedule
    except BadSchedule:
        return None
    at = next_due(found, now)
    if found.kind != "at" or at is None:
        return None
    minute = micros(timedelta(minutes=1))  # as it is written by hand
    local = moment(Instant(-(-at // minute) * minute)).astimezone(zone(timezone))
    return f"at {local:%Y-%m-%dT%H:%M}"


def normalised(schedule: Schedule) -> str:
    """The schedule in the form that is kept, without its bounds and its anchor: `30 7 * * mon-fri`, `every 15m`,
    `at 2026-12-24T18:00`, `FREQ=...`. `read_words` reads it as the same schedule."""
    if schedule.kind in ("every", "at"):
        return f"{schedule.kind} {schedule.expression}"
    return schedule.expression


def _is_duration(words: str) -> bool:
    try:
        durations.parse_duration(words)
    except BadSchedule:
        return False
    return True
