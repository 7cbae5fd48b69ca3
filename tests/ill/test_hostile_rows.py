"""Whatever stands in whichever column, every command that reads answers, and commands no terminal."""

from __future__ import annotations

from pathlib import Path

import pytest

from ill.hostile import TEXTS, Column, spoil
from ill.sweeping import a_ledger, one_of_each_table, swept
from nightporter.logs import harmless, harmless_json

pytest_plugins = ["homes"]

PARTS = 3
"""Of the sweep; two of them are swept here, all by `make soak`."""


@pytest.mark.parametrize("part", [0, 1])
def test_every_command_that_reads_answers_whatever_stands_in_any_column(
    part: int, nobodys_place: Path, tmp_path: Path
) -> None:
    ledger = a_ledger(tmp_path)
    assert swept(ledger, tmp_path / "home", list(one_of_each_table(ledger))[part::PARTS], details=2) == []


def test_the_sweep_plants_what_it_says(tmp_path: Path) -> None:
    planted = spoil(a_ledger(tmp_path), Column("run", "error", False, ("id",)))
    assert {value for _, value in planted} == set(TEXTS)


def test_what_commands_a_terminal_is_shown_and_not_obeyed() -> None:
    text = "a\x1b[31m\x9b2J\ud800\u202e\r\x07 \u00fc\n\t\x7f"
    assert harmless(text) == "a\\x1b[31m\\x9b2J\\ud800\\u202e\\r\\x07 \u00fc\n\t\\x7f"
    assert harmless_json('"\x9b\ud800\u00fc"') == '"\\u009b\\ud800\u00fc"'
