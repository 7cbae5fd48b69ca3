"""Whatever stands in a file, it reads as a definition or as an error with a place."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sample_definitions import markdown, yaml

from nightporter.definitions import grammar
from nightporter.errors import BadDefinition
from nightporter.words import Definition

WHOLE = """---
name: tidy
when: "30 7 * * mon-fri"
limits: {timeout: 5m, per_hour: none}
retry:
  delays: [30s, 1m]
triggers:
  - call: {overlap: queue}
target: {script: [./a.sh, "b c"], env: {A: "1"}}
expires: 2027-01-31
deliver: [{file: "{{date}}.md", on: [failed]}, announce]
---
"""
pieces = st.sampled_from(
    ["\n", "\n  ", "- ", ": ", "{", "}", "[", "]", "'", '"', "&a", "*a", "!!set", "!x", "|", ">", "?", "%YAML 9", "---",
     "...", "#", "\t", "\0", "\x85", "\u2028", "\ufeff", "\ud800", "<<", "~", ".nan", "1e999", "0x", "0o9", "1_", "𝟘",
     "null", "true", "2026-99-99", *grammar.KEYS, *grammar.NOT_YET]
) | st.text(max_size=5)


@st.composite
def damaged(draw: st.DrawFn) -> str:
    text = WHOLE
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(text)))
        end = at + draw(st.integers(0, 12))
        text = text[:at] + draw(pieces) + text[end:]
    return text


def outcome(text: str, reading: Callable[[str], Definition]) -> Definition | BadDefinition:
    try:
        return reading(text)
    except BadDefinition as error:
        return error


def read_or_refused(text: str) -> None:
    lines = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n").count("\n") + 1
    for reading in (markdown, yaml):
        found = outcome(text, reading)
        if isinstance(found, BadDefinition):
            assert 1 <= found.line <= lines + 1
            assert found.column >= 1
            assert found.what
            assert str(found)
        else:
            assert found.name


@settings(max_examples=300, deadline=None, derandomize=True)
@given(damaged())
def test_a_damaged_file_is_read_or_refused(text: str) -> None:
    read_or_refused(text)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.lists(pieces, max_size=12).map("".join))
@example("a: !!int 5\n")
@example("---\n? !!binary x\n: y\n---\n")
def test_a_heap_of_pieces_is_read_or_refused(text: str) -> None:
    read_or_refused(text)


@pytest.mark.parametrize("key", grammar.KEYS)
@pytest.mark.parametrize(
    "value", ["", "~", "x", "5", "-1", "1.5", "true", "[]", "{}", "[[]]", "[{}]", "[~]", "{a: ~}", "{a: {}}", "[5]",
              '""', "' '", "2026-01-01", "[[a], {b: c}]", "{? : x}", "none", ".inf", "!!str 5", "'\x7f'"]
)
def test_any_value_of_any_key_is_read_or_refused(key: str, value: str) -> None:
    read_or_refused(f"---\n{key}: {value}\n---\nx")
    read_or_refused(f"{key}: {value}\n")


@pytest.mark.parametrize("deep", ["[" * 120_000, "{a: " * 30_000, "\n  " + "- " * 60_000 + "x"])
def test_depth_is_refused_where_it_begins_and_is_not_paid_for_to_the_end(deep: str) -> None:
    begun = time.process_time()
    found = outcome(f"a: {deep}", yaml)
    assert isinstance(found, BadDefinition)
    assert "nested deeper than 20 levels" in str(found)
    assert time.process_time() - begun < 1.0  # a quarter of a second for the text alone; all of it took five
