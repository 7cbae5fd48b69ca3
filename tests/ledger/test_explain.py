"""`explain` of an automation and of an instant says what acts, what comes, and what did not run."""

from __future__ import annotations

import re

import pytest
from acting import a_worker, after, begin, finish, setting
from explained import NOW, daily, said, slot_run

from nightporter import operations
from nightporter.admission import admit
from nightporter.errors import NotFound
from nightporter.sources.clock import settle
from nightporter.sources.plan import read_and_plan
from nightporter.store import Store
from nightporter.words import (
    Ended,
    Firing,
    Verdict,
)
from words import a_clock_trigger, a_definition, an_automation, fire, trigger_of


def test_an_automation_says_what_was_last_and_what_is_next(store: Store) -> None:
    automation = an_automation(store, daily(), now=NOW)
    a_worker(store, NOW)
    text = said(store, "brief").text
    assert text == "Nothing has fired it yet. Next: 2026-03-28 09:00 Europe/Berlin, in 24 h."
    fire(store, automation, now=NOW)
    assert said(store, automation).text.startswith("Last: brief was admitted because a program called it at 2026-03-27")


def test_an_automation_whose_slot_has_come_says_that_no_desk_runs(store: Store) -> None:
    an_automation(store, daily(), now=NOW)
    late = after(NOW, days=1, seconds=5)
    assert "no desk is running to answer it: `nightporter up`" in said(store, "brief", late).text
    a_worker(store, late)
    assert "has come and is about to be answered" in said(store, "brief", late).text


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        ("proposed", "was proposed by test and does nothing until `nightporter enable brief`"),
        ("paused", "has been paused by test since 2026-03-27 08:00 UTC"),
        ("auto_paused", "was paused by the desk at 2026-03-27 08:00 UTC"),
        ("config_error", "cannot run: its definition has an error"),
        ("expired", "brief expired at 2026-03-27 08:00 UTC"),
        ("completed", "brief is completed"),
    ],
)
def test_an_automation_that_does_not_act_says_why(store: Store, state: str, expected: str) -> None:
    an_automation(store, now=NOW, state=state)
    text = said(store, "brief").text
    assert expected in text
    assert "Next" not in text


def test_a_broken_definition_names_its_place(store: Store) -> None:
    from nightporter.errors import BadDefinition

    error = BadDefinition("unknown key `whne`: did you mean `when`?", next="mend it", path="brief.md", line=3, column=1)
    store.write(lambda tx: operations.break_file(
        tx, error, path="brief.md", name="brief", workspace="default", default_timezone="UTC", now=NOW
    ))
    assert "its definition has an error at brief.md:3:1: unknown key `whne`" in said(store, "brief").text


def test_an_automation_without_a_schedule_says_how_it_runs(store: Store) -> None:
    an_automation(store, now=NOW)
    assert "It has no schedule: it runs when a person asks or a program calls it." in said(store, "brief").text


def test_a_stopped_desk_is_named_first(store: Store) -> None:
    an_automation(store, daily(), now=NOW)
    setting(store, "stopped", "{}")
    assert said(store, "brief").text.startswith("The whole desk is stopped; lift it")


def test_at_a_time_of_day_means_the_last_one_that_has_come(store: Store) -> None:
    slot = after(NOW, days=1)
    _, run = slot_run(store, daily(), answered=after(slot, seconds=1))
    found = said(store, "brief", after(slot, hours=3), at="09:00")
    assert found.run_id == run
    assert said(store, "brief", after(slot, hours=3), at="2026-03-28T09:00").run_id == run


@pytest.mark.parametrize(
    ("at", "expected"),
    [
        ("2026-03-26T09:00", "did not exist at 2026-03-26 09:00 Europe/Berlin: it was created at 2026-03-27 09:00"),
        ("2026-03-28T07:30", "was not due at 2026-03-28 07:30 Europe/Berlin: its schedule is .* the slot before is "
                             "2026-03-27 09:00 Europe/Berlin and the one after it 2026-03-28 09:00"),
        ("2026-03-29T09:00", "brief will run at 2026-03-29 09:00 Europe/Berlin, in 2[0-9] h"),
        ("2026-03-28T09:00", "was due at 2026-03-28 09:00 Europe/Berlin and that is not answered yet. Its slot of"),
    ],
)
def test_an_instant_without_a_line_is_explained(store: Store, at: str, expected: str) -> None:
    an_automation(store, daily(), now=NOW)
    text = said(store, "brief", after(NOW, days=1, seconds=30), at=at).text
    assert re.search(expected, text), text


