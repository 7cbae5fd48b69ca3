"""Next instants a second: twenty mixed schedules in five zones beside cronsim, rules beside dateutil, and bounds."""

from __future__ import annotations

import random
import time
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from itertools import cycle

from cronsim import CronSim
from dateutil.rrule import rrulestr

from benchmarks.figures import Row, Target, rounds
from benchmarks.options import Options
from nightporter.clock import DAY, SECOND, Instant, instant, moment
from nightporter.rules.schedule import next_due, parse
from nightporter.rules.zones import zone
from nightporter.words import Schedule
from nightporter.words.bounds import Bounds, Days, Season, Window

ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu")
CRONS = (
    "* * * * *", "*/5 * * * *", "*/15 9-17 * * mon-fri", "0 * * * *", "30 2 * * *", "0 9 * * mon-fri", "15 10 1 * *",
    "0 0 * * sun", "45 23 31 * *", "0 12 1,15 * *", "5 4 * jan,jul *", "10 8 * * mon#1", "0 22 L * *",
    "*/10 0-6 * * sat,sun", "0 6 29 2 *", "59 23 * dec fri",
)
INTERVALS = ("90s", "15m", "7h", "1d")
RULES = (
    "FREQ=DAILY", "FREQ=WEEKLY;BYDAY=MO,WE,FR", "FREQ=MONTHLY;BYDAY=2TU", "FREQ=MONTHLY;BYMONTHDAY=-1",
    "FREQ=YEARLY;BYMONTH=1;BYDAY=MO", "FREQ=HOURLY;INTERVAL=5", "FREQ=WEEKLY;INTERVAL=2;BYDAY=SU;BYHOUR=2;BYMINUTE=30",
    "FREQ=DAILY;BYHOUR=9,17;BYSETPOS=-1",
)
START = instant(datetime(2026, 1, 1, tzinfo=UTC))
ASKED_WITHIN = 730 * DAY


def mixed() -> list[Schedule]:
    """Twenty: sixteen cron expressions and four intervals, their zones by turns."""
    zones = cycle(ZONES)
    return [
        *(parse("cron", expression, next(zones)) for expression in CRONS),
        *(parse("every", interval, next(zones), anchor=START) for interval in INTERVALS),
    ]


def ruled() -> list[Schedule]:
    """Eight recurrence rules, their zones by turns."""
    zones = cycle(ZONES)
    return [parse("rrule", rule, next(zones), anchor=START) for rule in RULES]


def bounded() -> list[Schedule]:
    """The cron expressions with a start, two seasons, a month of holidays and hours of every weekend left out."""
    bounds = Bounds(
        start=START, seasons=(Season((1, 1), (7, 31)), Season((8, 1), (12, 31))),
        days=tuple(Days(f"2026-12-{day:02}", f"2026-12-{day:02}", "") for day in range(1, 32)),
        windows=(Window(22 * 60, 6 * 60, (6, 7)),),
    )
    return [replace(schedule, bounds=bounds) for schedule in mixed() if schedule.kind == "cron"]


def rules_walked(schedules: list[Schedule], steps: int) -> float:
    """The same by dateutil, which knows no zone here."""
    begin = moment(START).replace(tzinfo=None)
    start = time.perf_counter()
    for schedule in schedules:
        slots = iter(rrulestr(schedule.expression, dtstart=begin))
        for _ in range(steps):
            next(slots)
    return len(schedules) * steps / (time.perf_counter() - start)


def walked(schedules: list[Schedule], steps: int) -> float:
    """Instants a second, each the one after the one before."""
    start = time.perf_counter()
    for schedule in schedules:
        at = START
        for _ in range(steps):
            found = next_due(schedule, at)
            assert found is not None
            at = found
    return len(schedules) * steps / (time.perf_counter() - start)


def asked(schedules: list[Schedule], instants: list[Instant]) -> float:
    """Instants a second, each the first after an instant that has nothing to do with the one before."""
    start = time.perf_counter()
    for schedule in schedules:
        for at in instants:
            next_due(schedule, at)
    return len(schedules) * len(instants) / (time.perf_counter() - start)


def cronsim_walked(schedules: list[Schedule], steps: int) -> float:
    start = time.perf_counter()
    for schedule in schedules:
        slots = CronSim(schedule.expression, moment(START).astimezone(zone(schedule.timezone)))
        for _ in range(steps):
            next(slots)
    return len(schedules) * steps / (time.perf_counter() - start)


def cronsim_asked(schedules: list[Schedule], instants: list[Instant]) -> float:
    at = {name: [moment(i).astimezone(zone(name)) for i in instants] for name in ZONES}
    start = time.perf_counter()
    for schedule in schedules:
        for local in at[schedule.timezone]:
            next(CronSim(schedule.expression, local))
    return len(schedules) * len(instants) / (time.perf_counter() - start)


def agree(schedules: list[Schedule]) -> None:
    """Raises AssertionError where the two give another instant in a zone that never changes its clocks."""
    for schedule in (s for s in schedules if s.timezone in ("UTC", "Asia/Kathmandu")):
        slots, at = CronSim(schedule.expression, moment(START).astimezone(zone(schedule.timezone))), START
        for _ in range(20):
            found, theirs = next_due(schedule, at), instant(next(slots))
            assert found == theirs, f"{schedule}: {found} and {theirs}"
            at = found


def rows(options: Options) -> list[Row]:
    """Walked from slot to slot, and asked anew."""
    steps = 200 if options.quick else 1000
    schedules = mixed()
    crons = [s for s in schedules if s.kind == "cron"]
    agree(crons)
    draw = random.Random(20)
    instants = [Instant(START + draw.randrange(ASKED_WITHIN // SECOND) * SECOND) for _ in range(steps)]
    asked(schedules, instants)
    walked(schedules, steps)  # both once before: the caches are warm
    walk, ask, walk_limit, ask_limit = rounds(
        options.rounds, partial(walked, schedules, steps), partial(asked, schedules, instants),
        partial(cronsim_walked, crons, min(steps, 300)), partial(cronsim_asked, crons, instants[:100]),
    )
    rules, within = ruled(), bounded()
    walked(rules, steps)
    walked(within, steps)
    by_rule, rule_limit, by_bounds, unbounded = rounds(
        options.rounds, partial(walked, rules, steps), partial(rules_walked, rules, min(steps, 300)),
        partial(walked, within, steps), partial(walked, crons, steps),
    )
    title = f"next instant, {len(schedules)} schedules, {len(ZONES)} zones"
    return [
        Row("schedules.walked", f"{title}, from slot to slot", "/s", tuple(walk), "cronsim, its iterator",
            tuple(walk_limit), targets=(Target("value", ">=", 100_000), Target("ratio", ">=", 3.0))),
        Row("schedules.asked", f"{title}, after any instant", "/s", tuple(ask), "cronsim, made anew",
            tuple(ask_limit), targets=(Target("ratio", ">=", 3.0),)),
        Row("schedules.rules", f"next instant, {len(rules)} recurrence rules, from slot to slot", "/s", tuple(by_rule),
            "dateutil, its iterator, without zones", tuple(rule_limit)),
        Row("schedules.bounded", f"next instant, {len(within)} schedules within bounds, from slot to slot", "/s",
            tuple(by_bounds), "the same without bounds", tuple(unbounded)),
    ]
