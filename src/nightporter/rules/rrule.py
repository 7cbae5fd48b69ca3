"""Recurrence rules as calendars write them (RFC 5545): the text of one, checked.

    FREQ=WEEKLY;INTERVAL=2;BYDAY=MO,WE     with or without `RRULE:` before it

What the RFC forbids is refused, and so is what could keep a processor busy for no result: BY parts of rules by the
minute and the second, an INTERVAL of more than a hundred years, more than 1440 times a day.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Final

from nightporter.clock import SECOND, Instant, instant
from nightporter.errors import BadSchedule
from nightporter.rules.zones import first_pass

FREQUENCIES: Final = ("SECONDLY", "MINUTELY", "HOURLY", "DAILY", "WEEKLY", "MONTHLY", "YEARLY")
DAYS: Final = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")

MOST_TIMES: Final = 1440
"""Times of one day, or of one hour, that a rule may name."""
_LONGEST: Final = {
    "SECONDLY": 31_536_000, "MINUTELY": 525_600, "HOURLY": 876_600, "DAILY": 36_525, "WEEKLY": 5218, "MONTHLY": 1200,
    "YEARLY": 100,
}
"""The longest INTERVAL of each frequency: a hundred years, and a year for the two finest."""
_MOST_COUNTED: Final = 1_000_000

_EXAMPLE: Final = "write something like FREQ=WEEKLY;BYDAY=MO,WE"
_UNTIL: Final = re.compile(r"([0-9]{4})([0-9]{2})([0-9]{2})(?:T([0-9]{2})([0-9]{2})([0-9]{2})(Z)?)?")
_BYDAY: Final = re.compile(r"([+-]?[0-9]{1,2})?(MO|TU|WE|TH|FR|SA|SU)")

_LISTS: Final = {
    "BYSECOND": (0, 59, False), "BYMINUTE": (0, 59, False), "BYHOUR": (0, 23, False), "BYMONTHDAY": (1, 31, True),
    "BYYEARDAY": (1, 366, True), "BYWEEKNO": (1, 53, True), "BYMONTH": (1, 12, False), "BYSETPOS": (1, 366, True),
}
"""The least and the greatest number of a list, and whether it may be counted from the end."""
_PARTS: Final = ("FREQ", "INTERVAL", "COUNT", "UNTIL", "WKST", "BYDAY", *_LISTS)


@dataclass(frozen=True, slots=True)
class Rule:
    """A checked rule. Made by `parse_rule` only. An empty list does not restrict."""

    freq: str
    interval: int = 1
    count: int | None = None
    until: str = ""
    """As written; empty: it does not end."""
    week_start: int = 0
    """0 Monday to 6 Sunday."""
    weekdays: tuple[tuple[int, int], ...] = ()
    """`(n, weekday)`: the nth of the month or the year, from its end where negative; n is 0 for every one."""
    seconds: tuple[int, ...] = ()
    minutes: tuple[int, ...] = ()
    hours: tuple[int, ...] = ()
    month_days: tuple[int, ...] = ()
    year_days: tuple[int, ...] = ()
    weeks: tuple[int, ...] = ()
    months: tuple[int, ...] = ()
    positions: tuple[int, ...] = ()

    @property
    def limits_days(self) -> bool:
        """Whether it keeps to some days."""
        return bool(self.weekdays or self.month_days or self.year_days or self.weeks or self.months)


@lru_cache(maxsize=4096)
def parse_rule(expression: str) -> Rule:
    """Check a rule. Raises BadSchedule, naming the part, its value and what is allowed."""
    text = " ".join(expression.split())
    if len(text) > 1000:
        raise BadSchedule("the recurrence rule is too long", why="1000 characters are the most", next="shorten it")
    written = text.upper().removeprefix("RRULE:")
    if re.search(r"DTSTART|EXDATE|RDATE|EXRULE|RRULE|[\s:]", written):
        raise BadSchedule(
            f"{text[:60]!r} is more than one recurrence rule", why="only the RRULE itself stands here",
            next="write DTSTART as `anchor` and EXDATE as `exclude`",
        )
    parts: dict[str, str] = {}
    for part in written.strip(";").split(";"):
        name, mark, value = part.partition("=")
        if not mark or not value:
            raise BadSchedule(f"{part[:40]!r} is no part of a recurrence rule", why="a part is NAME=VALUE",
                              next=_EXAMPLE)
        if name not in _PARTS:
            raise BadSchedule(f"{name[:40]!r} is no part of a recurrence rule", why=f"there are {', '.join(_PARTS)}",
                              next=_EXAMPLE)
        if name in parts:
            raise BadSchedule(f"{name} stands in the rule twice", why="a rule says each part once",
                              next="leave one out")
        parts[name] = value
    return _checked(parts)


def _checked(parts: dict[str, str]) -> Rule:
    freq = parts.get("FREQ", "")
    if freq not in FREQUENCIES:
        what = f"FREQ cannot be {freq[:40]!r}" if freq else "the recurrence rule has no FREQ"
        raise BadSchedule(what, why=f"it is one of {', '.join(FREQUENCIES)}", next=_EXAMPLE)
    if "COUNT" in parts and "UNTIL" in parts:
        raise BadSchedule("COUNT and UNTIL stand together", why="a rule ends in one way", next="leave one of them out")
    lists = {name: _numbers(name, parts[name]) for name in _LISTS if name in parts}
    rule = Rule(
        freq=freq,
        interval=_number("INTERVAL", parts.get("INTERVAL", "1"), _LONGEST[freq]),
        count=_number("COUNT", parts["COUNT"], _MOST_COUNTED) if "COUNT" in parts else None,
        until=_until(parts.get("UNTIL", "")),
        week_start=_week_start(parts.get("WKST", "MO")),
        weekdays=_weekdays(parts["BYDAY"]) if "BYDAY" in parts else (),
        seconds=lists.get("BYSECOND", ()), minutes=lists.get("BYMINUTE", ()), hours=lists.get("BYHOUR", ()),
        month_days=lists.get("BYMONTHDAY", ()), year_days=lists.get("BYYEARDAY", ()), weeks=lists.get("BYWEEKNO", ()),
        months=lists.get("BYMONTH", ()), positions=lists.get("BYSETPOS", ()),
    )
    for holds, what, why, instead in _objections(rule):
        if holds:
            raise BadSchedule(what, why=why, next=instead)
    return rule


def _objections(rule: Rule) -> list[tuple[bool, str, str, str]]:
    """What the RFC forbids and what cannot be bounded: whether it is so, what, why, and what to do."""
    freq, nth = rule.freq, any(n for n, _ in rule.weekdays)
    by_parts = bool(rule.limits_days or rule.hours or rule.minutes or rule.seconds or rule.positions)
    times = max(len(rule.hours), 1) * max(len(rule.minutes), 1) * max(len(rule.seconds), 1)
    rfc = "the RFC has no meaning for it"
    return [
        (freq in ("SECONDLY", "MINUTELY") and by_parts, f"BY parts cannot stand with FREQ={freq}",
         "looking for its times could keep the processor busy for ever",
         "write FREQ=DAILY with BYHOUR and BYMINUTE, or a cron expression"),
        (bool(rule.weeks) and freq != "YEARLY", f"BYWEEKNO cannot stand with FREQ={freq}", rfc, "write FREQ=YEARLY"),
        (bool(rule.year_days) and freq != "YEARLY", f"BYYEARDAY cannot stand with FREQ={freq}", rfc,
         "write FREQ=YEARLY"),
        (bool(rule.month_days) and freq == "WEEKLY", "BYMONTHDAY cannot stand with FREQ=WEEKLY", rfc,
         "write FREQ=MONTHLY"),
        (nth and freq not in ("MONTHLY", "YEARLY"), f"BYDAY cannot count weekdays with FREQ={freq}",
         "the first Monday is one of a month or a year", "write FREQ=MONTHLY, or the weekday alone"),
        (nth and bool(rule.weeks), "BYDAY cannot count weekdays beside BYWEEKNO", rfc, "write the weekday alone"),
        (bool(rule.positions) and not (rule.limits_days or times > 1 or rule.hours or rule.minutes or rule.seconds),
         "BYSETPOS stands alone", "it chooses among what other BY parts name", "add one, such as BYDAY=MO,TU,WE,TH,FR"),
        (times > MOST_TIMES, f"the rule names {times} times of a day", f"{MOST_TIMES} are the most",
         "write FREQ=HOURLY, or fewer of BYHOUR, BYMINUTE and BYSECOND"),
        (freq == "HOURLY" and bool(rule.hours) and rule.interval > 1, "BYHOUR cannot stand with FREQ=HOURLY;INTERVAL",
         "the two may never meet", "write FREQ=DAILY with BYHOUR"),
        (freq == "HOURLY" and rule.limits_days and rule.interval > 24,
         "days cannot be chosen of an INTERVAL over 24 hours",
         "the two may never meet", "write FREQ=DAILY"),
        (freq == "DAILY" and rule.interval % 7 == 0 and bool(rule.weekdays),
         "BYDAY cannot stand with whole weeks of days",
         "it is the same weekday each time", "write FREQ=WEEKLY"),
    ]


def end_of_rule(rule: Rule, zone: str) -> Instant | None:
    """The last instant at which the rule may be due by its UNTIL; a day is meant to its end."""
    match = _UNTIL.fullmatch(rule.until)
    if match is None:
        return None
    local = _moment(match)
    if match[4] is None:
        return Instant(first_pass(zone, instant(local + timedelta(days=1)) // SECOND) * SECOND - 1)
    return instant(local) if match[7] else Instant(first_pass(zone, instant(local) // SECOND) * SECOND)


def _moment(match: re.Match[str]) -> datetime:
    """Raises ValueError where there is no such day or time."""
    year, month, day, hour, minute, second = (int(each or 0) for each in match.groups()[:6])
    return datetime(year, month, day, hour, minute, second, tzinfo=UTC)


def _until(written: str) -> str:
    if not written:
        return ""
    match = _UNTIL.fullmatch(written)
    if match is not None and 2 <= int(match[1]) <= 9997:
        try:
            _moment(match)
            return written
        except ValueError:
            pass
    raise BadSchedule(f"UNTIL cannot be {written[:40]!r}", why="it is a date, or a date and a time",
                      next="write it like 20261224 or 20261224T180000Z")


def _week_start(written: str) -> int:
    if written not in DAYS:
        raise BadSchedule(f"WKST cannot be {written[:40]!r}", why=f"the days are {', '.join(DAYS)}",
                          next="write WKST=MO")
    return DAYS.index(written)


def _weekdays(written: str) -> tuple[tuple[int, int], ...]:
    found: set[tuple[int, int]] = set()
    for item in written.split(","):
        match = _BYDAY.fullmatch(item)
        n = int(match[1]) if match is not None and match[1] else 0
        if match is None or not -53 <= n <= 53 or (match[1] and not n):
            raise BadSchedule(f"BYDAY cannot be {item[:40]!r}", why=f"the days are {', '.join(DAYS)}",
                              next="write BYDAY=MO,FR, or BYDAY=1MO and BYDAY=-1FR for the first and the last")
        found.add((n, DAYS.index(match[2])))
    return tuple(sorted(found))


def _numbers(name: str, written: str) -> tuple[int, ...]:
    least, most, from_end = _LISTS[name]
    found: set[int] = set()
    for item in written.split(","):
        number = int(item) if re.fullmatch(r"[+-]?[0-9]{1,4}", item) else None
        if number is None or not least <= (abs(number) if from_end else number) <= most:
            raise BadSchedule(
                f"{name} cannot be {item[:40]!r}", why=f"it goes from {least} to {most}"
                + (f", or from -{most} to -{least}, counted from the end" if from_end else ""),
                next="correct the number",
            )
        found.add(number)
    return tuple(sorted(found))


def _number(name: str, written: str, most: int) -> int:
    if not re.fullmatch(r"[0-9]{1,9}", written) or not 1 <= int(written) <= most:
        raise BadSchedule(f"{name} cannot be {written[:40]!r}", why=f"it goes from 1 to {most}",
                          next="correct the number")
    return int(written)
