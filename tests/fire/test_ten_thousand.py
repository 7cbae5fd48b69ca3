"""Ten thousand triggers are due at one instant; each has its outcome, also when desks die in the middle of it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

from fire.accounts import audited
from fire.house import Desk, House, Ledger, a_house, until
from fire.recorder import a_world
from nightporter import operations
from nightporter.clock import SECOND, Instant, SystemClock, micros, rfc3339
from nightporter.rules.schedule import parse
from nightporter.store import open_store
from nightporter.words import Definition, Limits, Overlap, Target, TriggerSpec

AUTOMATIONS, TRIGGERS = 100, 100
ANSWERED_WITHIN = 10.0
"""Seconds, as S-29 has it: a boot in the middle of it answers thousands of slots before it is ready."""
HERD = AUTOMATIONS * TRIGGERS
IN_A_MOMENT = timedelta(seconds=4)
"""Time enough to write ten thousand triggers down and to start a desk. Should it not be, they are due at its boot."""
LINES_WITHIN = 10.0
"""Seconds after the instant, or after the boot, in which the last of them has its line."""
WORKSPACES = 4
ASKED_WITHIN, LATE_BY = 1.0, 2.0
"""Seconds that somebody who asks in the middle of it waits, and whoever is due in the middle of it, at most."""
GROWS_BY = 100
"""Megabytes that a desk takes more than at its start, at most."""


def test_ten_thousand_due_at_one_instant_are_all_accounted_for(store_url: str, tmp_path: Path) -> None:
    with _a_herd(tmp_path, store_url) as (house, due):
        desk = house.open("empty").ready()
        ready, resident = max(due, SystemClock().now()), _memory(desk, "VmRSS")
        until(lambda: house.ledger.count("firing WHERE source = 'clock'"), "it has begun")
        asked, waited = SystemClock().now(), desk.stood_in_line()
        desk.tell("call", "bell")
        took = (SystemClock().now() - asked) / SECOND - (desk.stood_in_line() - waited)
        _all_have_ended(house)
        [(line, start, end)] = house.ledger.rows(
            "SELECT (SELECT max(arrived_at) FROM firing), max(started_at), max(ended_at) FROM run")
        grown = (_memory(desk, "VmHWM") - resident) / 1e6
        [(late,)] = house.ledger.rows("SELECT arrived_at - scheduled_for FROM firing WHERE automation_id IN "
                                      "(SELECT id FROM automation WHERE name = 'straggler')")
        print(f"somebody who asks meanwhile waits {took:.3f} s, whoever is due meanwhile {late / SECOND:.3f} s; "
              f"memory grew by {grown:.0f} MB")
        assert took < ASKED_WITHIN
        assert late / SECOND - desk.stood_in_line() < LATE_BY
        assert grown < GROWS_BY
        assert min(_starts_by_workspace(house)) > HERD // 2 // WORKSPACES // 2, "all owners have their turn"
        print(f"last line after {(line - due) / SECOND:.2f} s, start {(start - due) / SECOND:.2f} s, "
              f"end {(end - due) / SECOND:.2f} s")
        assert (line - ready) / SECOND - desk.stood_in_line() < LINES_WITHIN


def test_ten_thousand_due_at_one_instant_survive_desks_that_die_half_way(store_url: str, tmp_path: Path) -> None:
    with _a_herd(tmp_path, store_url) as (house, _):
        answering = house.open("empty")
        until(lambda: house.ledger.count("firing") > HERD * 3 // 10, "a part has its lines")
        house.kill(answering)
        assert house.ledger.count("firing") < HERD
        working = house.open("empty")
        until(lambda: house.ledger.count("run WHERE ended_at IS NOT NULL") > HERD // 2, "a half has ended")
        house.kill(working)
        assert house.ledger.count("run WHERE ended_at IS NOT NULL") < HERD
        house.open("empty").ready()
        _all_have_ended(house)
        assert max(house.boots()) < ANSWERED_WITHIN


def _all_have_ended(house: House) -> None:
    """Wait until ten thousand runs have ended, and see that each is the one outcome of its trigger's only slot."""
    until(lambda: house.ledger.count("run WHERE ended_at IS NOT NULL AND source = 'clock'") > HERD, "all have ended")
    house.idle()
    herd = "automation_id IN (SELECT id FROM automation WHERE name LIKE 'herd-%')"
    assert house.ledger.rows(
        f"SELECT verdict, count(*), count(DISTINCT trigger_id) FROM firing WHERE {herd} GROUP BY verdict"
    ) == [("admitted", HERD, HERD)]
    assert house.ledger.rows(
        f"SELECT state, count(*), count(DISTINCT firing_id) FROM run WHERE {herd} GROUP BY state"
    ) == [("succeeded", HERD, HERD)]
    assert house.ledger.count("automation WHERE state = 'completed' AND name LIKE 'herd-%'") == AUTOMATIONS
    assert audited(house) == []


