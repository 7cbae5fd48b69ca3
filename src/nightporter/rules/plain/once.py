"""Once: in 20 minutes, tomorrow at 9, on 24 December 2026 at 18:00. What depends on now is counted from it."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Final

from nightporter.clock import SECOND, Instant, micros, moment
from nightporter.errors import BadSchedule
from nightporter.rules.plain.lexicon import MONTHS, SECONDS, WEEKDAYS
from nightporter.rules.plain.moments import date_of, instant_at, written
from nightporter.rules.plain.refusals import beyond, incomplete
from nightporter.rules.plain.said import Day, Said, listed
from nightporter.rules.plain.times import Time, in_part
from nightporter.rules.plain.understood import Understood
from nightporter.rules.schedule import parse
from nightporter.rules.zones import zone as zone_named

_REPEATING: Final = ("every", "adverb", "often", "nth", "monthdays", "months", "marks", "window", "begins", "season",
    "starts",
                     "ends", "other", "each", "not_weekdays", "not_months", "not_dates", "not_nth", "not_holidays")
_LENGTHS: Final = {**SECONDS, "millisecond": 0.001}


class NeedsNow(BadSchedule):
    """The words count from the moment in which they are read, and no moment was given."""


def is_once(said: Said) -> bool:
    """Whether one moment is meant."""
    if said.counted:
        return False
    repeats = said.every or said.adverb or said.often or said.each or said.repeats
    dated = any(day.year is not None for day in said.dates) or (said.dates and not repeats)
    return bool(said.once or said.later is not None or said.relative is not None or dated)


def once_of(said: Said, timezone: str, now: Instant | None) -> Understood:
    """The one moment that is meant. Raises BadSchedule."""
    if any(getattr(said, name) for name in _REPEATING):
        raise beyond("a single day is said together with what repeats", "it is either once or again and again",
                     "write one of them, such as `every day at 09:00` or `tomorrow at 09:00`")
    if said.later is not None:
        return _later(said, timezone, now)
    if said.dates:
        return _dated(said, timezone, now)
    if said.relative is None:
        raise incomplete("the day is not said", "on 24 december 2026 at 18:00", "tomorrow at 09:00")
    return _relative(said, timezone, now)


def _only_time(said: Said, day: str) -> Time:
    if not said.times:
        raise incomplete("the time of day is not said", f"{day} at 09:00")
    if len(set(said.times)) > 1:
        raise beyond(f"{listed(time.shown for time in said.times)} are more than once", "one moment has one time",
                     "write one trigger for each")
    time = said.times[0]
    if time.said == "midnight":
        raise BadSchedule("midnight of a day is ambiguous", why="it may be the one that begins it or the one that "
                          "ends it", next="write the day and 00:00, which begins it, or the next day and 00:00")
    return time


def _dated(said: Said, timezone: str, now: Instant | None) -> Understood:
    if len(said.dates) > 1:
        raise beyond("more than one date is said", "one moment has one date", "write one trigger for each")
    if said.relative is not None:
        raise beyond("two days are said", "one moment has one day", "write one of them")
    day = said.dates[0]
    if day.year is None:
        return _next_date(said, day, timezone, now)
    time = _only_time(said, "on 24 december 2026")
    return Understood(parse("at", written(date_of(day, said.weekdays), time), timezone), _notes(time))


def _next_date(said: Said, day: Day, timezone: str, now: Instant | None) -> Understood:
    """`once on 24 december`: the next one."""
    time = _only_time(said, f"once on {day.day} {MONTHS[day.month - 1]}")
    today = _today(timezone, now)
    for year in range(today.year, today.year + 9):
        try:
            expression = written(date_of(Day(day.day, day.month, year)), time)
        except BadSchedule:
            continue
        if instant_at(expression, timezone) > (now or 0):
            date_of(Day(day.day, day.month, year), said.weekdays)
            shown = f"{day.day} {MONTHS[day.month - 1]}"
            return Understood(
                parse("at", expression, timezone),
                (*_notes(time), f"{shown} is read as the next one, once; for each year write `every year on {shown}`"),
                from_now=True,
            )
    raise BadSchedule(f"there is no day {day.day} in that month", next="check the date")


def _relative(said: Said, timezone: str, now: Instant | None) -> Understood:
    word, weekday = said.relative or ("TODAY", None)
    name = word.lower() if weekday is None else f"{word.lower()} {WEEKDAYS[weekday]}"
    if said.weekdays:
        raise beyond("two days are said", "one moment has one day", "write one of them")
    time = _only_time(said, name)
    if word == "TONIGHT":
        time = in_part(time, "evening")
    day = _day(word, weekday, _today(timezone, now))
    expression = written(day, time)
    if now is not None and instant_at(expression, timezone) <= now:
        raise BadSchedule(f"{name} at {time.shown} has passed", why=f"it was {expression}, {timezone}",
                          next="write a later time, or `tomorrow`")
    notes = _notes(time)
    if word == "NEXT":
        notes += (f"{name} is read as the first one after today, {day}; for the one after it write the date",)
    return Understood(parse("at", expression, timezone), notes, from_now=True)


def _day(word: str, weekday: int | None, today: date) -> date:
    if weekday is None:
        return today + timedelta(days={"TODAY": 0, "TONIGHT": 0, "TOMORROW": 1, "OVERMORROW": 2}[word])
    ahead = (weekday - today.isoweekday()) % 7
    if word == "THIS":
        return today + timedelta(days=ahead)
    return today + timedelta(days=ahead or 7)


def _later(said: Said, timezone: str, now: Instant | None) -> Understood:
    amounts = said.later or []
    if said.weekdays or said.dates or said.relative is not None:
        raise beyond("a delay is said together with a day", "one moment is said once", "write one of them")
    if any(unit not in _LENGTHS for _, unit in amounts):
        raise beyond("a month is no length of time", "months and years differ in length",
                     "write the date, such as `on 24 december 2026 at 18:00`")
    days = sum(count * {"day": 1, "week": 7}.get(unit, 0) for count, unit in amounts)
    whole_days = all(unit in ("day", "week") for _, unit in amounts)
    if now is None:
        raise _needs_now()
    if said.times:
        if not whole_days:
            raise beyond("a delay and a time of day contradict each other", "the one is counted, the other is fixed",
                         "write `in 20m`, or `today at 18:00`")
        time = _only_time(said, "in 3 days")
        day = _today(timezone, now) + timedelta(days=days)
        return Understood(parse("at", written(day, time), timezone), _notes(time), from_now=True)
    length = micros(timedelta(seconds=sum(count * _LENGTHS[unit] for count, unit in amounts)))
    if length <= 0:
        raise BadSchedule("a delay of nothing is now", next="write `in 1m`, or run it by hand")
    at = Instant(-(-(now + length) // SECOND) * SECOND)
    if days:
        local = moment(now).astimezone(zone_named(timezone))
        same = moment(at).astimezone(zone_named(timezone))
        if local.utcoffset() != same.utcoffset():
            raise BadSchedule(
                "the clocks change until then, so it is ambiguous",
                why="it may mean so many hours, or the same time of day",
                next=f"write `in {days * 24}h`, or `at {same.date()}T{local:%H:%M}`",
            )
    return Understood(parse("at", shown_exactly(at, timezone), timezone), from_now=True)


def shown_exactly(at: Instant, timezone: str) -> str:
    """An instant to the second, with its offset."""
    return moment(at).astimezone(zone_named(timezone)).isoformat(timespec="seconds")


def _today(timezone: str, now: Instant | None) -> date:
    if now is None:
        raise _needs_now()
    return moment(now).astimezone(zone_named(timezone)).date()


def _needs_now() -> NeedsNow:
    return NeedsNow("the words depend on the moment in which they are read",
                    why="what is kept is read again and again, and each time it would mean another moment",
                    next="write the date and the time, such as at 2026-12-24T18:00")


def _notes(time: Time) -> tuple[str, ...]:
    if not (time.half_is_open and time.hour < 12):
        return ()
    return (f"{time.hour} is read as {time.shown}; for the evening write {time.hour + 12}:{time.minute:02}",)
