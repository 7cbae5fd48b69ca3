"""Recurrence rules: as another implementation of the RFC enumerates them, from any instant on, forwards and back."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from itertools import islice, takewhile

import pytest
from dateutil.rrule import rrulestr
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from nightporter.clock import DAY, MINUTE, Instant, instant, moment
from nightporter.errors import BadSchedule
from nightporter.rules.schedule import count_between, next_due, parse, previous_due, sentence, slots_between
from nightporter.rules.zones import zone

WEEKDAYS = ["MO", "TU", "WE", "TH", "FR", "SA", "SU"]


def some(low: int, high: int, most: int = 3) -> st.SearchStrategy[str]:
    return st.lists(st.integers(low, high).filter(bool), min_size=1, max_size=most, unique=True).map(
        lambda each: ",".join(map(str, each))
    )


@st.composite
def rules(draw: st.DrawFn) -> str:
    """Rules by the day and longer that the RFC allows."""
    freq = draw(st.sampled_from(["DAILY", "WEEKLY", "MONTHLY", "YEARLY"]))
    parts = [f"FREQ={freq}", f"INTERVAL={draw(st.sampled_from([1, 1, 1, 2, 3, 5, 12]))}"]
    if draw(st.booleans()):
        parts.append(f"WKST={draw(st.sampled_from(WEEKDAYS))}")
    if draw(st.integers(0, 3)) == 0:
        parts.append(f"BYMONTH={draw(some(1, 12))}")
    days = draw(st.lists(st.sampled_from(WEEKDAYS), min_size=1, max_size=3, unique=True))
    if draw(st.booleans()):
        count = draw(st.sampled_from([0, 0, 1, 2, -1])) if freq in ("MONTHLY", "YEARLY") else 0
        parts.append(f"BYDAY={','.join((str(count) if count else '') + day for day in days)}")
    if freq in ("MONTHLY", "YEARLY", "DAILY") and draw(st.integers(0, 2)) == 0:
        parts.append(f"BYMONTHDAY={draw(some(-31, 31))}")
    if freq == "YEARLY" and draw(st.integers(0, 4)) == 0:
        parts.append(f"BYYEARDAY={draw(some(-366, 366))}")
    if draw(st.integers(0, 2)) == 0:
        parts.append(f"BYHOUR={draw(some(0, 23))}")
    if draw(st.integers(0, 2)) == 0:
        parts.append(f"BYMINUTE={draw(some(0, 59))}")
    if len(parts) > 3 and draw(st.integers(0, 3)) == 0 and any(each.startswith("BY") for each in parts):
        parts.append(f"BYSETPOS={draw(some(-3, 3, 2))}")
    if draw(st.integers(0, 3)) == 0:
        parts.append(f"COUNT={draw(st.integers(1, 30))}")
    return ";".join(parts)


FIRST = datetime(2015, 1, 1, tzinfo=UTC)
STARTS = st.integers(0, 15 * 365 * 1440).map(lambda minute: FIRST + timedelta(minutes=minute))


QUICK = settings(
    max_examples=200, deadline=None, derandomize=True, database=None, phases=[Phase.explicit, Phase.generate]
)


@QUICK
@given(rule=rules(), start=STARTS)
def test_a_rule_is_due_when_another_implementation_says(rule: str, start: datetime) -> None:
    anchor = instant(start)
    try:
        schedule = parse("rrule", rule, "UTC", anchor=anchor)
    except BadSchedule as error:
        refusal = error.what
        schedule = None
    if schedule is None:
        assert "never matches" in refusal or "whole weeks" in refusal  # the other one would look for ever
        return
    until = start + timedelta(days=365 * 6)
    endless = parse("rrule", re.sub(r";COUNT=\d+", "", rule), "UTC", anchor=anchor)
    beyond = next_due(endless, instant(until))
    if beyond is None or beyond > anchor + 30 * 366 * DAY:
        return  # the other one walks through every day of the years between
    theirs = list(islice(takewhile(lambda each: each <= until, rrulestr(rule, dtstart=start)), 60))
    ours = list(islice(slots_between(schedule, Instant(anchor - 1), instant(until)), 60))
    assert [moment(each) for each in ours] == theirs


TRANSITIONS = {
    "America/New_York": ["2026-03-08T07:00", "2026-11-01T06:00"],
    "Europe/Dublin": ["2026-03-29T01:00", "2026-10-25T01:00"],
    "Australia/Lord_Howe": ["2026-10-03T15:30", "2026-04-04T15:00"],
    "America/Sao_Paulo": ["2018-11-04T03:00", "2018-02-18T02:00"],
    "Antarctica/Troll": ["2026-03-29T01:00", "2026-10-25T01:00"],
    "Asia/Pyongyang": ["2015-08-14T15:00", "2018-05-04T15:00"],
    "Pacific/Apia": ["2011-12-30T10:00", "2011-09-24T14:00"],
}
PLACES = [(name, text) for name, texts in TRANSITIONS.items() for text in texts]
IN_ZONES = [
    "FREQ=DAILY", "FREQ=DAILY;BYHOUR=1,2,3;BYMINUTE=0,30", "FREQ=DAILY;INTERVAL=2;BYHOUR=0,2;BYMINUTE=15",
    "FREQ=WEEKLY;BYDAY=SU,SA,MO;BYHOUR=1,2;BYMINUTE=0,20,40", "FREQ=MONTHLY;BYDAY=-1SU,1SU,2SU;BYHOUR=2,3",
    "FREQ=HOURLY", "FREQ=HOURLY;INTERVAL=5", "FREQ=HOURLY;BYMINUTE=0,30",
    "FREQ=HOURLY;INTERVAL=3;BYMINUTE=45;BYDAY=SA,SU",
    "FREQ=HOURLY;BYHOUR=0,1,2,3;BYMINUTE=10", "FREQ=MINUTELY;INTERVAL=45", "FREQ=DAILY;COUNT=30;BYHOUR=2;BYMINUTE=30",
    "FREQ=HOURLY;BYMINUTE=0,20,40;COUNT=400;BYDAY=SU,MO", "FREQ=YEARLY;BYYEARDAY=60,100,-1;BYHOUR=2;BYMINUTE=30",
]


@settings(max_examples=120, deadline=None, derandomize=True, database=None, phases=[Phase.explicit, Phase.generate])
@given(rule=st.sampled_from(IN_ZONES), place=st.sampled_from(PLACES), before=st.integers(0, 40 * 24 * 60),
       restart=st.integers(-36 * 60, 36 * 60))
def test_around_a_zone_change_every_restart_finds_the_same_slots(
    rule: str, place: tuple[str, str], before: int, restart: int
) -> None:
    name, text = place
    change = instant(datetime.fromisoformat(text).replace(tzinfo=UTC))
    schedule = parse("rrule", rule, name, anchor=Instant(change - before * MINUTE))
    slots = list(islice(slots_between(schedule, Instant(change - 3 * DAY), Instant(change + 3 * DAY)), 800))
    assert slots == sorted(set(slots))
    assert count_between(schedule, Instant(change - 3 * DAY), Instant(change + 3 * DAY), cap=800) == (len(slots), True)
    at = Instant(change + restart * MINUTE + 1)
    later = [slot for slot in slots if slot > at]
    earlier = [slot for slot in slots if slot <= at]
    if later:
        assert next_due(schedule, at) == later[0]
    if earlier:
        assert previous_due(schedule, at) == earlier[-1]
    for slot in slots[:40]:
        assert next_due(schedule, Instant(slot - 1)) == slot == previous_due(schedule, slot)


@pytest.mark.parametrize(("name", "text"), PLACES)
def test_a_daily_rule_keeps_to_the_clock_of_its_zone_and_runs_once_a_day(name: str, text: str) -> None:
    change = instant(datetime.fromisoformat(text).replace(tzinfo=UTC))
    schedule = parse("rrule", "FREQ=DAILY;BYHOUR=2;BYMINUTE=15;BYSECOND=0", name, anchor=Instant(change - 10 * DAY))
    found = [moment(slot).astimezone(zone(name)) for slot in slots_between(
        schedule, Instant(change - 4 * DAY), Instant(change + 4 * DAY)
    )]
    assert len({at.date() for at in found}) == len(found)
    usual = [at for at in found if (at.hour, at.minute) == (2, 15)]
    assert len(found) - len(usual) <= 1  # the night of a gap
    for at in found:
        if at not in usual:
            assert at.utcoffset() > (at - timedelta(days=1)).utcoffset()  # type: ignore[operator]  # zones have offsets


def test_a_rule_counts_its_times_also_when_some_are_left_out_of_the_days_asked_about() -> None:
    anchor = instant(datetime(2026, 1, 1, 9, tzinfo=UTC))
    schedule = parse("rrule", "FREQ=WEEKLY;INTERVAL=2;BYDAY=MO,TH;COUNT=5", "UTC", anchor=anchor)
    assert count_between(schedule, Instant(0), Instant(anchor + 3650 * DAY)) == (5, True)
    assert next_due(schedule, Instant(anchor + 40 * DAY)) is None
    assert previous_due(schedule, Instant(anchor - 1)) is None


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ("FREQ=WEEKLY;INTERVAL=2;BYDAY=MO,FR", "Every 2 weeks on Monday and Friday at 09:00, counted from"),
        ("FREQ=DAILY;BYHOUR=7,19;BYMINUTE=30", "Every day at 07:30 and 19:30"),
        ("FREQ=MONTHLY;BYDAY=1MO", "Every month on the first Monday at 09:00"),
        ("FREQ=MONTHLY;BYMONTHDAY=-1;COUNT=3", "Every month on the last day at 09:00, 3 times, counted from"),
        ("FREQ=YEARLY", "Every year on day 1 in January at 09:00"),
        ("FREQ=HOURLY;INTERVAL=6", "Every 6 hours, counted from"),
        ("FREQ=MONTHLY;BYDAY=MO,TU;BYSETPOS=-1", "Rule FREQ=MONTHLY;BYDAY=MO,TU;BYSETPOS=-1"),
        ("FREQ=DAILY;UNTIL=20261224", "Every day at 09:00, until 2026-12-24"),
    ],
)
def test_a_rule_is_said_in_words(rule: str, words: str) -> None:
    schedule = parse("rrule", rule, "UTC", anchor=instant(datetime(2026, 1, 1, 9, tzinfo=UTC)))
    assert sentence(schedule).startswith(words)
    assert sentence(schedule).endswith(", UTC")


def test_a_day_named_by_until_is_meant_to_its_end() -> None:
    anchor = instant(datetime(2026, 12, 20, 9, tzinfo=UTC))
    schedule = parse("rrule", "FREQ=DAILY;UNTIL=20261224", "America/New_York", anchor=anchor)
    assert [moment(slot).day for slot in slots_between(schedule, Instant(0), Instant(anchor + 99 * DAY))] == [
        20, 21, 22, 23, 24
    ]


@pytest.mark.parametrize(
    "rule",
    [
        "FREQ=SECONDLY;BYMONTH=2;BYMONTHDAY=30", "FREQ=MINUTELY;BYHOUR=1", "FREQ=DAILY;INTERVAL=99999",
        "FREQ=HOURLY;INTERVAL=5;BYHOUR=3", "FREQ=DAILY;INTERVAL=14;BYDAY=MO", "FREQ=WEEKLY;BYMONTHDAY=3",
        "FREQ=DAILY;BYDAY=2MO", "FREQ=YEARLY;BYWEEKNO=3;BYDAY=1MO", "FREQ=DAILY EXDATE:20261224",
        "DTSTART:20260101T090000 RRULE:FREQ=DAILY", "FREQ=DAILY;X-HOUR=3", "FREQ=DAILY;BYHOUR=24", "", "RRULE:",
        "FREQ=DAILY;BYHOUR=" + ",".join(map(str, range(24))) + ";BYMINUTE=" + ",".join(map(str, range(60)))
        + ";BYSECOND=0,30", "FREQ=HOURLY;BYMINUTE=3;BYSETPOS=2", "FREQ=MONTHLY;BYMONTHDAY=31;BYMONTH=2,4",
        "FREQ=YEARLY;INTERVAL=4;BYMONTH=2;BYMONTHDAY=29",
    ],
)
def test_a_rule_that_cannot_be_or_cannot_be_bounded_is_refused_with_a_reason(rule: str) -> None:
    with pytest.raises(BadSchedule) as refusal:
        parse("rrule", rule, "UTC", anchor=instant(datetime(2026, 1, 1, 9, tzinfo=UTC)))
    assert refusal.value.what
    assert refusal.value.why
    assert refusal.value.next


@pytest.mark.parametrize("rule", [
    "FREQ=MONTHLY;BYHOUR=1,13,17;BYSETPOS=20", "FREQ=MONTHLY;BYDAY=MO;BYSETPOS=6",
    "FREQ=WEEKLY;BYDAY=MO,TU;BYSETPOS=-3", "FREQ=MONTHLY;BYDAY=1MO,-1FR;BYSETPOS=3",
    "FREQ=YEARLY;BYMONTH=2,3;BYSETPOS=3",
])
def test_a_position_beyond_what_a_period_can_hold_is_refused_without_a_search(rule: str) -> None:
    with pytest.raises(BadSchedule) as refused:
        parse("rrule", rule, "UTC", anchor=Instant(0))
    assert "BYSETPOS chooses among" in str(refused.value.why)


@pytest.mark.parametrize(("rule", "day"), [
    ("FREQ=MONTHLY;BYDAY=MO;BYSETPOS=5", "1970-03-30"), ("FREQ=MONTHLY;BYDAY=1MO,-1FR;BYSETPOS=2", "1970-01-30"),
    ("FREQ=YEARLY;BYMONTH=2,3;BYSETPOS=2", "1970-03-01"),
])
def test_a_position_that_only_some_periods_hold_is_found(rule: str, day: str) -> None:
    schedule = parse("rrule", rule, "UTC", anchor=Instant(0))
    first = next_due(schedule, Instant(-1))
    assert first is not None
    assert f"{moment(first):%Y-%m-%d}" == day
