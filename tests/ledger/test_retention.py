"""Retention: what has passed its time goes, a little at a time, and nothing goes before its time."""

from __future__ import annotations

from datetime import timedelta

import pytest
from builders import EVERY_HOUR, SAID, Night
from full_night import FAILS, HOOK, INBOX

from nightporter import operations, sweep
from nightporter.clock import DAY, ManualClock
from nightporter.store import Store
from nightporter.store.portion import Portion
from nightporter.sweep import retention
from nightporter.sweep.retention import Portions
from nightporter.words import Receipt, Retry

WEEK, MONTH = timedelta(days=7), timedelta(days=30)


@pytest.fixture
def night(store: Store, clock: ManualClock) -> Night:
    return Night(store, clock)


def prune(
    night: Night, *, keep_runs: timedelta = WEEK, keep_ledger: timedelta = MONTH, learnt: Portions | None = None
) -> bool:
    return sweep.prune(night.store, keep_runs=keep_runs, keep_ledger=keep_ledger, now=night.now, learnt=learnt)


def after(night: Night, **span: float) -> None:
    """Time passes, what has passed its time goes, and the ledger is still a sound one."""
    night.pass_time(**span)
    assert not prune(night)
    assert night.found() == {}


def count(night: Night, table: str, where: str = "1 = 1") -> int:
    [(n,)] = night.sql(f"SELECT count(*) FROM {table} WHERE {where}")
    return int(n)


def test_a_log_stays_for_its_time_from_its_last_line_however_old_its_run_was(night: Night) -> None:
    claimed = night.start(night.define("brief", runner="script"))
    night.lose(night.worker)
    after(night, days=40)
    assert count(night, "run") == 1, "it waits for a person"
    night.review(claimed.work.run_id, "dismiss")
    after(night, days=8)
    assert (count(night, "run"), count(night, "transition")) == (0, 5)
    after(night, days=22, microseconds=-1)
    assert count(night, "transition") == 5
    after(night, seconds=1)
    assert count(night, "transition") == 0


def test_a_log_goes_whole_and_one_that_is_younger_stays_whole(night: Night) -> None:
    brief = night.define("brief")
    night.run(brief)
    night.pass_time(days=1)
    younger = night.run(brief)
    after(night, days=30)
    assert night.sql("SELECT run_id, seq FROM transition ORDER BY seq") == [(younger, 1), (younger, 2), (younger, 3)]


def test_what_was_read_goes_a_week_later_and_what_nobody_read_a_month_after_it_was_written(night: Night) -> None:
    brief = night.define("brief", deliver=[INBOX])
    for _ in range(2):
        night.run(brief)
    night.pass_time(days=5)
    [(read, *_), (unread, *_)] = night.store.read(lambda tx: tx.unread(10))
    night.store.write(lambda tx: tx.mark_read([read], now=night.now))
    after(night, days=7)
    assert count(night, "inbox") == 2
    after(night, microseconds=1)
    assert night.sql("SELECT id FROM inbox") == [(unread,)]
    after(night, days=18, microseconds=-1)
    assert night.sql("SELECT id FROM inbox") == [(unread,)]
    after(night, microseconds=1)
    assert count(night, "inbox") == 0


def test_the_notice_of_what_waits_for_a_person_stays_as_long_as_that(night: Night) -> None:
    claimed = night.start(night.define("brief", runner="script"))
    night.lose(night.worker)
    night.store.write(lambda tx: tx.mark_read([row[0] for row in tx.unread(10)], now=night.now))
    after(night, days=90)
    assert count(night, "inbox", "kind = 'review'") == 1
    night.review(claimed.work.run_id, "dismiss")
    after(night, days=8)
    assert count(night, "inbox") == 0


def test_a_dead_letter_and_its_notice_stay_as_long_as_the_ledger_though_it_was_read(night: Night) -> None:
    night.run(night.define("brief", retry=Retry(attempts=1)), FAILS)
    night.store.write(lambda tx: tx.mark_read([row[0] for row in tx.unread(10)], now=night.now))
    after(night, days=29)
    assert (count(night, "run"), count(night, "inbox")) == (1, 1)
    after(night, days=2)
    assert (count(night, "run"), count(night, "inbox")) == (0, 0)


