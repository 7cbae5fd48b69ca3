"""What somebody wrote, with the place of every piece: the values of a definition before they mean anything.

Places count from 1. The functions that take a meaning out of a value raise BadDefinition at its place; the path is
added by whoever knows the file.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, NoReturn

from nightporter.errors import BadDefinition, BadInput

LEAST: Final = -(2**63)
MOST: Final = 2**63 - 1
"""Whole numbers beyond these are kept by no database, and some have no JSON form."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where something stands in its file; both count from 1."""

    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Scalar:
    """One word, number, flag or nothing, as it was written."""

    text: str
    kind: Literal["text", "number", "flag", "nothing"]
    place: Place


@dataclass(frozen=True, slots=True)
class Items:
    """A list."""

    items: tuple[Value, ...]
    place: Place

    def __iter__(self) -> Iterator[Value]:
        return iter(self.items)


@dataclass(frozen=True, slots=True)
class Entries:
    """A map with text keys, in the order written."""

    values: Mapping[str, Value]
    keys: Mapping[str, Place]
    place: Place

    def get(self, key: str) -> Value | None:
        return self.values.get(key)

    def without(self, *names: str) -> Entries:
        """The same map less some keys."""
        left = {key: value for key, value in self.values.items() if key not in names}
        return Entries(left, {key: self.keys[key] for key in left}, self.place)


Value = Scalar | Items | Entries


def bad(place: Place, what: str, *, why: str = "", next: str = "") -> BadDefinition:
    """The error of something written at `place`."""
    return BadDefinition(what, why=why, next=next, line=place.line, column=place.column)


def misread(place: Place, error: BadInput) -> NoReturn:
    """Raise what a rule found wrong with a value as an error of the definition at `place`."""
    if isinstance(error, BadDefinition):
        error.line, error.column = place.line, place.column
        raise error
    raise bad(place, error.what, why=error.why, next=error.next) from error


def described(value: Value) -> str:
    """A value as an error names it: `the number 5`, `a list`."""
    match value:
        case Items():
            return "a list"
        case Entries():
            return "a map"
        case Scalar(kind="nothing"):
            return "empty"
        case Scalar(text=text, kind="text"):
            return f"the text {_short(text)!r}"
        case Scalar(text=text, kind=kind):
            return f"the {kind} {_short(text)}"


def _short(text: str) -> str:
    return text if len(text) <= 40 else text[:37] + "..."


def wrong_type(key: str, value: Value, wanted: str, *, next: str = "") -> BadDefinition:
    """The error of a value of another type than its key takes."""
    return bad(value.place, f"`{key}` wants {wanted}, and here is {described(value)}", next=next)


def meant(word: str, known: Collection[str]) -> str | None:
    """The known word somebody probably meant, if there is a close one."""
    close = difflib.get_close_matches(word.lower().replace(" ", "_"), known, n=1, cutoff=0.6)
    return close[0] if close else None


def unknown(place: Place, what: str, word: str, known: Collection[str], where: str = "") -> BadDefinition:
    """The error of a word that is not one of `known`, with the one that was probably meant."""
    guess = meant(word, known)
    found = f"unknown {what} `{_short(word)}`" + (f" {where}" if where else "")
    return bad(
        place,
        found + (f": did you mean `{guess}`?" if guess else ""),
        next="possible here: " + ", ".join(known),
    )


def text_of(key: str, value: Value, *, longest: int = 10_000) -> str:
    """The text of a value. Numbers and flags are not text: what YAML makes of them is seldom what was meant."""
    if not isinstance(value, Scalar) or value.kind != "text":
        hint = "put it in quotes" if isinstance(value, Scalar) and value.kind in ("number", "flag") else ""
        raise wrong_type(key, value, "text", next=hint)
    if len(value.text) > longest:
        raise bad(value.place, f"`{key}` takes {longest} characters at most, and these are {len(value.text)}")
    return value.text


def flag_of(key: str, value: Value) -> bool:
    """True or false, in YAML's own words only."""
    if isinstance(value, Scalar) and value.kind == "flag":
        return value.text.lower() == "true"
    raise wrong_type(key, value, "true or false")


def whole_number_of(key: str, value: Value, *, least: int, most: int) -> int:
    """A whole number between two bounds, both included."""
    wanted = f"a whole number from {least} to {most}"
    number = number_of(value) if isinstance(value, Scalar) and value.kind == "number" else None
    if not isinstance(number, int):
        raise wrong_type(key, value, wanted)
    if not least <= number <= most:
        raise bad(value.place, f"`{key}` wants {wanted}, and here is {number}")
    return number


def choice_of(key: str, value: Value, choices: Collection[str]) -> str:
    """One word of a closed list."""
    word = text_of(key, value)
    if word not in choices:
        raise unknown(value.place, f"value of `{key}`:", word, choices)
    return word


def choices_of(key: str, value: Value, choices: Collection[str]) -> frozenset[str]:
    """One word, or a list of words, of a closed list."""
    if isinstance(value, Scalar):
        return frozenset({choice_of(key, value, choices)})
    if not isinstance(value, Items) or not value.items:
        raise wrong_type(key, value, "a list of " + ", ".join(choices))
    return frozenset(choice_of(key, item, choices) for item in value)


def entries_of(key: str, value: Value) -> Entries:
    """A map."""
    if isinstance(value, Entries):
        return value
    raise wrong_type(key, value, "a map")


def is_none(value: Value) -> bool:
    """Whether a value is the word `none`."""
    return isinstance(value, Scalar) and value.kind == "text" and value.text == "none"


def number_of(value: Scalar) -> int | float:
    """The number of a scalar that is one. Raises BadDefinition for those that JSON or a database has no form for."""
    text = value.text.replace("_", "").lower()
    number: int | float
    try:
        number = int(text, 0) if text.lstrip("+-").startswith(("0x", "0o", "0b")) else int(text)
    except ValueError:
        try:
            number = float(text)
        except ValueError:
            raise bad(value.place, f"{_short(value.text)} is no number that can be kept") from None
    if isinstance(number, int) and not LEAST <= number <= MOST:
        raise bad(value.place, f"the number {_short(value.text)} is too large", why=f"{MOST} is the largest",
                  next="put it in quotes if it is a text")
    if number != number or number in (float("inf"), float("-inf")):
        raise bad(value.place, f"{_short(value.text)} is no number that can be kept")
    return number


def plain(value: Value) -> Any:
    """The JSON value of what was written."""
    match value:
        case Scalar(kind="nothing"):
            return None
        case Scalar(kind="flag"):
            return value.text.lower() == "true"
        case Scalar(kind="number"):
            return number_of(value)
        case Scalar():
            return value.text
        case Items():
            return [plain(item) for item in value]
        case Entries():
            return {key: plain(item) for key, item in value.values.items()}
