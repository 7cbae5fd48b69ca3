"""Several machines on one ledger: they wait for one another in one order, and every run has one lawful story."""

from __future__ import annotations

import random
import threading
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from functools import partial

from night import Night

from nightporter.admission import admit
from nightporter.clock import Instant, Kick, ManualClock
from nightporter.operations import enable
from nightporter.sources.clock import ClockSource, settle
from nightporter.states import ENDED, TRANSITIONS, RunState
from nightporter.store import Store, Tx, open_store
from nightporter.words import Destination, Ended, Ending, ErrorClass, Limits, Overlap, Receipt, Sent, TriggerSpec
from words import a_clock_trigger, a_definition, a_firing, an_automation, rows

MACHINES = 3
TURNS = 25
AUTOMATIONS = ("free", "narrow", "lonely", "replaced", "cooled")
WIDE = Limits(per_hour=None, queued=None, concurrent=None)
LAWFUL = {(state, to) for (state, _), to in TRANSITIONS.items()} | {(None, RunState.QUEUED)}


def furnish(store: Store, clock: ManualClock) -> None:
    """Automations that get in each other's way in every manner there is."""
    hook = Destination("hook", "webhook", {"url": "https://one.example"})
    for name, overlap, limits, rest in (
        ("free", Overlap.PARALLEL, WIDE, {}),
        ("narrow", Overlap.PARALLEL, replace(WIDE, concurrent=2), {}),
        ("lonely", Overlap.QUEUE, replace(WIDE, concurrent=1), {}),
        ("replaced", Overlap.REPLACE, WIDE, {}),
        ("cooled", Overlap.SKIP, WIDE, {"cooldown": timedelta(milliseconds=1)}),
    ):
        an_automation(store, a_definition(
            name, limits=limits, deliver=[hook],
            triggers=[TriggerSpec("hook", "call", overlap=overlap),
                      a_clock_trigger("1s", kind="every", anchor=clock.now(), overlap=overlap)],
            **rest,  # type: ignore[arg-type]  # fields of a definition
        ), now=clock.now())


def endings(chance: random.Random) -> Ended:
    return chance.choice([
        Ended.ok("x"), Ended.ok(""), Ended.timed_out("t"), Ended.cancelled(),
        Ended.failed(ErrorClass.TRANSIENT, "503"), Ended(Ending.HOLD, retry_after=timedelta(seconds=1)),
    ])


def a_turn(night: Night, source: ClockSource, chance: random.Random) -> None:
    """What one machine does in one turn: some of everything."""
    automations = [f"aut_default_{name}" for name in AUTOMATIONS]
    chance.shuffle(automations)
    now = night.clock.now()
    night.store.write(lambda tx: admit(tx, [a_firing(a, trigger="hook") for a in automations[:3]], now=now))
    source.tick()
    claimed = night.claim(room=chance.randint(1, 8))
    night.store.write(lambda tx: edit(tx, automations[0], now))
    if claimed and chance.random() < 0.3:
        night.store.write(
            lambda tx: tx.ask_to_cancel([(claimed[0].work.run_id, "cancelled_by", "ada")], now=now)
        )
    if chance.random() < 0.15:
        night.recover()
    chance.shuffle(claimed)
    night.end(*[(one, endings(chance)) for one in claimed])
    sent = chance.choice([Sent(Receipt.DELIVERED, evidence="ok"), Sent(Receipt.TRANSIENT)])
    night.record(*[(one, sent) for one in night.take(room=4)])
    night.clock.advance(timedelta(milliseconds=200))


def edit(tx: Tx, automation: str, now: Instant) -> None:
    """What every edit does: the automation first, then what its slots owe, then its triggers."""
    tx.lock_automation(automation)
    settle(tx, automation, now=now)
    for trigger in tx.triggers(automation):
        tx.redefine_trigger(
            id=trigger.id, kind=trigger.kind, enabled=int(trigger.enabled), policy=trigger.policy, removed_at=None,
            error="",
        )


def together(work: Callable[[int], None]) -> list[BaseException]:
    """The same work on several threads at once; what went wrong."""
    faults: list[BaseException] = []
    gate = threading.Barrier(MACHINES)

    def one(number: int) -> None:
        gate.wait(30)
        try:
            work(number)
        except BaseException as error:
            faults.append(error)

    threads = [threading.Thread(target=one, args=(n,)) for n in range(MACHINES)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(100)
    return faults


def test_machines_that_do_everything_at_once_never_deadlock_and_every_story_is_lawful(
    store_url: str, clock: ManualClock
) -> None:
    stores = [open_store(store_url, now=clock.now()) for _ in range(MACHINES)]
    furnish(stores[0], clock)

    def machine(number: int) -> None:
        night = Night(stores[number], clock, worker=f"wrk_{number}")
        source = ClockSource(stores[number], clock, Kick())
        chance = random.Random(number)
        for _ in range(TURNS):
            a_turn(night, source, chance)

    try:
        assert together(machine) == []
        finish(stores[0], clock)
        check_stories(stores[0])
    finally:
        for store in stores:
            store.close()


def finish(store: Store, clock: ManualClock) -> None:
    """One machine alone brings everything to its end."""
    nights = [Night(store, clock, worker=f"wrk_{n}") for n in range(MACHINES)]
    for night in nights:
        night.recover()
    for _ in range(500):
        clock.advance(timedelta(minutes=2))
        for (stopped,) in rows(store, "SELECT id FROM automation WHERE state = 'auto_paused'"):  # it failed too often
            store.write(partial(enable, automation_id=stopped, by="ada", now=clock.now()))
        if not nights[0].run_all(Ended.ok("x")) and not open_runs(store):
            return
    raise AssertionError(f"these runs never end: {open_runs(store)}")


def open_runs(store: Store) -> list[tuple[str, str, str]]:
    found = rows(store, "SELECT id, state, coalesce(blocked, '') FROM run WHERE ended_at IS NULL")
    return [row for row in found if row[1] != RunState.REVIEW]


def check_stories(store: Store) -> None:
    stories: dict[str, list[tuple[int, str | None, str]]] = defaultdict(list)
    for run, seq, before, after in rows(store, "SELECT run_id, seq, from_state, to_state FROM transition ORDER BY seq"):
        stories[run].append((seq, before, after))
    runs = dict(rows(store, "SELECT id, state FROM run"))
    assert set(stories) == set(runs)
    for run, story in stories.items():
        assert [seq for seq, _, _ in story] == list(range(1, len(story) + 1)), run
        assert all(step in LAWFUL for step in ((before, after) for _, before, after in story)), story
        assert [before for _, before, _ in story[1:]] == [after for _, _, after in story[:-1]], story
        assert story[-1][2] == runs[run]
    ended = sum(state in ENDED for state in runs.values())
    counted = sum(n for (n,) in rows(store, "SELECT runs FROM rollup_month"))
    replaced_while_waiting = sum(story[-1][1:] in (("queued", "cancelled"), ("held", "cancelled"))
                                 for story in stories.values())
    assert ended - replaced_while_waiting <= counted <= ended
    [(lines, told)] = rows(store, "SELECT count(*), count(DISTINCT id) FROM firing")
    assert lines == told
