"""Plain words: every form, every refusal with what is missing, and nothing that hangs."""

from __future__ import annotations

import contextlib
import random
import time
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nightporter.clock import Instant, instant, rfc3339
from nightporter.errors import BadSchedule
from nightporter.rules.plain import NeedsNow, normalised, read_words, understand
from nightporter.rules.plain.forms import FORMS, nearest
from nightporter.rules.plain.lexicon import vocabulary
from nightporter.rules.plain.presets import PRESETS
from nightporter.rules.plain.within import joined
from nightporter.rules.schedule import next_due, parse, sentence
from nightporter.words import Schedule
from nightporter.words.bounds import Bounds, Days

NOW = instant(datetime(2026, 12, 1, 4, 30, tzinfo=UTC))
ZONE = "Europe/Berlin"


def fires(schedule: Schedule, count: int = 5, after: Instant = NOW) -> list[str | None]:
    found: list[str | None] = []
    slot: Instant | None = after
    while slot is not None and len(found) < count:
        slot = next_due(schedule, slot)
        found += [] if slot is None else [rfc3339(slot)]
    return found


@pytest.mark.parametrize(("words", "expression"), [
    ("weekdays at 09:00", "0 9 * * mon-fri"),
    ("first monday at 10", "0 10 * * mon#1"),
    ("every 2h from 08:00 to 20:00", "0 8-20/2 * * *"),
    ("last day of the month at 18:00", "0 18 L * *"),
    ("mon, wed and fri at 7:30pm", "30 19 * * mon,wed,fri"),
    ("twice a day at 8 and 20", "0 8,20 * * *"),
    ("on the 1st and 15th at 6am", "0 6 1,15 * *"),
    ("every year on 24 december at 18:00", "0 18 24 12 *"),
    ("every 15 minutes on weekdays", "*/15 * * * mon-fri"),
    ("every hour at :30", "30 * * * *"),
    ("every hour at minute 5 and 35", "5,35 * * * *"),
    ("5 minutes past every hour", "5 * * * *"),
    ("every hour on the hour", "0 * * * *"), ("every hour at :30 from 9 to 17 on weekdays", "30 9-16 * * mon-fri"),
    ("every day except sunday at 9", "0 9 * * mon-sat"),
    ("every monday at 9 and every friday at 9", "0 9 * * mon,fri"),
    ("every day except in august at 9", "0 9 * 1-7,9-12 *"),
    ("last weekday of the month at 17:00", "0 17 LW * *"),
    ("first day of the quarter at 8", "0 8 1 1,4,7,10 *"),
    ("last friday of the quarter at 8", "0 8 * 3,6,9,12 friL"),
    ("last day of the year at 20:00", "0 20 L 12 *"),
    ("first monday and third thursday of the month at 10", "0 10 * * mon#1,thu#3"),
    ("second to last day of the month at 9", "0 9 L-1 * *"),
    ("every monday in june and july at 9", "0 9 * 6,7 mon"),
    ("every day at 8 from june to august", "0 8 * 6-8 *"),
    ("every night at 11", "0 23 * * *"), ("every night at 2", "0 2 * * *"), ("nightly at 23:30", "30 23 * * *"),
    ("every day at half past 7", "30 7 * * *"), ("every day at quarter to 8", "45 7 * * *"),
    ("every day at 18h", "0 18 * * *"), ("every day at 7h30", "30 7 * * *"),
    ("every day at 08:15:30", "30 15 8 * * *"),
    ("mon/wed/fri 6:00", "0 6 * * mon,wed,fri"), ("mondays at 9 and fridays at 9", "0 9 * * mon,fri"),
    ("every monday at 9 and 10, 11", "0 9-11 * * mon"),
    ("daily", "0 0 * * *"), ("weekly", "0 0 * * mon"), ("quarterly", "0 0 1 1,4,7,10 *"),
])
def test_a_sentence_is_one_cron_expression(words: str, expression: str) -> None:
    assert read_words(words, ZONE).schedule == Schedule("cron", expression, ZONE)


@pytest.mark.parametrize(("words", "expression"), [
    ("every 15m", "15m"), ("every 15 minutes", "15m"), ("every quarter of an hour", "15m"), ("hourly", "1h"),
    ("every hour", "1h"), ("once an hour", "1h"), ("every 90 minutes", "1h30m"),
    ("every 1 hour and 30 minutes", "1h30m"),
    ("every two hours", "2h"), ("every 15min", "15m"), ("every half hour", "30m"), ("every second", "1s"),
])
def test_a_sentence_is_an_interval(words: str, expression: str) -> None:
    assert fires(read_words(words, ZONE).schedule) == fires(parse("every", expression, ZONE))


