"""Each reason there is, produced on purpose: what the command line shows of it in its lists, `explain` and JSON."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from produced import PRODUCED
from shell import Shell

from conftest import START
from nightporter.store import open_store
from nightporter.words import Reason

pytest_plugins = ["homes"]

LISTS = ("firings", "runs", "deliveries")
PAGE = Path(__file__).parents[2] / "docs" / "reasons.md"
OF_THE_MOMENT = {
    Reason.CONCURRENCY_CEILING: (("status",), "concurrency"),
    Reason.UNREADABLE: (("doctor",), "quarantined"),
}
"""No line has them: a run that waits is counted by what it waits for, a trigger that fires no more is a finding."""


@pytest.fixture
def scene(shell: Shell, reason: Reason) -> Shell:
    store = open_store(str(shell.home / "nightporter.sqlite"), now=START)
    try:
        PRODUCED[reason](store)
    finally:
        store.close()
    return shell


@pytest.mark.parametrize("reason", [each for each in Reason if each not in OF_THE_MOMENT])
def test_each_reason_is_told_by_lists_and_explain_in_words_and_in_json(scene: Shell, reason: Reason) -> None:
    verb, line = _told(scene, reason)
    shown = " ".join(scene(verb).out.split())
    assert line["reason_sentence"] == reason.sentence
    told = [line.get(name) for name in ("reason_sentence", "detail", "error", "evidence")]
    assert any(_within(words, shown) for words in told)
    subject = line["run_id"] if verb == "deliveries" else line["id"]
    explained = scene("explain", subject)
    assert explained.code == 0, explained.err
    assert _opening(reason.sentence) in explained.out.lower() or reason in explained.out
    said = scene("explain", subject, "--json").json
    assert reason in (said["reason"], *(fact["value"] for fact in said["facts"])) or _opening(
        reason.sentence) in said["text"].lower()


@pytest.mark.parametrize("reason", OF_THE_MOMENT)
def test_what_no_line_has_is_told_by_what_looks_at_the_moment(scene: Shell, reason: Reason) -> None:
    words, expected = OF_THE_MOMENT[reason]
    assert expected in scene(*words, "--json").out
    assert _opening(reason.sentence) in scene("explain", "brief").out.lower()


def test_the_page_of_reasons_has_each_of_them() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert [reason for reason in Reason if f"| `{reason}` | {reason.sentence} |" not in page] == []


def _told(shell: Shell, reason: Reason) -> tuple[str, dict[str, Any]]:
    """The list that has it, and its line there."""
    for verb in LISTS:
        for line in shell(verb, "--json").json["items"]:
            if line["reason"] == reason:
                return verb, line
    raise AssertionError(f"no list has {reason}")


def _within(words: str | None, shown: str) -> bool:
    return bool(words) and " ".join(str(words).split()) in shown


def _opening(sentence: str) -> str:
    """What a paragraph takes over of a sentence, whatever it goes on with."""
    return sentence.rstrip(".").lower()
