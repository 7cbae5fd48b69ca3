"""Taking: a run that is admitted beside a worker with room begins without having been queued."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import timedelta
from typing import Any

import pytest
from night import RUNNERS, Night

from nightporter import operations
from nightporter.admission import admit
from nightporter.clock import Instant, ManualClock
from nightporter.dispatch import Claimed
from nightporter.dispatch.claim import take
from nightporter.store import Store, Tx
from nightporter.store.tx_admission import Arrival
from nightporter.store.tx_sweep import STOPPED
from nightporter.words import Firing, Limits, Overlap, RunId, TriggerSpec
from words import a_firing, an_automation, fire, rows, run_row, states, steps

FREE = Limits(per_hour=None, queued=None, concurrent=None)


@pytest.fixture
def night(store: Store, clock: ManualClock) -> Night:
    return Night(store, clock)


def arrive(night: Night, *firings: Firing, room: int = 100) -> list[Claimed]:
    """Admit firings beside a worker that takes what it may; what it took."""
    taken: list[Claimed] = []

    def taker(tx: Tx, arrivals: Sequence[Arrival], now: Instant) -> Collection[str]:
        found = take(
            tx, arrivals, worker=night.worker, room=room, now=now, runners=RUNNERS, definitions=night.known
        )
        taken.extend(found)
        return {one.work.run_id for one in found}

    def work(tx: Tx) -> None:
        tx.takers = {"queued": taker}
        admit(tx, firings, now=night.clock.now())

    night.store.write(work)
    return taken


def everything(store: Store, run: str) -> list[tuple[Any, ...]]:
    """All that the store says of a run, without what makes two runs two."""
    [row] = rows(store, f"SELECT * FROM run WHERE id = '{run}'")
    transitions = rows(store, f"SELECT * FROM transition WHERE run_id = '{run}' ORDER BY seq")
    effects = rows(store, f"SELECT * FROM effect WHERE run_id = '{run}'")
    line = row[4]
    return [tuple("this" if value in (run, line) else value for value in found)
            for found in [row, *transitions, *effects]]


@pytest.mark.parametrize("kind", ["echo", "python", "script"])
@pytest.mark.parametrize("late", [0, 301])
def test_taking_a_run_leaves_what_queueing_and_claiming_it_would(night: Night, kind: str, late: int) -> None:
    slot = Instant(night.clock.now() - late * 1_000_000)
    brief = an_automation(night.store, now=night.clock.now(), runner=kind)
    of: dict[str, Any] = {"text": "hi", "payload": '{"a": 1}', "scheduled_for": slot}
    queued = fire(night.store, brief, "queued", now=night.clock.now(), **of).run_id
    [claimed] = night.claim()
    [taken] = arrive(night, a_firing(brief, "taken", **of))
    assert queued is not None
    assert steps(night.store, taken.work.run_id) == ["queued", "running"]
    assert everything(night.store, taken.work.run_id) == everything(night.store, queued)
    assert (taken.attempts, taken.seq, taken.error) == (claimed.attempts, claimed.seq, claimed.error)
    for name in ("token", "attempt", "config", "text", "payload", "scheduled_for", "started_at", "timeout"):
        assert getattr(taken.work, name) == getattr(claimed.work, name)


def test_a_batch_that_is_taken_begins_whole(night: Night) -> None:
    brief = an_automation(night.store, now=night.clock.now(), limits=FREE)
    taken = arrive(night, *[a_firing(brief, str(n)) for n in range(60)], room=60)
    assert len(taken) == 60
    assert states(night.store) == ["running"] * 60


def test_a_batch_that_finds_no_room_for_all_is_queued_whole(night: Night) -> None:
    brief = an_automation(night.store, now=night.clock.now(), limits=FREE)
    assert arrive(night, *[a_firing(brief, str(n)) for n in range(3)], room=2) == []
    assert states(night.store) == ["queued"] * 3


def test_nothing_that_comes_passes_a_run_that_waits(night: Night) -> None:
    brief = an_automation(night.store, now=night.clock.now(), limits=FREE)
    fire(night.store, brief, "first", now=night.clock.now())
    assert arrive(night, a_firing(brief, "second")) == []
    assert len(night.claim()) == 2


def test_a_run_that_nobody_here_can_execute_stands_in_nobodys_way(night: Night) -> None:
    other = an_automation(night.store, now=night.clock.now(), name="other", runner="unheard")
    brief = an_automation(night.store, now=night.clock.now())
    assert arrive(night, a_firing(other)) == []
    assert len(arrive(night, a_firing(brief))) == 1
    assert sorted(states(night.store)) == ["queued", "running"]


def test_a_retry_whose_time_has_come_goes_before_what_comes(night: Night) -> None:
    brief = an_automation(night.store, now=night.clock.now(), limits=FREE)
    held = fire(night.store, brief, "held", now=night.clock.now()).run_id
    rows(night.store, f"UPDATE run SET blocked = 'time' WHERE id = '{held}'")
    assert arrive(night, a_firing(brief, "next")) == []


def test_a_ceiling_counts_what_is_taken_with_it(night: Night) -> None:
    brief = an_automation(night.store, now=night.clock.now(), limits=Limits(concurrent=2))
    assert len(arrive(night, *[a_firing(brief, str(n)) for n in range(3)])) == 2
    assert sorted(states(night.store)) == ["queued", "running", "running"]
    assert night.claim() == []
    assert rows(night.store, "SELECT blocked FROM run WHERE state = 'queued'") == [("concurrency",)]


def test_a_stopped_desk_takes_nothing(night: Night) -> None:
    brief = an_automation(night.store, now=night.clock.now())
    night.store.write(lambda tx: tx.put_setting(STOPPED, "{}"))
    arrive(night, a_firing(brief, trigger="manual"))
    assert "running" not in states(night.store)


def test_a_worker_that_was_declared_dead_takes_nothing(night: Night) -> None:
    brief = an_automation(night.store, now=night.clock.now())
    now = night.clock.now()
    night.store.write(lambda tx: tx.end_worker("wrk_1", "dead", now=now))
    assert arrive(night, a_firing(brief)) == []
    assert states(night.store) == ["queued"]


def test_nor_does_one_that_was_declared_dead_so_long_ago_that_nothing_is_known_of_it(night: Night) -> None:
    brief = an_automation(night.store, now=night.clock.now())
    rows(night.store, "DELETE FROM worker")
    assert arrive(night, a_firing(brief)) == []
    assert night.claim() == []
    assert states(night.store) == ["queued"]


def test_what_has_a_cooldown_is_left_to_the_claim_that_counts_it(night: Night) -> None:
    brief = an_automation(night.store, now=night.clock.now(), cooldown=timedelta(minutes=1))
    assert arrive(night, a_firing(brief)) == []
    assert len(night.claim()) == 1


def test_a_person_may_start_what_sleeps_and_the_claim_takes_it(night: Night) -> None:
    brief = an_automation(night.store, now=night.clock.now())
    night.store.write(lambda tx: operations.pause(
        tx, brief, by="ann", reason="", now=night.clock.now()
    ))
    assert arrive(night, a_firing(brief, trigger="manual")) == []
    assert len(night.claim()) == 1


def test_a_run_that_must_go_alone_waits_for_the_one_that_goes(night: Night) -> None:
    brief = an_automation(
        night.store, now=night.clock.now(), limits=FREE,
        triggers=(TriggerSpec(name="hook", kind="call", overlap=Overlap.QUEUE),),
    )
    taken = arrive(night, a_firing(brief, "1", trigger="hook"), a_firing(brief, "2", trigger="hook"))
    assert len(taken) == 1
    assert rows(night.store, "SELECT blocked FROM run WHERE state = 'queued'") == [("overlap",)]


def test_one_that_replaces_another_of_its_own_batch_finds_it_waiting(night: Night) -> None:
    brief = an_automation(
        night.store, now=night.clock.now(), limits=FREE,
        triggers=(TriggerSpec(name="hook", kind="call", overlap=Overlap.REPLACE),),
    )
    taken = arrive(night, a_firing(brief, "1", trigger="hook"), a_firing(brief, "2", trigger="hook"))
    assert sorted(states(night.store)) == ["cancelled", "running"]
    assert run_row(night.store, RunId(taken[0].work.run_id), "state") == ("running",)


def test_a_definition_that_cannot_be_read_fails_its_own_run_only(night: Night) -> None:
    good = an_automation(night.store, now=night.clock.now())
    bad = an_automation(night.store, now=night.clock.now(), name="bad")
    rows(night.store, f"UPDATE automation_version SET definition = '{{' WHERE automation_id = '{bad}'")
    taken = {one.work.automation_id: one for one in arrive(night, a_firing(good), a_firing(bad))}
    assert taken[good].error == ""
    assert taken[bad].definition is None
    assert "cannot be read" in taken[bad].error
