"""The grammar, docs/definition.md and the editors' schema say the same."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from sample_definitions import NOW

from nightporter.definitions import SCHEMA, grammar, read
from nightporter.words import Definition

PAGE = Path(__file__).parents[2] / "docs" / "definition.md"
TEXT = PAGE.read_text(encoding="utf-8")
PLACES: Mapping[str, tuple[str, ...]] = {
    "The keys": grammar.KEYS,
    "limits": grammar.LIMITS,
    "retry": grammar.RETRY,
    "missed": grammar.MISSED,
    "failures": grammar.FAILURES,
    "alerts": grammar.ALERTS,
    **grammar.TRIGGER_KEYS,
    **grammar.TARGET_KEYS,
    "deliver": grammar.DELIVER_OPTIONS,
    **grammar.DESTINATION_KEYS,
    **{f"if {kind}": grammar.LOOK_KEYS[kind] for kind in ("sql", "http", "file")},
}


def rows(place: str) -> list[list[str]]:
    """The cells of the table of keys below a heading."""
    section = re.search(rf"^##+ {re.escape(place)}\n(.*?)(?=^##+ |\Z)", TEXT, re.MULTILINE | re.DOTALL)
    assert section, f"docs/definition.md has no heading {place}"
    table = re.search(r"^\| key \|.*\n\|[-|]+\n((?:\|.*\n)*)", section[1], re.MULTILINE)
    return [[cell.strip() for cell in row.strip("|").split(" | ")] for row in table[1].splitlines()] if table else []


def read_as_written(text: str, name: str = "example.md") -> Definition:
    return read(text, path=f"/desk/{name}", format="yaml" if name.endswith("yaml") else "markdown",
                default_timezone="Europe/Lisbon", now=NOW)


@pytest.mark.parametrize("place", PLACES)
def test_every_key_is_documented_with_type_default_sentence_and_example(place: str) -> None:
    found = rows(place)
    assert [row[0].strip("`") for row in found] == list(PLACES[place])
    for row in found:
        assert len(row) == 5
        assert all(row)
        assert row[3].endswith(".")
        key = row[0].strip("`")
        main = {kind for kind, word in grammar.MAIN_WORD.items() if word == key}
        assert re.search(rf"\b{key}\b", row[4]) or any(f"{kind}: " in row[4] for kind in main) or key == "expression"


@pytest.mark.parametrize("example", [row[4].strip("`") for place in PLACES for row in rows(place)])
def test_every_example_of_a_key_can_be_read(example: str) -> None:
    body = "" if example.startswith("target:") else "Good morning."
    assert read_as_written(f"---\n{example}\n---\n{body}") != read_as_written("---\n---\nOther.")


def test_every_example_file_can_be_read() -> None:
    blocks = re.findall(r"^```(markdown|yaml)\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)
    assert len(blocks) >= 3
    for language, block in blocks:
        read_as_written(block, "example.yaml" if language == "yaml" else "example.md")


def test_what_is_not_yet_there_is_listed() -> None:
    listed = TEXT.partition("## Not yet")[2]
    promised = re.findall(r"^- ([^:]+): ((?:.+\n(?:  .+\n)*))", listed, re.MULTILINE)
    assert [re.findall(r"`(\w+)`", words) for _, words in promised] == [
        list(grammar.NOT_YET), list(grammar.NOT_YET_TRIGGERS), list(grammar.NOT_YET_TRIGGER_KEYS),
        list(grammar.NOT_YET_LIMITS), list(grammar.NOT_YET_TARGETS), list(grammar.NOT_YET_DESTINATIONS),
        list(grammar.NOT_YET_DELIVER_KEYS),
    ]


def test_kinds_without_keys_have_a_heading_too() -> None:
    for kind in (*grammar.TRIGGERS, *grammar.TARGET_KEYS, *grammar.DESTINATION_KEYS):
        assert f"\n### {kind}\n" in TEXT
    for kind in grammar.LOOK_KEYS:
        assert f"\n### if {kind}\n" in TEXT or kind == "script"  # `command` by another name


def schema() -> Any:
    return json.loads(SCHEMA.read_text(encoding="utf-8"))


def test_the_schema_offers_the_keys_of_the_grammar() -> None:
    offered = schema()
    properties = offered["properties"]
    assert tuple(properties) == grammar.KEYS
    assert tuple(properties["limits"]["properties"]) == grammar.LIMITS
    assert tuple(properties["retry"]["anyOf"][1]["properties"]) == grammar.RETRY
    assert tuple(offered["$defs"]["missed"]["anyOf"][1]["properties"]) == grammar.MISSED
    assert tuple(properties["failures"]["properties"]) == grammar.FAILURES
    assert tuple(properties["alerts"]["anyOf"][1]["properties"]) == grammar.ALERTS
    for word, places, options in (
        ("trigger", grammar.TRIGGER_KEYS, ()),
        ("target", grammar.TARGET_KEYS, ()),
        ("deliver", grammar.DESTINATION_KEYS, grammar.DELIVER_OPTIONS),
        ("look", grammar.LOOK_KEYS, ()),
    ):
        for kind, keys in places.items():
            entry = offered["$defs"][f"{word}.{kind}"]["properties"]
            inside = entry[kind]["anyOf"][0]["properties"]
            assert sorted(inside) == sorted({*keys, *options})
            assert set(entry) == {kind, *inside} - {grammar.MAIN_WORD.get(kind)} | {kind}
        assert {name for name in offered["$defs"] if name.startswith(f"{word}.")} == {f"{word}.{k}" for k in places}


def test_the_schema_lets_nothing_else_stand_and_describes_every_key() -> None:
    closed = 0
    for part in parts(schema()):
        if "properties" in part and isinstance(part["properties"], dict) and "type" in part:
            assert part["additionalProperties"] is False
            closed += 1
    assert closed > 20
    assert all("description" in key for key in schema()["properties"].values())


def test_every_reference_in_the_schema_leads_somewhere() -> None:
    whole = schema()
    references = [part["$ref"] for part in parts(whole) if "$ref" in part]
    assert len(references) > 50
    for reference in references:
        there = whole
        for step in reference.removeprefix("#/").split("/"):
            there = there[int(step)] if isinstance(there, list) else there[step]


def parts(value: Any) -> list[Any]:
    """Every map in a JSON value."""
    if isinstance(value, dict):
        return [value, *(part for inner in value.values() for part in parts(inner))]
    if isinstance(value, list):
        return [part for inner in value for part in parts(inner)]
    return []
