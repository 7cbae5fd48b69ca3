"""From the phrases of the grammar to what they say, each gathered into its place of `Said`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from nightporter.errors import BadSchedule
from nightporter.rules.plain.lexicon import WEEKEND, WORKDAYS
from nightporter.rules.plain.said import Amount, Bound, Day, Nth, Said
from nightporter.rules.plain.times import Time, time_of
from nightporter.rules.plain.tokens import Piece

if TYPE_CHECKING:
    from lark import Tree


def said_by(tree: Tree[Any]) -> Said:
    """The phrases of a sentence, gathered. Raises BadSchedule where one thing is said twice."""
    whole = here = Said()
    seen: set[str] = set()
    for phrase in tree.children:
        gather = _PHRASES[phrase.data]
        if phrase.data == "clause":
            here = Said()
            whole.more.append(here)
            seen = set()
            continue
        said_of = _SLOTS.get(phrase.data, phrase.data)
        if said_of in seen:
            raise BadSchedule(
                f"the {said_of} is said twice", why="one sentence says each thing once",
                next="write lists with `and`, such as `mondays and fridays at 09:00 and 17:00`",
            )
        seen.add(said_of)
        gather(here, phrase)
    return whole


_SLOTS: Final = {
    "every_amount": "interval", "every_unit": "interval", "every_other_unit": "interval", "every_day": "interval",
    "adverb": "interval",
    "every_other_days": "day of the week", "days": "day of the week", "times": "time", "month_ordinals":
    "day of the month", "month_numbers": "day of the month", "month_range": "day of the month", "marks": "minute",
    "past_marks": "minute", "on_hour": "minute", "once": "word once", "often": "number of times", "starts": "start",
    "ends": "end", "except": "exception", "part": "part of the day", "later": "delay", "relative": "day",
}


def _tokens(phrase: Any) -> list[Piece]:
    """Every token below a phrase, in order."""
    found: list[Piece] = []
    for child in phrase.children:
        found += _tokens(child) if hasattr(child, "children") else [child.value]
    return found


def _kinds(phrase: Any) -> set[str]:
    return {piece.kind for piece in _tokens(phrase)}


def _parts(phrase: Any, *names: str) -> list[Any]:
    return [part for part in phrase.iter_subtrees_topdown() if part.data in names]


def _amounts(phrase: Any) -> tuple[list[Amount], bool]:
    found: list[Amount] = []
    compact = False
    for amount in _parts(phrase, "amount"):
        tokens = _tokens(amount)
        if tokens[0].kind == "DUR":
            amounts, letters = tokens[0].value
            found += amounts
            compact = compact or letters
        else:
            found.append((1 if tokens[0].kind == "A" else tokens[0].value, tokens[1].value))
    order = [_UNITS.index(unit) for _, unit in found]
    if order != sorted(set(order)):
        raise BadSchedule("a length of time says each unit once, the longest first", next="write it like 1h30m")
    return found, compact


_UNITS: Final = ("year", "quarter", "month", "week", "day", "hour", "minute", "second", "millisecond")


def _every_amount(here: Said, phrase: Any) -> None:
    here.every, here.compact = _amounts(phrase)


def _every_unit(here: Said, phrase: Any) -> None:
    here.every = [(1, _tokens(phrase)[-1].value)]


def _every_day(here: Said, phrase: Any) -> None:
    here.every = [(1, "day")]


def _every_other_unit(here: Said, phrase: Any) -> None:
    here.every = [(2, _tokens(phrase)[-1].value)]


def _every_other_days(here: Said, phrase: Any) -> None:
    here.other = here.repeats = True
    _daylist(here, phrase)


def _adverb(here: Said, phrase: Any) -> None:
    token = _tokens(phrase)[0]
    if token.kind == "FORTNIGHTLY":
        here.every = [(2, "week")]
    elif token.kind == "NIGHTLY":
        here.adverb, here.part = "day", "night"
    else:
        here.adverb = token.value


def _often(here: Said, phrase: Any) -> None:
    first, *_, unit = _tokens(phrase)
    here.often = ({"ONCE": 1, "TWICE": 2}.get(first.kind) or first.value, unit.value)


def _days(here: Said, phrase: Any) -> None:
    kinds = _kinds(phrase)
    here.each = "EVERY" in kinds
    here.repeats = here.each or bool(kinds & {"WEEKDAYPLURAL", "WORKDAY", "WEEKENDS", "SEP_DAY"}) or bool(
        _parts(phrase, "dayrange"))
    _daylist(here, phrase)


def _daylist(here: Said, phrase: Any) -> None:
    here.weekdays = _days_of(phrase)
    here.workdays = "WORKDAY" in _kinds(phrase)


def _days_of(phrase: Any) -> list[int]:
    found: list[int] = []
    for item in _parts(phrase, "dayitem", "dayrange"):
        tokens = _tokens(item)
        named = [token.value for token in tokens if token.kind in ("WEEKDAY", "WEEKDAYPLURAL")]
        if item.data == "dayrange":
            first, last = named
            found += [(first + step) % 7 for step in range((last - first) % 7 + 1)]
        elif tokens[0].kind == "WORKDAY":
            found += sorted(WORKDAYS)
        else:
            found += named or sorted(WEEKEND)
    return found


def _nth(here: Said, phrase: Any) -> None:
    here.each = "EVERY" in {child.value.kind for child in phrase.children if not hasattr(child, "children")}
    here.nth = _nths(phrase)
    _scope(here, phrase)
    only = here.nth[0]
    if here.each and len(here.nth) == 1 and here.scope is None and only.ordinal > 0 and only.kind in _LONG_UNITS:
        here.every, here.nth = [(only.ordinal, str(only.kind))], []  # every second week


_LONG_UNITS: Final = ("week", "month", "quarter", "year")


def _nths(phrase: Any) -> list[Nth]:
    found = []
    for item in _parts(phrase, "nthitem"):
        kind = item.children[-1].value
        what: int | str = kind.value if kind.kind.startswith("WEEKDAY") else {"WORKDAY": "workday"}.get(
            kind.kind, kind.value)
        found += [Nth(token.value, what) for token in _tokens(item.children[0]) if not token.kind.startswith("SEP")]
    return found


def _month_ordinals(here: Said, phrase: Any) -> None:
    here.each = "EVERY" in {child.value.kind for child in phrase.children if not hasattr(child, "children")}
    for part in _parts(phrase, "ordinal"):
        token = _tokens(part)[0]
        here.monthdays.append(token.value)
    _scope(here, phrase)
    if here.each and here.scope is None and "ORDWORD" in _kinds(phrase):
        raise BadSchedule("every first or second of what is not said",
            next="write `on the 1st of every month at 09:00`")
    one = len(here.monthdays) == 1 and len(here.months) == 1 and _parts(phrase, "scope_months")
    if one and here.monthdays[0] > 0 and not _kinds(phrase) & {"EVERY"}:
        here.dates = [Day(here.monthdays[0], here.months[0])]
        here.monthdays, here.months, here.scope = [], [], None


def _month_numbers(here: Said, phrase: Any) -> None:
    here.monthdays = [token.value for token in _tokens(phrase) if token.kind == "MONTHDAY"]
    _scope(here, phrase)


def _month_range(here: Said, phrase: Any) -> None:
    first, last = (token.value for token in _tokens(phrase) if token.kind == "MONTHDAY")
    here.monthdays = list(range(first, last + 1))
    _scope(here, phrase)


def _scope(here: Said, phrase: Any) -> None:
    for part in _parts(phrase, "scope_unit"):
        here.scope = _tokens(part)[-1].value
    for part in _parts(phrase, "scope_months"):
        here.scope = "month"
        here.months += _months_of(part)
        years = [token.value for token in _tokens(part) if token.kind == "YEAR"]
        if years:
            here.dates = [Day(day, month, years[0]) for day in here.monthdays for month in here.months]
            here.monthdays, here.months = [], []


def _months(here: Said, phrase: Any) -> None:
    here.months += _months_of(phrase)
    here.each = here.each or "EVERY" in _kinds(phrase)


def _months_of(phrase: Any) -> list[int]:
    found: list[int] = []
    for item in _parts(phrase, "monthitem"):
        named = [token.value for token in _tokens(item) if token.kind == "MONTH"]
        first, last = named[0], named[-1]
        found += [(first - 1 + step) % 12 + 1 for step in range((last - first) % 12 + 1)]
    return found


def _date(here: Said, phrase: Any) -> None:
    here.each = here.each or "EVERY" in _kinds(phrase)
    here.dates += _dates_of(phrase)
    clocks = [token.value[3] for token in _tokens(phrase) if token.kind == "ISO" and token.value[3] is not None]
    here.times += [Time(clock[0], clock[1], clock[2] if len(clock) > 2 else 0) for clock in clocks]


def _dates_of(phrase: Any) -> list[Day]:
    return [_day_of(item) for item in _parts(phrase, "dateitem")]


def _day_of(item: Any) -> Day:
    values = {token.kind: token.value for token in _tokens(item)}
    if "ISO" in values:
        return Day(*values["ISO"][:3])
    return Day(values["DAYNUM"], values["MONTH"], values.get("YEAR"))


def _times(here: Said, phrase: Any) -> None:
    here.times += [time_of(_tokens(part)) for part in _parts(phrase, "time")]


def _marks(here: Said, phrase: Any) -> None:
    here.marks = [token.value for token in _tokens(phrase) if token.kind in ("COLON", "MINUTENUM")]


def _past_marks(here: Said, phrase: Any) -> None:
    tokens = _tokens(phrase)
    units = [token.value for token in tokens if token.kind == "UNIT"]
    if units[0] != "minute" or units[1:] not in ([], ["hour"]):
        raise BadSchedule("past what is not understood", next="write `every hour at minute 15`")
    here.marks = [token.value for token in tokens if token.kind == "COUNT"]
    if units[1:]:
        here.every = here.every or [(1, "hour")]


def _on_hour(here: Said, phrase: Any) -> None:
    here.marks = [0]


def _window(here: Said, phrase: Any) -> None:
    first, last = (time_of(_tokens(part)) for part in _parts(phrase, "time"))
    here.window = (first, last)


def _begins(here: Said, phrase: Any) -> None:
    (here.begins,) = (time_of(_tokens(part)) for part in _parts(phrase, "time"))


def _part(here: Said, phrase: Any) -> None:
    *rest, part = _tokens(phrase)
    here.part = part.value
    if rest:
        here.adverb = "day"  # every evening


def _relative(here: Said, phrase: Any) -> None:
    tokens = _tokens(phrase)
    if tokens[-1].kind == "PART":
        here.relative, here.part = ("TODAY", None), tokens[-1].value
    else:
        here.relative = (tokens[0].kind, tokens[-1].value if len(tokens) > 1 else None)


def _later(here: Said, phrase: Any) -> None:
    here.later, here.compact = _amounts(phrase)


def _zone(here: Said, phrase: Any) -> None:
    here.zone = _tokens(phrase)[0].value


def _season(here: Said, phrase: Any) -> None:
    first, last = (token.value for token in _tokens(phrase) if token.kind == "MONTH")
    here.season = (first, last)


def _bounds_of(phrase: Any) -> list[Bound]:
    found: list[Bound] = []
    for part in _parts(phrase, "bound"):
        dates = _dates_of(part)
        found.append(dates[0] if dates else tuple((token.kind, token.value) for token in _tokens(part)))
    return found


def _starts(here: Said, phrase: Any) -> None:
    here.starts, *rest = _bounds_of(phrase)
    if rest:
        (here.ends,) = rest


def _ends(here: Said, phrase: Any) -> None:
    (here.ends,) = _bounds_of(phrase)


def _counted(here: Said, phrase: Any) -> None:
    here.counted = True


def _once(here: Said, phrase: Any) -> None:
    here.once = True


def _except(here: Said, phrase: Any) -> None:
    here.not_weekdays += _days_of(phrase)
    here.not_dates += _dates_of(phrase)
    here.not_months += _months_of(phrase)
    here.not_nth += _nths(phrase)
    here.not_holidays = here.not_holidays or "HOLIDAYS" in _kinds(phrase)


_PHRASES: Final = {
    "every_amount": _every_amount, "every_unit": _every_unit, "every_other_unit": _every_other_unit,
    "every_other_days": _every_other_days, "every_day": _every_day, "adverb": _adverb, "often": _often, "days": _days,
    "nth": _nth,
    "month_ordinals": _month_ordinals, "month_numbers": _month_numbers, "month_range": _month_range,
    "months": _months, "date": _date, "times": _times, "marks": _marks, "past_marks": _past_marks,
    "on_hour": _on_hour, "window": _window, "begins": _begins, "part": _part, "relative": _relative, "later": _later,
    "zone": _zone,
    "season": _season, "starts": _starts, "ends": _ends, "counted": _counted, "once": _once, "except": _except,
    "clause": _once,
}
