"""The collected cases of cron, every and at: right instants, refusals and the verdicts on contested ones."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from time import perf_counter
from typing import Any

import pytest

from nightporter.clock import Instant, instant, rfc3339
from nightporter.errors import BadSchedule
from nightporter.rules.schedule import next_due, parse, previous_due, sentence
from nightporter.rules.zones import TZDATA
from nightporter.words.automation import Schedule

CASES: list[dict[str, Any]] = json.loads((Path(__file__).parent / "data" / "clock.json").read_text(encoding="utf-8"))

OURS_AMONG_TOLERATED = {"a0001", "a0018", "a0021"}
"""One-shots at a local time that does not exist: we take the first instant after the gap, as cron does."""


def name_of(case: dict[str, Any]) -> str:
    return f"{case['id']}-{case['kind']}-{case['expression'].strip()[:30]}-{case['timezone']}"


def at(text: str | None) -> Instant | None:
    return None if text is None else instant(datetime.fromisoformat(text))


def schedule_of(case: dict[str, Any]) -> Schedule:
    return parse(case["kind"], case["expression"], case["timezone"], anchor=at(case["anchor"]))


def fires(schedule: Schedule, after: str, count: int) -> list[str | None]:
    found: list[str | None] = []
    moment = at(after)
    while moment is not None and len(found) < count:
        moment = next_due(schedule, moment)
        if moment is not None:
            found.append(rfc3339(moment))
    return found


ACCEPTED = [case for case in CASES if case["valid"] == "yes"]
REFUSED = [case for case in CASES if case["valid"] == "no"]
NEVER = [case for case in CASES if case["valid"] == "refuse-or-never"]


def test_the_cases_are_all_here() -> None:
    assert (len(ACCEPTED), len(REFUSED), len(NEVER)) == (366, 71, 10)


@pytest.mark.parametrize("case", ACCEPTED, ids=name_of)
def test_a_schedule_is_due_at_the_right_instants(case: dict[str, Any]) -> None:
    got = fires(schedule_of(case), case["after"], len(case["expect"]) or 1)
    allowed = case["tolerated"] if case["id"] in OURS_AMONG_TOLERATED else [case["expect"]]
    assert [at(each) for each in got] in [[at(each) for each in row] for row in allowed]


@pytest.mark.parametrize("case", ACCEPTED, ids=name_of)
def test_looking_back_finds_the_last_slot(case: dict[str, Any]) -> None:
    schedule = schedule_of(case)
    for text in (case["after"], *case["expect"]):
        moment = at(text)
        assert moment is not None
        last = previous_due(schedule, moment)
        if last is None:
            assert case["kind"] != "cron"
            continue
        assert last <= moment
        assert next_due(schedule, Instant(last - 1)) == last
        following = next_due(schedule, last)
        assert following is None or following > moment


@pytest.mark.parametrize("case", ACCEPTED, ids=name_of)
def test_a_schedule_can_be_said_in_a_sentence(case: dict[str, Any]) -> None:
    said = sentence(schedule_of(case))
    assert said.endswith(f", {case['timezone']}")
    assert said[0].isupper()


@pytest.mark.parametrize("case", REFUSED + NEVER, ids=name_of)
def test_a_schedule_that_cannot_be_is_refused_at_once(case: dict[str, Any]) -> None:
    began = perf_counter()
    with pytest.raises(BadSchedule) as refusal:
        schedule_of(case)
    assert perf_counter() - began < 1.0
    assert refusal.value.what
    assert refusal.value.why
    assert refusal.value.next


@pytest.mark.parametrize("name", ["america/new_york", "right/America/New_York", "posix/America/New_York"])
def test_a_zone_that_is_not_written_exactly_is_refused(name: str) -> None:
    with pytest.raises(BadSchedule):
        parse("cron", "0 9 * * *", name)


def test_the_cases_were_computed_with_the_release_in_use_or_hold_under_it() -> None:
    assert TZDATA >= "2026f"
