"""An automation that code defines is what a file with the same words defines."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from nightporter.clock import ManualClock
from nightporter.definitions import grammar, read
from nightporter.errors import BadDefinition
from nightporter.surfaces.api import Options, Porter, When, at, cron, every, rrule
from nightporter.words import Definition, TriggerSpec

MOMENT = "2027-11-03T09:00"
WHENS = {"cron": (cron, '"0 9 * * *"', "0 9 * * *"), "every": (every, "15m", "15m"), "at": (at, MOMENT, MOMENT)}


@pytest.mark.parametrize("own", [None, "queue", "parallel"])
@pytest.mark.parametrize("whole", [None, "skip", "queue", "parallel", "replace"])
@pytest.mark.parametrize("kind", WHENS)
def test_what_is_said_of_the_whole_holds_for_schedules_that_say_nothing_themselves(
    kind: str, whole: str | None, own: str | None, tmp_path: Path, clock: ManualClock
) -> None:
    make, written, expression = WHENS[kind]
    when: When = make(expression, overlap=own)
    porter = Porter(home=tmp_path, store=str(tmp_path / "ledger.db"), clock=clock)
    porter.define("job", {"noop": {}}, when, **({"overlap": whole} if whole else {}))
    [coded] = porter._definitions
    lines = ["name: job", "target: noop", "triggers:", f"  - {kind}: {written}",
             *([f"    overlap: {own}"] if own else []), *([f"overlap: {whole}"] if whole else [])]
    filed = read("\n".join(lines), format="yaml", default_timezone=porter.config.timezone, now=clock.now())
    assert _triggers(coded) == _triggers(filed)


@pytest.mark.parametrize("missed", ["review", {"policy": "run_all", "within": "1d"}])
@pytest.mark.parametrize("kind", WHENS)
def test_what_becomes_of_missed_times_is_said_as_in_a_file(
    kind: str, missed: object, tmp_path: Path, clock: ManualClock
) -> None:
    make, written, expression = WHENS[kind]
    porter = Porter(home=tmp_path, store=str(tmp_path / "ledger.db"), clock=clock)
    porter.define("job", {"noop": {}}, make(expression), missed=missed)
    [coded] = porter._definitions
    filed = read(f"name: job\ntarget: noop\nmissed: {json.dumps(missed)}\ntriggers:\n  - {kind}: {written}",
                 format="yaml", default_timezone=porter.config.timezone, now=clock.now())
    assert _triggers(coded) == _triggers(filed)
    with pytest.raises(BadDefinition):
        porter.define("other", {"noop": {}}, make(expression), missed="sometimes")


SAID: list[tuple[When, str]] = [
    (cron("0 9 * * *", missed="review"), 'cron: "0 9 * * *", missed: review'),
    (every("15m", missed={"policy": "run_all", "within": timedelta(hours=6)}),
     "every: 15m, missed: {policy: run_all, within: 6h}"),
    (at(MOMENT, missed="run_once"), f"at: {MOMENT}, missed: run_once"),
    (rrule("FREQ=MONTHLY;BYDAY=-1FR", anchor="2026-11-27T17:00"),
     'rrule: "FREQ=MONTHLY;BYDAY=-1FR", anchor: "2026-11-27T17:00"'),
    (every("2h", anchor="2026-11-27T17:10", timezone="Asia/Kathmandu", name="evening", enabled=False),
     'every: 2h, anchor: "2026-11-27T17:10", timezone: Asia/Kathmandu, name: evening, enabled: false'),
    (cron("0 9 * * *", start="2027-01-01", end="2027-06-01", season="march to october", exclude=["2027-02-01"]),
     'cron: "0 9 * * *", start: "2027-01-01", end: "2027-06-01", season: "march to october", exclude: ["2027-02-01"]'),
    (cron("0 9 * * *", stagger="5m", threshold=3, quiet_hours="22:00-07:00"),
     'cron: "0 9 * * *", stagger: 5m, threshold: 3, quiet_hours: "22:00-07:00"'),
    (rrule("FREQ=DAILY", stagger="2m"), 'rrule: "FREQ=DAILY", stagger: 2m'),
    (cron("0 9 * * *", exact=True, if_={"command": "ls"}), 'cron: "0 9 * * *", exact: true, if: {command: ls}'),
]


@pytest.mark.parametrize(("when", "written"), SAID, ids=[written[:50] for _, written in SAID])
def test_what_is_said_of_one_schedule_is_said_as_in_a_file(
    when: When, written: str, tmp_path: Path, clock: ManualClock
) -> None:
    porter = Porter(home=tmp_path, store=str(tmp_path / "ledger.db"), clock=clock)
    porter.define("job", {"noop": {}}, when)
    [coded] = porter._definitions
    filed = read(f"name: job\ntarget: noop\ntriggers: [{{{written}}}]", format="yaml",
                 default_timezone=porter.config.timezone, now=clock.now())
    assert _triggers(coded) == _triggers(filed)


def test_a_file_has_no_word_for_a_schedule_that_code_has_not() -> None:
    spelt = {key.rstrip("_") for key in Options.__annotations__}
    keys = {key for kind in grammar.SCHEDULES for key in grammar.TRIGGER_KEYS[kind]}
    assert spelt == keys - {"expression"}


def test_several_schedules_of_code_are_numbered_and_stand_beside_those_of_its_list(
    tmp_path: Path, clock: ManualClock
) -> None:
    porter = Porter(home=tmp_path, store=str(tmp_path / "ledger.db"), clock=clock)
    porter.define("job", {"noop": {}}, cron("0 9 * * *"), every("1h"), every("30m", name="often"),
                  triggers=[{"call": {"overlap": "queue"}}], season="march to october")
    [coded] = porter._definitions
    assert [trigger.name for trigger in coded.triggers] == ["clock", "clock-2", "often", "call"]
    assert all(t.schedule.bounds is not None for t in coded.triggers if t.schedule is not None)


@pytest.mark.parametrize(
    ("whens", "policy", "what"),
    [
        ([cron("banana")], {}, "banana"),
        ([cron("0 9 * * *", missed="sometimes")], {}, "sometimes"),
        ([every("15m", missed="run_all", overlap="skip")], {}, "run_all"),
        ([every("15m", name="manual")], {}, "manual"),
        ([every("15m", zone="UTC")], {}, "zone"),  # type: ignore[call-arg]
        ([cron("0 9 * * *")], {"when": "every 1h"}, "when"),
        ([], {"missed": "review"}, "missed"),
    ],
)
def test_what_cannot_be_used_is_refused_in_the_name_of_its_automation(
    whens: list[When], policy: dict[str, Any], what: str, tmp_path: Path, clock: ManualClock
) -> None:
    porter = Porter(home=tmp_path, store=str(tmp_path / "ledger.db"), clock=clock)
    with pytest.raises(BadDefinition, match=what) as refused:
        porter.define("job", {"noop": {}}, *whens, **policy)
    assert str(refused.value).startswith("job: ")
    assert (refused.value.line, refused.value.column) == (0, 0)
    assert porter._definitions == []


def _triggers(definition: Definition) -> dict[str, TriggerSpec]:
    return {trigger.name: trigger for trigger in definition.triggers}
