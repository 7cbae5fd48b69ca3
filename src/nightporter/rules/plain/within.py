"""From when to when, and except when: the bounds of a schedule as they are said."""

from __future__ import annotations

from datetime import date, timedelta

from nightporter.clock import Instant, moment
from nightporter.rules.plain.lexicon import MONTHS
from nightporter.rules.plain.moments import date_of, instant_at
from nightporter.rules.plain.once import NeedsNow
from nightporter.rules.plain.refusals import ambiguous, beyond
from nightporter.rules.plain.said import Bound, Day, Said
from nightporter.rules.zones import zone as zone_named
from nightporter.words.bounds import Bounds, Days, Season


def bounds_of(said: Said, timezone: str, now: Instant | None) -> tuple[Bounds, bool]:
    """The bounds that were said, and whether they were counted from now. Raises BadSchedule."""
    if said.not_holidays:
        raise beyond("whose holidays are meant is not known", "they differ by country and region",
                     "list the days, or name an iCalendar file of them under `exclude`")
    if said.not_nth:
        raise beyond("days of the month cannot be excepted", "a schedule leaves out dates, months and weekdays",
                     "write the days that remain")
    starts, ends = said.starts, said.ends
    if isinstance(starts, Day) and isinstance(ends, Day) and starts.year is None and ends.year is None:
        date_of(starts), date_of(ends)
        return Bounds(seasons=_seasons(said, Season((starts.month, starts.day), (ends.month, ends.day))),
                      days=_days(said)), False
    from_now = False
    start = end = None
    if starts is not None:
        day, from_now = _day_of(starts, timezone, now, last=False)
        start = instant_at(f"{day}T00:00", timezone)
    if ends is not None:
        day, counted = _day_of(ends, timezone, now, last=True)
        end = instant_at(f"{day}T23:59:59", timezone)
        from_now = from_now or counted
    if start is not None and end is not None and end < start:
        raise beyond("the end comes before the start", "so it would never fire", "write the years")
    return Bounds(start, end, _seasons(said, None), _days(said)), from_now


def _day_of(bound: Bound, timezone: str, now: Instant | None, *, last: bool) -> tuple[date, bool]:
    """The first day that is in, or the last one; and whether that was counted from now."""
    if isinstance(bound, Day) and bound.year is not None:
        return date_of(bound), False
    if now is None:
        raise NeedsNow("from when or until when depends on the moment in which it is read",
                       why="what is kept is read again and again", next="write the date with its year")
    today = moment(now).astimezone(zone_named(timezone)).date()
    if isinstance(bound, Day):
        return _coming(bound, today), True
    kinds = [kind for kind, _ in bound]
    values = dict(bound)
    if kinds[0] == "MONTH":
        name = MONTHS[values["MONTH"] - 1]
        if last:
            raise ambiguous(f"until {name}", f"until the 1st of {name}", f"until the end of {name}")
        if "YEAR" in values:
            return date(values["YEAR"], values["MONTH"], 1), False
        return _coming(Day(1, values["MONTH"]), today), True
    if kinds[0] == "ENDOF":
        return _end_of(values, today, last)
    if kinds[0] == "NEXT":
        return today + timedelta(days=(values["WEEKDAY"] - today.isoweekday()) % 7 or 7), True
    return today + timedelta(days=kinds[0] == "TOMORROW"), True


def _end_of(values: dict[str, int | str], today: date, last: bool) -> tuple[date, bool]:
    unit, month = values.get("UNIT"), values.get("MONTH")
    if not last or unit not in (None, "month", "year"):
        raise beyond("the end of that is not understood", "a schedule ends on a day",
                     "write the date, such as `until 31 december 2026`")
    if unit == "year":
        return date(today.year, 12, 31), True
    if unit == "month":
        return _last_day(today.year, today.month), True
    year = values.get("YEAR")
    found = _last_day(int(year or today.year), int(month or 12))
    return (found if year or found >= today else _last_day(today.year + 1, int(month or 12))), year is None


def _last_day(year: int, month: int) -> date:
    return date(year + month // 12, month % 12 + 1, 1) - timedelta(days=1)


def _coming(day: Day, today: date) -> date:
    """The next such day, today included."""
    for year in range(today.year, today.year + 9):
        if (day.month, day.day) == (2, 29) and year % 4:
            continue
        found = date_of(Day(day.day, day.month, year))
        if found >= today:
            return found
    raise beyond("that day does not come", "", "write a date")


def _seasons(said: Said, season: Season | None) -> tuple[Season, ...]:
    """The season; or, where days of every year are excepted, what remains of the year."""
    out = sorted({(day.month, day.day) for day in said.not_dates if day.year is None})
    for day in said.not_dates:
        date_of(day)
    if not out:
        return (season,) if season is not None else ()
    if season is not None:
        raise beyond("a season and days that are excepted cannot stand together", "each cuts the year into parts",
                     "write the excepted days with their year")
    edges = [date(2000, *each) for each in out]
    found: list[Season] = []
    for before, after in zip(edges, [*edges[1:], edges[0]], strict=True):
        first, last = before + timedelta(days=1), after - timedelta(days=1)
        if (after - before).days != 1:
            found.append(Season((first.month, first.day), (last.month, last.day)))
    return tuple(found)


def _days(said: Said) -> tuple[Days, ...]:
    dates = [date_of(day).isoformat() for day in said.not_dates if day.year is not None]
    return tuple(Days(day, day) for day in dates)


def joined(words: Bounds | None, beside: Bounds | None) -> Bounds | None:
    """The bounds that the words say together with those that stand beside them. Raises BadSchedule where both say the
    same thing."""
    if words is None or beside is None:
        return words or beside
    for name in ("start", "end", "seasons"):
        if getattr(words, name) and getattr(beside, name):
            raise beyond(f"the {name.removesuffix('s')} is said twice", "the words of the schedule say it, and so does "
                         "a key beside them", "leave one of them out")
    return Bounds(
        words.start if words.start is not None else beside.start, words.end if words.end is not None else beside.end,
        words.seasons or beside.seasons, (*words.days, *beside.days), (*words.windows, *beside.windows),
    )
