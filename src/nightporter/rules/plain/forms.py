"""The forms of plain words, each with an example and what it means; and the nearest of them to other words.

docs/schedules.md has this table, and a test reads every example.
"""

from __future__ import annotations

from difflib import get_close_matches
from functools import lru_cache
from typing import Final

from nightporter.errors import BadSchedule
from nightporter.rules.plain.lexicon import meaning, vocabulary
from nightporter.rules.plain.tokens import NotUnderstood, Piece, pieces_of

FORMS: Final[tuple[tuple[str, str], ...]] = (
    ("every 15m", "every 15 minutes, counted from when it is saved"),
    ("every 2 hours", "the same in words; `hourly` is `every hour`"),
    ("every hour at :30", "at minute 30 of each hour; `every hour at minute 30`, `every hour on the hour`"),
    ("every 2h from 08:00 to 20:00",
    "08:00, 10:00 ... 20:00 each day: both ends are in it, and it begins anew each day"),
    ("every 30 minutes on weekdays", "on some days only: the interval has to divide the hour or the day"),
    ("every day at 09:00", "`daily at 9`, `at 9 every day`, `once a day at 9`"),
    ("twice a day at 8 and 20", "the number has to agree with the times"),
    ("every day at 7 in the evening", "19:00: a part of the day says which half is meant; alone it is refused"),
    ("weekdays at 07:30", "Monday to Friday; `working days` and `business days` are the same, and know no holidays"),
    ("mon, wed and fri at 7:30pm", "some days of the week"),
    ("monday to friday at 9", "a range of days"),
    ("every monday at noon", "`mondays at noon`; `monday at noon` alone is refused: it may mean once"),
    ("every day except sunday at 9", "all days but some"),
    ("first monday at 10", "of each month; also `of january`, `of the quarter`, `of the year`"),
    ("first and third tuesday of the month at 10", "several of them"),
    ("last friday of the month at 17:00", "the last one, also where it is the fourth"),
    ("last day of the month at 18:00", "28, 29, 30 or 31; also `second to last day`"),
    ("first weekday of the month at 9", "the first, or last, Monday to Friday"),
    ("on the 1st and 15th at 6am", "days of each month"),
    ("on the 1st of every month at 9",
    "one day of each month; without `of every month` it may mean once, and is refused"),
    ("every monday in june and july at 9", "in some months only, each year; also `from june to august`"),
    ("every other friday at 16:00", "counted from the first one that comes; also `every 2 weeks on friday`"),
    ("every 3 days at 09:00", "days of the calendar, counted from the first one that comes"),
    ("every 2 months on the 1st at 8 from 2027-01-01", "with a first day it can be kept in a file"),
    ("every day at 9:00 and 17:30", "times that do not share their minutes"),
    ("mondays at 9 and fridays at 17", "days of the week with times of their own"),
    ("every year on 24 december at 18:00", "once a year; `every 24 december at 18:00`"),
    ("weekdays at 9 from 1 march to 31 may", "in a season, each year"),
    ("weekdays at 9 from 2027-03-01 until 2027-05-31", "from a first day to a last one, both in it"),
    ("every day at 9 except 25 december", "without some days of each year; with a year: of that one"),
    ("in 20m", "once, counted from now"),
    ("tomorrow at 9", "once; also `today`, `tonight`, `the day after tomorrow`"),
    ("next friday at noon", "the first Friday after today; `this friday` may be today"),
    ("in 3 days at 9", "three days of the calendar from now, at that time"),
    ("on 24 december 2026 at 18:00", "once; without the year the next one, once"),
    ("every day at 9 in New York",
    "in the zone of a place: a city that a zone has its name from, an IANA name, or UTC"),
)


_ABBREVIATIONS: Final = {
    **dict.fromkeys(("est", "edt", "et", "eastern"), "in New York"),
    **dict.fromkeys(("cst", "cdt", "ct", "central"), "in Chicago"),
    **dict.fromkeys(("mst", "mdt", "mt", "mountain"), "in Denver"),
    **dict.fromkeys(("pst", "pdt", "pt", "pacific"), "in Los Angeles"),
    **dict.fromkeys(("cet", "cest", "mez", "mesz"), "in Berlin"), **dict.fromkeys(("bst", "wet", "west"), "in London"),
    "eet": "in Athens", "eest": "in Athens", "ist": "in Kolkata", "jst": "in Tokyo", "aest": "in Sydney",
    "aedt": "in Sydney",
}


def explained(error: NotUnderstood, text: str) -> BadSchedule:
    """The refusal of a text: what of it was not understood, and the nearest forms that would be."""
    start = error.start if error.start >= 0 else len(text)
    part = error.part or text[start:].split(" ")[0]
    what = f"{part[:40]!r} is not understood in {text[:60]!r}" if part else f"{text[:60]!r} stops too early"
    if part in _ABBREVIATIONS:
        return BadSchedule(f"{part.upper()} is no place whose clock could be followed", why="an abbreviation names an "
                           "offset, some of them more than one",
                           next=f"write `{_ABBREVIATIONS[part]}`, or a zone's name")
    corrected = _corrected(error.part, text, start)
    if corrected is not None:
        return BadSchedule(what, why="all of the words have to be understood", next=f"did you mean `{corrected}`?")
    near = nearest(text)
    return BadSchedule(what, why="all of the words have to be understood",
                       next=f"write for example {', '.join(f'`{form}`' for form in near)}")


def _corrected(part: str, text: str, start: int) -> str | None:
    """The text with an unknown word in the spelling of a known one, where it is understood then."""
    from nightporter.rules.plain.grammar import tree_of

    word = "".join(character for character in part if character.isalpha())
    if len(word) < 3 or meaning(word) is not None:
        return None
    for known in get_close_matches(word, vocabulary(), n=2, cutoff=0.75):
        offered = text[:start] + part.replace(word, known) + text[start + len(part):]
        try:
            tree_of(pieces_of(offered))
        except NotUnderstood:
            continue
        return offered
    return None


def nearest(text: str, count: int = 3) -> list[str]:
    """The forms that are most like a text, by what they speak of."""
    said = _kinds(text)
    ranked = sorted(enumerate(FORMS), key=lambda form: (-_likeness(said, _kinds(form[1][0])), form[0]))
    return [form for _, (form, _) in ranked[:count]]


def _likeness(one: frozenset[str], other: frozenset[str]) -> float:
    return len(one & other) / len(one | other) if one | other else 0.0


_ALIKE: Final = {"HOUR": "TIME", "CLOCK": "TIME", "WEEKDAYPLURAL": "WEEKDAY", "ORDWORD": "ORD", "LAST": "ORD",
                 "DUR": "AMOUNT", "COUNT": "AMOUNT", "UNIT": "AMOUNT", "DAYNUM": "DATE", "ISO": "DATE", "MONTH": "DATE"}


@lru_cache(maxsize=256)
def _kinds(text: str) -> frozenset[str]:
    """What kinds of words there are, those that are unknown left out."""
    found: list[Piece] = []
    for word in text.split():
        try:
            found += pieces_of(word)
        except NotUnderstood:
            continue
    return frozenset({_ALIKE.get(piece.kind, piece.kind) for piece in found} - {"AT", "ON"})
