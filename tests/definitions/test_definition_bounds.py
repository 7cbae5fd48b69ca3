"""`start`, `end`, `season`, `exclude` and recurrence rules: as they are written, rendered, and refused."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from sample_definitions import CHECKS, NOW, keys, place, refusal

from nightporter.clock import instant
from nightporter.definitions import read, render
from nightporter.definitions.calendars import days_of_calendar
from nightporter.errors import BadInput
from nightporter.rules.schedule import sentence
from nightporter.words import Definition, Schedule
from nightporter.words.bounds import Bounds, Days, Season, Window


def schedule_of(definition: Definition) -> Schedule:
    found = definition.triggers[0].schedule
    assert found is not None
    return found


def at(*of: int) -> Any:
    return instant(datetime(*of, tzinfo=UTC))  # type: ignore[arg-type,misc]  # year, month, day, ...


@pytest.mark.parametrize(
    ("written", "bounds"),
    [
        ("start: 2027-01-15", Bounds(start=at(2027, 1, 15))),
        ("end: 2027-01-15", Bounds(end=at(2027, 1, 16) - 1)),
        ("end: 2027-01-15T09:00", Bounds(end=at(2027, 1, 15, 9))),
        ("season: 03-01 to 10-31", Bounds(seasons=(Season((3, 1), (10, 31)),))),
        ("season: [november to february, jun]", Bounds(seasons=(Season((11, 1), (2, 29)), Season((6, 1), (6, 30))))),
        ("exclude: 2026-12-24", Bounds(days=(Days("2026-12-24", "2026-12-24"),))),
        ("exclude: [2026-12-20 to 2027-01-03]", Bounds(days=(Days("2026-12-20", "2027-01-03"),))),
        ("exclude: {days: 2026-12-24, name: Eve}", Bounds(days=(Days("2026-12-24", "2026-12-24", "Eve"),))),
        ('exclude: "22:00-06:00"', Bounds(windows=(Window(1320, 360),))),
        ('exclude: ["sat,sun", "fri-mon 12:00-24:00"]',
         Bounds(windows=(Window(0, 1440, (6, 7)), Window(720, 1440, (1, 5, 6, 7))))),
        ('exclude: {hours: "mon 08:00-09:30", name: stand-up}', Bounds(windows=(Window(480, 570, (1,), "stand-up"),))),
    ],
)
def test_bounds_stand_at_the_automation_or_at_a_schedule_and_are_rendered_as_they_are(
    written: str, bounds: Bounds
) -> None:
    definition = keys(f"timezone: UTC\nwhen: every 1h\n{written}")
    assert schedule_of(definition).bounds == bounds
    assert keys(f"timezone: UTC\ntriggers:\n  - every: 1h\n    {written}") == definition
    again = read(render(definition), path="/desk/automations/morning-brief.md", format="markdown",
                 default_timezone="Europe/Lisbon", now=NOW, checks=CHECKS)
    assert again == definition
    assert Definition.from_json(definition.as_json()) == definition
    assert keys("timezone: UTC\nwhen: every 1h") != definition


def test_a_schedule_has_its_own_bounds_or_the_automations() -> None:
    definition = keys(
        "timezone: UTC\nend: 2027-01-15\ntriggers:\n  - every: 1h\n  - {every: 2h, name: b, end: 2028-01-15}"
    )
    ends = [each.schedule.bounds.end for each in definition.triggers if each.schedule and each.schedule.bounds]
    assert ends == [at(2027, 1, 16) - 1, at(2028, 1, 16) - 1]


def test_bounds_are_said_in_the_sentence() -> None:
    said = sentence(schedule_of(keys(
        'timezone: UTC\nwhen: "0 9 * * *"\nseason: 03-01 to 10-31\nexclude: {days: 2026-12-24, name: Eve}'
    )))
    assert said == "At 09:00 every day, from 1 March to 31 October, not on 24 December 2026 (Eve), UTC"


def test_a_recurrence_rule_is_a_trigger_and_is_rendered_as_one() -> None:
    definition = keys('timezone: UTC\ntriggers:\n  - rrule: "RRULE:FREQ=WEEKLY;BYDAY=MO"\n    anchor: 2026-01-05T09:00')
    schedule = schedule_of(definition)
    assert (schedule.kind, schedule.anchor) == ("rrule", at(2026, 1, 5, 9))
    again = read(render(definition), path="/desk/automations/morning-brief.md", format="markdown",
                 default_timezone="Europe/Lisbon", now=NOW, checks=CHECKS)
    assert again == definition


@pytest.mark.parametrize(
    ("written", "says"),
    [
        ("end: 2026-01-01\nstart: 2026-02-01", "`end` lies before `start`"),
        ("season: 13-01 to 14-01", "is no season"),
        ("season: []", "`season` has 0 entries"),
        ("exclude: christmas", "is no weekday"),
        ("exclude: 2026-02-30", "is no day"),
        ("exclude: 2026-12-24 to 2026-12-01", "are no days"),
        ('exclude: "25:00-26:00"', "are no hours"),
        ("exclude: {name: x}", "says one of"),
        ("exclude: {calendar: none.ics}", "cannot be read"),
        ("start: soon", "not an instant"),
    ],
)
def test_bounds_that_cannot_be_are_refused_where_they_stand(written: str, says: str) -> None:
    error = refusal(f"when: every 1h\n{written}")
    assert says in f"{error.what} {error.why}"
    assert place(error)[0] in (3, 4)
    assert error.next


def test_bounds_that_leave_no_time_are_refused() -> None:
    error = refusal('when: "0 9 24 12 *"\nseason: 03-01 to 10-31')
    assert "no time within its bounds" in error.what


def test_bounds_without_a_schedule_are_refused() -> None:
    assert "says nothing here" in refusal("exclude: 2026-12-24").what


CALENDAR = """BEGIN:VCALENDAR
VERSION:2.0
BEGIN:VEVENT
UID:1
DTSTART;VALUE=DATE:20261225
DTEND;VALUE=DATE:20261227
SUMMARY:Christmas
END:VEVENT
BEGIN:VEVENT
UID:2
DTSTART;VALUE=DATE:19901003
RRULE:FREQ=YEARLY
EXDATE;VALUE=DATE:20271003
SUMMARY:Unity Day
END:VEVENT
BEGIN:VEVENT
UID:2
RECURRENCE-ID;VALUE=DATE:20281003
DTSTART;VALUE=DATE:20281004
SUMMARY:Unity Day (moved)
END:VEVENT
BEGIN:VEVENT
UID:3
DTSTART:20261111T110000Z
SUMMARY:a meeting
END:VEVENT
BEGIN:VEVENT
UID:4
DTSTART;VALUE=DATE:20260101
RRULE:FREQ=SECONDLY;BYMONTH=2;BYMONTHDAY=30
SUMMARY:a bomb
END:VEVENT
BEGIN:VEVENT
UID:5
DTSTART;VALUE=DATE:tomorrow
SUMMARY:no day
END:VEVENT
BEGIN:VEVENT
UID:6
STATUS:CANCELLED
DTSTART;VALUE=DATE:20260601
END:VEVENT
END:VCALENDAR
"""


def test_the_all_day_events_of_a_calendar_are_days_and_a_bad_one_is_named_and_spoils_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "days.ics").write_text(CALENDAR)
    days = days_of_calendar(tmp_path / "days.ics", NOW, most=100)
    assert Days("2026-12-25", "2026-12-26", "Christmas") in days
    unity = [each.first for each in days if each.name.startswith("Unity")]
    assert unity[:5] == ["2025-10-03", "2026-10-03", "2028-10-04", "2029-10-03", "2030-10-03"]
    assert unity[-1] == "2035-10-03"
    assert {each.name for each in days} == {"Christmas", "Unity Day", "Unity Day (moved)"}
    named = [record.getMessage() for record in caplog.records]
    assert all("calendar.unreadable_day" in each for each in named)
    assert any("a bomb" in each for each in named)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "no day that could be left out"),
        (b"hello\nworld", "is no calendar"),
        (b"\xff\xfe\x00", "is no calendar"),
        (b"BEGIN:VCALENDAR\nEND:VCALENDAR\n", "no day that could be left out"),
        (b"x" * 1_000_001, "too large"),
        (b"BEGIN:VCALENDAR\n" + b"BEGIN:VEVENT\nEND:VEVENT\n" * 5001 + b"END:VCALENDAR\n", "has 5001 events"),
    ],
)
def test_what_is_no_calendar_of_holidays_is_refused(tmp_path: Path, content: bytes, says: str) -> None:
    path = tmp_path / "days.ics"
    path.write_bytes(content)
    with pytest.raises(BadInput) as refused:
        days_of_calendar(path, NOW, most=100)
    assert says in refused.value.what
    assert refused.value.next


def test_a_pipe_in_the_place_of_a_calendar_is_refused_and_holds_nobody_up(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "days.ics")
    with pytest.raises(BadInput, match="cannot be read"):
        days_of_calendar(tmp_path / "days.ics", NOW, most=100)
