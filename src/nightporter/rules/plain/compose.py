"""From what a sentence says to one schedule, or to the reason why it is none.

Nothing is guessed: what has two readings is refused with both, what is left open with what to add. The calendar and
the clock changes are none of its business: it writes an expression, and `rules.schedule` says when that is due.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from nightporter.clock import Instant
from nightporter.errors import BadSchedule
from nightporter.rules.exclusions import next_running
from nightporter.rules.plain.days import Days, days_of
from nightporter.rules.plain.fields import time_fields
from nightporter.rules.plain.intervals import interval_of, is_interval
from nightporter.rules.plain.lexicon import WEEKDAYS
from nightporter.rules.plain.once import is_once, once_of
from nightporter.rules.plain.refusals import ambiguous, beyond, incomplete
from nightporter.rules.plain.rules import counted, daily_times, weekly_clauses
from nightporter.rules.plain.said import Said, listed, says_only
from nightporter.rules.plain.times import Time, in_part, one_clock
from nightporter.rules.plain.understood import Understood
from nightporter.rules.plain.within import bounds_of
from nightporter.rules.schedule import parse
from nightporter.words.bounds import Bounds

_BARE: Final = {
    "minute": "* * * * *", "hour": "0 * * * *", "day": "0 0 * * *", "week": "0 0 * * mon", "month": "0 0 1 * *",
    "quarter": "0 0 1 1,4,7,10 *", "year": "0 0 1 1 *",
}
"""What `daily` and its like are alone, as in systemd."""


def composed(said: Said, timezone: str, now: Instant | None) -> Understood:
    """The schedule of a sentence. Raises BadSchedule."""
    zone = _zone(said, timezone)
    for clause in (said, *said.more):
        _settle_times(clause)
    said = _one_clause(said)
    if is_once(said):
        return once_of(said, zone, now)
    if said.season is not None:
        first, last = said.season
        said.months += [(first - 1 + step) % 12 + 1 for step in range((last - first) % 12 + 1)]
    bounds, from_now = bounds_of(said, zone, now)
    each_year = said.starts is not None and bool(bounds.seasons)
    if said.more:
        found = _clauses(said, zone)
    elif is_interval(said):
        found = interval_of(said, zone)
    elif said.adverb is not None and _is_bare(said):
        found = Understood(parse("cron", _BARE[said.adverb], zone),
                           (f"`{_word(said.adverb)}` alone is the first midnight of each {said.adverb}",))
    else:
        found = _recurring(said, zone, bounds.start, now)
    if each_year:
        found = replace(found, notes=(*found.notes, "the days from and to are of each year; with a year they are once"))
    return _bounded(found, bounds, now, from_now=from_now)


def _bounded(found: Understood, bounds: Bounds, now: Instant | None, *, from_now: bool) -> Understood:
    if bounds == Bounds():
        return found
    schedule = replace(found.schedule, bounds=bounds)
    if now is not None and next_running(schedule, now) is None:
        raise beyond("it never fires", "its end has passed, or nothing is left of it", "write a later end")
    return replace(found, schedule=schedule, from_now=found.from_now or from_now)


def _zone(said: Said, timezone: str) -> str:
    zones = {each.zone for each in (said, *said.more)} - {None}
    if len(zones) > 1:
        raise beyond("two time zones are said", "a schedule is counted in one zone", "write two triggers")
    if not zones:
        return timezone
    found = zones.pop() or ()
    if len(found) > 1:
        raise ambiguous("the place", *found)
    if said.more and said.more[-1].zone is None:
        raise beyond("of which days the place is the clock is not clear", "it stands in the midst of the sentence",
                     "write the place at the end")
    return found[0]


def _one_clause(said: Said) -> Said:
    """Clauses that differ in one thing only are one; others are more than one schedule."""
    more, said.more = said.more, []
    for clause in more:
        if not says_only(clause, "weekdays", "times", "part"):
            raise _two_schedules()
        if clause.weekdays and clause.times == said.times and said.weekdays:
            said.weekdays += clause.weekdays
            said.repeats = True
        elif clause.weekdays and set(clause.weekdays) == set(said.weekdays):
            said.times += clause.times
        else:
            said.more.append(clause)
    return said


def _settle_times(said: Said) -> None:
    if said.part is not None and not said.times:
        raise incomplete(f"`{said.part}` is no time of day", _with(said, {"morning": "08:00", "afternoon": "14:00",
                         "evening": "18:00", "night": "22:00"}[said.part]))
    if said.part is not None:
        said.times = [in_part(time, said.part) for time in said.times]
    if any(time.said == "night" or said.part == "night" for time in said.times) and (said.weekdays or said.relative):
        early = [time for time in said.times if time.hour < 6]
        if early:
            raise BadSchedule(f"{early[0].shown} at night is ambiguous", why="it may be the night before that day or "
                              "the night after it", next=f"write the day and {early[0].shown}")
    one_clock([*said.times, *(said.window or ())])


def _with(said: Said, time: str) -> str:
    days = f"every {listed(WEEKDAYS[day] for day in said.weekdays)}" if said.weekdays else "every day"
    return f"{days} at {time}"


def _word(unit: str) -> str:
    return {"day": "daily", "year": "yearly"}.get(unit, unit + "ly")


def _is_bare(said: Said) -> bool:
    return not (said.times or said.marks or said.window or said.weekdays or said.nth or said.monthdays or said.dates
                or said.months or said.often or said.every)


def _recurring(said: Said, zone: str, start: Instant | None, now: Instant | None) -> Understood:
    count, unit = _cadence(said)
    days = days_of(said, count, unit)
    _check_midnight(said, days)
    if said.marks or said.window or said.begins:
        raise incomplete("how often is not said", "every 15m from 08:00 to 18:00", "every hour at minute 30")
    if not said.times:
        raise incomplete("the time of day is not said", f"{days.words} at 09:00")
    _check_count(said, days)
    if days.every > 1 and days.kind != "year" and (said.months or said.not_months or (said.starts and start is None)):
        raise beyond(f"every {days.every} {days.kind}s in a part of the year cannot be said",
                     "it would be counted on through the rest of it", "leave the months out, or write the days")
    if days.every > 1:
        return Understood(counted(said.times, days, zone, start, now), notes_of(said.times), from_now=start is None)
    times = time_fields(said.times)
    if times is None:
        return Understood(daily_times(said.times, days, zone), notes_of(said.times))
    return Understood(parse("cron", f"{times} {days.fields}", zone), notes_of(said.times))


def _clauses(said: Said, zone: str) -> Understood:
    """Clauses that each have days of the week and times of their own."""
    clauses = [said, *said.more]
    for clause in clauses:
        if not clause.weekdays or not clause.times or not clause.repeats:
            raise incomplete("one of the days or times is not said", "mondays at 09:00 and fridays at 17:00")
    if any(time.said == "midnight" for clause in clauses for time in clause.times):
        raise _midnight()
    if not says_only(said, "weekdays", "times", "part", "months", "season", "starts", "ends", "not_months", "not_dates",
                     "more"):
        raise _two_schedules()
    times = [time for clause in clauses for time in clause.times]
    one_clock(times)
    days = days_of(said, 1, None)
    months = tuple(part for part in days.by if part.startswith("BYMONTH"))
    schedule = weekly_clauses([(clause.weekdays, clause.times) for clause in clauses], months, zone)
    return Understood(schedule, notes_of(times))


def _two_schedules() -> BadSchedule:
    return beyond("these are two schedules in one sentence", "only days of the week can have times of their own",
                  "write one trigger for each under `triggers:`")


def _cadence(said: Said) -> tuple[int, str | None]:
    if len(said.every) > 1:
        raise beyond("an interval with a day is mixed", "it is neither elapsed time nor days of the calendar",
                     "write `every 36h`")
    if said.every:
        count, unit = said.every[0]
        if count < 1:
            raise beyond(f"every {count} {unit}s is no interval", "it goes on from 1", f"write `every {unit}`")
        if unit == "quarter" and count > 1:
            raise beyond(f"every {count} quarters cannot be said", "they are counted in months",
                         f"write `every {count * 3} months on the 1st at 09:00`")
        return count, unit
    if said.adverb is not None:
        return 1, said.adverb
    return 1, said.often[1] if said.often else None


def _check_midnight(said: Said, days: Days) -> None:
    if any(time.said == "midnight" for time in said.times) and not days.every_day:
        raise _midnight()


def _midnight() -> BadSchedule:
    return BadSchedule("midnight of a day is ambiguous", why="it may be the one that begins it or the one that ends it",
                       next="write the day and 00:00, which begins it, or the next day and 00:00")


def _check_count(said: Said, days: Days) -> None:
    """`twice a day` has two times."""
    if said.often is None:
        return
    count, unit = said.often
    found = len(set(said.times)) * days.in_a(unit)
    if count != found:
        raise beyond(f"{count} times a {unit} is said, and {found} of them", "the two contradict each other",
                     "say as many, or leave the number out")


def notes_of(times: Sequence[Time]) -> tuple[str, ...]:
    """What is to be said of how the times were read."""
    found = [time for time in times if time.half_is_open and time.hour < 12]
    return tuple(
        f"{time.hour}{f':{time.minute:02}' if time.minute else ''} is read as {time.shown}; "
        f"for the evening write {time.hour + 12}:{time.minute:02}" for time in dict.fromkeys(found)
    )
