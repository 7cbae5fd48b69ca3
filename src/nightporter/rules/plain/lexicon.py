"""The words that schedules are said in: each is a kind of token and what it stands for."""

from __future__ import annotations

from functools import lru_cache
from itertools import chain
from typing import Any, Final

from nightporter.rules import zones

MONTHS: Final = ("january", "february", "march", "april", "may", "june", "july", "august", "september", "october",
                 "november", "december")
WEEKDAYS: Final = ("sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday")
"""By their numbers in cron."""
WORKDAYS: Final = frozenset({1, 2, 3, 4, 5})
WEEKEND: Final = frozenset({6, 0})
ALL_DAYS: Final = frozenset(range(7))

SECONDS: Final = {"second": 1, "minute": 60, "hour": 3600, "day": 86_400, "week": 604_800}
"""The units that have a length; `day` and `week` only where a clock is meant."""

Word = tuple[str, Any]

_UNITS: Final = {
    "second": ("second", "seconds", "sec", "secs"), "minute": ("minute", "minutes", "min", "mins"),
    "hour": ("hour", "hours", "hr", "hrs"), "day": ("day", "days"), "week": ("week", "weeks"),
    "month": ("month", "months"), "quarter": ("quarter", "quarters"), "year": ("year", "years"),
}
_NUMBERS: Final = {
    word: number for number, word in enumerate(
        ("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"), 2)
} | {"one": 1, "fifteen": 15, "twenty": 20, "thirty": 30, "forty-five": 45, "forty five": 45, "sixty": 60, "ninety": 90}
_ORDINALS: Final = {"first": 1, "third": 3, "fourth": 4, "fifth": 5}
_SHORT_DAYS: Final = {
    "sun": 0, "mon": 1, "tue": 2, "tues": 2, "wed": 3, "weds": 3, "thu": 4, "thur": 4, "thurs": 4, "fri": 5, "sat": 6
}

_WORDS: Final[dict[str, Word]] = {
    **{word: (kind.upper(), None) for kind, words in {
        "every": ("every", "each"), "other": ("other", "alternate"), "at": ("at", "@"), "on": ("on",), "of": ("of",),
        "in": ("in",), "from": ("from",), "to": ("to", "through", "thru"), "until": ("until", "till"),
        "between": ("between",), "starting": ("starting", "starting from", "beginning", "since"),
        "ending": ("ending", "ends"),
        "except": ("except", "except for", "excluding", "but not", "but", "apart from", "other than"), "a": ("a", "an"),
        "per": ("per",), "times": ("times",), "once": ("once",), "twice": ("twice",), "past": ("past",),
        "clocktime": ("time",), "next": ("next",), "this": ("this", "coming", "this coming"),
        "today": ("today",), "tomorrow": ("tomorrow",), "overmorrow": ("day after tomorrow",),
        "tonight": ("tonight",), "counted": ("counted",),
        "workday": ("weekday", "workday", "working day", "business day", "weekdays", "workdays", "working days",
                    "business days"),
        "everyday": ("everyday",), "nightly": ("nightly",), "fromnow": ("from now",), "endof": ("end of",),
        "noise": ("local time",), "weekends": ("weekends", "weekend"),
        "holidays": ("holidays", "public holidays", "bank holidays"), "oclock": ("o'clock", "oclock"),
        "fortnightly": ("fortnightly", "every fortnight"), "onhour": ("on hour", "at top of hour", "top of hour"),
    }.items() for word in words},
    **{word: ("UNIT" if word != "second" else "SECOND", unit) for unit, words in _UNITS.items() for word in words},
    **{word: ("NUM", number) for word, number in _NUMBERS.items()},
    **{word: ("ORDWORD", number) for word, number in _ORDINALS.items()},
    "last": ("LAST", -1), "second to last": ("LAST", -2), "second last": ("LAST", -2), "penultimate": ("LAST", -2),
    "third to last": ("LAST", -3),
    **{word: ("WEEKDAY", day) for day, full in enumerate(WEEKDAYS) for word in (full,)},
    **{word: ("WEEKDAY", day) for word, day in _SHORT_DAYS.items()},
    **{full + "s": ("WEEKDAYPLURAL", day) for day, full in enumerate(WEEKDAYS)},
    **{word: ("MONTH", number) for number, full in enumerate(MONTHS, 1) for word in (full, full[:3])},
    "sept": ("MONTH", 9),
    "noon": ("CLOCK", (12, 0, 0, "exact")), "midday": ("CLOCK", (12, 0, 0, "exact")),
    "midnight": ("CLOCK", (0, 0, 0, "midnight")),
    **{word: ("ADVERB", unit) for word, unit in {
        "minutely": "minute", "hourly": "hour", "daily": "day", "weekly": "week", "monthly": "month",
        "quarterly": "quarter", "yearly": "year", "annually": "year",
    }.items()},
    **{word: ("PART", part) for word, part in {
        "morning": "morning", "mornings": "morning", "afternoon": "afternoon", "afternoons": "afternoon",
        "evening": "evening", "evenings": "evening", "night": "night", "nights": "night",
    }.items()},
    **{word: ("DUR", (((seconds, "second"),), True)) for word, seconds in {
        "half an hour": 1800, "half hour": 1800, "half a minute": 30, "half minute": 30, "quarter of an hour": 900,
        "quarter hour": 900, "quarter-hour": 900, "half-hour": 1800, "hour and a half": 5400,
        "an hour and a half": 5400, "three quarters of an hour": 2700, "half a day": 43_200,
    }.items()},
    "half past": ("PASTHOUR", 30), "quarter past": ("PASTHOUR", 15), "quarter to": ("PASTHOUR", -15),
    "and": ("AND", None), "&": ("AND", None),
}
NOISE: Final = frozenset({"the"})
"""Words that change nothing wherever they stand."""

_REGIONS: Final = ("Africa", "America", "Asia", "Atlantic", "Australia", "Europe", "Indian", "Pacific")
_OTHER_MEANINGS: Final = frozenset({"christmas", "easter", "center", "knox", "act", "north", "south", "west", "nsw"})


@lru_cache(maxsize=1)
def places() -> dict[str, tuple[str, ...]]:
    """The zones that a word can name: an IANA name in any case, UTC, or the city of one."""
    found: dict[str, tuple[str, ...]] = {"utc": ("UTC",), "gmt": ("GMT",)}
    for name in sorted(zones.names()):
        if "/" not in name:
            continue
        found[name.casefold()] = (name,)
        region, _, rest = name.partition("/")
        city = rest.rsplit("/", 1)[-1].replace("_", " ").casefold()
        if region in _REGIONS and city not in _OTHER_MEANINGS and city not in _WORDS:
            found[city] = (*found.get(city, ()), name)
    return found


def meaning(words: str) -> Word | None:
    """What a word, or a few of them, means in a schedule."""
    known = _WORDS.get(words)
    if known is None and (zone := places().get(words)) is not None:
        known = ("ZONE", zone)
    return known


@lru_cache(maxsize=1)
def vocabulary() -> tuple[str, ...]:
    """Every single word that may stand in a schedule; zones are not among them."""
    return tuple(sorted(set(chain.from_iterable(word.split() for word in _WORDS if word[0].isalpha()))))
