"""The collected cases of cron, every, at and rrule: right instants, refusals and the verdicts on contested ones."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from time import process_time
from typing import Any

import pytest

from nightporter.clock import Instant, instant, rfc3339
from nightporter.errors import BadSchedule
from nightporter.rules.schedule import next_due, parse, previous_due, sentence
from nightporter.rules.zones import TZDATA, zone
from nightporter.words.automation import Schedule

CASES: list[dict[str, Any]] = json.loads((Path(__file__).parent / "data" / "clock.json").read_text(encoding="utf-8"))

OURS_AMONG_TOLERATED = {"a0001", "a0018", "a0021"}
"""One-shots at a local time that does not exist: we take the first instant after the gap, as cron does."""


def name_of(case: dict[str, Any]) -> str:
    return f"{case['id']}-{case['kind']}-{case['expression'].strip()[:30]}-{case['timezone']}"


def at(text: str | None) -> Instant | None:
    return None if text is None else instant(datetime.fromisoformat(text))


def there(case: dict[str, Any], text: str | None) -> Instant | None:
    """An instant of a case; without an offset, on the clock of its zone."""
    if text is None:
        return None
    local = datetime.fromisoformat(text)
    return instant(local if local.tzinfo else local.replace(tzinfo=zone(case["timezone"])))


def schedule_of(case: dict[str, Any]) -> Schedule:
    return parse(case["kind"], case["expression"], case["timezone"], anchor=there(case, case["anchor"]))


def begin_of(case: dict[str, Any]) -> Instant:
    """After which instant a case asks; a rule without one is asked from its beginning on."""
    if case["after"] is not None:
        found = there(case, case["after"])
        assert found is not None
        return found
    anchor = there(case, case["anchor"])
    assert anchor is not None
    return Instant(anchor - 1)


def fires(schedule: Schedule, after: Instant, count: int) -> list[str | None]:
    found: list[str | None] = []
    moment: Instant | None = after
    while moment is not None and len(found) < count:
        moment = next_due(schedule, moment)
        if moment is not None:
            found.append(rfc3339(moment))
    return found


ACCEPTED = [case for case in CASES if case["valid"] == "yes"]
REFUSED = [case for case in CASES if case["valid"] == "no"]
NEVER = [case for case in CASES if case["valid"] == "refuse-or-never"]
EITHER = [case for case in CASES if case["valid"] == "either"]
POLICY = [case for case in CASES if case["valid"] == "policy"]


def test_the_cases_are_all_here_and_each_is_asked() -> None:
    assert (len(ACCEPTED), len(REFUSED), len(NEVER), len(EITHER), len(POLICY)) == (391, 85, 11, 5, 2)
    assert len({case["id"] for case in CASES}) == len(CASES) == 494


def test_only_what_may_be_answered_otherwise_is() -> None:
    for case in CASES:
        if case["id"] in OURS_AMONG_TOLERATED:
            assert case["weight"] in ("should", "either")
            assert case["tolerated"]


@pytest.mark.parametrize("case", ACCEPTED, ids=name_of)
def test_a_schedule_is_due_at_the_right_instants(case: dict[str, Any]) -> None:
    got = fires(schedule_of(case), begin_of(case), len(case["expect"]) or 1)
    allowed = case["tolerated"] if case["id"] in OURS_AMONG_TOLERATED else [case["expect"]]
    assert [at(each) for each in got] in [[at(each) for each in row] for row in allowed]


@pytest.mark.parametrize("case", ACCEPTED, ids=name_of)
def test_looking_back_finds_the_last_slot(case: dict[str, Any]) -> None:
    schedule = schedule_of(case)
    for moment in (begin_of(case), *map(at, case["expect"])):
        assert moment is not None
        last = previous_due(schedule, moment)
        if last is None:
            assert case["kind"] != "cron"
            assert next_due(schedule, Instant(-(10**17))) != moment
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
    began = process_time()
    with pytest.raises(BadSchedule) as refusal:
        schedule_of(case)
    assert process_time() - began < 1.0
    assert refusal.value.what
    assert refusal.value.why
    assert refusal.value.next


@pytest.mark.parametrize("case", EITHER, ids=name_of)
def test_a_zone_is_taken_as_it_is_called_or_refused_and_never_read_as_another(case: dict[str, Any]) -> None:
    known = case["timezone"] in ("EST", "MST7MDT")  # names of the release, with a fixed and a changing offset
    if not known:
        with pytest.raises(BadSchedule, match="zone"):
            schedule_of(case)
        return
    said = sentence(schedule_of(case))
    assert said.endswith(f", {case['timezone']}")


@pytest.mark.parametrize("case", POLICY, ids=name_of)
def test_an_interval_keeps_to_a_second_and_a_year(case: dict[str, Any]) -> None:
    if case["expression"] == "1s":
        assert len(fires(schedule_of(case), begin_of(case), 3)) == 3  # the floor is that of work which costs money
        return
    with pytest.raises(BadSchedule, match="365d"):
        schedule_of(case)


def test_the_cases_were_computed_with_the_release_in_use_or_hold_under_it() -> None:
    assert TZDATA >= "2026f"
