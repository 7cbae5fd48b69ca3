"""Whatever somebody writes as a schedule is answered or refused at once: seeded, and ten thousand of them."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import islice
from time import process_time

from nightporter.clock import DAY, Instant
from nightporter.errors import BadSchedule
from nightporter.rules.exclusions import next_running, rows
from nightporter.rules.schedule import count_between, next_due, parse, previous_due, sentence, slots_between
from nightporter.words.bounds import Bounds, Days, Season, Window

ALLOWED = 0.05
"""Seconds of processor time for one schedule and all that is asked of it, each."""
NOW = Instant(1_790_000_000_000_000)
ZONES = ["UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Pacific/Apia", "Asia/Pyongyang", "Mars"]
NUMBERS = ["0", "1", "7", "28", "29", "30", "31", "59", "60", "99999999999", "-1", "2147483648", "02", "1e9", ""]


def a_field(draw: random.Random) -> str:
    parts = []
    for _ in range(draw.choice([1, 1, 1, 2, 40])):
        part = draw.choice(["*", "?", "L", "LW", "31W", "5#5", "FRIL", "FEB", "SUN-SUN", *NUMBERS])
        if draw.random() < 0.3:
            part += "-" + draw.choice(NUMBERS)
        if draw.random() < 0.3:
            part += "/" + draw.choice(NUMBERS)
        parts.append(part)
    return ",".join(parts)


def a_cron(draw: random.Random) -> str:
    if draw.random() < 0.5:  # near what can be
        return (f"{draw.randint(0, 59)} {draw.randint(0, 23)} {draw.choice(['*', '29', '30', '31', 'L', '31W'])} "
                f"{draw.choice(['*', '2', '2,4', '*/5'])} {draw.choice(['*', 'sun', '*/7', 'mon#5', 'friL'])}")
    return " ".join(a_field(draw) for _ in range(draw.choice([1, 5, 5, 5, 6, 6, 7, 50])))


def a_rule(draw: random.Random) -> str:
    parts = [f"FREQ={draw.choice(['SECONDLY', 'MINUTELY', 'HOURLY', 'DAILY', 'WEEKLY', 'MONTHLY', 'YEARLY', 'NEVER'])}"]
    ranges = {"BYSECOND": 59, "BYMINUTE": 59, "BYHOUR": 23, "BYMONTHDAY": 31, "BYYEARDAY": 366, "BYWEEKNO": 53,
              "BYMONTH": 12, "BYSETPOS": 366}
    for name, most in ranges.items():
        if draw.random() < 0.25:
            values = [draw.randint(-1 if draw.random() < 0.1 else 1, most) for _ in range(draw.choice([1, 1, 3, 60]))]
            parts.append(f"{name}={','.join(map(str, values))}")
    if draw.random() < 0.3:
        parts.append(f"BYDAY={draw.choice(['', '', '1', '-1', '5', '53'])}{draw.choice(['MO', 'SU', 'XX'])}")
    if draw.random() < 0.4:
        parts.append(f"INTERVAL={draw.choice([1, 2, 7, 13, 99, 1000, 36525, 10**12])}")
    if draw.random() < 0.3:
        parts.append(f"COUNT={draw.choice([1, 5, 480, 9999, 10**6, 10**12])}")
    elif draw.random() < 0.2:
        parts.append(f"UNTIL={draw.choice(['20261224', '99991231T000000Z', '00010101', '20270101T250000'])}")
    return ";".join(parts)


def a_schedule(draw: random.Random) -> tuple[str, str, Instant | None, Bounds | None]:
    kind = draw.choice(["cron", "rrule", "rrule", "every", "at"])
    anchor = Instant(draw.choice([0, NOW, -(10**16), 10**17, NOW + 12_345_678])) if kind in ("every", "rrule") else None
    text = {
        "cron": a_cron(draw), "rrule": a_rule(draw),
        "every": draw.choice(NUMBERS) + draw.choice(["s", "m", "h", "d", "w", "ms", "y", ""]),
        "at": draw.choice(["0002-01-01T00:00", "9998-12-31T23:59", "2026-02-30T09:00", "2026-03-29T02:30",
                           "99999-01-01", "now", "2026-11-03T09:00+25:00"]),
    }[kind]
    bounds = None
    if draw.random() < 0.5:
        bounds = Bounds(
            draw.choice([None, None, NOW, Instant(10**17), Instant(-(10**17))]),
            draw.choice([None, None, Instant(NOW + 900 * DAY), Instant(10**18), Instant(-(10**18))]),
            tuple(draw.sample([Season((2, 29), (2, 29)), Season((11, 1), (1, 31)), Season((6, 1), (6, 2))],
                              draw.randint(0, 3))),
            tuple(Days(f"20{n:02}-01-01", f"20{n:02}-12-31") for n in range(draw.choice([0, 1, 70]))),
            tuple(Window(n * 20, n * 20 + 10, (), "w") for n in range(draw.choice([0, 1, 50]))),
        )
    return kind, text, anchor, bounds


def ask(draw: random.Random) -> tuple[bool, float, str]:
    """Whether it was answered, the longest processor time of one question, and which one that was."""
    kind, text, anchor, bounds = a_schedule(draw)
    zone = draw.choice(ZONES)
    after = draw.choice([NOW, Instant(0), Instant(10**16), Instant(-(10**17)), Instant(10**18)])
    began = process_time()
    try:
        schedule = parse(kind, text, zone, anchor=anchor, bounds=bounds)  # type: ignore[arg-type]  # one of the kinds
    except BadSchedule as refusal:
        assert refusal.what  # noqa: PT017 - said of every refusal
        return False, process_time() - began, f"parse {kind} {text} {bounds}"
    slowest, which = process_time() - began, "parse"
    questions: dict[str, Callable[[], object]] = {
        "next": lambda: next_due(schedule, after),
        "previous": lambda: previous_due(schedule, after),
        "count": lambda: count_between(schedule, Instant(after - 4000 * DAY), after),
        "sentence": lambda: sentence(schedule),
        "preview": lambda: list(islice(slots_between(schedule, after, Instant(10**18)), 10)),
        "running": lambda: next_running(schedule, after),
        "rows": lambda: rows(schedule, Instant(after - 30 * DAY), after),
    }
    for name, question in questions.items():
        began = process_time()
        question()
        if process_time() - began > slowest:
            slowest, which = process_time() - began, name
    return True, slowest, f"{which} {kind} {text} {zone} {anchor} {after} {bounds}"


def test_ten_thousand_hostile_schedules_are_each_answered_or_refused_at_once() -> None:
    draw = random.Random(1954)
    answered = 0
    slow: list[tuple[float, str]] = []
    for _ in range(10_000):
        state = draw.getstate()
        right, took, which = ask(draw)
        if took > ALLOWED:  # a collection or a busy machine may have come between: it is asked once more
            draw.setstate(state)
            right, took, which = ask(draw)
        answered += right
        if took > ALLOWED:
            assert len(slow) < 5, slow
            slow.append((round(took, 3), which[:300]))
    assert slow == []
    assert 1500 < answered < 9000
