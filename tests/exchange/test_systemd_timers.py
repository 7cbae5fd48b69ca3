"""The times of a timer: what becomes a schedule here, and what is named because it does not."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from units import left, timer

from nightporter.errors import BadSchedule
from nightporter.exchange.unit_file import held, settings_in, span_of


def schedules(item: Any) -> list[tuple[str, str, str]]:
    assert item.state == "imported", item.reason
    return [(each.kind, each.expression, each.timezone) for each in item.entry.timings]


def test_several_times_are_several_schedules(tmp_path: Path) -> None:
    item = timer(tmp_path, "OnCalendar=Mon..Fri 09:00\nOnCalendar=*-*-01 06:00 UTC\nOnCalendar=2027-03-01 08:00\n"
                 "OnUnitActiveSec=1h 30min")
    assert schedules(item) == [
        ("cron", "0 9 * * mon-fri", "Europe/Berlin"), ("cron", "0 6 1 * *", "UTC"),
        ("at", "2027-03-01T08:00", "Europe/Berlin"), ("every", "1h30m", "Europe/Berlin")]
    assert [trigger.name for trigger in item.definition.triggers if trigger.schedule] == [  # type: ignore[union-attr]
        "clock", "clock-2", "clock-3", "clock-4"]


@pytest.mark.parametrize(("persistent", "policy", "within"), [("true", "run_once", 365), ("no", "skip", None)])
def test_persistent_says_what_becomes_of_missed_times(
    tmp_path: Path, persistent: str, policy: str, within: int | None
) -> None:
    item = timer(tmp_path, f"OnCalendar=hourly\nOnUnitActiveSec=2h\nPersistent={persistent}")
    assert item.definition is not None
    found = [each.missed for each in item.definition.triggers if each.missed]
    assert [(each.policy, each.within and each.within.days) for each in found] == [(policy, within), ("skip", None)]


@pytest.mark.parametrize(
    ("says", "stagger", "named"),
    [
        ("RandomizedDelaySec=90\nFixedRandomDelay=yes", timedelta(seconds=90), []),
        ("RandomizedDelaySec=2min", timedelta(minutes=2), ["another delay each time"]),
        ("RandomizedDelaySec=1h\nFixedRandomDelay=1", timedelta(minutes=5), ["RandomizedDelaySec=1h"]),
        ("RandomizedOffsetSec=30s", timedelta(seconds=30), []),
        ("RandomizedDelaySec=0", None, []),
        ("RandomizedDelaySec=soon", None, ["RandomizedDelaySec=soon"]),
    ],
)
def test_a_random_delay_is_a_stagger(
    tmp_path: Path, says: str, stagger: timedelta | None, named: list[str]
) -> None:
    item = timer(tmp_path, f"OnCalendar=hourly\n{says}")
    assert item.definition is not None
    (trigger,) = [each for each in item.definition.triggers if each.schedule]
    assert (trigger.stagger, list(left(item))) == (stagger, named)


@pytest.mark.parametrize("key", ["OnBootSec", "OnStartupSec", "OnActiveSec"])
def test_a_time_after_a_start_is_refused_alone_and_named_beside_another(tmp_path: Path, key: str) -> None:
    alone = timer(tmp_path / "a", f"{key}=15min")
    assert (alone.state, "that is no clock time" in alone.reason) == ("refused", True)
    beside = timer(tmp_path / "b", f"{key}=15min\nOnUnitActiveSec=1d")
    assert schedules(beside) == [("every", "1d", "Europe/Berlin")]
    assert left(beside)[f"{key}=15min"].startswith("here it begins one interval after it is brought over")


def test_of_several_intervals_the_one_that_ends_first_is_kept(tmp_path: Path) -> None:
    item = timer(tmp_path, "OnUnitActiveSec=1d\nOnUnitInactiveSec=10m\nOnBootSec=5")
    assert schedules(item) == [("every", "10m", "Europe/Berlin")]
    assert "OnUnitActiveSec=1d" in left(item)
    assert "from the end of a run" in item.entry.timings[0].warning


def test_an_interval_that_nothing_begins_is_said(tmp_path: Path) -> None:
    assert "a first time" in left(timer(tmp_path, "OnUnitActiveSec=1h"))


def test_what_has_no_place_here_is_named(tmp_path: Path) -> None:
    item = timer(tmp_path, "OnCalendar=daily\nAccuracySec=1h\nWakeSystem=true\nOnClockChange=yes\nOnTimezoneChange=no\n"
                 "OnCalender=hourly\nRemainAfterElapse=no")
    assert list(left(item)) == ["AccuracySec=1h", "WakeSystem=yes", "OnClockChange=yes", "OnCalender"]


@pytest.mark.parametrize(
    ("says", "why"),
    [
        ("OnCalendar=2026-01-01 09:00", "its time has passed"), ("OnCalendar=2026..2030-01-01", "no years"),
        ("OnCalendar=tomorrowish", "cannot be used in an OnCalendar expression"), ("OnUnitActiveSec=10ms", "too short"),
        ("OnUnitActiveSec=3y", "365"), ("OnUnitActiveSec=infinity", "it has no time at all"), ("", "no time at all"),
        ("OnCalendar=daily\nOnCalendar=", "no time at all"), ("OnCalendar=daily\n" * 51, "more than 50 times"),
        ("OnUnitActiveSec=99999999999999999y", "too long"),
    ],
)
def test_a_timer_without_a_time_that_can_be_kept_is_refused(tmp_path: Path, says: str, why: str) -> None:
    item = timer(tmp_path, says)
    assert (item.state, why in item.reason) == ("refused", True), item.reason


def test_a_time_that_cannot_be_kept_costs_that_time_alone(tmp_path: Path) -> None:
    item = timer(tmp_path, "OnCalendar=nonsense\nOnCalendar=weekly")
    assert schedules(item) == [("cron", "0 0 * * mon", "Europe/Berlin")]
    assert "OnCalendar=nonsense" in left(item)


@pytest.mark.parametrize(
    ("text", "micros"),
    [("5", 5_000_000), ("1.5h", 5_400_000_000), ("2min 3s", 123_000_000), ("2min3s", 123_000_000), ("infinity", None),
     ("1M", 2_629_800_000_000), ("1m", 60_000_000), ("50ms", 50_000), ("3 us", 3), ("1y 2w", 32_767_200_000_000)],
)
def test_spans_are_read_as_systemd_reads_them(text: str, micros: int | None) -> None:
    assert span_of(text) == micros


@pytest.mark.parametrize("text", ["", "soon", "1 parsec", "h", "5 5 x", "-3", ".", "1..5s", "٣s"])
def test_what_is_no_span_is_refused(text: str) -> None:
    with pytest.raises(BadSchedule):
        span_of(text)


def test_an_empty_value_takes_back_what_was_said_and_lines_may_go_on() -> None:
    first = settings_in(b"[Timer]\nOnCalendar=daily\nOnUnitActiveSec=5\n# no\n; neither\nUnit=a.service\nnonsense\n")
    second = settings_in(b"[Timer]\nOnBootSec=\nOnCalendar=Mon \\\n# in between\n  09:00\nUnit=\n")
    made = held([first, second])
    assert made.lines("Timer") == ["OnCalendar=Mon  09:00"]
    assert made.last("Timer", "Unit", "other") == "other"
    assert held([settings_in(b"[Timer]\nOnCalendar=daily\\")]).lines("Timer") == ["OnCalendar=daily"]
