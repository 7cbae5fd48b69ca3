"""What an imported timer fires at is what systemd.time says: counted here second by second of a calendar, by its rules.

A moment matches where its day of the week, its date and its time of day all match; a part is `*`, a value, a range
`a..b` or a repetition `a/n`, each in a list; a range may be repeated too; without a date it is every day, without a
time midnight. Days after `~` count from the end of the month.
"""

from __future__ import annotations

import calendar
import random
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from machines import NOW, at
from units import timer

from nightporter.clock import moment
from nightporter.rules.schedule import next_due, slots_between
from nightporter.words import Schedule

WEEK = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


def part(text: str, low: int, high: int) -> set[int]:
    found: set[int] = set()
    for item in text.split(","):
        span, _, step = item.partition("/")
        first, _, last = span.partition("..")
        begin = low if first == "*" else int(first)
        end = int(last) if last else high if step or first == "*" else begin
        found |= set(range(begin, end + 1, int(step or 1)))
    return found


class Calendar:
    """One expression `DAYS *-month-day hour:minute:second`, or with `~` before the day."""

    def __init__(self, days: str, month: str, mark: str, day: str, time: str) -> None:
        self.weekdays = {place for each in days.split(",") for first, _, last in [each.partition("..")]
                         for place in range(WEEK.index(first), WEEK.index(last or first) + 1)} or set(range(7))
        self.months, self.mark, self.days = part(month, 1, 12), mark, part(day, 1, 31)
        self.times = [part(text, 0, high) for text, high in zip(time.split(":"), (23, 59, 59), strict=True)]
        self.text = f"{days} *-{month}{mark}{day} {time}"

    def on(self, day: datetime) -> list[datetime]:
        number = day.day if self.mark == "-" else calendar.monthrange(day.year, day.month)[1] - day.day + 1
        if day.weekday() not in self.weekdays or day.month not in self.months or number not in self.days:
            return []
        hours, minutes, seconds = self.times
        return [day + timedelta(hours=h, minutes=m, seconds=s) for h in hours for m in minutes for s in seconds]


def expressions(count: int, seed: int) -> list[Calendar]:
    drawn = random.Random(seed)

    def field(low: int, high: int, sparse: bool = False) -> str:
        def item() -> str:
            first = drawn.randint(low, high - 1)
            last = drawn.randint(first, high)
            return drawn.choice([str(first), f"{first}..{last}", f"{first}/{drawn.randint(1, high - first)}",
                                 f"{first}..{last}/{drawn.randint(2, 9)}"])

        if sparse:
            return str(drawn.randint(low, high))
        return drawn.choice(["*", item(), f"{item()},{item()}"])

    def week() -> str:
        first = drawn.randint(0, 6)
        return drawn.choice([WEEK[first], f"{WEEK[first]}..{WEEK[drawn.randint(first, 6)]}",
                             f"{WEEK[first]},{WEEK[drawn.randint(0, 6)]}", "Mon..Sun", "Mon..Sun"])

    made = []
    for _ in range(count):
        end = drawn.random() < 0.2
        made.append(Calendar(week(), field(1, 12), "~" if end else "-", str(drawn.randint(1, 28)) if end else
                             field(1, 31), f"{field(0, 23)}:{field(0, 59)}:{field(0, 59, sparse=True)}"))
    return made


NAMED = [Calendar("Mon..Fri", "*", "-", "*", "9:00:00"), Calendar("Sat", "*", "-", "8..14", "6:30:00"),
         Calendar("Mon..Sun", "1/3", "~", "1", "23:59:59"), Calendar("Fri", "*", "-", "13", "0:00:00"),
         Calendar("Mon..Sun", "*", "-", "1,15", "0/6:0/20:00"), Calendar("Mon,Wed,Sun", "12,1", "-", "*", "4:5:6")]


@pytest.mark.parametrize("expression", [*NAMED, *expressions(50, seed=4)], ids=lambda each: each.text)
def test_an_imported_timer_fires_when_systemd_would(tmp_path: Path, expression: Calendar) -> None:
    item = timer(tmp_path, f"OnCalendar={expression.text} UTC")
    assert item.state == "imported", item.reason
    (found,) = item.entry.timings
    schedule = Schedule(found.kind, found.expression, found.timezone)
    start = moment(NOW).astimezone(UTC)
    until = start + timedelta(days=62)
    ours = [moment(slot) for slot in slots_between(schedule, NOW, at(until.replace(tzinfo=None).isoformat()))]
    midnight = start.replace(hour=0)
    assert ours == sorted(when for n in range(64) for when in expression.on(midnight + timedelta(days=n))
                          if start < when <= until)


@pytest.mark.parametrize(
    ("text", "fires"),
    [
        ("daily", ["2026-12-01T23:00", "2026-12-02T23:00"]), ("hourly", ["2026-12-01T13:00", "2026-12-01T14:00"]),
        ("weekly", ["2026-12-06T23:00", "2026-12-13T23:00"]), ("monthly", ["2026-12-31T23:00", "2027-01-31T23:00"]),
        ("quarterly", ["2026-12-31T23:00", "2027-03-31T22:00"]), ("yearly", ["2026-12-31T23:00", "2027-12-31T23:00"]),
        ("semiannually", ["2026-12-31T23:00", "2027-06-30T22:00"]),
        ("*:0/20", ["2026-12-01T12:20", "2026-12-01T12:40"]),
        ("Thu,Fri 2026-12-* 11:12:13", []), ("*-2-29", ["2028-02-28T23:00", "2032-02-28T23:00"]),
        ("2027-06-01 08:00 America/New_York", ["2027-06-01T12:00"]),
    ],
)
def test_words_and_dates_fire_in_the_zone_of_the_machine(tmp_path: Path, text: str, fires: list[str]) -> None:
    item = timer(tmp_path, f"OnCalendar={text}")
    assert (item.state == "imported") == bool(fires), item.reason
    slot = NOW
    for fire in fires:
        (found,) = item.entry.timings
        following = next_due(Schedule(found.kind, found.expression, found.timezone), slot)
        assert following == at(fire)
        slot = at(fire)


@pytest.mark.parametrize(
    ("text", "after", "theirs", "ours"),
    [
        # Berlin, 28 March 2027: there is no 02:30. systemd leaves the day out, and here it is the first moment after.
        ("02:30", "2027-03-27T12:00", "2027-03-29T00:30", "2027-03-28T01:00"),
        # 31 October 2027: 02:30 is there twice. Both take the first.
        ("02:30", "2027-10-30T12:00", "2027-10-31T00:30", "2027-10-31T00:30"),
        # Of an hour that is there twice systemd knows the first alone; here time goes on.
        ("*:0/30", "2027-10-31T00:30", "2027-10-31T02:00", "2027-10-31T01:00"),
    ],
)
def test_nights_of_change_go_as_here_and_not_as_there(
    tmp_path: Path, text: str, after: str, theirs: str, ours: str
) -> None:
    (found,) = timer(tmp_path, f"OnCalendar={text}").entry.timings
    assert (next_due(Schedule(found.kind, found.expression, found.timezone), at(after)) == at(theirs)) == (
        theirs == ours)
    assert next_due(Schedule(found.kind, found.expression, found.timezone), at(after)) == at(ours)
