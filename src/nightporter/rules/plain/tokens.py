"""A schedule's text as tokens: numbers, times and words, and which part each plays beside its neighbours."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any, Final

from nightporter.errors import BadSchedule
from nightporter.rules.plain.lexicon import NOISE, meaning

MOST_TOKENS: Final = 60
_LONGEST_WORDS: Final = 5

_PIECE: Final = re.compile(
    r"(?P<iso>\d{4}-\d\d-\d\d)(?:t(?P<at>\d\d:\d\d(?::\d\d)?)(?![\d:.+z-]))?(?!\d)"
    r"|(?P<hour>\d{1,2})(?:(?P<dot>[:.])(?P<minute>\d\d)(?::(?P<second>\d\d))?)?(?![\d:])"
    r"(?:\s?(?P<half>am|pm|a\.m\.?|p\.m\.?)(?![a-z]))"
    r"|(?P<hour24>\d{1,2})(?P<dot24>[:.])(?P<minute24>\d\d)(?::(?P<second24>\d\d))?(?![\d:.]|[a-z])"
    r"|(?P<past>:\d\d)(?![\d:])"
    r"|(?P<hour_h>\d{1,2})h(?P<minute_h>\d\d)(?!\w)"
    r"|(?P<duration>(?:\d{1,6}(?:ms|mins?|secs?|hrs?|minutes?|seconds?|hours?|days?|weeks?|[wdhms])(?![a-z]))+)"
    r"|(?P<ordinal>\d{1,2})(?:st|nd|rd|th)(?![a-z])"
    r"|(?P<number>\d{1,6})(?![\w:.])"
    r"|(?P<word>[a-z_]+(?:/[a-z_+0-9-]+)+|[a-z]+(?:-(?=five|hour|minute)[a-z]+)?(?:'[a-z]+)?)(?![\w/])"
    r"|(?P<mark>,|&|@|-)",
    re.ASCII,
)
_UNITS: Final = {"m": "minute", "s": "second", "h": "hour", "d": "day", "w": "week"}


@dataclass(frozen=True, slots=True)
class Piece:
    """One token: its kind, what it stands for, and where it stands in the text."""

    kind: str
    value: Any
    start: int
    end: int


def plain_text(text: str) -> str:
    """The text in small letters, with one blank between words and with plain dashes and quotes."""
    for fancy, plain in (("\u2013", "-"), ("\u2014", "-"), ("\u2019", "'"), ("\u2212", "-")):
        text = text.replace(fancy, plain)
    text = " ".join(text.lower().split())
    return text if text.endswith("m.") else text.removesuffix(".")


def pieces_of(text: str) -> list[Piece]:
    """The tokens of a text that `plain_text` gave. Raises NotUnderstood at what is no token."""
    raw: list[Piece] = []
    at = 0
    while at < len(text):
        if text[at] == " ":
            at += 1
            continue
        match = _PIECE.match(text, at)
        if match is None:
            raise NotUnderstood(_word_at(text, at), at)
        raw.append(_raw(match))
        at = match.end()
        if len(raw) > MOST_TOKENS:
            raise NotUnderstood(text[at:].split(" ")[0], at)
    return _with_roles(_joined(raw, text))


class NotUnderstood(BadSchedule):
    """A part of the text is no part of any schedule: what it is and where it stands."""

    def __init__(self, part: str, start: int) -> None:
        super().__init__(f"{part[:40]!r} is not understood")
        self.part = part
        self.start = start


def _word_at(text: str, at: int) -> str:
    return text[at:].split(" ")[0]


def _raw(match: re.Match[str]) -> Piece:
    start, end, said = match.start(), match.end(), match.groupdict()
    if said["iso"]:
        year, month, day = (int(part) for part in said["iso"].split("-"))
        clock = tuple(int(part) for part in said["at"].split(":")) if said["at"] else None
        return Piece("ISO", (day, month, year, clock), start, end)
    if said["half"]:
        value = (int(said["hour"]), int(said["minute"] or 0), int(said["second"] or 0), said["half"][0] + "m")
        return Piece("CLOCK", value, start, end)
    if said["hour24"]:
        style = "bare" if len(said["hour24"]) == 1 else "padded" if said["hour24"][0] == "0" else "bare"
        value = (int(said["hour24"]), int(said["minute24"]), int(said["second24"] or 0), style)
        return Piece("CLOCK", value, start, end)
    if said["hour_h"]:
        return Piece("CLOCK", (int(said["hour_h"]), int(said["minute_h"]), 0, "bare"), start, end)
    if said["past"]:
        return Piece("COLON", int(said["past"][1:]), start, end)
    if said["duration"]:
        parts = re.findall(r"(\d+)([a-z]+)", said["duration"])
        amounts = tuple((int(count), "millisecond" if unit == "ms" else _UNITS[unit[0]]) for count, unit in parts)
        return Piece("DUR", (amounts, all(unit in (*_UNITS, "ms") for _, unit in parts)), start, end)
    if said["ordinal"]:
        return Piece("ORD", int(said["ordinal"]), start, end)
    if said["number"]:
        return Piece("NUM", int(said["number"]), start, end)
    if said["word"]:
        return Piece("WORD", said["word"], start, end)
    return Piece({",": "COMMA", "&": "AND", "@": "AT", "-": "DASH"}[said["mark"]], None, start, end)


def _joined(raw: list[Piece], text: str) -> list[Piece]:
    """Words, alone or a few together, by their meaning; noise is left out."""
    found: list[Piece] = []
    raw = [part for piece in raw if not (piece.kind == "WORD" and piece.value in NOISE) for part in _split(piece)]
    at = 0
    while at < len(raw):
        piece = raw[at]
        if piece.kind != "WORD":
            found.append(piece)
            at += 1
            continue
        run = 1
        while run < _LONGEST_WORDS and at + run < len(raw) and raw[at + run].kind == "WORD":
            run += 1
        for length in range(run, 0, -1):
            known = meaning(" ".join(raw[at + each].value for each in range(length)))
            if known is not None:
                if known[0] != "NOISE":
                    found.append(Piece(*known, piece.start, raw[at + length - 1].end))
                at += length
                break
        else:
            raise NotUnderstood(text[piece.start:piece.end], piece.start)
    return found


def _split(piece: Piece) -> list[Piece]:
    """`mon/wed/fri` as a list."""
    if piece.kind != "WORD" or "/" not in piece.value or meaning(piece.value) is not None:
        return [piece]
    found: list[Piece] = []
    at = piece.start
    for word in piece.value.split("/"):
        if (meaning(word) or ("", None))[0] != "WEEKDAY":
            return [piece]
        found += [Piece("COMMA", None, at, at)] * bool(found) + [Piece("WORD", word, at, at + len(word))]
        at += len(word) + 1
    return found


_FAMILY: Final = {
    "WEEKDAY": "DAY", "WEEKDAYPLURAL": "DAY", "WORKDAY": "DAY", "WEEKENDS": "DAY", "ORD": "ORD", "ORDWORD": "ORD",
    "LAST": "ORD", "MONTH": "MONTH", "CLOCK": "TIME", "HOUR": "TIME", "OCLOCK": "TIME", "PART": "TIME",
    "COLON": "COLON", "COUNT": "AMOUNT", "DAYNUM": "DATE", "ISO": "DATE", "MINUTENUM": "MINUTE",
    "MONTHDAY": "MONTHDAY", "UNIT": "UNIT", "YEAR": "DATE", "ZONE": "ZONE",
}
_DAYS: Final = {"DAY", "ORD"}
_NAMED_DAY: Final = ("WEEKDAY", "WEEKDAYPLURAL", "WORKDAY")
_DATE_BEGINS: Final = ("DAYNUM", "MONTH", "ISO", "TODAY", "TOMORROW", "NEXT", "ENDOF")


def _with_roles(found: list[Piece]) -> list[Piece]:
    """Each token by the part that it plays beside its neighbours; what joins a list by what it joins."""
    done: list[Piece] = []
    for place, piece in enumerate(found):
        if piece.kind == "NUM":
            done.append(replace(piece, kind=_number_role(found, place, done)))
        elif piece.kind == "SECOND":
            ordinal = _kind_at(found, place + 1) in (*_NAMED_DAY, "UNIT", "OF") or (
                _kind_at(found, place + 1) in ("AND", "COMMA") and _kind_at(found, place + 2) in ("ORDWORD", "ORD",
                    "LAST")
            ) or (_kind_at(done, len(done) - 1) in ("AND", "COMMA") and _kind_at(done, len(done) - 2) in (
                "ORDWORD", "ORD"))
            done.append(Piece("ORDWORD", 2, piece.start, piece.end) if ordinal else replace(piece, kind="UNIT"))
        elif piece.kind == "ORD" and "MONTH" in (_kind_at(found, place + 1), _kind_at(done, len(done) - 1)):
            done.append(replace(piece, kind="DAYNUM"))
        else:
            done.append(piece)
    return _with_separators(_with_prepositions(done))


def _with_prepositions(found: list[Piece]) -> list[Piece]:
    """`in`, `at`, `from`, `to`, `until` and `between` by what follows them; without those that say nothing there."""
    done: list[Piece] = []
    for place, piece in enumerate(found):
        kind, following = piece.kind, _kind_at(found, place + 1)
        before = _kind_at(done, len(done) - 1)
        if kind in ("IN", "AT", "ON") and following == "PART":
            continue
        if (kind == "IN" and following == "ZONE") or (kind == "FROM" and before == "COUNTED"):
            continue
        if kind == "ONCE" and following == "EVERY" and _kind_at(found, place + 2) != "UNIT":
            continue
        if kind == "DUR" and before == "AT" and len(piece.value[0]) == 1 and piece.value[0][0][1] == "hour":
            done.append(replace(piece, kind="HOUR", value=piece.value[0][0][0]))
            continue
        if kind == "IN":
            if following in ("COUNT", "DUR") or (following == "A" and before not in _FAMILY):
                kind = "LATER"
            elif following in ("EVERY", "A") and _kind_at(found, place + 2) == "UNIT":
                kind = "OF"
        elif kind in ("FROM", "STARTING", "UNTIL", "TO", "ENDING", "BETWEEN"):
            to = place + 1 + (following == "ON")
            months = kind == "TO" and before == "MONTH" and following == "MONTH"
            if kind == "STARTING" and following in ("AT", "CLOCK", "HOUR"):
                kind = "FROM"
            elif (kind in ("STARTING", "ENDING") or _kind_at(found, to) in _DATE_BEGINS) and not months:
                kind = {"STARTING": "FROM_DATE", "FROM": "FROM_DATE", "BETWEEN": "BETWEEN_DATE"}.get(kind, "UNTIL_DATE")
        done.append(replace(piece, kind=kind))
    return done


def _with_separators(found: list[Piece]) -> list[Piece]:
    joined: list[Piece] = []
    clause: set[str | None] = set()
    place = 0
    while place < len(found):
        piece = found[place]
        if piece.kind not in ("COMMA", "AND"):
            if piece.kind in _NAMED_DAY and _kind_at(joined, len(joined) - 1) in _NAMED_DAY:
                joined.append(Piece("SEP_DAY", None, piece.start, piece.start))
            joined.append(piece)
            clause.add(_FAMILY.get(piece.kind))
            place += 1
            continue
        following = place + 1
        if piece.kind == "COMMA" and _kind_at(found, following) == "AND":
            following += 1
        target = following
        while _kind_at(found, target) in ("AT", "ON", "IN", "EVERY"):
            target += 1
        before, after = _family(joined, len(joined) - 1), _family(found, target)
        is_and = any(each.kind == "AND" for each in found[place:following])
        if before == "UNIT" and after == "AMOUNT":
            before = after
        if _kind_at(found, target) == "YEAR":
            place = following
            continue
        if before is not None and before == after and _kind_at(found, target - 1) != "EVERY":
            joined.append(replace(piece, kind=f"SEP_{after}"))
            place = target
            continue
        if before in ("DAY", "UNIT") and after == "ORD":
            joined.append(replace(piece, kind="SEP_NTH"))
        elif before in ("TIME", "DAY", "ZONE") and (
            after in clause & {"DAY", "ORD", "TIME"} or (after in _DAYS and clause & _DAYS)
        ):
            joined.append(replace(piece, kind="CLAUSE"))
            clause = set()
        elif is_and:
            joined.append(replace(piece, kind="AND"))
        place = following  # a comma between two phrases says nothing
    return joined


def _kind_at(found: list[Piece], place: int) -> str:
    return found[place].kind if 0 <= place < len(found) else ""


def _family(found: list[Piece], place: int) -> str | None:
    kind = _kind_at(found, place)
    if kind == "MONTH" and "DAYNUM" in (_kind_at(found, place - 1), _kind_at(found, place + 1)):
        return "DATE"
    return _FAMILY.get(kind)


def _number_role(found: list[Piece], place: int, before: list[Piece]) -> str:
    value = found[place].value
    last, following = _kind_at(before, len(before) - 1), _kind_at(found, place + 1)
    if following in ("UNIT", "TIMES") or (following == "SECOND" and last in ("EVERY", "IN", "AND")):
        return "COUNT"
    if value >= 1000:
        return "YEAR"
    if last == "UNIT" and before[-1].value == "day":
        return "MONTHDAY"
    if last == "MONTH" or following == "MONTH" or (following == "OF" and _kind_at(found, place + 2) == "MONTH"):
        return "DAYNUM"
    if last == "UNIT" and before[-1].value == "minute":
        return "MINUTENUM"
    if last in ("COMMA", "AND", "DASH", "TO") and len(before) > 1 and before[-2].kind in ("MONTHDAY", "MINUTENUM"):
        return before[-2].kind
    return "HOUR"
