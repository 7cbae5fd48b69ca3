"""From words to a verb's function, and from what it raises to an exit code."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Any

from cyclopts import App, CycloptsError, Parameter

from nightporter import __version__
from nightporter.errors import NightporterError
from nightporter.logs import harmless, harmless_json
from nightporter.surfaces.cli.verbs import VERBS

INTERRUPTED = 130
_EVERYWHERE = ("--json", "--no-color", "--home", "--store", "--config")
"""Flags that every verb takes, and that may stand before it too."""
_WITH_VALUE = ("--home", "--store", "--config")


def build() -> App:
    """The verbs as cyclopts knows them; their modules are loaded when they are called."""
    app = App(
        name="nightporter", version=__version__, help_format="plaintext", default_parameter=Parameter(negative=()),
        print_error=False, exit_on_error=False, help_on_error=False, result_action="return_value",
        suppress_keyboard_interrupt=False,
    )
    for verb in VERBS:
        app.command(f"{__package__}.{verb.where}", name=(verb.name, *verb.aliases), help=verb.summary)
    return app


def call(words: Sequence[str]) -> int:
    """Run one command; the exit code."""
    for word in words:
        if not _is_text(word):
            return _refuse({"code": "usage", "what": f"{word!r} is no text", "why": "it is not UTF-8",
                            "next": "write it in UTF-8"}, "--json" in words, 2)
    words = _behind_the_verb(words)
    flags = words[: words.index("--")] if "--" in words else words
    as_json = "--json" in flags
    asked = next((verb for verb in VERBS if words and words[0] in (verb.name, *verb.aliases)), None)
    if asked is not None and ("--help" in flags or "-h" in flags):
        from nightporter.surfaces.cli.helping import help_of

        print(help_of(build(), asked))
        return 0
    try:
        code: Any = build()(words)
        sys.stdout.flush()
        return code if isinstance(code, int) else 0
    except CycloptsError as error:
        # Its message is a sentence of its own; what to do is in the help of the verb.
        what = str(error).strip().partition(" Available commands")[0].rstrip(".")
        return _refuse({"code": "usage", "what": what, "why": "",
                        "next": f"nightporter {words[0]} --help" if asked else "nightporter --help"}, as_json, 2)
    except NightporterError as error:
        return _refuse(error.as_json(), as_json, error.exit_code)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # The reader of our output went away, as `head` does; the interpreter must not complain at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def _is_text(word: str) -> bool:
    """Whether every byte of a word could be read: the others come as halves of characters, which nothing can keep."""
    try:
        word.encode()
    except UnicodeEncodeError:
        return False
    return True


def _refuse(error: dict[str, Any], as_json: bool, code: int) -> int:
    """Say what went wrong: as JSON on standard output where that was asked for, else in words on standard error."""
    if as_json:
        import json

        print(harmless_json(json.dumps({"error": error}, ensure_ascii=False)))
        return code
    where = f"{error['path']}:" if error.get("path") else ""
    if error.get("line"):
        where += f"{error['line']}:{error['column']}:"
    print(harmless(f"error[{error['code']}]: {where + ' ' if where else ''}{error['what']}"), file=sys.stderr)
    for part in ("why", "next"):
        if error[part]:
            print(harmless(f"  {part}: {error[part]}"), file=sys.stderr)
    return code


def _behind_the_verb(words: Sequence[str]) -> list[str]:
    """The same words with flags that stood before the verb behind it."""
    rest = list(words)
    flags: list[str] = []
    while rest and rest[0].split("=")[0] in _EVERYWHERE:
        takes = 2 if rest[0] in _WITH_VALUE else 1
        flags += rest[:takes]
        rest = rest[takes:]
    return [*rest[:1], *flags, *_with_standard_input(rest[1:])]


def _with_standard_input(words: list[str]) -> list[str]:
    """The same words with `--file -` as `--file=-`, and `--ical -` likewise: a dash alone would be taken for a flag
    without a name."""
    joined: list[str] = []
    for word in words:
        if word == "-" and joined and joined[-1] in ("--file", "--ical"):
            joined[-1] += "=-"
        else:
            joined.append(word)
    return joined
