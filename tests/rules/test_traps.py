"""Each trap is named where it is set, and not where it is not."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from nightporter.clock import Instant, instant, micros
from nightporter.rules.plain import read_words
from nightporter.rules.schedule import parse
from nightporter.rules.traps import CROWD, collisions, traps, traps_of
from nightporter.words import Definition, Limits, Schedule, Target, TriggerSpec
from nightporter.words.bounds import Bounds, Days

NOW = instant(datetime(2026, 12, 1, 4, 30, tzinfo=UTC))
ZONE = "Europe/Berlin"


def codes(words: str, zone: str = ZONE, desk_zone: str | None = ZONE) -> list[str]:
    schedule = read_words(words, zone, now=NOW).schedule
    return [trap.code for trap in traps(schedule, NOW, desk_zone=desk_zone)]


@pytest.mark.parametrize(("set_", "not_set", "code"), [
    ("0 9 13 * fri", "0 9 13 * *", "days_united"),
    ("0 9 13 * */2", "0 9 * * */2", "days_both"),
    ("*/7 * * * *", "*/5 * * * *", "uneven_step"),
    ("0 */5 * * *", "0 */6 * * *", "uneven_step"),
    ("5/40 * * * *", "5/20 * * * *", "uneven_step"),
    ("*/60 * * * *", "0 * * * *", "uneven_step"),
    ("*/7 * * * * *", "*/6 * * * * *", "uneven_step"),
    ("0 9 31 * *", "0 9 L * *", "short_months"),
    ("0 9 29 * *", "0 9 28 * *", "short_months"),
    ("0 9 31 1,3 *", "0 9 28-31 * *", None),
    ("0 9 * * mon#5", "0 9 * * mon#4", "short_months"),
    ("30 2 * * *", "30 3 * * *", "clock_gap"),
    ("30 2 * * *", "30 2 * * mon", "clock_fold"),
    ("30 2 * * sun", "*/30 * * * *", "clock_gap"),
    ("at 2027-03-28T02:30", "at 2027-03-28T02:30+01:00", "clock_gap"),
    ("at 2027-10-31T02:30", "at 2027-10-31T03:30", "clock_fold"),
    ("0 30 9 * * *", "30 9 * * *", "six_fields"),
    ("0 9 * * 7", "0 9 * * sun", "numbered_sunday"),
    ("0 9 * * 0", "0 9 * * 1#1", "numbered_sunday"),
    ("every day at 2:15 and 3:45", "every day at 3:15 and 4:45", "clock_gap"),
    ("on the 31st of every month at 9:00 and 17:30", "last day of the month at 9:00 and 17:30", "short_months"),
    ("every 7h", "every 90m", "drifts"),
    ("every 1d", "every 12h", "elapsed_days"),
    ("at 2026-11-03T09:00", "at 2026-12-03T09:00", "passed"),
    ("every day at 9 in utc", "every day at 9", "other_zone"),
])
def test_a_trap_is_named_where_it_is_set_and_only_there(set_: str, not_set: str, code: str | None) -> None:
    if code is None:
        assert (codes(set_), codes(not_set)) == ([], [])
    else:
        assert code in codes(set_)
        assert code not in codes(not_set)


@pytest.mark.parametrize(("words", "says"), [
    ("0 9 31 * *", "day 31 is not in every month: February, April, June, September and November have no fire"),
    ("0 9 29 * *", "February of years that are no leap years has no fire"),
    ("*/7 * * * *", "7 minutes apart, and 4 from minute 56 to the next hour; for an even interval write `every 7m`"),
    ("5/40 * * * *", "40 minutes apart, and 20 from minute 45"),
    ("30 2 * * *", "leaves out 02:30 on 2027-03-28"),
    ("30 2 * * *", "shows 02:30 twice on 2027-10-31"),
    ("0 9 * * mon in utc", "no such words"),
])
def test_a_trap_says_what_happens(words: str, says: str) -> None:
    if "utc" in words:
        schedule = parse("cron", "0 9 * * mon", "UTC")
        says = "its times are UTC, and the zone of this desk is Europe/Berlin: 09:00 UTC is 10:00 there"
    else:
        schedule = read_words(words, ZONE, now=NOW).schedule
    assert says in " ".join(trap.text for trap in traps(schedule, NOW, desk_zone=ZONE))


def test_half_an_hour_that_is_left_out_is_found_too() -> None:
    (trap,) = traps(parse("cron", "15 2 4 10 *", "Australia/Lord_Howe"), NOW - micros(timedelta(days=100)))  # type: ignore[arg-type]
    assert (trap.code, "02:15 on 2026-10-04" in trap.text) == ("clock_gap", True)


def test_utc_is_no_trap_where_the_desk_lives_by_it_or_its_zone_is_not_known() -> None:
    assert codes("every day at 9", "UTC", "UTC") == codes("every day at 9", "UTC", None) == []


def test_what_has_an_end_behind_it_never_fires_again() -> None:
    ended = parse("cron", "0 9 * * *", ZONE, bounds=Bounds(end=NOW))
    assert [trap.code for trap in traps(ended, NOW)] == ["never_again"]
    left_out = parse("at", "2026-12-24T18:00", ZONE, bounds=Bounds(days=(Days("2026-12-24", "2026-12-24"),)))
    assert [trap.code for trap in traps(left_out, NOW)] == ["passed"]


def test_a_schedule_that_cannot_be_read_is_said_so() -> None:
    assert [trap.code for trap in traps(Schedule("cron", "0 0 30 2 *", ZONE), NOW)] == ["unreadable"]


@pytest.mark.parametrize(("per_hour", "expected"), [(120, ["above_ceiling"]), (None, [])])
def test_a_schedule_that_its_ceiling_silences_is_named(per_hour: int | None, expected: list[str]) -> None:
    definition = Definition(
        "tick", Target("noop"), (TriggerSpec("clock", "clock", Schedule("every", "10s", "UTC")),),
        limits=Limits(per_hour=per_hour),
    )
    assert [trap.code for trap in traps_of(definition, NOW)] == expected
    off = Definition("tick", Target("noop"),
        (TriggerSpec("clock", "clock", Schedule("every", "10s", "UTC"), enabled=False),))
    assert traps_of(off, NOW) == ()


def test_the_ceiling_and_the_traps_of_each_schedule_stand_together() -> None:
    definition = Definition("two", Target("noop"), (
        TriggerSpec("one", "clock", Schedule("cron", "0 9 13 * fri", ZONE)),
        TriggerSpec("other", "clock", Schedule("cron", "0 9 31 * *", ZONE)), TriggerSpec("call", "call"),
    ))
    assert [trap.code for trap in traps_of(definition, NOW)] == ["days_united", "short_months"]


@pytest.mark.parametrize("others", [CROWD - 1, CROWD])
def test_a_minute_that_many_fire_in_is_crowded(others: int) -> None:
    schedule = parse("cron", "0 9 * * *", ZONE)
    crowd = {f"a{n}": parse("cron", f"0 {n + 7},9 * * *", ZONE) for n in range(others)}
    quiet = {"late": parse("cron", "1 9 * * *", ZONE), "broken": Schedule("cron", "0 0 30 2 *", ZONE)}
    found = collisions(schedule, {**crowd, **quiet}, NOW)
    assert [trap.code for trap in found] == ["crowded_minute"] * (others >= CROWD)
    assert all("3 others fire in the same minute, 2026-12-01 09:00: a0, a1, a2" in trap.text for trap in found)


def test_what_never_fires_crowds_nobody() -> None:
    assert collisions(parse("at", "2020-01-01T00:00", ZONE), {}, Instant(NOW)) == ()