@pytest.mark.parametrize(("words", "at"), [
    ("in 20m", "2026-12-01T04:50:00Z"), ("in an hour", "2026-12-01T05:30:00Z"),
    ("30 seconds from now", "2026-12-01T04:30:30Z"),
    ("in 1 hour and 5 minutes", "2026-12-01T05:35:00Z"), ("tomorrow at 9", "2026-12-02T08:00:00Z"),
    ("today at 18:00", "2026-12-01T17:00:00Z"), ("tonight at 8", "2026-12-01T19:00:00Z"),
    ("this evening at 7", "2026-12-01T18:00:00Z"), ("tomorrow morning at 7", "2026-12-02T06:00:00Z"),
    ("the day after tomorrow at 9", "2026-12-03T08:00:00Z"), ("next friday at noon", "2026-12-04T11:00:00Z"),
    ("next tuesday at 9", "2026-12-08T08:00:00Z"), ("this friday at 9", "2026-12-04T08:00:00Z"),
    ("in 3 days at 9", "2026-12-04T08:00:00Z"), ("in 2 weeks", "2026-12-15T04:30:00Z"),
    ("on 24 december at 18:00", "2026-12-24T17:00:00Z"), ("march 3rd at 2pm", "2027-03-03T13:00:00Z"),
    ("on 1 december at 5", "2027-12-01T04:00:00Z"), ("on 29 february at 9", "2028-02-29T08:00:00Z"),
])
def test_a_sentence_is_one_moment_counted_from_now(words: str, at: str) -> None:
    found = read_words(words, ZONE, now=NOW)
    assert found.from_now
    assert fires(found.schedule) == [at]
    with pytest.raises(NeedsNow):
        read_words(words, ZONE)


@pytest.mark.parametrize("words", [
    "on 24 december 2026 at 18:00", "december 24, 2026 at 6pm", "thursday 24 december 2026 at 18:00",
    "2026-12-24 at 18:00", "at 2026-12-24T18:00", "2026-12-24 18:00", "Once, on Thursday 24 December 2026 at 18:00",
])
def test_a_date_with_its_year_is_a_moment_that_may_be_kept(words: str) -> None:
    found = read_words(words, ZONE)
    assert not found.from_now
    assert fires(found.schedule) == ["2026-12-24T17:00:00Z"]


@pytest.mark.parametrize(("words", "zone"), [
    ("every day at 9 in New York", "America/New_York"), ("every day at 9 New York time", "America/New_York"),
    ("every day at 9:00 europe/lisbon", "Europe/Lisbon"), ("every day at 9 UTC", "UTC"),
    ("every day at 9 in Ho Chi Minh", "Asia/Ho_Chi_Minh"), ("every day at 9", ZONE),
    ("in London every day at 9", "Europe/London"),
])
def test_a_place_names_the_zone(words: str, zone: str) -> None:
    assert read_words(words, ZONE).schedule == Schedule("cron", "0 9 * * *", zone)


@pytest.mark.parametrize(("words", "first", "last"), [
    ("every day at 9 from 2027-03-01", "2027-03-01T08:00:00Z", None),
    ("every day at 9 until 3 december 2026", "2026-12-01T08:00:00Z", "2026-12-03T08:00:00Z"),
    ("every day at 9 until 3 december", "2026-12-01T08:00:00Z", "2026-12-03T08:00:00Z"),
    ("every day at 9 from 10 january", "2027-01-10T08:00:00Z", None),
    ("every day at 9 from tomorrow until the end of the year", "2026-12-02T08:00:00Z", "2026-12-31T08:00:00Z"),
    ("mondays at 9 from 5 january to 20 january", "2027-01-11T08:00:00Z", None),
    ("every monday at 9 starting next monday", "2026-12-07T08:00:00Z", None),
])
def test_a_first_and_a_last_day_are_both_in(words: str, first: str, last: str | None) -> None:
    schedule = read_words(words, ZONE, now=NOW).schedule
    assert fires(schedule, 1) == [first]
    assert last is None or fires(schedule, 100)[-1] == last


