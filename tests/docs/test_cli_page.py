"""docs/cli.md leaves out no verb, argument or exit code; and every command that a page shows exists."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from paper import PAGES, blocks, name_of, prose, read, rows, section

from nightporter import errors
from nightporter.surfaces.cli import health, running
from nightporter.surfaces.cli.app import INTERRUPTED, build
from nightporter.surfaces.cli.helping import EXIT_CODES, help_of
from nightporter.surfaces.cli.verbs import VERBS, Verb

TEXT = read("docs/cli.md")
APP = build()
NAMES = {name: verb for verb in VERBS for name in (verb.name, *verb.aliases)}
EVERYWHERE = {name for row in rows(TEXT.partition("\n## ")[0]) for name in re.findall(r"--[a-z-]+", row[0])}


def arguments(verb: Verb) -> list[Any]:
    """What a verb takes, as it is called."""
    return [one for one in APP[verb.name].assemble_argument_collection() if one.names != ("*",)]


def flags(verb: Verb) -> set[str]:
    return {name for one in arguments(verb) if one.index is None for name in one.names if name not in one.negatives}


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.name)
def test_a_verb_is_on_the_page_with_its_aliases_and_every_argument(verb: Verb) -> None:
    part = section(TEXT, verb.name)
    assert f"`nightporter {verb.name}" in part
    assert all(f"`{alias}`" in part for alias in verb.aliases)
    told = {row[0]: row[1] for row in rows(part)}
    named = {name for cell in told for name in re.findall(r"`\[?([^`\]]+)\]?`", cell)}
    words = {str(one.names[0]).lstrip("-").upper() for one in arguments(verb) if one.index is not None}
    assert named == (flags(verb) - EVERYWHERE) | words
    assert [cell for cell, says in told.items() if not says] == []


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.name)
def test_a_verb_takes_what_every_verb_takes(verb: Verb) -> None:
    assert flags(verb) >= EVERYWHERE


def test_the_page_has_no_verb_that_is_not_there() -> None:
    assert re.findall(r"^### (.+)$", prose(TEXT), re.MULTILINE) == [verb.name for verb in VERBS]


def test_the_exit_codes_on_the_page_are_those_of_errors_and_of_verbs() -> None:
    listed = [int(row[0]) for row in rows(section(TEXT, "Exit codes"))]
    kinds = [kind for kind in vars(errors).values()
             if isinstance(kind, type) and issubclass(kind, errors.NightporterError)]
    of_verbs = {running.DID_NOT_RUN, running.WAITS_FOR_A_PERSON, running.NOT_DELIVERED, running.TIMED_OUT,
                health.UNHEALTHY, INTERRUPTED, 0}
    assert listed == sorted({kind.exit_code for kind in kinds} | of_verbs)


def test_the_help_of_verbs_has_the_exit_codes_of_the_page() -> None:
    told = {int(row[0]): row[1] for row in rows(section(TEXT, "Exit codes"))}
    assert told == EXIT_CODES


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.name)
def test_the_help_of_a_verb_says_what_the_page_says(verb: Verb) -> None:
    said = " ".join(help_of(APP, verb).split())
    part = section(TEXT, verb.name)
    told = part.partition("\n`nightporter")[2].partition("`\n")[2].partition("\n|")[0].partition("Also: `")[0]
    assert " ".join(told.partition("<!--")[0].split()) in said
    assert all(f"{row[1]} " in f"{said} " for row in rows(part))
    assert not re.search(r"\bSTR\b|\[default|\bNone\b", said)


def commands(page: Path) -> list[list[str]]:
    """The words of every `nightporter ...` that a page shows, `nightporter` itself left out."""
    text = page.read_text(encoding="utf-8")
    lines = [line.removeprefix("$ ") for line in "\n".join(blocks(text, "console") + blocks(text, "sh")).splitlines()]
    inline = re.findall(r"`(nightporter [^`]+)`", prose(text))
    return [shlex.split(line)[1:] for line in [*lines, *inline] if line.startswith("nightporter ")]


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_command_that_a_page_shows_exists_with_its_flags(page: Path) -> None:
    for words in commands(page):
        if words[0] in ("VERB", "--help", "--version"):
            continue
        assert words[0] in NAMES, words
        given = {word.partition("=")[0] for word in words[1:] if re.match(r"--?[a-z]", word)}
        assert given <= flags(NAMES[words[0]]) | {"--help"}, words


def test_every_command_that_an_error_or_a_reason_advises_exists() -> None:
    source = Path(errors.__file__).parent
    texts = [path.read_text(encoding="utf-8") for path in source.rglob("*.py")]
    advised = {verb for text in texts for verb in re.findall(r"(?:`|\"|\n)nightporter ([a-z]+)\b(?![./])", text)}
    assert len(advised) > 10
    assert advised - set(NAMES) == set()
