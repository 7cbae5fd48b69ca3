"""S-25: an edit and the slot it concerns come at the same moment, in every order that there is."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Sequence
from typing import Any

import psycopg
import pytest
from builders import Night
from scenes import a_night, armed, at, slots, until

from nightporter import operations
from nightporter.clock import Instant
from nightporter.sources.clock import answer
from nightporter.sources.plan import Plan, read_and_plan
from nightporter.store import Store, Tx, open_store
from nightporter.store.upshot import Unwritten, Upshot
from words import a_clock_trigger, a_definition

TEN, ELEVEN = a_clock_trigger("0 10 * * *"), a_clock_trigger("0 11 * * *")
OLD, NEW = {"text": "the old words"}, {"text": "the new words"}
BEFORE, AFTER = at("09:59:59.95"), at("10:00:00.05")


def brief(night: Night, name: str = "brief") -> str:
    return night.define(name, TEN, config=OLD)


def edit(name: str, trigger: Any, now: Instant) -> Callable[[Tx], None]:
    """To the new words, with that trigger."""
    wanted = a_definition(name, triggers=[trigger], config=NEW)

    def write(tx: Tx) -> None:
        operations.define(tx, wanted, truth="code", by="ann", now=now)

    return write


def read(night: Night) -> list[Plan]:
    """What the scheduler reads as due at ten, and makes of it."""
    due = night.store.read(lambda tx: tx.due(at("10:00"), 250))
    return [read_and_plan(armed, at("10:00")) for armed in due]


def answered(plans: Sequence[Plan]) -> Callable[[Tx], None]:
    def write(tx: Tx) -> None:
        answer(tx, plans, now=at("10:00"))

    return write


def either_way(night: Night, automation: str) -> bool:
    """Whether ten o'clock ran: with its old words under the old schedule, or not at all; and eleven is next."""
    assert night.row(automation).version == 2
    assert armed(night, automation) == (["11:00"], 2)
    lines = night.sql("SELECT scheduled_for, verdict, version FROM firing WHERE automation_id = ?", automation)
    runs = night.sql("SELECT scheduled_for, version FROM run WHERE automation_id = ?", automation)
    assert lines in ([], [(at("10:00"), "admitted", 1)])
    assert runs == [(at("10:00"), 1)] * len(lines)
    return bool(lines)


def test_an_edit_and_its_slot_meet_in_every_order_and_either_the_edit_or_the_slot_was_first(store: Store) -> None:
    """S-25. The scheduler reads (R) and answers (A), the edit is written (E), its clock read before ten or after."""
    ran = {}
    for order, looked in itertools.product(("ERA", "REA", "RAE"), (BEFORE, AFTER)):
        night = a_night(store, "09:59:00")
        name = f"brief-{order.lower()}-{looked}"
        automation = brief(night, name)
        plans: list[Plan] = []
        for step in order:
            if step == "R":
                plans = read(night)
            else:
                night.store.write(answered(plans) if step == "A" else edit(name, ELEVEN, looked))
        ran[order, looked] = either_way(night, automation)
    assert ran == {
        ("ERA", BEFORE): False, ("REA", BEFORE): False, ("RAE", BEFORE): True,
        ("ERA", AFTER): True, ("REA", AFTER): True, ("RAE", AFTER): True,
    }
    night = a_night(store, "10:00:01")
    night.work()
    until(night, "11:00")
    night.work()
    assert night.sql("SELECT count(*), count(DISTINCT automation_id) FROM firing WHERE scheduled_for = ? "
                     "AND version = 2 AND verdict = 'admitted'", at("11:00")) == [(6, 6)]
    said = night.sql("SELECT run.scheduled_for, run.version, count(*) FROM run GROUP BY 1, 2 ORDER BY 1")
    assert said == [(at("10:00"), 1, 4), (at("11:00"), 2, 6)]
    assert night.found() == {}


class Paced:
    """A transaction's statements; before one of them it stands still until it is let go."""

    def __init__(self, sql: Any, before: int, reached: threading.Event, go: threading.Event) -> None:
        self._sql, self._left, self._reached, self._go = sql, before, reached, go

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._sql, name)
        if name not in ("run", "one", "all", "each"):
            return found

        def paced(*args: Any, **named: Any) -> Any:
            if self._left == 0:
                self._reached.set()
                self._go.wait(30)
            self._left -= 1
            return found(*args, **named)

        return paced


