"""What an imported line fires at is what cron would: counted here minute by minute, as cron does."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta

import pytest
from machines import NOW, at, job

from nightporter.clock import moment
from nightporter.rules.schedule import next_due, slots_between
from nightporter.words import Schedule

BOUNDS = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 7))


class Cron:
    """Cron's own rule: a day field that begins with a star restricts nothing by itself, and two that do not are
    united."""

    def __init__(self, line: str) -> None:
        fields = line.split()
        self.minute, self.hour, self.day, self.month, weekday = (
            _set(text, *bounds) for text, bounds in zip(fields, BOUNDS, strict=True))
        self.weekday = {each % 7 for each in weekday}
        self.star = fields[2].startswith("*") or fields[4].startswith("*")

    def on(self, day: datetime) -> list[datetime]:
        """The moments of a day at which it runs."""
        by_day, by_weekday = day.day in self.day, day.isoweekday() % 7 in self.weekday
        if day.month not in self.month or not (by_day and by_weekday if self.star else by_day or by_weekday):
            return []
        return [day + timedelta(hours=h, minutes=m) for h in self.hour for m in self.minute]


def _set(text: str, low: int, high: int) -> set[int]:
    found: set[int] = set()
    for item in text.split(","):
        span, _, step = item.partition("/")
        first, _, last = (f"{low}-{high}" if span == "*" else span).partition("-")
        found |= set(range(int(first), int(last or first) + 1, int(step or 1)))
    return found


def lines(count: int, seed: int) -> list[str]:
    drawn = random.Random(seed)

    def field(low: int, high: int) -> str:
        def item() -> str:
            first = drawn.randint(low, high)
            last = drawn.randint(first, high)
            return drawn.choice(["*", f"*/{drawn.randint(1, 2 * high)}", str(first), f"{first}-{last}",
                                 f"{first}-{last}/{drawn.randint(1, 9)}"])

        return ",".join(item() for _ in range(drawn.choice([1, 1, 1, 2, 3])))

    return [" ".join(field(*bounds) for bounds in BOUNDS) for _ in range(count)]


@pytest.mark.parametrize("line", ["0 0 13 * 5", "*/7 */5 * * *", "0 9 1-7 * */7", "30 4 1,15 * 5", "*/90 6 * * *",
                                  "0 12 */40 * 3", "59 23 31 12 *", "5 4 * * 7", "0 0 * * 6-7", *lines(60, seed=4)])
def test_an_imported_line_fires_when_cron_would(line: str) -> None:
    entry = job(f"CRON_TZ=UTC\n{line} /bin/x\n")
    if "never matches" in entry.refused:
        return
    schedule = Schedule("cron", entry.timings[0].expression, entry.timings[0].timezone)
    start = moment(NOW).astimezone(UTC)
    until = start + timedelta(days=40)
    ours = {moment(slot) for slot in slots_between(schedule, NOW, at(until.replace(tzinfo=None).isoformat()))}
    cron, midnight = Cron(line), start.replace(hour=0, minute=0, second=0, microsecond=0)
    crons = {when for n in range(42) for when in cron.on(midnight + timedelta(days=n)) if start < when <= until}
    assert ours == crons


@pytest.mark.parametrize(
    ("line", "after", "fires"),
    [
        # Clocks go forward on 28 March 2027 and back on 31 October 2027 in Berlin.
        ("30 2 * * *", "2027-03-27T12:00", ["2027-03-28T01:00", "2027-03-29T00:30"]),
        ("30 2 * * *", "2027-10-30T12:00", ["2027-10-31T00:30", "2027-11-01T01:30"]),
        ("*/30 2 * * *", "2027-10-30T23:50", ["2027-10-31T00:00", "2027-10-31T00:30", "2027-10-31T01:00"]),
        ("@hourly", "2027-03-28T00:30", ["2027-03-28T01:00", "2027-03-28T02:00"]),
    ],
)
def test_nights_of_change_go_as_debians_cron_has_them(line: str, after: str, fires: list[str]) -> None:
    entry = job(f"{line} /bin/x\n")
    schedule = Schedule("cron", entry.timings[0].expression, entry.timings[0].timezone)
    slot = at(after)
    for fire in fires:
        following = next_due(schedule, slot)
        assert following == at(fire)
        assert following is not None
        slot = following
