"""`when:` takes plain words; a file, which is read again and again, takes none that count from now."""

from __future__ import annotations

import pytest
from sample_definitions import NOW, ZONE, keys, place, refusal

from nightporter.definitions import read
from nightporter.errors import NotYet
from nightporter.words import Schedule


@pytest.mark.parametrize(("words", "kind", "expression"), [
    ("weekdays at 07:30", "cron", "30 7 * * mon-fri"),
    ("daily at 7", "cron", "0 7 * * *"),
    ("every day at 7pm", "cron", "0 19 * * *"),
    ("Mon,Wed at 9:30am", "cron", "30 9 * * mon,wed"),
    ("mon and fri at 12am", "cron", "0 0 * * mon,fri"),
    ("sundays at 12pm", "cron", "0 12 * * sun"),
    ("every tuesday at 6", "cron", "0 6 * * tue"),
    ("weekends at 10:05", "cron", "5 10 * * sat,sun"),
    ("first monday at 10", "cron", "0 10 * * mon#1"),
    ("every quarter of an hour", "every", "15m"),
    ("Mon..Fri *-*-* 09:00:00", "cron", "0 9 * * mon-fri"),
    ("weekly_monday", "cron", "0 8 * * mon"),
    ("on 24 december 2026 at 18:00", "at", "2026-12-24T18:00"),
])
def test_when_takes_plain_words(words: str, kind: str, expression: str) -> None:
    (trigger,) = keys(f"when: {words}").triggers
    assert (trigger.name, trigger.schedule) == ("clock", Schedule(kind, expression, ZONE))  # type: ignore[arg-type]


def test_a_place_in_the_words_goes_before_the_zone_of_the_automation() -> None:
    definition = keys("when: every day at 9 in New York\ntimezone: Asia/Tokyo")
    assert definition.timezone == "Asia/Tokyo"
    assert definition.triggers[0].schedule == Schedule("cron", "0 9 * * *", "America/New_York")


@pytest.mark.parametrize(("words", "written"), [
    ("in 20m", "at 2026-09-21T15:34"), ("tomorrow at 9", "at 2026-09-22T09:00"),
    ("next friday at noon", "at 2026-09-25T12:00"), ("on 24 december at 18:00", "at 2026-12-24T18:00"),
])
def test_words_that_count_from_now_are_refused_with_the_instant_to_write(words: str, written: str) -> None:
    error = refusal(f"when: {words}")
    assert error.next == f"write `when: {written}`"
    assert place(error) == (2, 7)
    once = read(f"name: x\ntarget: noop\nwhen: {words}", format="yaml", default_timezone=ZONE, now=NOW, read_once=True)
    kept = keys(f"when: {written}")
    assert once.triggers[0].schedule is not None
    assert kept.triggers[0].schedule is not None
    assert once.triggers[0].schedule.expression.startswith(kept.triggers[0].schedule.expression[:15])


@pytest.mark.parametrize("words", [
    "weekdays at 9 until 4 december", "every day at 9 from tomorrow",
])
def test_bounds_that_count_from_now_are_refused_with_what_is_missing(words: str) -> None:
    assert "its year" in refusal(f"when: {words}").next


@pytest.mark.parametrize("words",
    ["every monday", "daily at 25", "noon", "every", "in a while", "the 1 of every month"])
def test_what_is_not_understood_is_an_error_at_its_place(words: str) -> None:
    error = refusal(f"when: {words}")
    assert not isinstance(error, NotYet)
    assert error.next
    assert place(error) == (2, 7)


def test_what_the_words_bound_and_what_the_keys_bound_hold_together() -> None:
    (trigger,) = keys("when: weekdays at 9 from 1 march to 31 may\nend: 2028-12-31\nexclude: [2027-03-02]").triggers
    assert trigger.schedule is not None
    bounds = trigger.schedule.bounds
    assert bounds is not None
    assert [(season.first, season.last) for season in bounds.seasons] == [((3, 1), (5, 31))]
    assert bounds.end is not None
    assert [days.first for days in bounds.days] == ["2027-03-02"]
    assert "the end is said twice" in refusal("when: weekdays at 9 until 31 may 2027\nend: 2028-12-31").what
