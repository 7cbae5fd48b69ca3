"""What a person reads about a schedule: its sentence, or why it is refused."""

from __future__ import annotations

from datetime import datetime

import pytest

from nightporter.clock import instant
from nightporter.errors import BadSchedule
from nightporter.rules.schedule import next_due, parse, sentence
from nightporter.rules.zones import zone
from nightporter.words.automation import Schedule, ScheduleKind


@pytest.mark.parametrize(
    ("kind", "expression", "said"),
    [
        ("cron", "0 9 * * mon-fri", "At 09:00 on Monday to Friday"),
        ("cron", "@daily", "At 00:00 every day"),
        ("cron", "00 07 * * *", "At 07:00 every day"),
        ("cron", "0 8,17 * * 6,0", "At 08:00 and 17:00 on Saturday and Sunday"),
        ("cron", "* * * * *", "Every minute"),
        ("cron", "*/15 8-18 * * 1-5", "Every 15 minutes from 08:00 to 18:59 on Monday to Friday"),
        ("cron", "5 * * * *", "Every hour at minute 5"),
        ("cron", "0 */2 * * *", "Every 2 hours"),
        ("cron", "0,30 */2 * * *", "Every 2 hours at minute 0 and 30"),
        ("cron", "0 8-20/2 * * *", "Every 2 hours from 08:00 to 20:00"),
        ("cron", "0 9 * * mon", "At 09:00 every Monday"),
        ("cron", "0 9 * 6 *", "At 09:00 every day in June"),
        ("cron", "0 9 L-1 * *", "At 09:00 on the second to last day of the month"),
        ("cron", "0 9 1W * *", "At 09:00 on the first weekday (Monday to Friday) of the month"),
        ("cron", "0 9 * * mon#1,fril", "At 09:00 on the first Monday and the last Friday of the month"),
        ("cron", "0 9-17 * * *", "Every hour from 09:00 to 17:00"),
        ("cron", "*/10 * * * * *", "Every 10 seconds"),
        ("cron", "0 0 1 * *", "At 00:00 on day 1 of the month"),
        ("cron", "0 0 L feb *", "At 00:00 on the last day of February"),
        ("cron", "0 0 LW * *", "At 00:00 on the last weekday (Monday to Friday) of the month"),
        ("cron", "0 6 * 1,7 fri#2", "At 06:00 on the second Friday of January and July"),
        ("cron", "0 6 * * friL", "At 06:00 on the last Friday of the month"),
        ("cron", "0 0 13 * fri", "At 00:00 on day 13 of the month or on Friday"),
        ("cron", "0 0 1 apr-oct ?", "At 00:00 on day 1 of April to October"),
        ("cron", "*/7 3 * * mon", "Cron */7 3 * * MON"),
        ("cron", "0 0 1-7 * */7", "Cron 0 0 1-7 * */7"),
        ("every", "15m", "Every 15 minutes"),
        ("every", "1h30m", "Every 1h30m"),
        ("every", "1d", "Every day"),
        ("at", "2026-11-03T09:00", "Once, on Tuesday 3 November 2026 at 09:00"),
        ("at", "2026-11-03T08:00:30Z", "Once, on Tuesday 3 November 2026 at 09:00:30"),
    ],
)
def test_a_common_schedule_reads_as_plain_words(kind: ScheduleKind, expression: str, said: str) -> None:
    assert sentence(parse(kind, expression, "Europe/Berlin")) == f"{said}, Europe/Berlin"


def test_an_interval_says_from_where_it_is_counted() -> None:
    anchor = instant(datetime(2026, 11, 3, 8, 0, tzinfo=zone("UTC")))
    schedule = parse("every", "6h", "Europe/Berlin", anchor=anchor)
    assert sentence(schedule) == "Every 6 hours, counted from Tuesday 3 November 2026 at 09:00, Europe/Berlin"