def test_an_instant_within_an_open_pause_is_explained(store: Store) -> None:
    automation = an_automation(store, daily(), now=NOW)
    store.write(lambda tx: operations.pause(tx, automation, by="ana", reason="", now=NOW))
    text = said(store, "brief", after(NOW, days=1, hours=1), at="09:00").text
    assert "did not run at 2026-03-28 09:00 Europe/Berlin: from 2026-03-27 09:00 Europe/Berlin it was paused." in text


def test_slots_of_a_pause_are_explained_by_their_line(store: Store) -> None:
    automation = an_automation(store, daily(), now=NOW)
    store.write(lambda tx: operations.pause(tx, automation, by="ana", reason="", now=NOW))
    later = after(NOW, days=3)
    store.write(lambda tx: operations.enable(tx, automation, by="ana", now=later))
    text = said(store, "brief", later, at="2026-03-29T09:00").text
    assert "did not run for 3 slots from 2026-03-28 09:00 Europe/Berlin" in text
    assert "the automation is paused" in text


def test_a_one_shot_that_was_missed_is_explained(store: Store) -> None:
    once = a_clock_trigger("2026-03-27T09:00", kind="at")
    automation = an_automation(store, a_definition(triggers=[once]), now=NOW)
    late = after(NOW, hours=3)
    armed = store.read(lambda tx: tx.due(late, 5))[0]
    settled = read_and_plan(armed, late)
    store.write(lambda tx: admit(tx, settled.firings, now=late))
    text = said(store, automation, late, at="2026-03-27T09:00").text
    assert text.startswith("brief missed its moment for its slot of 2026-03-27 09:00 UTC: its moment passed while")


def test_a_merged_line_is_explained(store: Store) -> None:
    automation = an_automation(store, now=NOW)
    first = fire(store, automation, now=NOW)
    line = ("fir_00000000000merged", "default", automation, trigger_of(automation), "call", "x", None, None,
            Verdict.MERGED, None, "", first.run_id, 1, None, None, None, None, "", "", None, 0)
    store.write(lambda tx: tx.write_firings([line], [], now=NOW))
    assert f"it was folded into {first.run_id}, which was waiting" in said(store, "fir_00000000000merged").text


def test_a_run_past_its_retention_is_still_said_to_have_run(store: Store) -> None:
    automation = an_automation(store, now=NOW)
    answer = store.write(lambda tx: admit(tx, [Firing(trigger_of(automation), "e1")], now=NOW))[0]
    finish(store, begin(store, NOW)[0], Ended.ok(""), NOW)
    much_later = after(NOW, days=8)
    store.write(lambda tx: tx.prune_runs(
        [answer.run_id or ""], before=much_later, dead_before=much_later))
    assert f"as {answer.run_id}, which is past its retention" in said(store, answer.firing_id, much_later).text


def test_what_is_not_there_is_an_error_that_says_what_is_near(store: Store) -> None:
    an_automation(store, now=NOW)
    with pytest.raises(NotFound) as caught:
        said(store, "breif")
    assert caught.value.next == "did you mean brief?"


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("sleep", "the machine slept, or the desk stood still, from 2026-03-27 08:55 UTC to 2026-03-27 12:00 UTC"),
        ("step_forward", "the clock was set forward from 2026-03-27 08:55 UTC to 2026-03-27 12:00 UTC"),
        ("restored", "the store was put back to 2026-03-27 08:55 UTC"),
    ],
)
def test_what_was_missed_in_a_gap_names_it(store: Store, kind: str, expected: str) -> None:
    hourly = an_automation(store, a_definition(triggers=[a_clock_trigger("0 * * * *")]), now=NOW)
    noon = after(NOW, hours=4, minutes=5)
    store.write(lambda tx: tx.write_gap(kind, after(NOW, minutes=55), after(NOW, hours=4), worker="wrk_1"))
    store.write(lambda tx: settle(tx, hourly, now=noon))
    assert expected in said(store, hourly, noon, at=after(NOW, hours=2)).text
