"""`explain` says of a slot that comes whether it will run, what will hold it and what it will be asked; and of a run
whose worker is gone that it does not run."""

from __future__ import annotations

import inspect
import json
import re
import socket
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from acting import a_worker, after, begin
from explained import NOW, daily, said

from nightporter import operations
from nightporter.clock import Instant
from nightporter.ledger.ahead import Standing, gates_ahead
from nightporter.ledger.why import Explanation
from nightporter.rules.gates import GATES
from nightporter.rules.schedule import parse
from nightporter.store import Store
from nightporter.words import Limits, Overlap, Policy, QuietHours, Reason, Threshold, TriggerSpec
from nightporter.words.bounds import Bounds, Days
from words import a_clock_trigger, a_definition, an_automation, fire, rows

AT = "2026-03-28T09:00"
"""Of the day after; 24 hours later by the clock of Berlin."""


def facts(found: Explanation, name: str) -> list[str]:
    return [fact.value for fact in found.facts if fact.name == name]


def test_a_slot_that_comes_says_when_and_what_it_will_be_asked(store: Store) -> None:
    an_automation(store, daily(), now=NOW)
    found = said(store, "brief", at=AT)
    assert found.text == (
        "brief will run at 2026-03-28 09:00 Europe/Berlin, in 24 h; when it comes, it is asked about hourly ceiling "
        "(120 an hour), queue full (100 waiting) and whether the run before it has ended.")
    assert found.slot == after(NOW, hours=24)
    assert facts(found, "will be asked") == ["hourly_ceiling: 120 an hour", "queue_full: 100 waiting",
                                             "overlap: the run before it has ended"]
    json.dumps(found.as_json())


def test_one_that_nothing_asks_simply_runs(store: Store) -> None:
    limits = Limits(per_hour=None, queued=None)
    an_automation(store, a_definition(limits=limits, triggers=[a_clock_trigger(overlap=Overlap.PARALLEL)]), now=NOW)
    assert said(store, "brief", at=AT).text == "brief will run at 2026-03-28 09:00 UTC, in 25 h."


@pytest.mark.parametrize(("of", "reason", "text"), [
    ({"quiet_hours": QuietHours(("08:00-10:00",), "UTC")}, "quiet_hours", "quiet hours until 2026-03-28 10:00 UTC"),
    ({"expires": after(NOW, hours=2)}, "expired", "expired at 2026-03-27 10:00 UTC"),
])
def test_what_will_surely_hold_it_is_said_first(store: Store, of: dict[str, Any], reason: str, text: str) -> None:
    an_automation(store, a_definition(triggers=[a_clock_trigger()], **of), now=NOW)
    found = said(store, "brief", at=AT)
    assert found.text.startswith(
        f"brief has a slot at 2026-03-28 09:00 UTC, in 25 h, and will not run as things stand: {text}.")
    assert (found.reason, facts(found, "held by")) == (reason, [f"{reason}: {text}"])


def test_a_pause_that_ends_before_it_does_not_hold_it_and_one_that_does_not_end_does(store: Store) -> None:
    automation = an_automation(store, a_definition(triggers=[a_clock_trigger()]), now=NOW)
    store.write(lambda tx: operations.pause(tx, automation, by="ana", reason="", until=after(NOW, hours=2), now=NOW))
    assert said(store, "brief", at=AT).text.startswith("brief will run")
    assert "will not run as things stand: paused by ana" in said(store, "brief", at="2026-03-27T09:00").text
    store.write(lambda tx: operations.stop(tx, by="ana", reason="", now=NOW))
    assert said(store, "brief", at=AT).reason == "stopped"


def test_a_time_that_is_left_out_says_so_and_when_it_runs_next(store: Store) -> None:
    bounds = Bounds(days=(Days("2026-03-28", "2026-03-28", "the holiday"),))
    spec = TriggerSpec("clock", "clock", parse("cron", "0 9 * * *", "UTC", bounds=bounds))
    an_automation(store, a_definition(triggers=[spec]), now=NOW)
    found = said(store, "brief", at=AT)
    assert "and will not run: " in found.text
    assert "the holiday" in found.text
    assert found.text.endswith("The next one at which it runs is 2026-03-29 09:00 UTC.")


def test_what_is_no_slot_names_the_slots_around_it(store: Store) -> None:
    an_automation(store, a_definition(triggers=[a_clock_trigger()]), now=NOW)
    found = said(store, "brief", at="2026-03-28T11:00")
    assert found.text.startswith("brief was not due at 2026-03-28 11:00 UTC")
    assert "2026-03-29 09:00 UTC" in found.text
    assert found.slot is None