@pytest.mark.parametrize(
    ("kind", "expression", "what", "why", "next_step"),
    [
        ("cron", "0 25 * * *", "the hour field cannot be '25'", "out of range", "the hour goes from 0 to 23"),
        ("cron", "0 9 * foo *", "the month field cannot be 'FOO'", "no month is named FOO", "1 to 12 or JAN-DEC"),
        ("cron", "*/90 * * * *", "'*/90'", "every 90m", "the minute goes from 0 to 59"),
        ("cron", "0 0 30 2 *", "never matches", "no year has such a day", "L is the last day"),
        ("cron", "0 0 31 4,6 *", "never matches", "no year has such a day", "L is the last day"),
        ("cron", "30m", "'30m' alone is ambiguous", 'it may mean "every 30m" or "in 30m"', "every 30m"),
        ("cron", "PT15M", "ambiguous", 'it may mean "every PT15M" or "in PT15M"', "every PT15M"),
        ("cron", "every 15m", "is not a cron expression", "how long", "write it as every"),
        ("cron", "FREQ=DAILY;BYHOUR=9", "recurrence rule", "stands under", "rrule"),
        ("cron", "weekdays at 9", "is not a cron expression", "read where any schedule may stand", "0 9 * * mon-fri"),
        ("cron", "@reboot", "not a clock time", "no next instant", "@daily"),
        ("cron", "0 9 * * * 2027 1", "has 7 fields", "no year field", "0 9 * * mon-fri"),
        ("cron", "", "empty", "5 or 6 fields", "0 9 * * mon-fri"),
        ("every", "15", "is not a duration", "no unit", "15m"),
        ("every", "0 9 * * *", "not an interval", "looks like a cron expression", "write it as cron"),
        ("every", "500ms", "too short", "1s to 365d", "longer"),
        ("every", "366d", "too long", "1s to 365d", "cron"),
        ("at", "20m", "is not an instant", "how long, not when", "2026-11-03T09:00"),
        ("at", "in 20m", "is not an instant", "how long, not when", "2026-11-03T09:00"),
        ("at", "2026-11-03", "is not an instant", "a time of day", "2026-11-03T09:00"),
        ("at", "2026-02-30T09:00", "not a time that exists", "day", "2026-11-03T09:00"),
        ("at", "9999-12-31T23:59", "out of reach", "9998", "year"),
    ],
)
def test_a_refusal_says_what_why_and_what_to_do(
    kind: ScheduleKind, expression: str, what: str, why: str, next_step: str
) -> None:
    with pytest.raises(BadSchedule) as refusal:
        parse(kind, expression, "Europe/Berlin")
    assert what in refusal.value.what
    assert why in refusal.value.why
    assert next_step in refusal.value.next


@pytest.mark.parametrize("kind", ["cron", "every", "at"])
def test_every_kind_refuses_an_unknown_zone(kind: ScheduleKind) -> None:
    expression = {"cron": "0 9 * * *", "every": "15m", "at": "2026-11-03T09:00Z"}[kind]
    with pytest.raises(BadSchedule, match="Europe/Berlin"):
        parse(kind, expression, "Europe/Berln")


def test_only_an_interval_takes_an_anchor() -> None:
    with pytest.raises(BadSchedule, match="takes no anchor"):
        parse("cron", "0 9 * * *", "UTC", anchor=instant(datetime(2026, 1, 1, tzinfo=zone("UTC"))))


def test_a_schedule_that_nobody_checked_is_refused_when_it_is_asked() -> None:
    unchecked = Schedule("cron", "0 0 30 2 *", "UTC")
    with pytest.raises(BadSchedule, match="never matches"):
        next_due(unchecked, instant(datetime(2026, 1, 1, tzinfo=zone("UTC"))))


def test_an_endless_expression_is_refused_before_it_is_read() -> None:
    with pytest.raises(BadSchedule, match="too long"):
        parse("cron", ",".join(["1"] * 1000) + " * * * *", "UTC")


def test_what_was_written_is_kept_without_stray_blanks() -> None:
    schedule = parse("cron", "  0  9\t* * Mon-Fri ", " Europe/Berlin ")
    assert schedule == Schedule("cron", "0 9 * * Mon-Fri", "Europe/Berlin")
