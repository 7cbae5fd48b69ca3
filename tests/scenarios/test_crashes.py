"""S-03, S-08, S-34: real desks, in processes of their own, that die in the middle of an act, drain while slots come
due, or are killed by what they execute. S-01, S-02 and S-04 are told whole by the named points under fire."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from fire.accounts import audited
from fire.house import House, a_house, until
from fire.recorder import a_world
from nightporter import operations
from nightporter.clock import SystemClock
from nightporter.rules.schedule import parse
from nightporter.store import Tx, open_store
from nightporter.words import Definition, Limits, Retry, Target, TriggerSpec

FREE = Limits(per_hour=None, queued=None, concurrent=None)


def change(house: House, work: Callable[[Tx, Any], Any]) -> Any:
    """Somebody else writes in the store: `work(tx, now)`."""
    with contextlib.closing(open_store(house.store, now=SystemClock().now())) as store:
        return store.write(lambda tx: work(tx, SystemClock().now()))


def define(house: House, definition: Definition) -> str:
    return str(change(house, lambda tx, now: operations.define(
        tx, definition, truth="store", by="test", now=now)).automation_id)


@pytest.mark.parametrize(
    ("point", "sent", "again"), [("effect-intended", 0, 1), ("effect-called", 1, 2), ("effect-recorded", 1, 1)]
)
def test_an_act_that_may_have_happened_is_not_repeated_unasked(
    point: str, sent: int, again: int, store_url: str, tmp_path: Path
) -> None:
    """S-03: three acts, each behind its own key; the desk dies at a point of the second. Before it is known to be done,
    nobody can know whether it was: a person is asked, and only their word sends it again."""
    with a_world(tmp_path) as outside, a_house(tmp_path, store_url, outside) as house:
        desk = house.open("letters", fault=f"{point}:2").ready()
        desk.ask("call", "letters")
        desk.gone()
        house.kills += 1
        house.open("letters").ready()
        settled = {"effect-recorded": "succeeded"}.get(point, "review")
        until(lambda: _states(house) == [settled], "its run is settled")
        assert _acts(house) == ([1, 1, 1] if settled == "succeeded" else [1, sent, 0])
        assert house.ledger.count("inbox WHERE kind = 'review'") == (settled == "review")
        if settled == "review":
            [(run,)] = house.ledger.rows("SELECT id FROM run")
            change(house, lambda tx, now: operations.review(tx, run, "retry", by="ann", now=now))
            until(lambda: _states(house) == ["succeeded"], "it went on, because a person said so")
            assert _acts(house) == [1, again, 1]
        assert audited(house) == []


def test_slots_that_come_due_while_a_desk_drains_are_answered_by_the_next(store_url: str, tmp_path: Path) -> None:
    """S-08: the sources end with the signal, the runs do not; what is queued stays so."""
    with a_world(tmp_path) as outside, a_house(tmp_path, store_url, outside) as house:
        every = TriggerSpec("clock", "clock", parse("every", "1s", "UTC"))
        ticks = define(house, Definition("ticks", Target("echo", {"text": "tock"}), (every,), limits=FREE))
        slow = define(house, Definition("slow", Target("script", {"command": "sleep 2.5"}),
                                        limits=Limits(per_hour=None, concurrent=1), idempotent=True))
        desk = house.open("empty", drain=30.0).ready()
        for n in range(3):
            change(house, lambda tx, now, key=f"e{n}": operations.fire(  # type: ignore[misc]  # bound
                tx, slow, trigger="call", external_id=key, now=now))
        until(lambda: house.ledger.count("run WHERE state = 'running' AND runner = 'script'"), "it is at work")
        told = SystemClock().now()
        assert desk.stop() == 0, desk.log()
        assert house.ledger.rows(f"SELECT count(*) FROM firing WHERE arrived_at > {told + 1_000_000}") == [(0,)]
        assert sorted(_states(house, "script")) == ["queued", "queued", "skipped"]
        assert house.ledger.count("run WHERE attempt > 1 OR state = 'failed'") == 0
        assert house.ledger.count("inbox") == 0
        house.open("empty").ready()
        until(lambda: house.ledger.count(f"firing WHERE scheduled_for > {told + 3_000_000}"), "slots come again")
        change(house, lambda tx, now: operations.remove(tx, ticks, by="test", now=now))
        until(lambda: not house.ledger.busy(), "all have ended")
        [(first, last, lines)] = house.ledger.rows(
            "SELECT min(scheduled_for), max(scheduled_for), count(DISTINCT scheduled_for) FROM firing "
            "WHERE source = 'clock'")
        assert lines == (last - first) // 1_000_000 + 1, "no slot between the first and the last is missing"
        assert audited(house) == []


@pytest.mark.parametrize("idempotent", [True, False], ids=["may be repeated", "may not"])
def test_work_that_kills_its_desk_is_set_aside_and_what_stands_behind_it_goes_on(
    idempotent: bool, store_url: str, tmp_path: Path
) -> None:
    """S-34: the attempt is counted before the work begins, so a desk that dies of it each time dies of it no more than
    three times, and once where nobody knows what it did."""
    with a_world(tmp_path) as outside, a_house(tmp_path, store_url, outside) as house:
        name = "poison-again" if idempotent else "poison"
        deaths = 3 if idempotent else 1
        desk = house.open("poisoned").ready()
        desk.ask("call", name)
        assert desk.gone() == -9
        for _ in range(deaths - 1):
            assert house.open("poisoned").gone() == -9
        last = house.open("poisoned").ready()
        last.tell("call", "meek")
        until(lambda: "succeeded" in _states(house), "who stands behind it has its turn")
        [(state, attempt)] = house.ledger.rows("SELECT state, attempt FROM run WHERE source = 'call' "
                                               "AND state <> 'succeeded'")
        assert (state, attempt) == (("failed", 3) if idempotent else ("review", 1))
        kind = "dead_letter" if idempotent else "review"
        assert house.ledger.count(f"inbox WHERE kind = '{kind}'") == 1
        assert last.stop() == 0, last.log()
        assert audited(house) == []


def test_a_program_that_is_killed_for_its_memory_is_named_so_and_takes_nobody_along(
    store_url: str, tmp_path: Path
) -> None:
    """S-07: the kernel kills the child (137), not the desk. It is tried again after a wait, and dead after its last
    attempt; what it had said is kept, and what runs beside it goes on."""
    with a_world(tmp_path) as outside, a_house(tmp_path, store_url, outside) as house:
        beside = define(house, Definition("beside", Target("script", {"command": "sleep 1; echo fine"}), limits=FREE))
        greedy = define(house, Definition(
            "greedy", Target("script", {"command": "echo so far; echo oh >&2; kill -9 $$"}), limits=FREE,
            retry=Retry(attempts=2, delays=(timedelta(milliseconds=100),))))
        desk = house.open("empty").ready()
        for automation in (beside, greedy):
            change(house, lambda tx, now, one=automation: operations.fire(  # type: ignore[misc]  # bound
                tx, one, trigger="call", external_id="e1", now=now))
        until(lambda: sorted(_states(house)) == ["failed", "succeeded"], "both have ended")
        [row] = house.ledger.rows("SELECT attempt, error_class, exit_code, error, text, log FROM run "
                                  "JOIN run_output o ON o.run_id = run.id WHERE state = 'failed'")
        assert row[:3] == (2, "resource", 137)
        assert row[3].startswith("it was killed (SIGKILL) and not by the desk; most often the machine is out of memory")
        assert row[4:] == ("so far\n", "oh")
        assert house.ledger.rows("SELECT attempt FROM run WHERE state = 'succeeded'") == [(1,)]
        assert house.ledger.rows("SELECT kind FROM inbox") == [("dead_letter",)]
        assert desk.stop() == 0, desk.log()
        assert audited(house) == []


def _states(house: House, runner: str = "") -> list[str]:
    return [state for state, kind in house.ledger.rows("SELECT state, runner FROM run ORDER BY id")
            if runner in ("", kind)]


def _acts(house: House) -> list[int]:
    """How often each of the three happened."""
    done = {key.partition(":")[2]: len(times) for key, times in house.outside.effects().items()}
    return [done.get(name, 0) for name in ("note", "mail", "file")]