def test_days_that_are_excepted_do_not_fire() -> None:
    yearly = read_words("every day at 9 except 25 december and 26 december", ZONE).schedule
    coming = fires(yearly, 800)
    assert not [at for at in coming if at is not None and at[5:10] in ("12-25", "12-26")]
    assert coming[22:26] == ["2026-12-23T08:00:00Z", "2026-12-24T08:00:00Z", "2026-12-27T08:00:00Z",
        "2026-12-28T08:00:00Z"]
    once = read_words("every day at 9 except 25 december 2026", ZONE).schedule.bounds
    assert once is not None
    assert [(days.first, days.last) for days in once.days] == [("2026-12-25", "2026-12-25")]


@pytest.mark.parametrize(("words", "coming"), [
    ("every other friday at 16:00", ["2026-12-04T15:00:00Z", "2026-12-18T15:00:00Z"]),
    ("every 2 weeks on tuesday at 05:00", ["2026-12-08T04:00:00Z", "2026-12-22T04:00:00Z"]),
    ("fortnightly on monday and friday at 9", ["2026-12-04T08:00:00Z", "2026-12-14T08:00:00Z", "2026-12-18T08:00:00Z"]),
    ("every 3 days at 9", ["2026-12-01T08:00:00Z", "2026-12-04T08:00:00Z", "2026-12-07T08:00:00Z"]),
    ("every 2 months on the 31st at 9", ["2026-12-31T08:00:00Z", "2027-08-31T07:00:00Z", "2027-10-31T08:00:00Z"]),
    ("every second week on monday at 9", ["2026-12-07T08:00:00Z", "2026-12-21T08:00:00Z"]),
    ("every 3 months on the first monday at 9", ["2026-12-07T08:00:00Z", "2027-03-01T08:00:00Z"]),
    ("every 2 years on 24 december at 9", ["2026-12-24T08:00:00Z", "2028-12-24T08:00:00Z"]),
])
def test_every_so_many_is_counted_from_the_first_that_comes(words: str, coming: list[str]) -> None:
    found = read_words(words, ZONE, now=NOW)
    assert found.from_now
    assert fires(found.schedule, len(coming)) == coming
    with pytest.raises(NeedsNow, match="counted from a day"):
        read_words(words, ZONE)


@pytest.mark.parametrize("now", [NOW, None])
def test_every_so_many_with_a_first_day_may_be_kept(now: Instant | None) -> None:
    found = read_words("every 2 weeks on monday at 9 from 2027-01-01", ZONE, now=now)
    assert not found.from_now
    assert fires(found.schedule, 2) == ["2027-01-04T08:00:00Z", "2027-01-18T08:00:00Z"]


@pytest.mark.parametrize(("words", "said", "coming"), [
    ("daily at 9:00 and 17:30", "At 09:00 and 17:30 every day", ["01T08:00", "01T16:30", "02T08:00"]),
    ("weekdays at 8:30 and 20:15", "At 08:30 and 20:15 on Monday to Friday", ["01T07:30", "01T19:15", "02T07:30"]),
    ("mondays at 9 and fridays at 17", "At 09:00 every Monday and at 17:00 every Friday", ["04T16:00", "07T08:00"]),
    ("weekdays at 7 and weekends at 9:30", "At 07:00 on Monday to Friday and at 09:30 on Saturday and Sunday",
     ["01T06:00", "02T06:00", "03T06:00", "04T06:00", "05T08:30"]),
    ("every friday morning at 9 and every saturday evening at 9", "At 09:00 every Friday and at 21:00 every Saturday",
     ["04T08:00", "05T20:00", "11T08:00"]),
    ("9am on weekdays and 10am on weekends", "At 09:00 on Monday to Friday and at 10:00 on Saturday and Sunday",
     ["01T08:00", "02T08:00", "03T08:00", "04T08:00", "05T09:00"]),
    ("every 20 minutes between 16 and 17 on weekdays", "Every 20 minutes from 16:00 to 17:00 on Monday to Friday",
     ["01T15:00", "01T15:20", "01T15:40", "01T16:00", "02T15:00"]),
    ("every 45m from 16 to 18", "At 16:00, 16:45 and 17:30 every day",
    ["01T15:00", "01T15:45", "01T16:30", "02T15:00"]),
    ("every 30 minutes from 23:30 to 1:00", "Every 30 minutes from 23:30 to 01:00",
     ["01T22:30", "01T23:00", "01T23:30", "02T00:00", "02T22:30"]),
    ("on the 1st and 2nd at 9:00 and 17:30", "At 09:00 and 17:30 on day 1 and 2 of the month",
     ["01T08:00", "01T16:30", "02T08:00"]),
])
def test_times_that_are_no_product_of_hours_and_minutes(words: str, said: str, coming: list[str]) -> None:
    schedule = read_words(words, ZONE).schedule
    assert schedule.kind == "rrule"
    assert fires(schedule, len(coming)) == [f"2026-12-{at}:00Z" for at in coming]
    assert sentence(schedule) == f"{said}, {ZONE}"
    assert fires(read_words(sentence(schedule), "UTC").schedule, 40) == fires(schedule, 40)