@contextlib.contextmanager
def _a_herd(folder: Path, store: str) -> Iterator[tuple[House, Instant]]:
    """A house with ten thousand triggers, and the instant at which all of them are due."""
    due = Instant((SystemClock().now() + micros(IN_A_MOMENT)) // SECOND * SECOND)
    with a_world(folder) as world, a_house(folder, store, world) as house:
        _define(store, due)
        for table in ("automation", "automation_version", "trigger", "trigger_version"):
            _multiply(house.ledger, table)
        yield house, due


def _define(where: str, due: Instant) -> None:
    """The first automation, with its hundred triggers."""
    now = SystemClock().now()
    once = parse("at", rfc3339(due) or "", "UTC")
    triggers = tuple(TriggerSpec(f"t{n}", "clock", once, overlap=Overlap.PARALLEL) for n in range(TRIGGERS))
    one = Definition("herd-x", Target("echo", {"text": "here"}), triggers, deliver=(),
                     limits=Limits(per_hour=None, queued=None, concurrent=None))
    later = parse("at", rfc3339(Instant(due + 8 * SECOND)) or "", "UTC")
    others = [Definition("bell", Target("echo", {"text": "yes?"})),
              Definition("straggler", Target("echo", {"text": "me too"}), (TriggerSpec("clock", "clock", later),))]
    with contextlib.closing(open_store(where, now=now)) as store:
        for definition in (one, *others):
            store.write(lambda tx, it=definition: operations.define(  # type: ignore[misc]  # bound
                tx, it, truth="store", by="test", now=now))


def _multiply(ledger: Ledger, table: str) -> None:
    """Copy its rows for the others: ten thousand definitions one by one are no part of what is tested here."""
    [(first,)] = ledger.rows("SELECT id FROM automation WHERE name = 'herd-x'")
    column = "id" if table == "automation" else "automation_id"
    if table == "trigger_version":
        column = f"substr(trigger_id, 1, {len(first)})"
    rows = ledger.rows(f"""SELECT * FROM "{table}" WHERE {column} = '{first}'""")
    ledger.insert(table, [
        tuple(_copy(cell, first, n) if isinstance(cell, str) else cell for cell in row)
        for n in range(1, AUTOMATIONS) for row in rows
    ])


def _copy(cell: str, first: str, n: int) -> str:
    if cell == "default":
        return f"owner-{n % WORKSPACES}"
    return cell.replace(first, f"{first}{n}").replace("herd-x", f"herd-{n}")


def _memory(desk: Desk, what: str) -> int:
    """Bytes: VmRSS now, VmHWM at most so far."""
    status = Path(f"/proc/{desk.process.pid}/status").read_text()
    return next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith(f"{what}:"))


def _starts_by_workspace(house: House) -> list[int]:
    """How many of the first half of all starts each owner had."""
    return [n for (n,) in house.ledger.rows(
        "SELECT count(*) FROM (SELECT workspace FROM run ORDER BY started_at, id "
        f"LIMIT {HERD // 2}) AS early WHERE workspace <> 'default' GROUP BY workspace")]