def test_two_transactions_that_interleave_at_any_statement_leave_what_one_after_the_other_would(
    migrated_postgres_url: str,
) -> None:
    """S-25. One stands still before each of its statements in turn, holding whatever locks it has by then; the other
    goes on until it is done or waits for one of them."""
    stores = [open_store(migrated_postgres_url, now=at("09:59:00")) for _ in range(2)]
    outcomes = {True: 0, False: 0}
    with psycopg.connect(migrated_postgres_url, autocommit=True) as watcher:
        for first, looked in itertools.product(("edit", "answer"), (BEFORE, AFTER)):
            for n in itertools.count():
                night = a_night(stores[0], "09:59:00")
                name = f"brief-{first}-{looked}-{n}"
                automation = brief(night, name)
                work = {"edit": edit(name, ELEVEN, looked), "answer": answered(read(night))}
                one = work.pop(first)
                [other] = work.values()
                if not _interleave(stores, one, other, n, watcher):
                    break
                outcomes[either_way(night, automation)] += 1
    assert min(outcomes.values()) > 10, outcomes
    night = a_night(stores[0], "10:00:01")
    night.work()
    assert night.found() == {}
    for store in stores:
        store.close()


def _interleave(
    stores: Sequence[Store], one: Callable[[Tx], None], other: Callable[[Tx], None], before: int,
    watcher: psycopg.Connection[Any],
) -> bool:
    """False: the first has fewer statements than that."""
    reached, go = threading.Event(), threading.Event()
    ends = (threading.Event(), threading.Event())
    errors: list[BaseException] = []

    def paced(tx: Tx) -> None:
        sql = tx.sql
        tx.sql = Paced(sql, before, reached, go)
        try:
            one(tx)
        finally:
            tx.sql = sql

    def over(which: int) -> Callable[[Upshot[object]], None]:
        def hear(upshot: Upshot[object]) -> None:
            errors.extend([upshot.error] if isinstance(upshot, Unwritten) else [])
            ends[which].set()
            reached.set()
        return hear

    stores[0].writer.post(paced, over(0))
    assert reached.wait(30)
    stands = not ends[0].is_set()
    stores[1].writer.post(other, over(1))
    while stands and not ends[1].is_set() and not watcher.execute(
        "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
    ).fetchall():
        pass
    go.set()
    assert [end.wait(30) for end in ends] == [True, True]
    assert errors == []
    return stands


@pytest.mark.parametrize("order", ["ERA", "REA", "RAE"])
def test_new_words_alone_move_no_slot_and_each_run_names_the_words_it_has(store: Store, order: str) -> None:
    """S-25."""
    night = a_night(store, "09:59:00")
    automation = brief(night)
    plans: list[Plan] = []
    for step in order:
        if step == "R":
            plans = read(night)
        elif step == "A":
            night.store.write(answered(plans))
        else:
            night.store.write(edit("brief", TEN, BEFORE))
    night.pass_time(microseconds=at("10:00") - night.now)
    [claimed] = night.begin()
    words = NEW if order != "RAE" else OLD
    assert claimed.work.config == words
    night.finish(claimed)
    assert slots(night, "verdict", "version") == [("10:00", "admitted", 1)]
    assert armed(night, automation) == (["10:00"], 1), "tomorrow"
    assert night.found() == {}


def test_a_time_that_has_passed_today_does_not_fire_at_once(store: Store) -> None:
    """S-25."""
    night = a_night(store, "09:00")
    automation = night.define("brief", a_clock_trigger("0 12 * * *"))
    until(night, "10:30")
    night.define("brief", a_clock_trigger("0 8 * * *"))
    until(night, "23:59:59")
    assert slots(night) == []
    assert armed(night, automation)[0] == ["08:00"]
    assert night.found() == {}


def test_two_who_edit_at_once_leave_a_version_each_and_the_trail_names_both(store: Store) -> None:
    """S-25: an edit replaces the whole definition, and none is lost: the one that came later is in force."""
    night = a_night(store, "09:00")
    automation = brief(night)
    for who, expression in (("ann", "0 11 * * *"), ("ben", "0 12 * * *")):
        wanted = a_definition("brief", triggers=[a_clock_trigger(expression)], config=OLD)
        night.store.write(lambda tx, wanted=wanted, who=who: operations.define(  # type: ignore[misc]  # bound
            tx, wanted, truth="code", by=who, now=night.now))
    assert night.sql("SELECT version, created_by FROM automation_version WHERE automation_id = ? ORDER BY 1",
                     automation) == [(1, "test"), (2, "ann"), (3, "ben")]
    assert night.sql("SELECT actor, version FROM definition_change ORDER BY version") == [
        ("test", 1), ("ann", 2), ("ben", 3)]
    assert night.found() == {}