def test_both_ends_of_a_window_are_in_it_and_what_is_off_its_grid_is_not() -> None:
    day = fires(read_words("every 30m from 8 to 10", ZONE).schedule, 5)
    assert day == [f"2026-12-01T{at}:00Z" for at in ("07:00", "07:30", "08:00", "08:30", "09:00")]
    assert fires(read_words("every 45m from 8 to 10", ZONE).schedule, 4)[2:] == ["2026-12-01T08:30:00Z",
        "2026-12-02T07:00:00Z"]


@pytest.mark.parametrize(("words", "one", "other"), [
    ("every 3 days", "every 72h", "every 3 days at 09:00"), ("every 2 weeks", "every 336h", "every 2 weeks on monday"),
    ("every 4h starting at 6am", "to 23:59", "counted from"),
    ("every other weekday at 9", "every second week", "second one"),
    ("every day at 7am and 5", "05:00", "17:00"), ("every hour from 8am to 5", "05:00", "17:00"),
    ("30m", "every 30m", "in 30m"), ("at 7", "every day at 07:00", "today at 07:00"),
    ("friday at 17:00", "every friday at 17:00", "next friday at 17:00"),
    ("every second friday at 9", "second friday of the month", "every 2 weeks"),
    ("every third day at 9", "every 3 days", "third day of the month"), ("every day at 8 and 10pm", "08:00", "20:00"),
    ("every 5 minutes from 9 to 5", "09:00 to 17:00", "05:00 of the next day"),
    ("on the 15th at 9", "of every month", "15 december 2026"), ("every monday at 9 until december", "1st", "end of"),
    ("monday at midnight", "every monday", "next monday"), ("every monday at midnight", "begins it", "the next day"),
    ("every day at 9 in louisville", "America/Louisville", "America/Kentucky/Louisville"),
])
def test_what_is_ambiguous_is_refused_with_both_readings(words: str, one: str, other: str) -> None:
    with pytest.raises(BadSchedule) as refusal:
        read_words(words, ZONE, now=NOW)
    said = str(refusal.value)
    assert "ambiguous" in refusal.value.what
    assert one in said
    assert other in said


@pytest.mark.parametrize(("words", "what"), [
    ("every monday", "time of day is not said"), ("every morning", "`morning` is no time of day"),
    ("every monday morning", "`morning` is no time of day"), ("every monday at 9 from", "stops too early"),
    ("weekly at 9", "day of the week is not said"), ("monthly at 9", "day of the month is not said"),
    ("every year at 9", "day of the year is not said"), ("tomorrow", "time of day is not said"),
    ("between 9 and 17", "ambiguous|how often"), ("twice a day", "time of day is not said"),
    ("every", "stops too early"),
])
def test_what_is_left_open_is_asked_for(words: str, what: str) -> None:
    with pytest.raises(BadSchedule, match=what) as refusal:
        read_words(words, ZONE, now=NOW)
    assert refusal.value.next


