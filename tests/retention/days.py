"""Days at the desk: one that is worked by the stages themselves, and copies of it, put there in bulk."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import apsw
from acting import RUNNERS
from builders import SAID, Night

from nightporter.admission import admit
from nightporter.clock import DAY, moment
from nightporter.dispatch import Attempt, end
from nightporter.words import Destination, Ended, ErrorClass, Firing, Receipt, Retry, TriggerId, Work

HOOK = Destination("hook", "webhook", {"url": "https://receiver.example/in"})
INBOX = Destination("inbox", "announce")
QUIET = Destination("kept", "silent")
FAILS = Ended.failed(ErrorClass.EXCEPTION, "it broke")

IDS = {"id", "run_id", "firing_id", "delivery_id", "event_id"}
NAMES = {"external_id", "dedupe_key"}
INSTANTS = {
    "arrived_at", "scheduled_for", "slot_from", "slot_to", "rank", "run_after", "queued_at", "started_at", "attempt_at",
    "ended_at", "cancel_at", "dead_at", "at", "next_try_at", "created_at", "read_at", "intended_at", "done_at",
}
TABLES = ("firing", "firing_payload", "run", "run_output", "transition", "effect", "delivery", "delivery_try", "inbox")
"""What a day adds to."""


def automations(night: Night) -> list[str]:
    """Ten: most say something and deliver it, one is quiet, one fails for good, one acts on the world."""
    return [night.define(f"brief-{n}", deliver=[HOOK, QUIET] if n % 2 else [INBOX], retry=Retry(attempts=1),
                         runner="script" if n == 3 else "echo") for n in range(10)]


DERIVED = {"I-56", "I-63a", "I-70"}
"""What the audit compares with counters and latest runs, which are kept beside the rows and not copied with them."""


def work_a_day(night: Night, ids: list[str], runs: int, batches: int = 24) -> Counter[str]:
    """So many runs within a day of the clock: admitted, claimed, ended and delivered, a batch at a time. How many ended
    in each month."""
    done: Counter[str] = Counter()
    for batch in range(batches):
        night.pass_time(seconds=86400 / batches)
        firings = [
            Firing(TriggerId(f"{ids[n % len(ids)]}/call"), f"e-{night.now}-{n}",
                   payload='{"n": 1}' if n % 5 == 0 else None)
            for n in range(batch * runs // batches, (batch + 1) * runs // batches)
        ]
        night.store.write(lambda tx, firings=firings: admit(tx, firings, now=night.now))  # type: ignore[misc]  # bound
        while claimed := night.begin(200):
            for c in (c for c in claimed if c.work.automation == "brief-3"):
                night.act(c, "post")
            attempts = [Attempt(c, _ending(c.work)) for c in claimed]
            night.store.write(lambda tx, a=attempts: end(tx, a, RUNNERS, now=night.now))  # type: ignore[misc]  # bound
            done[month_of(night)] += len(claimed)
        night.send(Receipt.DELIVERED)
    return done


def _ending(work: Work) -> Ended:
    """By its id: three in a hundred fail for good, as many have nothing to say. What acted says so."""
    chance = 50 if work.automation == "brief-3" else int(work.run_id[-4:], 16) % 100
    return FAILS if chance < 3 else Ended.ok() if chance < 6 else SAID


def read_the_inbox(night: Night) -> None:
    """Somebody reads every message that there is."""
    night.sql("UPDATE inbox SET read_at = ? WHERE read_at IS NULL", night.now)


def months(night: Night) -> Counter[str]:
    """Runs by month, as the rollups have them."""
    found = night.sql("SELECT month, sum(runs) FROM rollup_month GROUP BY month")
    return Counter({str(month): int(runs) for month, runs in found})


class Copier:
    """Puts a day that was worked into the store again, so many days later."""

    def __init__(self, store: str, *, since: int) -> None:
        """The day: everything with an instant from `since` on."""
        self._postgres = store.startswith("postgresql:")
        self._connection: Any
        if self._postgres:
            import psycopg

            self._connection = psycopg.connect(store, autocommit=True, options="-c synchronous_commit=off")
        else:
            self._connection = apsw.Connection(store)
            self._connection.set_busy_timeout(60_000)
            for pragma in ("synchronous=OFF", "temp_store=MEMORY", "wal_autocheckpoint=4000"):
                self._connection.execute(f"PRAGMA {pragma}").fetchall()
        self._connection.execute("CREATE TEMP TABLE shift (days INTEGER NOT NULL)")
        self._copies = {table: self._keep(table, since) for table in TABLES}
        self._runs = f"""INSERT INTO rollup_month (automation_id, month, runs, succeeded, quiet, failed, cancelled)
            SELECT automation_id, '{{month}}', count(*), {", ".join(_count(word) for word in _WORDS)}
            FROM day_run GROUP BY automation_id
            ON CONFLICT (automation_id, month) DO UPDATE SET runs = rollup_month.runs + excluded.runs,
            succeeded = rollup_month.succeeded + excluded.succeeded, quiet = rollup_month.quiet + excluded.quiet,
            failed = rollup_month.failed + excluded.failed, cancelled = rollup_month.cancelled + excluded.cancelled"""

    def _keep(self, table: str, since: int) -> str:
        key = {"firing_payload": "firing_id", "delivery_try": "delivery_id"}.get(
            table, "id" if table in ("firing", "run", "delivery", "inbox") else "run_id")
        bound = f"{since // 1000:011x}"
        self._connection.execute(f"CREATE TEMP TABLE day_{table} AS SELECT * FROM {table} "
                                 f"WHERE substr({key}, 5, 11) >= '{bound}'")
        if self._postgres:
            found = self._connection.execute(f"SELECT * FROM day_{table} LIMIT 0")
            columns = [column.name for column in found.description]
        else:
            columns = [row[1] for row in self._connection.execute(f"PRAGMA table_info(day_{table})")]
        asked = ", ".join(self._shifted(column) for column in columns)
        return f'INSERT INTO "{table}" ({", ".join(columns)}) SELECT {asked} FROM day_{table}, shift ORDER BY 1'

    def _shifted(self, column: str) -> str:
        if column in IDS:
            prefix = f"substr({column}, 5, 11)"
            if self._postgres:
                later = (f"lpad(to_hex(('x' || lpad({prefix}, 16, '0'))::bit(64)::bigint + shift.days * 86400000), "
                         f"11, '0')")
            else:
                later = f"later({prefix}, shift.days)"
            return f"substr({column}, 1, 4) || {later} || substr({column}, 16)"
        if column in NAMES:
            return f"{column} || '+' || shift.days"
        return f"{column} + shift.days * {DAY}" if column in INSTANTS else column

    def put(self, days: int, month: str) -> None:
        """All of it again, so many days later; its runs count for that month."""
        if not self._postgres:
            self._connection.create_scalar_function(
                "later", lambda text, n: None if text is None else f"{int(text, 16) + n * 86_400_000:011x}", 2,
                deterministic=True)
        self._connection.execute("BEGIN")
        self._connection.execute("DELETE FROM shift")
        self._connection.execute(f"INSERT INTO shift VALUES ({days})")
        for copy in self._copies.values():
            self._connection.execute(copy)
        self._connection.execute(self._runs.format(month=month))
        self._connection.execute("COMMIT")

    def close(self) -> None:
        self._connection.close()


_WORDS = (("succeeded",), ("skipped",), ("failed", "timed_out"), ("cancelled",))


def _count(words: tuple[str, ...]) -> str:
    names = ", ".join(f"'{word}'" for word in words)
    return f"sum(CASE WHEN state IN ({names}) THEN 1 ELSE 0 END)"


@contextlib.contextmanager
def copying(store: str, *, since: int) -> Iterator[Copier]:
    copier = Copier(store, since=since)
    try:
        yield copier
    finally:
        copier.close()


def month_of(night: Night) -> str:
    return f"{moment(night.now):%Y-%m}"


WEEK, MONTH = timedelta(days=7), timedelta(days=30)
