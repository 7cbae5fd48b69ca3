"""A store of a released program, with everything under way, is brought forward; what was begun there ends here."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import nightporter.store
from nightporter.clock import Instant, SystemClock
from nightporter.ledger.audit import audit
from nightporter.operations import fire
from nightporter.store import open_store
from nightporter.store.named import migrations
from upgrade.homes import Home
from upgrade.loading import counts, released_migrations, rows


def test_what_a_release_left_has_runs_in_every_state_and_everything_that_hangs_on_them(home: Home) -> None:
    def words(sql: str) -> set[object]:
        return {row[0] for row in rows(home.store, sql)}

    # A run is `lost` only within the transaction that decides about it; `waiting` comes with a later release.
    assert words("SELECT state FROM run") == {
        "queued", "running", "held", "review", "succeeded", "failed", "timed_out", "cancelled", "skipped"}
    assert {None, "time", "overlap", "concurrency"} <= words("SELECT blocked FROM run WHERE state = 'queued'")
    assert words("SELECT state FROM delivery") == {"pending", "sending", "delivered", "given_up"}
    assert words("SELECT state FROM effect") == {"intended", "done"}
    assert words("SELECT verdict FROM firing") == {"admitted", "repeated", "skipped"}
    assert words("SELECT state FROM automation") == {"active", "paused", "removed"}
    there = counts(home.store)
    assert [table for table, count in there.items() if not count] == []
    assert words("SELECT count(*) FROM worker WHERE ended_at IS NULL") == {1}
    assert rows(home.store, "SELECT 1 FROM trigger WHERE next_fire_at IS NOT NULL")
    assert rows(home.store, "SELECT 1 FROM firing WHERE dedupe_key IS NOT NULL AND source = 'call'")


def findings(store_url: str) -> list[str]:
    """What an audit would have found in the moment in which the desk was killed."""
    [(killed_at,)] = rows(store_url, "SELECT max(at) FROM transition")
    store = open_store(store_url, now=killed_at)
    try:
        report = store.read(lambda tx: audit(tx, now=Instant(killed_at)))
    finally:
        store.close()
    return [example for check in report.findings for example in check.examples]


def test_a_store_with_everything_under_way_is_brought_forward_and_nothing_of_it_is_lost(home: Home) -> None:
    before = counts(home.store)
    ended = "SELECT * FROM run WHERE ended_at IS NOT NULL ORDER BY id"
    as_it_was = rows(home.store, ended)
    home.ask("runs")
    assert rows(home.store, "SELECT value FROM setting WHERE key = 'schema_version'") == [(str(migrations()[-1][0]),)]
    after = counts(home.store)
    assert {table: after[table] for table in before} == before
    assert [row[: len(was)] for row, was in zip(rows(home.store, ended), as_it_was, strict=True)] == as_it_was
    assert findings(home.store) == []


def test_what_was_under_way_is_taken_back_and_ended_by_todays_desk(home: Home) -> None:
    before = counts(home.store)
    under_way = {row[0] for row in rows(home.store, "SELECT id FROM run WHERE ended_at IS NULL")}
    home.ask("enable", "asleep")
    with home.desk():
        home.until_none("SELECT id, state FROM run WHERE state IN ('queued', 'running', 'held', 'lost')")
        home.until_none("SELECT id, state FROM delivery WHERE state IN ('pending', 'sending')")
    said = json.loads(home.ask("audit", "--json", code=1))
    assert said["clean"]
    assert {work["kind"]: work["count"] for work in said["tasks"] if work["count"]} == {"lost": 2, "delivery_failed": 1}
    ended = dict(rows(home.store, "SELECT id, state FROM run"))
    names = dict(rows(home.store, "SELECT r.id, a.name FROM run r JOIN automation a ON a.id = r.automation_id"))
    assert {names[run] for run in under_way if ended[run] == "review"} == {"cut", "acting"}, "a person decides"
    assert {ended[run] for run in under_way} == {"review", "succeeded", "skipped"}
    assert rows(home.store, "SELECT DISTINCT state FROM delivery WHERE destination IN ('busy', 'hang')") == [
        ("delivered",)]
    after = counts(home.store)
    assert all(after[table] >= count for table, count in before.items() if table != "child")


def test_what_was_told_to_the_release_is_a_repeat_today(home: Home) -> None:
    [(key, trigger)] = rows(
        home.store, "SELECT f.dedupe_key, f.trigger_id FROM firing f JOIN automation a ON a.id = f.automation_id "
                    "WHERE a.name = 'letter' AND f.verdict = 'admitted'")
    clock = SystemClock()
    store = open_store(home.store, now=clock.now())
    try:
        answer = store.write(lambda tx: fire(
            tx, str(trigger).partition("/")[0], trigger="call", external_id=str(key), now=clock.now()))
    finally:
        store.close()
    assert answer.verdict == "repeated"


def test_a_released_migration_is_never_changed(release: Path) -> None:
    folder = Path(nightporter.store.__file__).parent / "sql" / "migrations"
    now = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.glob("*.sql")}
    released = released_migrations(release)
    assert {name: now.get(name) for name in released} == released
