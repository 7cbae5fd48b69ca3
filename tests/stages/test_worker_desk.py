"""What a runner may ask of the desk: durable when it returns, and fenced by the claim it runs under."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest
from night import RUNNERS, Night
from turns import held

from nightporter.clock import ManualClock
from nightporter.dispatch import Claimed, traces
from nightporter.dispatch.desk import WorkerDesk
from nightporter.errors import BadInput, Conflict, LostClaim, StoreError
from nightporter.rules.ending import Traces
from nightporter.store import Store
from nightporter.store.durable import durable
from nightporter.words import Ended, Ending, ErrorClass, Work
from words import a_definition, an_automation, fire, rows


@pytest.fixture
def night(store: Store, clock: ManualClock) -> Night:
    return Night(store, clock)


@pytest.fixture
def desk(store: Store, clock: ManualClock) -> WorkerDesk:
    return WorkerDesk(store, clock, worker="wrk_1", host="here")


@pytest.fixture
def work(night: Night) -> Work:
    """A run under this worker's claim."""
    brief = an_automation(night.store, now=night.clock.now(), runner="function")
    fire(night.store, brief, now=night.clock.now())
    return night.claim()[0].work


async def test_a_child_is_written_down_before_it_is_let_go(desk: WorkerDesk, work: Work, store: Store) -> None:
    await desk.child_started(work, 42, 7)
    assert rows(store, "SELECT run_id, token, worker, host, process_group, started FROM child") == [
        (work.run_id, 1, "wrk_1", "here", 42, 7)
    ]


async def test_an_effect_is_intended_before_and_done_after(
    desk: WorkerDesk, work: Work, store: Store, clock: ManualClock
) -> None:
    assert await desk.effect_intended(work, "mail", "k") is None
    assert rows(store, "SELECT name, state, intended_at, done_at FROM effect") == [
        ("mail", "intended", clock.now(), None)
    ]
    clock.advance(timedelta(seconds=1))
    await desk.effect_done(work, "k", "https://mail/1")
    assert rows(store, "SELECT state, done_at, permalink FROM effect") == [("done", clock.now(), "https://mail/1")]


async def test_an_effect_that_is_done_is_not_done_again(desk: WorkerDesk, work: Work) -> None:
    await desk.effect_intended(work, "mail", "k")
    await desk.effect_done(work, "k", "https://mail/1")
    assert await desk.effect_intended(work, "mail", "k") == "https://mail/1"
    await desk.effect_intended(work, "ping", "other")
    await desk.effect_done(work, "other")
    assert await desk.effect_intended(work, "ping", "other") == "", "done, and nothing to show for it"


async def test_an_effect_that_is_called_as_the_desks_own_mark_is_an_effect_all_the_same(
    desk: WorkerDesk, work: Work, night: Night
) -> None:
    await desk.effect_intended(work, "started", "k")
    assert read_traces(night, work).effects_open == 1
    await desk.effect_done(work, "k")
    assert read_traces(night, work) == Traces(acted=False, effects_done=1)
    with pytest.raises(BadInput, match="cannot be called 'started' with the key 'started:1'"):
        await desk.effect_intended(work, "started", f"started:{work.token}")


def read_traces(night: Night, work: Work) -> Traces:
    return night.store.read(lambda tx: traces.read_traces(tx, [(work.run_id, work.token, work.kind)], RUNNERS))[
        work.run_id]


async def test_the_same_attempt_may_say_its_intent_twice(desk: WorkerDesk, work: Work) -> None:
    await desk.effect_intended(work, "mail", "k")
    assert await desk.effect_intended(work, "mail", "k") is None


@pytest.mark.parametrize(
    "ended",
    [Ended.failed(ErrorClass.TRANSIENT, "503", retry_after=timedelta(minutes=1)),
     Ended(Ending.HOLD, retry_after=timedelta(minutes=1))],
    ids=["retry", "hold"],
)
async def test_an_intent_that_an_earlier_claim_left_open_is_not_repeated(
    desk: WorkerDesk, work: Work, night: Night, ended: Ended
) -> None:
    await desk.effect_intended(work, "mail", "k")
    [row] = rows(night.store, "SELECT seq FROM run")
    night.end((Claimed(work, 3, row[0], a_definition(runner="function")), ended))
    night.sleep(minutes=2)
    [again] = night.claim()
    with pytest.raises(Conflict, match="may have happened already") as refused:
        await desk.effect_intended(again.work, "mail", "k")
    assert f"nightporter review {work.run_id} retry or dismiss" in refused.value.next
    assert await desk.effect_intended(again.work, "mail", "another") is None


async def test_a_claim_that_is_no_longer_current_writes_nothing(desk: WorkerDesk, work: Work, night: Night) -> None:
    night.recover()
    for write in (
        desk.child_started(work, 42, 7), desk.effect_intended(work, "mail", "k"), desk.effect_done(work, "k"),
    ):
        with pytest.raises(LostClaim) as refused:
            await write
        assert "stop the work" in refused.value.next
    assert rows(night.store, "SELECT 1 FROM child UNION ALL SELECT 1 FROM effect") == []


async def test_a_claim_that_never_was_writes_nothing(desk: WorkerDesk, work: Work) -> None:
    with pytest.raises(LostClaim):
        await desk.effect_intended(replace(work, token=work.token + 1), "mail", "k")


# -- durable --------------------------------------------------------------------------------------------------------


async def test_a_write_from_the_loop_returns_what_it_returned_once_it_is_durable(store: Store) -> None:
    await durable(store, lambda tx: tx.put_setting("a", "1"))
    assert await durable(store, lambda tx: tx.setting("a")) == "1"


async def test_a_write_from_the_loop_raises_what_it_raised(store: Store) -> None:
    with pytest.raises(ZeroDivisionError):
        await durable(store, lambda tx: 1 // 0)
    store.close()
    with pytest.raises(StoreError):
        await durable(store, lambda tx: None)


async def test_a_caller_that_is_cancelled_leaves_its_write_to_finish(store: Store) -> None:
    with held(store.writer):
        writing = asyncio.create_task(durable(store, lambda tx: tx.put_setting("a", "1")))
        await asyncio.sleep(0)
        writing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await writing
    await durable(store, lambda tx: None)
    assert store.read(lambda tx: tx.setting("a")) == "1"