def test_a_time_of_day_that_has_not_come_since_it_exists_is_the_next_one(store: Store) -> None:
    an_automation(store, a_definition(triggers=[a_clock_trigger()]), now=NOW)
    assert said(store, "brief", at="09:00").text.startswith("brief will run at 2026-03-27 09:00 UTC, in 1 h")
    assert "did not exist at 2026-03-26 09:00" in said(store, "brief", at="2026-03-26T09:00").text


def test_while_everything_is_stopped_the_next_slot_is_said_to_become_no_run(store: Store) -> None:
    an_automation(store, a_definition(triggers=[a_clock_trigger()]), now=NOW)
    assert "Next: 2026-03-27 09:00 UTC" in said(store, "brief").text
    store.write(lambda tx: operations.stop(tx, by="ana", reason="", now=NOW))
    assert "Its slot of 2026-03-27 09:00 UTC, in 1 h, is answered without a run while the stop lasts." in said(
        store, "brief").text


def test_a_run_whose_worker_was_declared_dead_does_not_run(store: Store) -> None:
    run = str(fire(store, an_automation(store, now=NOW), now=NOW).run_id)
    worker = a_worker(store, NOW)
    begin(store, NOW, worker=worker)
    assert "It has been running for 1 min." in said(store, run, after(NOW, minutes=1)).text
    store.write(lambda tx: tx.end_worker(worker, "dead", now=after(NOW, minutes=1)))
    text = said(store, run, after(NOW, minutes=2)).text
    assert "It was running when its worker was declared dead" in text
    assert "has been running" not in text


def test_a_run_whose_worker_died_on_this_machine_does_not_run_though_nobody_has_noticed(
    store: Store, tmp_path: Path
) -> None:
    (tmp_path / "free.lock").write_text("")
    store.write(lambda tx: tx.join("wrk_x", role="desk", host=socket.gethostname(), pid=1,
                                   lock_path=str(tmp_path / "free.lock"), now=NOW))
    run = str(fire(store, an_automation(store, now=NOW), now=NOW).run_id)
    begin(store, NOW, worker="wrk_x")
    assert "It was running when its worker died" in said(store, run, after(NOW, minutes=1)).text


def test_a_run_and_an_automation_have_their_facts_below(store: Store) -> None:
    an_automation(store, a_definition(triggers=[a_clock_trigger()], cooldown=timedelta(minutes=5)), now=NOW)
    assert facts(said(store, "brief"), "next") == ["2026-03-27 09:00 UTC"]
    automation = an_automation(store, a_definition("other"), now=NOW)
    run = str(fire(store, automation, now=NOW).run_id)
    begin(store, NOW)
    found = said(store, run, after(NOW, minutes=1))
    assert (facts(found, "run"), facts(found, "verdict"), facts(found, "attempts")) == (
        [f"{run}, running"], ["admitted"], ["1 of 3"])


NOT_AHEAD = {Reason.DELETED, Reason.DISABLED, Reason.UNREADABLE, Reason.PAYLOAD_TOO_LARGE}
"""What is off or cannot be read has no slot to come, and the clock brings no payload."""


def test_every_gate_is_told_of_beforehand_or_is_known_to_have_nothing_to_tell() -> None:
    everything = Policy(
        overlap=Overlap.SKIP, per_hour=1, queued=1, cooldown=1, expires=Instant(2), priority=50, attempts=3,
        runner="echo", quiet_hours=QuietHours(("00:00-24:00",)), threshold=Threshold(2), max_runs=1,
        hold_on_incident=True)
    told = {
        gate.gate for state in ("paused", "config_error") for runs in (0, 1) for gate in gates_ahead(
            everything, Standing(state, stopped=True, runs=runs), Instant(3), "UTC")
    }
    asked = {Reason[name] for gate in GATES for name in re.findall(r"Reason\.([A-Z_]+)", inspect.getsource(gate))}
    assert told | NOT_AHEAD == asked
    assert not told & NOT_AHEAD


def test_runs_that_are_used_by_another_schedule_of_the_automation_are_used(store: Store) -> None:
    automation = an_automation(store, a_definition(limits=Limits(max_runs=2), triggers=[
        a_clock_trigger("0 9 * * *"), a_clock_trigger("30 9 * * *", name="other")]), now=NOW)
    rows(store, "UPDATE automation SET counted_runs = 2 WHERE id = ?", automation)
    assert "all of its 2 runs are used" in said(store, "brief", at="2026-03-28T09:00").text
