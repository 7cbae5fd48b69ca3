"""S-27: an automation is removed with a run in flight, retries queued, reviews open and a delivery under way."""

from __future__ import annotations

import asyncio

import pytest
from builders import SAID, Night
from desks import until as comes
from engines import Engines
from scenes import HOOK, UNAVAILABLE, a_night, slots, until

from nightporter import operations
from nightporter.ledger import explain, run_detail
from nightporter.runners.context import Run
from nightporter.store import Store
from nightporter.words import Ended, Ending, Reason, Receipt
from words import a_clock_trigger, a_definition, states


@pytest.mark.parametrize(
    "late", [SAID, Ended(Ending.CANCELLED), UNAVAILABLE], ids=["ends well", "is cut short", "fails"]
)
def test_what_an_automation_has_under_way_when_it_is_removed_comes_to_an_end_that_says_so(
    store: Store, late: Ended
) -> None:
    """S-27."""
    night = a_night(store, "10:00")
    automation = night.define("brief", a_clock_trigger("*/15 * * * *"), runner="script", deliver=[HOOK])
    delivered = night.run(automation)
    reviews: list[str] = []
    for _ in range(3):
        worker = f"wrk_lost_{len(reviews)}"
        night.store.write(lambda tx, worker=worker: tx.join(  # type: ignore[misc]  # bound
            worker, role="worker", host="here", pid=1, lock_path="", now=night.now))
        claimed = night.start(automation, worker=worker)
        night.store.write(lambda tx, one=claimed: tx.write_child(  # type: ignore[misc]  # bound
            one.work.run_id, one.work.token, worker="w", host="here", group=1, started=1))
        reviews.append(claimed.work.run_id)
        night.lose(worker)
    retries = [night.start(automation) for _ in range(2)]
    night.finish(retries, UNAVAILABLE)
    flying = night.start(automation)
    assert sorted(states(store)) == ["queued", "queued", "review", "review", "review", "running", "succeeded"]

    night.remove(automation)
    now = dict(night.sql("SELECT id, state || ' ' || coalesce(reason, '') FROM run"))
    assert [now[run] for run in reviews] == ["failed deleted"] * 3
    assert [now[one.work.run_id] for one in retries] == ["cancelled deleted"] * 2
    assert night.sql("SELECT cancel_reason FROM run WHERE id = ?", flying.work.run_id) == [("deleted",)]
    night.finish(flying, late)
    [(state, reason)] = night.sql("SELECT state, reason FROM run WHERE id = ?", flying.work.run_id)
    assert (state, reason) == (("succeeded", None) if late is SAID else ("cancelled", "deleted"))
    assert night.sql("SELECT count(*) FROM delivery WHERE run_id = ?", flying.work.run_id) == [(int(late is SAID),)]

    assert night.begin(10) == [], "nothing starts of what was removed"
    assert night.fire(automation, trigger="manual").reason == Reason.DELETED
    until(night, "12:00")
    assert slots(night) == [], "and no slot is answered any more"
    night.send(Receipt.DELIVERED)
    assert {s for (s,) in night.sql("SELECT state FROM delivery")} == {"delivered"}, "what was said is delivered"
    for run in (delivered, flying.work.run_id, *reviews):
        assert store.read(lambda tx, run=run: run_detail(tx, run)).steps  # type: ignore[misc]  # bound
        assert store.read(lambda tx, run=run: explain(tx, run, night.now)).text  # type: ignore[misc]  # bound
    assert night.found() == {}


async def test_a_function_at_work_is_cancelled_with_its_automation(engines: Engines) -> None:
    """S-27, in a whole desk."""
    at_work: list[str] = []

    async def forever(run: Run) -> str:
        at_work.append(run.id)
        await asyncio.sleep(3600)
        return "never"

    engine = engines(functions={"forever": forever})
    await engine.start()
    definition = a_definition("forever", runner="function", config={"name": "forever"})
    made = await engine.write(lambda tx: operations.define(
        tx, definition, truth="code", by="test", now=engine.clock.now()))
    await engine.write(lambda tx: operations.fire(
        tx, made.automation_id, trigger="call", external_id="e1", now=engine.clock.now()))
    await comes(lambda: at_work)
    await engine.write(lambda tx: operations.remove(tx, made.automation_id, by="ann", now=engine.clock.now()))
    await comes(lambda: states(engine.store) == ["cancelled"])
    night = Night(engine.store, engine.clock, worker=engine.worker)  # type: ignore[arg-type]  # it only looks
    assert night.sql("SELECT reason, cancel_by FROM run") == [("deleted", "ann")]
    assert night.found() == {}
