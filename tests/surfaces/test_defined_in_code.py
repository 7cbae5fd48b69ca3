"""An automation that code defines is what a file with the same words defines."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nightporter.clock import ManualClock
from nightporter.definitions import read
from nightporter.errors import BadDefinition
from nightporter.surfaces.api import Porter, When, at, cron, every
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


def _triggers(definition: Definition) -> dict[str, TriggerSpec]:
    return {trigger.name: trigger for trigger in definition.triggers}
