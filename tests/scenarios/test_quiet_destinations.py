"""Results wait for the end of their destination's quiet hours, and nothing is dropped."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from builders import SAID, Night
from scenes import HOOK, a_night, at

from nightporter import operations
from nightporter.ledger import explain
from nightporter.store import Store
from nightporter.words import (
    Destination,
    Ended,
    QuietHours,
    Receipt,
)

NIGHT = QuietHours(("22:00-07:00",))


def said(night: Night, subject: str) -> str:
    return night.store.read(lambda tx: explain(tx, subject, night.now)).text


def sent(night: Night, *columns: str) -> list[tuple[Any, ...]]:
    return night.sql(f"SELECT {', '.join(columns)} FROM delivery ORDER BY created_at, id")


@pytest.mark.parametrize(("failures", "ended", "waits"), [
    (False, SAID, True), (False, Ended.timed_out("too long"), False), (True, Ended.timed_out("too long"), True),
])
def test_a_result_waits_for_the_end_of_quiet_hours_and_a_failure_only_where_that_is_asked_for(
    store: Store, failures: bool, ended: Ended, waits: bool
) -> None:
    night = a_night(store, "23:00")
    automation = night.define("brief", deliver=[replace(HOOK, quiet_hours=replace(NIGHT, failures=failures))])
    run = night.run(automation, ended)
    [(state, reason, due)] = sent(night, "state", "reason", "next_try_at")
    assert (state, reason, due) == (
        ("pending", "held_quiet", at("31:00")) if waits else ("pending", None, at("23:00")))
    assert ("waits until 2026-06-11 07:00" in said(night, run)) is waits
    night.send(Receipt.DELIVERED)
    assert sent(night, "state") == [("pending" if waits else "delivered",)]
    night.pass_time(hours=8)
    night.send(Receipt.DELIVERED)
    assert sent(night, "state", "reason", "tries") == [("delivered", None, 1)]
    assert night.found() == {}


def test_without_quiet_hours_it_goes_at_once(store: Store) -> None:
    night = a_night(store, "23:00")
    night.run(night.define("brief", deliver=[HOOK]))
    night.send(Receipt.DELIVERED)
    assert sent(night, "state") == [("delivered",)]


def test_a_further_try_waits_for_the_end_of_quiet_hours_too_unless_a_person_asks_for_it(store: Store) -> None:
    night = a_night(store, "21:59:50")
    automation = night.define("brief", deliver=[replace(HOOK, quiet_hours=NIGHT)])
    night.run(automation)
    night.send(Receipt.TRANSIENT)
    night.pass_time(minutes=5)
    assert night.take() == []
    assert sent(night, "state", "reason", "next_try_at", "tries") == [("pending", "held_quiet", at("31:00"), 1)]
    [(delivery,)] = sent(night, "id")
    night.store.write(lambda tx: operations.resend(tx, delivery, now=night.now))
    night.send(Receipt.DELIVERED)
    assert sent(night, "state") == [("delivered",)]
    assert night.found() == {}


def test_results_of_quiet_hours_are_one_message_of_the_inbox(store: Store) -> None:
    night = a_night(store, "21:00")
    desk = Destination("announce", "announce", quiet_hours=NIGHT)
    automation = night.define("brief", deliver=[desk])
    runs = [night.run(automation)]
    night.pass_time(hours=2)
    for n in range(3):
        runs.append(night.run(automation, Ended.ok(f"thing {n}")))
        night.pass_time(hours=1)
    night.pass_time(hours=8)
    runs.append(night.run(automation, Ended.ok("good morning")))
    assert night.sql("SELECT title, text FROM inbox ORDER BY created_at") == [
        ("brief: report", "three things to know"),
        ("brief: results of quiet hours", "report: thing 0\nreport: thing 1\nreport: thing 2\n"),
        ("brief: report", "good morning"),
    ]
    assert sent(night, "state") == [("delivered",)] * 5
    assert len({evidence for (evidence,) in sent(night, "evidence")}) == 3
    assert night.found() == {}


def test_more_results_of_quiet_hours_than_a_message_has_room_for_go_on_in_the_next(store: Store) -> None:
    night = a_night(store, "23:00")
    automation = night.define("brief", deliver=[Destination("announce", "announce", quiet_hours=NIGHT)])
    words = [f"thing {n}{'.' * (1_900 if n % 2 else 2_500)}" for n in range(23)]
    runs = [night.run(automation, Ended.ok(each)) for each in words]
    said = dict(night.sql("SELECT id, text FROM inbox"))
    assert len(said) == 3
    assert max(map(len, said.values())) <= 20_000
    for run, evidence in night.sql("SELECT run_id, evidence FROM delivery"):
        n = runs.index(run)
        assert words[n][:2_000] in said[evidence], "each is in the message that its delivery names"
        assert (f"nightporter logs {run} has the whole" in said[evidence]) is (len(words[n]) > 2_000)
    assert night.found() == {}
