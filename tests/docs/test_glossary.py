"""Every word of the glossary is where it says, every table has a word, and every part of the program is on the map."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from pkgutil import resolve_name

import pytest
from paper import ROOT, blocks, prose, read, rows, section

from nightporter.store.named import migrations, queries

WORDS = {row[0]: row for row in rows(read("docs/glossary.md"))}
PLACES = [(word, place) for word, row in WORDS.items() for place in re.findall(r"`([^`]+)`", row[2])]
MAP = read("docs/architecture.md")
PACKAGE = ROOT / "src" / "nightporter"


@cache
def columns() -> dict[str, set[str]]:
    """The columns of each table, as the migrations make them."""
    found: dict[str, set[str]] = {}
    for _, schema in migrations():
        for table, body in re.findall(r"CREATE TABLE (\w+) \((.*?)\n\)", schema, re.DOTALL):
            found[table] = set(re.findall(r"^    ([a-z_]+) ", body, re.MULTILINE))
    return found


def stands(place: str) -> bool:
    """Whether there is a table, column, query or name of the program like that."""
    kind, _, name = place.rpartition(" ")
    match kind:
        case "table":
            return name in columns()
        case "column":
            table, _, column = name.partition(".")
            return column in columns().get(table, ())
        case "query":
            return name in queries("sqlite")
        case _:
            return _named(f"nightporter.{name}")


def _named(name: str) -> bool:
    home, _, last = name.rpartition(".")
    try:
        resolve_name(name)
    except (AttributeError, ModuleNotFoundError):
        return home.count(".") > 0 and _named(home) and last in getattr(resolve_name(home), "__annotations__", {})
    return True


@pytest.mark.parametrize(("word", "place"), PLACES)
def test_a_word_of_the_glossary_is_where_it_says(word: str, place: str) -> None:
    assert stands(place)


def test_every_word_has_a_meaning_and_a_place() -> None:
    assert {word for word, _ in PLACES} == set(WORDS)
    assert [word for word, row in WORDS.items() if len(row) != 3 or not row[1].endswith(".")] == []


@pytest.mark.parametrize(
    "place", ["table desk", "column run.colour", "query run_vanish", "words.Nothing", "nowhere.at"]
)
def test_the_check_knows_what_is_not_there(place: str) -> None:
    assert not stands(place)


def test_every_table_of_the_store_has_a_word() -> None:
    assert {place.removeprefix("table ") for _, place in PLACES if place.startswith("table ")} == set(columns())


def test_the_import_rule_on_the_map_is_the_one_that_is_checked() -> None:
    rule = tomllib.loads(read("pyproject.toml"))["tool"]["importlinter"]["contracts"][0]["layers"]
    assert blocks(section(MAP, "The import rule"), "text")[0].splitlines() == rule


def test_every_part_of_the_program_is_in_the_import_rule() -> None:
    rule = set(re.findall(r"\w+", blocks(section(MAP, "The import rule"), "text")[0]))
    parts = {path.stem for path in PACKAGE.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}
    assert rule == parts - {"__init__"}


def test_every_path_that_the_map_names_exists() -> None:
    named = re.findall(r"`([a-z]+/[^`]*)`", prose(MAP))
    assert len(named) > 10
    missing = [name for name in named if not any(
        path.exists() for path in (ROOT / name, PACKAGE / name, PACKAGE / f"{name}.py"))]
    assert missing == []


def test_the_map_is_one_page() -> None:
    assert len(MAP.splitlines()) <= 120
