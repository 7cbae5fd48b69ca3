"""What holds for every schedule: strictly after, no matter where one starts, and as a plain walk over time says."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import islice

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from nightporter.clock import DAY, HOUR, MINUTE, SECOND, Instant, instant
from nightporter.rules.schedule import count_between, next_due, parse, previous_due, slots_between
from nightporter.rules.zones import zone
from nightporter.words.automation import Schedule

TRANSITIONS = {
    "America/New_York": ["2026-03-08T07:00", "2026-11-01T06:00"],
    "Europe/Berlin": ["2026-03-29T01:00", "2026-10-25T01:00"],
    "Europe/Dublin": ["2026-03-29T01:00", "2026-10-25T01:00"],
    "Australia/Lord_Howe": ["2026-10-03T15:30", "2026-04-04T15:00"],
    "Pacific/Chatham": ["2026-09-26T14:00", "2026-04-04T14:00"],
    "America/Sao_Paulo": ["2018-11-04T03:00", "2018-02-18T02:00"],
    "Antarctica/Troll": ["2026-03-29T01:00", "2026-10-25T01:00"],
    "Africa/Casablanca": ["2025-02-23T02:00", "2025-04-06T02:00"],
    "Asia/Pyongyang": ["2015-08-14T15:00", "2018-05-04T15:00"],
    "Pacific/Apia": ["2011-12-30T10:00", "2011-09-24T14:00"],
    "Antarctica/Casey": ["2009-10-17T18:00", "2010-03-04T15:00"],
    "Europe/Moscow": ["2011-03-26T23:00", "2014-10-25T22:00"],
    "Asia/Kolkata": ["2026-03-29T01:00"],
}
PLACES = [(name, text) for name, texts in TRANSITIONS.items() for text in texts]


def at(text: str) -> Instant:
    return instant(datetime.fromisoformat(text).replace(tzinfo=UTC))


@st.composite
def fields(draw: st.DrawFn, low: int, high: int) -> tuple[str, frozenset[int]]:
    """A field as text, and the values it stands for by an arithmetic of our own."""
    shape = draw(st.sampled_from(["star", "step", "list", "range", "from"]))
    everything = range(low, high + 1)
    first = draw(st.integers(low, high))
    step = draw(st.integers(1, (high - low) // 2))
    match shape:
        case "star":
            return "*", frozenset(everything)
        case "step":
            return f"*/{step}", frozenset(everything[::step])
        case "list":
            chosen = draw(st.lists(st.sampled_from(everything), min_size=1, max_size=4, unique=True))
            return ",".join(map(str, chosen)), frozenset(chosen)
        case "range":
            last = draw(st.integers(first, high))
            return f"{first}-{last}/{step}", frozenset(range(first, last + 1, step))
        case _:
            return f"{first}/{step}", frozenset(range(first, high + 1, step))


@st.composite
def crons(draw: st.DrawFn) -> tuple[str, frozenset[int], frozenset[int], frozenset[int] | None]:
    """An expression with its minutes, hours and weekdays; None when every day is meant."""
    minute, minutes = draw(fields(0, 59))
    hour, hours = draw(fields(0, 23))
    if draw(st.booleans()):
        return f"{minute} {hour} * * *", minutes, hours, None
    weekdays = draw(st.lists(st.integers(0, 6), min_size=1, max_size=4, unique=True))
    return f"{minute} {hour} * * {','.join(map(str, weekdays))}", minutes, hours, frozenset(weekdays)


def walked(
    cron: tuple[str, frozenset[int], frozenset[int], frozenset[int] | None], name: str, after: Instant, until: Instant
) -> list[int]:
    """Every slot by a walk over all minutes; needs minutes that are whole in UTC, as in all zones since 1972."""
    expression, minutes, hours, weekdays = cron
    fixed = not any(part.startswith("*") for part in expression.split()[:2])
    place = zone(name)

    def matches(wall: datetime) -> bool:
        on_day = weekdays is None or wall.isoweekday() % 7 in weekdays
        return on_day and wall.minute in minutes and wall.hour in hours

    found: list[int] = []
    lived: set[datetime] = set()
    # A day and a bit before the start, so that it is known what the wall has already shown.
    minute = (after - 26 * HOUR) // MINUTE * MINUTE
    before = datetime.fromtimestamp(minute // SECOND - 60, place).replace(tzinfo=None)
    while minute <= until:
        wall = datetime.fromtimestamp(minute // SECOND, place).replace(tzinfo=None, fold=0)
        due = matches(wall)
        if fixed:
            gap = wall - before - timedelta(minutes=1)
            if timedelta(0) < gap < timedelta(hours=3):
                vanished = (before + timedelta(minutes=each) for each in range(1, int(gap.total_seconds()) // 60 + 1))
                due = due or any(map(matches, vanished))
            due = due and wall not in lived
            lived.add(wall)
        if due and minute > after:
            found.append(minute)
        before = wall
        minute += MINUTE
    return found


@settings(max_examples=250, deadline=None, derandomize=True, database=None)
@given(cron=crons(), place=st.sampled_from(PLACES), shift=st.integers(-30 * 60, 6 * 60))
def test_the_slots_around_a_zone_change_are_those_of_a_walk_over_all_minutes(
    cron: tuple[str, frozenset[int], frozenset[int], frozenset[int] | None], place: tuple[str, str], shift: int
) -> None:
    name, text = place
    after = Instant(at(text) + shift * MINUTE)
    until = Instant(after + 36 * HOUR)
    schedule = parse("cron", cron[0], name)
    assert list(slots_between(schedule, after, until)) == walked(cron, name, after, until)


def test_the_walk_itself_knows_gap_and_fold() -> None:
    job = ("30 2 * * *", frozenset({30}), frozenset({2}), None)
    spring, autumn = at("2026-03-29T00:00"), at("2026-10-25T00:00")
    assert walked(job, "Europe/Berlin", spring, Instant(spring + 12 * HOUR)) == [at("2026-03-29T01:00")]
    assert walked(job, "Europe/Berlin", autumn, Instant(autumn + 12 * HOUR)) == [at("2026-10-25T00:30")]


EXPRESSIONS = [
    "* * * * *", "*/15 * * * *", "0 */2 * * *", "30 2 * * *", "30 1 * * *", "0,30 1-3 * * *", "45 23 * * *",
    "0 0 * * *", "0 9 * * mon-fri", "0 0 1,15 * fri", "0 3 L * *", "15 2 * * sun#1", "*/20 0-30/10 1 * * *",
    "0 30 2 * * *", "0 0 29 2 *", "30 1 25-31 10 sun", "0 12 LW * *", "*/30 2 * mar,nov *",
]  # fmt: skip
SCHEDULES = [("cron", each) for each in EXPRESSIONS] + [("every", "15m"), ("every", "43h"), ("every", "1h1s")]
STARTS = st.one_of(
    st.tuples(st.sampled_from(PLACES), st.integers(-3 * HOUR, 3 * HOUR)).map(lambda p: (p[0][0], at(p[0][1]) + p[1])),
    st.tuples(st.sampled_from(sorted(TRANSITIONS)), st.integers(at("1972-01-01T00:00"), at("2099-12-31T00:00"))),
)


def schedule_in(written: tuple[str, str], name: str) -> Schedule:
    kind, expression = written
    if kind == "every":
        return parse("every", expression, name, anchor=at("1971-05-06T07:08:09"))
    return parse("cron", expression, name)


@settings(max_examples=300, deadline=None, derandomize=True, database=None)
@given(written=st.sampled_from(SCHEDULES), start=STARTS, inside=st.floats(0, 1, exclude_max=True))
@example(("cron", "30 1 * * *"), ("America/New_York", at("2026-11-01T06:10")), 0.5)
@example(("cron", "30 1 * * *"), ("America/New_York", at("2026-11-01T06:30")), 0.0)
def test_from_any_instant_between_two_slots_the_second_one_is_next(
    written: tuple[str, str], start: tuple[str, int], inside: float
) -> None:
    name, after = start
    schedule = schedule_in(written, name)
    stored = next_due(schedule, Instant(after))
    assert stored is not None
    assert stored > after
    for _ in range(6):
        following = next_due(schedule, stored)
        assert following is not None
        assert following > stored
        restarted = Instant(stored + int((following - stored) * inside))
        assert next_due(schedule, restarted) == following
        assert next_due(schedule, Instant(following - 1)) == following
        assert previous_due(schedule, restarted) == stored
        stored = following


@settings(max_examples=150, deadline=None, derandomize=True, database=None)
@given(written=st.sampled_from(SCHEDULES), start=STARTS, slots=st.integers(0, 40), more=st.integers(0, DAY))
def test_slots_between_are_those_of_asking_again_and_again(
    written: tuple[str, str], start: tuple[str, int], slots: int, more: int
) -> None:
    name, first = start
    schedule = schedule_in(written, name)
    asked: list[Instant] = []
    last = Instant(first)
    for _ in range(slots):
        following = next_due(schedule, last)
        assert following is not None
        asked.append(following)
        last = following
    assert list(slots_between(schedule, Instant(first), last)) == asked
    assert count_between(schedule, Instant(first), last) == (slots, True)
    until = Instant(last + more)
    beyond = list(islice(slots_between(schedule, Instant(first), until), 500))
    assert beyond[:slots] == asked
    assert all(each <= until for each in beyond)


def test_counting_stops_at_the_cap_and_says_so() -> None:
    minutely = parse("cron", "* * * * *", "UTC")
    start = at("2026-01-01T00:00")
    assert count_between(minutely, start, Instant(start + 480 * MINUTE)) == (480, True)
    assert count_between(minutely, start, Instant(start + 481 * MINUTE)) == (480, False)
    assert count_between(minutely, start, Instant(start + 5 * MINUTE), cap=3) == (3, False)
    assert count_between(minutely, start, start) == (0, True)
    assert count_between(minutely, start, Instant(start - DAY)) == (0, True)


def test_a_fixed_interval_is_counted_without_enumeration() -> None:
    secondly = parse("every", "1s", "UTC", anchor=at("2026-01-01T00:00"))
    assert count_between(secondly, at("2025-01-01T00:00"), at("2027-01-01T00:00")) == (365 * 86_400 + 1, True)
    assert count_between(secondly, at("2024-01-01T00:00"), at("2025-01-01T00:00")) == (0, True)


def test_an_interval_without_an_anchor_is_counted_from_the_epoch() -> None:
    assert next_due(parse("every", "15m", "Europe/Berlin"), Instant(1)) == 15 * MINUTE


def test_a_one_shot_is_due_once() -> None:
    once = parse("at", "2026-11-03T09:00", "Europe/Berlin")
    due = at("2026-11-03T08:00")
    assert next_due(once, Instant(due - 1)) == due
    assert next_due(once, due) is None
    assert previous_due(once, due) == due
    assert previous_due(once, Instant(due - 1)) is None
    assert count_between(once, Instant(due - 1), due) == (1, True)


@pytest.mark.parametrize("name", ["UTC", "America/New_York", "Pacific/Kiritimati"])
def test_the_end_of_the_calendar_ends_a_schedule(name: str) -> None:
    daily = parse("cron", "0 0 * * *", name)
    assert next_due(daily, Instant(253_402_300_799 * SECOND)) is None
    assert next_due(daily, Instant(-(10**20))) is not None
    assert next_due(parse("cron", "0 0 29 2 sun", name), Instant(0)) is not None
    assert next_due(parse("cron", "0 0 29 2 */7", name), at("9990-01-01T00:00")) is None
    assert previous_due(parse("cron", "0 0 29 2 */7", name), at("2026-01-01T00:00")) is not None


def test_a_rare_day_is_found_across_the_missing_leap_year() -> None:
    sundays = parse("cron", "0 0 29 2 */7", "UTC")
    assert next_due(sundays, at("2088-03-01T00:00")) == at("2128-02-29T00:00")
    assert previous_due(sundays, at("2128-02-28T00:00")) == at("2088-02-29T00:00")