@pytest.mark.parametrize(("words", "what"), [
    ("every 0 days at 9", "no interval"), ("every 2 quarters on the 1st at 9", "6 months"),
    ("every third at 9", "of what is not said"),
    ("25/12/2026 at 9", "25 december 2026`$"), ("3/4/2027 at 9", "3 april 2027` or `4 march 2027"),
    ("weekdays at 9 EST", "in New York"),
    ("first monday at 9 and 17:30", "cannot be said on these days"), ("every 1m from 8 to 20", "too often"),
    ("mondays at 9 and fridays at 17 in june", "two schedules"),
    ("mondays at 9 and fridays at 17 until 1 march 2027", "two schedules"),
    ("mondays at 9 and fridays at 9 until 1 march 2027", "two schedules"),
    ("weekdays at 9 in Paris and weekends at 10", "the place"),
    ("every 3 days at 9 in june", "part of the year"), ("every 3 days at 9 from 1 march to 31 may", "part of the year"),
    ("every 5m 5m", "each unit once"), ("every 5 minutes and 1 hour", "each unit once"),
    ("every evening on 24 december at 6", "contradict"),
    ("every 2 months on the last weekday at 9", "no such day"),
    ("every 2 hours at 9", "contradict"), ("three times a day at 8 and 20", "3 times a day is said, and 2"),
    ("every morning at 19:00", "is not in the morning"), ("friday 24 december 2026 at 9", "is no friday"),
    ("on 30 february at 9", "no day 30"), ("every day at 25", "25:00 is not a time"),
    ("every day at 13pm", "13pm is not"),
    ("fridays at 9 and 1st at 10", "two schedules"), ("today at 3:00", "has passed"),
    ("sixth friday of the month at 9", "'sixth' is not understood"), ("6th friday of the month at 9", "no 6"),
    ("every day at 9 every day at 10", "said twice"), ("every day at 9 except every day", "not understood"),
    ("in 0 minutes", "delay of nothing"), ("in a month", "no length of time"),
    ("on the 32nd of every month at 9", "32 is no day"),
    ("on the 30th of february at 9", "no day 30"), ("every 7 minutes on weekdays", "does not divide"),
    ("every day at 9 except holidays", "whose holidays"), ("every day at 9 until 1 june 2020", "never fires"),
    ("weekdays at 9 in Paris and weekends at 10 in London", "two time zones"),
])
def test_what_cannot_be_is_refused_with_the_reason(words: str, what: str) -> None:
    with pytest.raises(BadSchedule, match=what):
        read_words(words, ZONE, now=NOW)


@pytest.mark.parametrize(("words", "part"), [
    ("every blursday at 9", "blursday"), ("every day at 9 && reboot", "&&|reboot"),
    ("weekdays at 9 EST", "EST is no place"),
    ("every 5 bananas", "bananas"), ("weekdays at 9 in the office", "office"), ("every 5", "no unit"),
    ("every day after 9", "after"), ("every day at 9 sharp", "sharp"),
])
def test_a_part_that_is_not_understood_is_named(words: str, part: str) -> None:
    with pytest.raises(BadSchedule, match=part):
        read_words(words, ZONE, now=NOW)


@pytest.mark.parametrize(("words", "meant"), [
    ("evry day at 9", "every day at 9"), ("wendesdays at 14:00", "wednesdays at 14:00"),
    ("tomorow at 9", "tomorrow at 9"),
])
def test_a_slip_of_the_hand_is_offered_corrected(words: str, meant: str) -> None:
    with pytest.raises(BadSchedule) as refusal:
        read_words(words, ZONE, now=NOW)
    assert refusal.value.next == f"did you mean `{meant}`?"


def test_the_nearest_forms_speak_of_the_same_things() -> None:
    assert nearest("first blursday of the month at 9")[0].startswith(("first", "last"))
    assert all("every" in form for form in nearest("every 5 bananas", 2))


@pytest.mark.parametrize(("words", "note"), [
    ("daily at 7", "7 is read as 07:00; for the evening write 19:00"), ("tomorrow at 7", "7 is read as 07:00"),
    ("next friday at 17:00", "2026-12-04"),
    ("weekdays at 09:00 from 1 march to 31 may", "of each year"),
    ("on 3 march at 17:00", "once; for each year write `every year on 3 march`"),
])
def test_how_words_were_read_is_said(words: str, note: str) -> None:
    assert note in " ".join(read_words(words, ZONE, now=NOW).notes)


@pytest.mark.parametrize("words", ["daily at 07:00", "daily at 7am", "daily at 19", "every day at noon"])
def test_a_time_that_has_one_reading_needs_no_note(words: str) -> None:
    assert read_words(words, ZONE).notes == ()


@pytest.mark.parametrize("form", [form for form, _ in FORMS])
def test_every_form_that_is_offered_is_understood(form: str) -> None:
    assert fires(read_words(form, ZONE, now=NOW).schedule)


@pytest.mark.parametrize("preset", PRESETS)
def test_a_preset_is_its_expression(preset: str) -> None:
    assert read_words(preset, ZONE).schedule == Schedule("cron", PRESETS[preset], ZONE)


@pytest.mark.parametrize("form",
    [*(form for form, _ in FORMS), *PRESETS, "at 2026-12-24T18:00Z", "in 90s", "every 1h30m"])
def test_the_normalised_form_is_read_as_the_same_schedule(form: str) -> None:
    schedule = read_words(form, ZONE, now=NOW).schedule
    again = read_words(normalised(schedule), schedule.timezone).schedule
    assert again == replace(schedule, bounds=None, anchor=None)
    assert read_words(normalised(again), again.timezone).schedule == again


