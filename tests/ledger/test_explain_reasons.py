"""Each reason is explained in words of its own."""

from __future__ import annotations

import re

import pytest
from acting import after
from explained import NOW, said
from produced import PRODUCED

from nightporter.ledger import reads
from nightporter.store import Store
from nightporter.words import Reason
from words import an_automation, fire

EXPLAINED: dict[Reason, str] = {
    Reason.DISABLED: r"did not run .* switched off in its definition",
    Reason.PAUSED: r"did not run .* paused \(on holiday\)\. `nightporter enable brief`",
    Reason.STOPPED: r"did not run .* whole desk is stopped; lift it",
    Reason.EXPIRED: r"did not run .* expiry date \(it expired at 2026-03-27T09:00:00Z\)",
    Reason.DELETED: r"did not run .* was removed",
    Reason.EXCLUDED: r"did not run for its slot of .* hour out \(27 March 2026 \(Founding Day\)\)",
    Reason.QUEUE_FULL: r"did not run .* already waiting \(the limit is 1 waiting\)",
    Reason.OVERLAP: r"did not run .* had not ended, and the overlap policy is to skip \(run_\w+ had",
    Reason.COOLDOWN: r"did not run .* cooldown ago \(.* free again at 2026-03-27T08:05:00Z\)",
    Reason.HOURLY_CEILING: r"did not run when a program called it .* \(the ceiling is 1 an hour; free again at",
    Reason.CONCURRENCY_CEILING: r"has been waiting for 9 s: as many runs .* were running \(1\)",
    Reason.QUIET_HOURS: r"did not run .* does not start by itself \(until 2026-03-27T09:00:00Z\)\. `nightporter run",
    Reason.THRESHOLD: r"did not run .* fewer arrivals than make a run had come \(2 of 3\)",
    Reason.MAX_RUNS: r"did not run .* as many runs as they may \(the limit is 1\)\. `nightporter enable",
    Reason.INCIDENT_HOLD: r"did not run .* has an open incident, and starts nothing .* \(inc_1\)",
    Reason.MISSED_POLICY: (
        r"did not run for 6 slots from 2026-03-27 08:10 UTC to .* desk was back at 2026-03-27 09:00 UTC"
    ),
    Reason.STALE: r"never started\. It was not begun any more: it waited to begin .*`nightporter run brief`",
    Reason.SUPPRESSED_DUPLICATE: r"did not run again .* it became run_\w+ \(the id is order-17",
    Reason.PAYLOAD_TOO_LARGE: r"refused .* larger than the desk accepts \(262145 bytes",
    Reason.UNREADABLE: r"trigger clock fires no more: .* cannot be read \(no zone is named Mars\)",
    Reason.NO_OP: r"ran because .* It ended after 3 s: it ran and had nothing to say",
    Reason.PRECONDITION_UNMET: r"It ended after 3 s: its look found nothing to do, so nothing wa",
    Reason.CHECK_FAILED: r"failed after 3 s: its look could not say .* \(exit code 3\)\. .*--skip-look",
    Reason.NONZERO_EXIT: r"failed after 3 s: .* \(exit code 3\)\. `nightporter logs .* replay run_",
    Reason.EXCEPTION: r"failed after 3 s: the code raised an exception \(ValueError: no such page\)",
    Reason.TIMEOUT: r"timed out after 3 s: .*; that is not tried again",
    Reason.CONFIGURATION: r"failed .* cannot run as it is configured \(no runner is called 'abacus'",
    Reason.PERMISSION_DENIED: r"failed .* not permitted \(10\.0\.0\.1 is a private address\)",
    Reason.PROVIDER_UNAVAILABLE: r"It is held until 2026-03-27 08:1[0-2]:.* unavailable",
    Reason.WORKER_LOST: r"may have acted and is not repeated unasked: the worker that ran it died",
    Reason.CANCELLED_BY: r"never started\. It was cancelled: ana cancelled it",
    Reason.SUPERSEDED: r"It was cancelled: a newer run took its place \(run_\w+\)",
    Reason.DISMISSED: r"It failed.*: a person looked at it and chose not to run it again",
    Reason.SHUTDOWN: r"not repeated unasked: the desk was shut down before it could end",
    Reason.NOT_STARTED: r"It is queued again .* could not be started; .* \(the store is locked\)",
    Reason.MAY_HAVE_ACTED: r"not repeated unasked: an earlier attempt may have acted .* \(effect 'mail'\)",
    Reason.REJECTED_BY_RECEIVER: r"not delivered to out \(file\) after one try: .* refused it for good \(404.* work is",
    Reason.UNREACHABLE: r"delivery to out \(file\) has failed one try so far: .* \(connection refused\)",
    Reason.GAVE_UP: r"not delivered to out \(file\) after 50 tries: every allowed try was used up \(503",
    Reason.HELD_QUIET: r"delivery to out \(file\) waits until 2026-03-27 09:00 UTC: .* quiet hours",
    Reason.UNVERIFIED: r"To out \(file\): it was handed over, but nothing acknowledged it \(250 queued\)",
}


@pytest.mark.parametrize("reason", Reason)
def test_each_reason_is_explained(store: Store, reason: Reason) -> None:
    text = PRODUCED[reason](store).text
    assert re.search(EXPLAINED[reason], text), text
    assert "\n" not in text
    assert "  " not in text
    assert text.endswith((".", "`"))


_OF_THE_MOMENT = (Reason.CONCURRENCY_CEILING, Reason.UNREADABLE)
"""Of a run that waits, and of a trigger that fires no more: no line has them."""


@pytest.mark.parametrize("reason", [each for each in Reason if each not in _OF_THE_MOMENT])
def test_each_reason_stands_in_a_list_with_its_sentence(store: Store, reason: Reason) -> None:
    PRODUCED[reason](store)
    lines = store.read(lambda tx: [
        line.as_json()
        for page in (reads.firings(tx, limit=100), reads.runs(tx, limit=100), reads.deliveries(tx, limit=100))
        for line in page.items
    ])
    told = [line for line in lines if reason in (line["reason"], line.get("cancel_reason"))]
    assert {line["reason_sentence"] for line in told if line["reason"] == reason} == {reason.sentence}


def test_an_admitted_firing_is_explained_by_its_run(store: Store) -> None:
    automation = an_automation(store, now=NOW)
    answer = fire(store, automation, now=NOW)
    found = said(store, answer.firing_id, after(NOW, seconds=2))
    assert (found.kind, found.id) == ("run", answer.run_id)
    assert "has been waiting for 2 s: it waits" not in found.text
    assert "no desk is running to take it" in found.text
