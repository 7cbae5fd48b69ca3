"""Tables fit a screen without a broken id, and are whole where there is none."""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Sequence

import pytest

from nightporter.surfaces.cli.out import Out

RUN = "run_0199a2b3c4d0123456789abcdef"
HEADS = ("state", "run", "automation", "due", "late", "took", "attempt", "why")
WHY = "it ended with exit code 1: the morning paper is not there yet; it is looked for again when the night is over"
ROWS = [
    ("failed", RUN, "morning-brief", "2026-03-27 09:00:07 America/Argentina/Buenos_Aires", "40 ms", "3.2 s", "2 of 3",
     WHY),
    ("succeeded", RUN, "tea", "2026-03-27 09:00 Europe/Berlin", "40 ms", "3.2 s", "", ""),
]


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


def shown(
    monkeypatch: pytest.MonkeyPatch, columns: int, heads: tuple[str, ...], rows: Sequence[tuple[str, ...]]
) -> str:
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("TERM", "xterm")
    screen = Screen()
    with contextlib.redirect_stdout(screen):
        Out(no_color=True).table(heads, rows)
    return re.sub(r"\x1b\[[0-9;]*m", "", screen.getvalue())


@pytest.mark.parametrize("columns", [60, 80, 100, 120, 200])
def test_ids_and_moments_are_whole_on_every_screen(monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    text = shown(monkeypatch, columns, HEADS, ROWS)
    assert text.count(RUN) == 2
    assert len(re.findall(r"03-27 09:00:07", text)) == len(re.findall(r"03-27 09:00\b(?!:)", text)) == 1
    assert max(len(line) for line in text.splitlines()) <= max(columns, 80)


def test_a_wide_screen_has_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    text = shown(monkeypatch, 300, HEADS, ROWS)
    assert all(cell in text for row in ROWS for cell in row)


def test_the_list_of_automations_keeps_names_and_moments_on_eighty_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    heads = ("state", "name", "when", "next", "last", "queued", "running", "why")
    row = ("paused", "morning-brief", "Every weekday at 09:00, Europe/Berlin", "2026-03-30 09:00 Europe/Berlin",
           "timed out", "", "", "the paper is late until 2026-04-01 09:00 Europe/Berlin by ana")
    text = shown(monkeypatch, 80, heads, [row])
    assert "morning-brief" in text
    assert "03-30 09:00" in text
    assert "QUEUED" not in text
    assert max(map(len, text.splitlines())) <= 80


def test_without_a_screen_nothing_is_folded_or_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    Out().table(HEADS, [(*ROWS[0][:-1], "word " * 4000 + "\n" + "end")])
    head, row = capsys.readouterr().out.splitlines()
    assert head.split() == [name.upper() for name in HEADS]
    assert row.endswith("word end")