@pytest.mark.parametrize("form", [form for form, _ in FORMS])
def test_the_sentence_of_a_schedule_that_is_in_the_grammar_means_the_same_schedule(form: str) -> None:
    schedule = read_words(form, ZONE, now=NOW).schedule
    if schedule.kind == "every":
        schedule = parse("every", schedule.expression, ZONE, anchor=NOW)
    if schedule.kind == "rrule" and schedule.anchor is not None:
        assert "counted from" in sentence(schedule)
    elif schedule.bounds is None and "(" not in sentence(schedule):
        assert fires(read_words(sentence(schedule), "UTC", now=NOW).schedule, 40) == fires(schedule, 40)


@settings(max_examples=150, deadline=None)
@given(
    hours=st.sets(st.integers(0, 23), min_size=1, max_size=3), minute=st.integers(0, 59),
    days=st.sampled_from(["* * *", "* * mon-fri", "* * sat,sun", "1,15 * *", "L * *", "* * fri#2", "* 6 monL",
        "24 12 *"]),
)
def test_the_sentence_of_a_cron_expression_means_the_same_fires(hours: set[int], minute: int, days: str) -> None:
    schedule = parse("cron", f"{minute} {','.join(map(str, sorted(hours)))} {days}", ZONE)
    assert fires(read_words(sentence(schedule), "UTC", now=NOW).schedule, 12) == fires(schedule, 12)


WORDS = [*vocabulary(), "9", "17:30", "7pm", "15m", "1st", "15th", "2026", "2026-12-24", ",", "-", "&", ":30", "utc",
    "new york"]


def seconds_of(text: str) -> float:
    """How much of the processor an answer takes; where it seems long, the shortest of three."""
    taken: list[float] = []
    while len(taken) < 3 and (not taken or taken[-1] > 0.02):
        began = time.process_time()
        with contextlib.suppress(BadSchedule):
            understand(text, ZONE, now=NOW)
        taken.append(time.process_time() - began)
    return min(taken)


def test_words_in_any_order_are_answered_or_refused_at_once() -> None:
    read_words("weekdays at 9", ZONE)  # the first one pays for the making of the grammar
    dice = random.Random(4)
    understood = 0
    for _ in range(1500):
        words = dice.choice(FORMS)[0].split()
        for _ in range(dice.randint(1, 6)):
            words.insert(dice.randint(0, len(words)), dice.choice(WORDS))
            if dice.random() < 0.5:
                words.pop(dice.randrange(len(words)))
        text = " ".join(words)
        assert seconds_of(text) < 0.05, text
        with contextlib.suppress(BadSchedule):
            next_due(understand(text, ZONE, now=NOW).schedule, NOW)
            understood += 1
    assert understood > 25


@pytest.mark.parametrize("text", [
    "", "   ", "every " * 300, "9" * 4000, "every day at 9 " + "and 10 " * 200, "every day at 9\nevery day at 10",
    "every day at 9\0",
    "\u202eevery day at 9", "((((" * 40, "⏰", "every day at 9 and " * 10, "mon," * 49, "1st " * 49,
    "every 999999 weeks", "0 " * 90,
    "every day at ９", "every 999999 hours from 9 to 17", "\ud800",
])
def test_hostile_text_is_refused_at_once(text: str) -> None:
    with pytest.raises(BadSchedule):
        read_words(text, ZONE, now=NOW)
    assert seconds_of(text) < 0.05


@given(st.text(max_size=60))
@settings(max_examples=150, deadline=None)
def test_any_text_is_answered_or_refused(text: str) -> None:
    with contextlib.suppress(BadSchedule):
        assert read_words(text, ZONE, now=NOW).schedule.timezone


def test_bounds_in_words_and_bounds_beside_them_hold_together() -> None:
    words = read_words("every day at 9 from 2027-01-01 except 25 december 2027", ZONE).schedule.bounds
    beside = Bounds(end=NOW, days=(Days("2027-12-24", "2027-12-24"),))
    both = joined(words, beside)
    assert both is not None
    assert words is not None
    assert (both.start, both.end) == (words.start, NOW)
    assert [day.first for day in both.days] == ["2027-12-25", "2027-12-24"]
    assert (joined(words, None), joined(None, beside), joined(None, None)) == (words, beside, None)
    with pytest.raises(BadSchedule, match="the start is said twice"):
        joined(words, Bounds(start=NOW))