def test_a_dead_letter_stays_until_its_message_was_read_however_long_that_takes(night: Night) -> None:
    night.run(night.define("brief", retry=Retry(attempts=1)), FAILS)
    after(night, days=400)
    assert (count(night, "run"), count(night, "inbox"), count(night, "firing")) == (1, 1, 1)
    night.store.write(lambda tx: tx.mark_read([row[0] for row in tx.unread(10)], now=night.now))
    after(night, seconds=1)
    assert (count(night, "run"), count(night, "firing"), count(night, "transition")) == (0, 0, 0)
    after(night, days=7)
    assert count(night, "inbox") == 0


def test_a_run_whose_delivery_is_sent_again_between_the_look_and_the_deletion_stays(night: Night) -> None:
    run = night.run(night.define("brief", deliver=[HOOK]), SAID)
    night.send(Receipt.PERMANENT)
    night.pass_time(days=8)
    before = night.now
    found = night.store.read(lambda tx: tx.prunable_runs(
        after="", bound="run_f", before=before, dead_before=before, room=10))
    assert found == [run]
    [(delivery,)] = night.sql("SELECT id FROM delivery")
    night.store.write(lambda tx: operations.resend(tx, delivery, now=before))
    night.store.write(lambda tx: tx.prune_runs(found, before=before, dead_before=before))
    assert (count(night, "run"), count(night, "delivery")) == (1, 1)


def test_a_transaction_takes_as_many_rows_as_are_deleted_in_a_few_milliseconds(night: Night) -> None:
    learnt = sweep.portions(night.clock)

    def slow(milliseconds: float) -> int:
        with learnt["runs"].taking(learnt["runs"].size):
            night.clock.advance(timedelta(milliseconds=milliseconds))
        return learnt["runs"].size

    assert slow(1) == pytest.approx(64 * (1 + 12) / 2, abs=1)
    assert slow(1) == 1000
    assert [slow(1000) for _ in range(10)][-1] == 5
    assert learnt["logs"].size > 5, "what takes long of one kind may be quick of another"


def test_lines_are_never_kept_for_less_than_the_runs_they_are_of(night: Night) -> None:
    brief = night.define("brief", EVERY_HOUR)
    night.hours(1)
    night.pause(brief)
    night.fire(brief)
    night.pass_time(days=50)
    assert not prune(night, keep_runs=timedelta(days=60))
    assert (count(night, "run"), count(night, "firing"), count(night, "transition")) == (1, 2, 3)
    assert night.found() == {}


def test_what_went_is_not_looked_for_though_runs_are_kept_for_longer_now(night: Night) -> None:
    night.run(night.define("old", retry=Retry(attempts=1)), FAILS)
    night.pass_time(days=40)
    night.run(night.define("brief"))
    after(night, days=8)
    assert count(night, "run") == 1, "the dead letter that nobody has read"
    night.store.write(lambda tx: tx.mark_read([row[0] for row in tx.unread(10)], now=night.now))
    assert not prune(night, keep_runs=timedelta(days=45))
    assert count(night, "run") == 0
    assert night.found() == {}


def test_a_sweep_deletes_a_little_and_says_that_there_is_more(night: Night, monkeypatch: pytest.MonkeyPatch) -> None:
    few = sweep.portions(night.clock)
    for of in ("runs", "payloads", "firings", "logs", "messages"):
        few[of] = Portion(2)
    monkeypatch.setattr(retention, "CHUNKS", 2)
    brief = night.define("brief", deliver=[INBOX])
    for _ in range(10):
        night.run(brief, SAID, payload={"n": 1})
    night.pass_time(days=8)
    left = []
    for _ in range(3):
        more = prune(night, learnt=few)
        left.append((more, count(night, "run")))
        assert night.found() == {}
    assert left == [(True, 6), (True, 2), (False, 0)]
    night.pass_time(microseconds=30 * DAY)
    turns = 1
    while prune(night, learnt=few):
        turns += 1
        assert night.found() == {}
    assert turns > 2
    for table in ("run", "firing", "firing_payload", "transition", "inbox"):
        assert count(night, table) == 0
