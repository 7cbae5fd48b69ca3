"""The commands of units, `ExecStart=` and its like, taken apart as systemd does, and as a shell would say them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from nightporter.errors import BadInput

_NAME: Final = r"[A-Za-z_][A-Za-z0-9_]*"
_VARIABLE: Final = re.compile(rf"\$\$|\$\{{({_NAME})\}}")
_ALONE: Final = re.compile(rf"\$({_NAME})")
_ESCAPES: Final = {
    "a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "\\": "\\", '"': '"', "'": "'",
    "s": " ",
}
_BLANK: Final = " \t\n\r"


@dataclass(frozen=True, slots=True)
class Command:
    """One command of a unit."""

    words: tuple[str, ...]
    forgiven: bool = False
    """`-`: that it fails is no matter."""
    plain: bool = False
    """`:`: no variables in it."""
    own_name: str = ""
    """`@`: what it is told that it is called."""
    more_rights: bool = False
    """`+` or `!`."""

    @property
    def has_variables(self) -> bool:
        return self.splits or (not self.plain and any(
            match[1] for word in self.words for match in _VARIABLE.finditer(word)))

    @property
    def splits(self) -> bool:
        """Whether a variable stands alone, and becomes as many words as it has."""
        return not self.plain and any(_ALONE.fullmatch(word) for word in self.words)

    def in_shell(self) -> str:
        return " ".join(shlex.quote(word) if self.plain else _in_shell(word) for word in self.words)


def commands_of(text: str, fill: Callable[[str], str]) -> list[Command]:
    """The commands of one setting, which `;` keeps apart. Raises BadInput where systemd would not take it."""
    found: list[Command] = []
    words: list[str] = []
    for word, written in _words(text):
        if written == ";":
            found += [_command(words, fill)] if words else []
            words = []
        else:
            words.append(";" if written == r"\;" else word)
    if words or not found:
        found.append(_command(words, fill))
    return found


def assignments_of(text: str, fill: Callable[[str], str]) -> dict[str, str]:
    """The variables of one `Environment=`. Raises BadInput."""
    found = {}
    for word, _ in _words(text):
        name, equals, value = fill(word).partition("=")
        if not equals or not re.fullmatch(_NAME, name):
            raise BadInput(f"{word[:40]!r} sets no variable", next="write it as NAME=value")
        found[name] = value
    return found


def _command(words: list[str], fill: Callable[[str], str]) -> Command:
    program = words[0] if words else ""
    marks = program[: len(program) - len(program.lstrip("-@:+!|"))]
    program = program[len(marks):]
    if not program:
        raise BadInput("a command is empty", next="write a program there")
    if "|" in marks:
        raise BadInput("the mark | before a command is not known here", next="write the shell out")
    filled = [fill(word) for word in (program, *words[1:])]
    own_name = ""
    if "@" in marks:
        if len(filled) < 2:
            raise BadInput("@ before a command, and no name behind it", next="write the name, or leave @ out")
        own_name = filled.pop(1)
    if any("\0" in word for word in filled):
        raise BadInput("a command has a NUL in it", next="take it out")
    return Command(tuple(filled), forgiven="-" in marks, plain=":" in marks, own_name=own_name,
                   more_rights="+" in marks or "!" in marks)


def _in_shell(word: str) -> str:
    if alone := _ALONE.fullmatch(word):
        return f"${alone[1]}"
    parts, place = [], 0
    for match in _VARIABLE.finditer(word):
        parts += [word[place: match.start()], f"${{{match[1]}}}" if match[1] else "$"]
        place = match.end()
    parts.append(word[place:])
    # At odd places stand what was found: a variable, for which the shell needs double quotes, or a sign.
    said = "".join(f'"{part}"' if number % 2 and part != "$" else shlex.quote(part) if part else ""
                   for number, part in enumerate(parts))
    return said or "''"


def _words(text: str) -> Iterator[tuple[str, str]]:
    """The words of a setting, each with how it is written. Raises BadInput."""
    place = 0
    while place < len(text):
        if text[place] in _BLANK:
            place += 1
            continue
        begin, word, quote = place, [], ""
        while place < len(text) and (quote or text[place] not in _BLANK):
            letter = text[place]
            if letter == quote:
                quote = ""
            elif letter in "\"'" and not quote:
                quote = letter
            elif letter == "\\":
                found, length = _escaped(text, place)
                word.append(found)
                place += length - 1
            else:
                word.append(letter)
            place += 1
        if quote:
            raise BadInput(f"a quote {quote} without its end", next="close it")
        yield "".join(word), text[begin: place]


def _escaped(text: str, place: int) -> tuple[str, int]:
    """What a backslash and the signs behind it mean, and how many signs they are. One that means nothing stays."""
    letter = text[place + 1: place + 2]
    if letter in _ESCAPES:
        return _ESCAPES[letter], 2
    for mark, digits, base in (("x", 2, 16), ("u", 4, 16), ("U", 8, 16), ("", 3, 8)):
        written = text[place + 1 + len(mark): place + 1 + len(mark) + digits]
        if text.startswith(mark, place + 1) and re.fullmatch(rf"[{'0-7' if base == 8 else '0-9a-fA-F'}]{{{digits}}}",
                                                             written):
            number = int(written, base)
            if 0 < number < 0x110000 and not 0xD800 <= number < 0xE000:
                return chr(number), 1 + len(mark) + digits
    return "\\", 1
