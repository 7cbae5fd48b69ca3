"""legible: text as every database and every encoding takes it. What comes from outside passes through here once."""

from __future__ import annotations

from typing import Any

REPLACEMENT = "\ufffd"


def legible(text: str) -> str:
    """The text with U+FFFD for each NUL, which PostgreSQL does not take, and for each half of a surrogate pair, which
    no encoding does."""
    if "\0" in text:
        text = text.replace("\0", REPLACEMENT)
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def plain(text: object) -> str:
    """On one line and in ASCII: for what was refused although it was legible."""
    return ascii(" ".join(str(text).split()))[1:-1]


def legible_value(value: Any) -> Any:
    """A JSON value with all its texts so, its keys too."""
    match value:
        case str():
            return legible(value)
        case dict():
            return {legible_value(key): legible_value(each) for key, each in value.items()}
        case list() | tuple():
            return [legible_value(each) for each in value]
        case _:
            return value
