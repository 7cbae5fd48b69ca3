"""Intervals: elapsed time, and hours and minutes within a window of the day."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from nightporter.rules.durations import format_duration
from nightporter.rules.plain.days import Days, parts_of
from nightporter.rules.plain.fields import month_field, number_field, time_fields, weekday_field
from nightporter.rules.plain.lexicon import ALL_DAYS, SECONDS
from nightporter.rules.plain.moments import local_instant
from nightporter.rules.plain.refusals import ambiguous, beyond, incomplete
from nightporter.rules.plain.rules import MOST_POSITIONS, daily_times
from nightporter.rules.plain.said import Said
from nightporter.rules.plain.times import Time
from nightporter.rules.plain.understood import Understood
from nightporter.rules.schedule import parse

_SHORT: Final = ("millisecond", "second", "minute", "hour")
_LENGTHS: Final = {**SECONDS, "millisecond": 0.001}
_DAY: Final = 86_400


def is_interval(said: Said) -> bool:
    """Whether it repeats by elapsed time, or within the hours of a day."""
    if said.every:
        return said.compact or len(said.every) > 1 or said.every[0][1] in _SHORT
    return said.adverb in _SHORT or (said.often is not None and said.often[1] in _SHORT and said.often[0] == 1)


def interval_of(said: Said, zone: str) -> Understood:
    """The schedule of `every 15m`, `every hour at :30`, `every 2h from 08:00 to 20:00`. Raises BadSchedule."""
    every = said.every or [(1, said.adverb or (said.often or (1, "hour"))[1])]
    if any(unit not in _LENGTHS for _, unit in every):
        raise beyond("a month is no length of time", "months and years differ in length",
                     "write `on the 1st of every month at 09:00`")
    seconds = sum(count * _LENGTHS[unit] for count, unit in every)
    length = format_duration(timedelta(seconds=seconds))
    if said.nth or said.monthdays or (said.dates and not said.counted):
        raise beyond(f"every {length} on a day of the month cannot be said", "it needs the hours of that day",
                     "write the times, such as `on the 1st at 09:00 and 17:00`")
    if said.often is not None and (said.every or said.adverb):
        raise beyond("how often is said twice", "the two may contradict each other", "write one of them")
    if said.counted:
        return _counted(said, length, zone)
    if said.begins is not None:
        shown = said.begins.shown
        raise ambiguous(f"every {length} from {shown} on", f"every {length} from {shown} to 23:59",
                        f"every {length}, counted from 2026-12-01 at {shown}",
                        meaning="it may begin anew each day, or go on through the night")
    if said.times:
        raise beyond(f"every {length} and a time of day contradict each other", "the one repeats, the other is fixed",
                     "write `every day at 09:00`, or `every 2h from 08:00 to 20:00`")
    days = sorted(set(said.weekdays or ALL_DAYS) - set(said.not_weekdays))
    months = [month for month in said.months or range(1, 13) if month not in said.not_months]
    on = f"* {month_field(months)} {weekday_field(days)}"
    if said.weekdays and not said.repeats:
        raise ambiguous("a single day", f"every {length} every monday", f"every {length} on mondays",
                        meaning="it may be meant every week, or once")
    if said.window is not None:
        return _within(said, seconds, length, on, zone)
    if said.marks:
        return _marked(said, seconds, length, on, zone)
    if on == "* * *":
        return Understood(parse("every", length, zone))
    return _stepped(seconds, length, on, zone)


def _counted(said: Said, length: str, zone: str) -> Understood:
    if len(said.dates) != 1 or len(said.times) != 1 or said.dates[0].year is None:
        raise incomplete("from when it is counted is not said", f"every {length}, counted from 2026-12-01 at 09:00")
    anchor = local_instant(said.dates[0], said.times[0], said.weekdays, zone)
    return Understood(parse("every", length, zone, anchor=anchor))


def _stepped(seconds: float, length: str, on: str, zone: str) -> Understood:
    """An interval on some days only: it has to divide what it is counted in, for each day begins anew."""
    whole = int(seconds)
    for unit, within, fields in ((1, 60, "*/{} * *"), (60, 3600, "*/{} *"), (3600, _DAY, "0 */{}")):
        if whole == seconds and whole % unit == 0 and within % whole == 0 and whole < within:
            step = fields.format(whole // unit).replace("*/1 ", "* ")
            return Understood(parse("cron", f"{step.removesuffix('/1')} {on}", zone))
    raise beyond(f"every {length} on some days does not divide the day", "each of these days would begin anew",
                 f"say from when to when, such as `every {length} from 08:00 to 20:00`")


def _marked(said: Said, seconds: float, length: str, on: str, zone: str) -> Understood:
    hours = seconds / 3600
    if hours not in (1, 2, 3, 4, 6, 8, 12, 24):
        raise beyond(f"every {length} has no minute of the hour", "it does not begin at an hour of the day",
                     "write `every hour at minute 30`")
    if any(mark > 59 for mark in said.marks):
        raise beyond("an hour has the minutes 0 to 59", "", "write `every hour at minute 30`")
    step = "*" if hours == 1 else f"*/{int(hours)}" if hours < 24 else "0"
    return Understood(parse("cron", f"{number_field(said.marks)} {step} {on}", zone))


def _within(said: Said, seconds: float, length: str, on: str, zone: str) -> Understood:
    """The first and the last instant of a window are in it."""
    first, last = said.window or (Time(0), Time(0))
    if seconds != int(seconds) or seconds > _DAY or (said.marks and (seconds != 3600 or max(said.marks) > 59)):
        raise beyond(f"every {length} from {first.shown} to {last.shown} cannot be said", "it does not fit into a day",
                     "write the times")
    begin, end = first.of_day, last.of_day
    if end <= begin:
        if first.half_is_open and last.half_is_open:
            raise ambiguous(f"{first.shown} to {last.shown}", f"from {first.shown} to {(last.hour + 12) % 24:02}:00",
                            f"from {first.shown} to {last.shown} of the next day")
        if said.weekdays or said.not_weekdays:
            raise beyond("a window over midnight on some days is ambiguous", "it may belong to the day on which it "
                         "begins or to the one on which it ends", "write two triggers, one until and one from 00:00")
        end += _DAY
    seen = range(begin, end + 1, int(seconds))
    if said.marks:  # `every hour at :30 from 9 to 17`
        seen = range(begin + -begin % 60, end + 1, 60)
    times = [Time(at // 3600, at // 60 % 60, at % 60) for at in (each % _DAY for each in seen)]
    times = [time for time in times if not said.marks or time.minute in said.marks]
    if not times:
        raise beyond("no minute that is said lies in the window", "it is too short", "write a longer one")
    if len(times) > 1440:
        raise beyond(f"every {length} is too often for a window", "a minute is the least there", "write `every 1m`")
    minutes, hours = {time.minute for time in times}, {time.hour for time in times}
    fields = time_fields(times)
    if fields is not None and not any(time.second for time in times) and len(minutes) > 1:
        fields = f"{number_field(minutes, range(60))} {number_field(hours)}"
    if fields is None and len(minutes) * len(hours) > MOST_POSITIONS:
        raise beyond(f"every {length} from {first.shown} to {last.shown} is too often to end on the hour",
                     "each of its times would have to be named",
                     "write an end before it, such as `from 08:00 to 19:59`")
    if fields is None:
        days = Days("day", by=parts_of(said))
        return Understood(daily_times(times, days, zone))
    return Understood(parse("cron", f"{fields} {on}", zone))

