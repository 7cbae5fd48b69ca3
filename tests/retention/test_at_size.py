"""A small desk for forty days, every run worked by the stages; `make soak PART=retention` is the same at size."""

from __future__ import annotations

from collections import Counter
from contextlib import closing
from pathlib import Path

import apsw
import pytest
from builders import Night

from nightporter import sweep
from nightporter.clock import ManualClock
from nightporter.store import Store, open_store
from nightporter.store.sqlite_log import Log
from nightporter.words import Receipt, Retry
from retention.days import (
    DERIVED,
    FAILS,
    HOOK,
    MONTH,
    WEEK,
    automations,
    copying,
    month_of,
    months,
    read_the_inbox,
    work_a_day,
)

RUNS = 24
"""A day."""


def prune(night: Night) -> None:
    while sweep.prune(night.store, keep_runs=WEEK, keep_ledger=MONTH, now=night.now):
        pass


def count(night: Night, what: str) -> int:
    [(n,)] = night.sql(f"SELECT count(*) FROM {what}")
    return int(n)


def test_for_forty_days_the_store_is_bounded_and_the_months_tell_of_all_there_ever_was(
    store: Store, clock: ManualClock
) -> None:
    night = Night(store, clock)
    ids = automations(night)
    unseen = night.run(night.define("forgotten", retry=Retry(attempts=1)), FAILS)
    undelivered = night.run(night.define("unheard", deliver=[HOOK]))
    night.send(Receipt.TRANSIENT)
    night.sql("UPDATE delivery SET next_try_at = ?", 9_000_000_000_000_000)
    waiting = night.start(night.define("job", runner="script")).work.run_id
    night.change_shifts()
    kept = [unseen, undelivered, waiting]
    messages = night.sql("SELECT id FROM inbox")
    ever = Counter({month_of(night): 2})
    sizes: list[dict[str, int]] = []
    for _ in range(40):
        ever += work_a_day(night, ids, RUNS, batches=4)
        night.sql(f"UPDATE inbox SET read_at = ? WHERE run_id NOT IN ('{unseen}', '{waiting}')", night.now)
        prune(night)
        assert months(night) == ever
        dead = count(night, "run WHERE dead_at IS NOT NULL")
        sizes.append({"run": count(night, "run") - dead, "firing": count(night, "firing"),
                      "log": count(night, "(SELECT DISTINCT run_id FROM transition) AS t")})
    assert night.found() == {}
    assert {run for (run,) in night.sql("SELECT id FROM run")} >= set(kept), "nobody has seen them, or they go on"
    assert set(night.sql("SELECT id FROM inbox")) >= set(messages)
    assert sizes[-1]["run"] <= 8 * RUNS + len(kept)
    assert sizes[-1]["firing"] <= 31 * RUNS + len(kept)
    assert sizes[-1]["log"] <= 31 * RUNS + len(kept)
    for table in ("run_output", "effect", "delivery", "delivery_try"):
        column = "delivery_id" if table == "delivery_try" else "run_id"
        of = "(SELECT id FROM delivery)" if table == "delivery_try" else "(SELECT id FROM run)"
        assert count(night, f"{table} WHERE {column} NOT IN {of}") == 0


def test_a_day_that_is_copied_is_one_that_the_audit_takes_for_worked(store_url: str, clock: ManualClock) -> None:
    with closing(open_store(store_url, now=clock.now())) as store:
        night = Night(store, clock)
        ids = automations(night)
        began = night.now
        work_a_day(night, ids, RUNS, batches=4)
        with copying(store_url, since=began) as copier:
            for day in range(1, 4):
                night.pass_time(days=1)
                copier.put(day, month_of(night))
        assert count(night, "run") == 4 * RUNS
        assert sum(months(night).values()) == 4 * RUNS
        assert night.found().keys() <= DERIVED
        read_the_inbox(night)
        night.pass_time(days=40)
        prune(night)
        assert (count(night, "run"), count(night, "firing"), count(night, "transition")) == (0, 0, 0)


# -- what is on the disk ------------------------------------------------------------------------------------------


def log_of(path: Path) -> int:
    return Path(f"{path}-wal").stat().st_size


def test_the_log_of_a_store_at_rest_gives_its_room_back_and_a_long_reader_is_named(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "ledger.db"
    with closing(open_store(str(path), now=0)) as store, closing(apsw.Connection(str(path))) as reader:
        reader.execute("BEGIN")
        assert list(reader.execute("SELECT count(*) FROM run")) == [(0,)]
        for n in range(400):
            store.write(lambda tx, n=n: tx.put_setting(f"key {n}", "x" * 10_000))  # type: ignore[misc]  # bound
        Log(str(path)).tend(large=1_000_000)
        assert log_of(path) > 1_000_000
        assert "store.log_grows" in caplog.text
        reader.execute("COMMIT")
        caplog.clear()
        for _ in range(2):
            store.tend()
        assert log_of(path) == 0
        assert caplog.text == ""
        store.write(lambda tx: tx.put_setting("a", "b"))
        assert store.read(lambda tx: tx.setting("a")) == "b"


def test_the_server_is_asked_to_clear_the_queue_early_and_what_somebody_set_stands(postgres_url: str) -> None:
    import psycopg

    open_store(postgres_url, now=0).close()
    asked = "SELECT array_to_string(reloptions, ' ') FROM pg_class WHERE relname = 'run' AND relkind = 'r'"
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        assert "autovacuum_vacuum_scale_factor=0.01" in connection.execute(asked).fetchall()[0][0]
        connection.execute("ALTER TABLE run RESET (autovacuum_vacuum_scale_factor, autovacuum_vacuum_threshold, "
                           "autovacuum_vacuum_cost_delay)")
        connection.execute("ALTER TABLE run SET (autovacuum_enabled = off)")
        open_store(postgres_url, now=0).close()
        assert connection.execute(asked).fetchall() == [("autovacuum_enabled=off",)]
