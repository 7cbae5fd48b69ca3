"""Sentences that people type, each with the fires it means: none is understood wrongly."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from nightporter.clock import SECOND, Instant, instant, rfc3339
from nightporter.errors import BadInput
from nightporter.rules.exclusions import next_running
from nightporter.rules.plain import read_words
from nightporter.words import Schedule

SENTENCES: list[dict[str, Any]] = json.loads(
    (Path(__file__).parents[1] / "data" / "sentences.json").read_text(encoding="utf-8")
)["sentences"]
OTHERWISE = {
    "s336": "a moment that has passed is a schedule without a fire: it is taken, never fires, and is warned of",
    "s405": "a range that runs backwards wraps, in cron as everywhere here",
}
"""Sentences that should be refused and are read otherwise, with the reason."""
AT_LEAST = {"no": 290, "may": 45}
"""How many sentences at least are understood: of the ordinary ones, and of those that may be refused."""


def outcome(sentence: dict[str, Any]) -> Schedule | None:
    try:
        return read_words(sentence["text"], sentence["timezone"], now=now_of(sentence)).schedule
    except BadInput:
        return None


def now_of(sentence: dict[str, Any]) -> Instant:
    return instant(datetime.fromisoformat(sentence["now"]))


def is_right(sentence: dict[str, Any], schedule: Schedule) -> bool:
    now = now_of(sentence)
    if schedule.kind == "every" and schedule.anchor is None and "grid" in sentence:
        saved = replace(schedule, anchor=now)
        period = sentence["grid"]["period_seconds"] * SECOND
        return [next_running(saved, now), next_running(saved, Instant(now + period))] == [now + period,
            now + 2 * period]
    fires: list[str | None] = []
    slot: Instant | None = now
    while slot is not None and len(fires) < 6:
        slot = next_running(schedule, slot)
        fires += [] if slot is None else [rfc3339(slot)]
    return fires in [sentence.get("means"), *sentence.get("or", [])]


@pytest.mark.parametrize("sentence", SENTENCES, ids=[sentence["id"] for sentence in SENTENCES])
def test_a_sentence_is_refused_or_means_what_was_written_down_for_it(sentence: dict[str, Any]) -> None:
    schedule = outcome(sentence)
    if schedule is None:
        return
    if sentence["refuse"] == "must":
        assert sentence["id"] in OTHERWISE, schedule
    else:
        assert is_right(sentence, schedule), schedule


def test_most_of_what_people_type_is_understood() -> None:
    understood = Counter(sentence["refuse"] for sentence in SENTENCES if outcome(sentence) is not None)
    assert {kind: understood[kind] >= least for kind, least in AT_LEAST.items()} == dict.fromkeys(AT_LEAST, True)
    assert understood["must"] == len(OTHERWISE)


@pytest.mark.parametrize("id", OTHERWISE)
def test_what_is_read_otherwise_is_still_read_so(id: str) -> None:
    (sentence,) = (each for each in SENTENCES if each["id"] == id)
    assert outcome(sentence) is not None
