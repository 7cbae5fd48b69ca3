"""The sweep's part of a transaction: settings, workers and leases, repairs, pruning."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from nightporter.clock import Instant
from nightporter.store.sql_port import Row
from nightporter.store.tx_base import TxBase

STOPPED = "stopped"
"""The setting that says who stopped the whole desk, and why; JSON."""


class HeldRun(NamedTuple):
    """A run under a worker's claim; the columns of `run_of_worker`."""

    run_id: str
    automation_id: str
    token: int
    attempt: int
    attempts: int
    version: int
    runner: str
    workspace: str
    cancel_reason: str | None
    cancel_by: str
    source: str


def _instant(text: str | None) -> Instant | None:
    return Instant(int(text)) if text is not None and text.isdecimal() and len(text) < 19 else None


class SweepTx(TxBase):
    def setting(self, key: str) -> str | None:
        row = self.sql.one("setting_get", key=key)
        return None if row is None else row[0]

    def setting_instant(self, key: str) -> Instant | None:
        """A setting that is an instant; None where there is none or somebody wrote something else there."""
        return _instant(self.setting(key))

    def schema(self) -> int:
        """The number of the schema that the store has."""
        return int(self.setting("schema_version") or 0)

    def put_setting(self, key: str, value: str) -> None:
        self.sql.run("setting_put", key=key, value=value)

    def raise_setting(self, key: str, to: Instant) -> None:
        """Set one that is an instant and goes forward only."""
        if to > (self.setting_instant(key) or 0):
            self.put_setting(key, str(to))

    def lower_setting(self, key: str, to: Instant) -> None:
        """Set one that is an instant to the earlier of it and `to`. Whoever would change or drop it waits for the
        commit, also where it stays as it is: what is written beside it is seen by whoever drops it."""
        self.sql.run("setting_hold", key=key, value=str(to))
        stood = self.setting_instant(key)
        if stood is None or to < stood:
            self.put_setting(key, str(to))

    def drop_setting(self, key: str) -> Instant | None:
        """What it was, where that is an instant."""
        row = self.sql.one("setting_drop", key=key)
        return None if row is None else _instant(row[0])

    def stopped(self) -> bool:
        """Whether a person stopped the whole desk."""
        return self.setting(STOPPED) is not None

    def stop(self, value: str) -> None:
        """Stop the whole desk. A claim that is under way is waited for: what it starts is running when this returns."""
        self.sql.run("desk_stop", value=value)

    # -- workers ------------------------------------------------------------------------------------------------

    def join(self, worker: str, *, role: str, host: str, pid: int, lock_path: str, now: Instant) -> None:
        self.sql.run("worker_join", id=worker, role=role, host=host, pid=pid, lock_path=lock_path, now=now)

    def beat(self, worker: str) -> bool:
        """Renew the lease. False: somebody declared this worker dead."""
        return self.sql.run("worker_beat", id=worker) > 0

    def end_worker(self, worker: str, how: str, *, now: Instant) -> bool:
        """`stopped` or `dead`. True when this call was the one."""
        return self.sql.run("worker_end", id=worker, how=how, now=now) > 0

    def has_ended(self, worker: str) -> bool:
        """Whether it has left, or was declared dead."""
        return self.sql.one("worker_ended", id=worker) is not None

    def workers(self) -> list[Row]:
        """`(id, role, host, pid, beat, lock path, started at)` of those not ended."""
        return self.sql.all("workers_alive")

    def leader(self) -> str | None:
        """The worker whose sources run; None: the lead is free."""
        row = self.sql.one("leader")
        return None if row is None else row[0]

    def take_lead(self, worker: str) -> bool:
        """Whether the lead is this worker's now. It goes with the worker: whoever is declared dead has lost it."""
        return self.sql.run("lead_take", worker=worker) > 0

    def leave_lead(self, worker: str) -> None:
        self.sql.run("lead_leave", worker=worker)

    def workers_owing(self) -> list[str]:
        """Workers that are ended, or were never heard of, and still hold a run or a delivery."""
        return [r[0] for r in self.sql.all("workers_owing")]

    # -- what a dead worker held --------------------------------------------------------------------------------

    def held_by(self, worker: str, room: int) -> list[HeldRun]:
        """Its running runs."""
        return [HeldRun._make(row) for row in self.sql.all("run_of_worker", worker=worker, room=room)]

    def lose(self, rows: Sequence[tuple[str, int]]) -> list[Row]:
        """`(run, token)`: running -> lost."""
        return self.sql.each("run_lose", rows)

    def requeue(self, run_ids: Collection[str], *, now: Instant) -> list[Row]:
        """lost or review -> queued: `(run, seq, token, attempt, automation)`."""
        if run_ids:
            self.kicks.add("queued")
        return self.sql.each("run_requeue", [(r,) for r in run_ids], now=now)

    def to_review(self, rows: Sequence[tuple[str, str]]) -> list[Row]:
        """`(run, error)`: lost -> review; `(run, seq, token, attempt)`."""
        return self.sql.each("run_to_review", rows)

    def abandon(self, rows: Sequence[tuple[str, str]], *, now: Instant) -> list[Row]:
        """`(run, error)`: lost -> failed, a dead letter; `(run, seq, token, attempt)`."""
        return self.sql.each("run_abandon", rows, now=now)

    def dismiss(self, run_ids: Collection[str], *, reason: str, now: Instant) -> list[Row]:
        """review -> failed, by a person; `(run, seq, token, attempt)`."""
        return self.sql.each("run_dismiss", [(r,) for r in run_ids], reason=reason, now=now)

    def children_of(self, worker: str) -> list[Row]:
        """`(run, token, host, process group, started)`."""
        return self.sql.all("child_of_worker", worker=worker)

    def let_go(self, claims: Sequence[tuple[str, int]]) -> set[tuple[str, int]]:
        """The claims under which a child was let go."""
        return {(r[0], r[1]) for r in self.sql.each("children", claims)}

    def sending_of(self, worker: str, room: int) -> list[Row]:
        """Deliveries it was handing over; columns as in the query."""
        return self.sql.all("delivery_of_worker", worker=worker, room=room)

    # -- ends that come by themselves -----------------------------------------------------------------------------

    def pauses_due(self, now: Instant, room: int = 500) -> list[str]:
        return [r[0] for r in self.sql.all("pause_due", now=now, room=room)]

    def expired(self, now: Instant, room: int = 500) -> list[str]:
        return [r[0] for r in self.sql.all("automation_expired", now=now, room=room)]

    # -- retention: what may go is looked for on a snapshot, and deleted a little at a time --------------------------

    def prunable_runs(
        self, *, after: str, bound: str, before: Instant, dead_before: Instant, room: int
    ) -> list[str]:
        """Ended runs whose time has passed, ids after `after` and before `bound`."""
        return [r[0] for r in self.sql.all(
            "prunable_runs", after=after, bound=bound, before=before, dead_before=dead_before, room=room)]

    def prune_runs(self, run_ids: Sequence[str], *, before: Instant, dead_before: Instant) -> None:
        """Delete runs and what hangs on them, unless something came between since they were looked for."""
        rows = [(run,) for run in run_ids]
        still = self.sql.each("prunable_still", rows, before=before, dead_before=dead_before)
        going = {run for run, state in self.sql.each("prune_hold", still) if state in ("pending", "sending")}
        ids = [row for row in still if row[0] not in going]
        for name in (
            "prune_dead_letters", "prune_tries", "prune_deliveries", "prune_effects", "prune_children", "prune_looks",
            "prune_output", "prune_run",
        ):
            self.sql.each(name, ids)

    def prunable_payloads(self, *, after: str, bound: str, room: int) -> list[str]:
        """Ledger lines before the bound whose run is gone and that carried something."""
        return [r[0] for r in self.sql.all("prunable_payloads", after=after, bound=bound, room=room)]

    def prune_payloads(self, firing_ids: Sequence[str]) -> None:
        """Delete what they carried."""
        self.sql.each("prune_payloads", [(firing,) for firing in firing_ids])

    def prunable_firings(self, *, after: str, bound: str, room: int) -> list[str]:
        """Ledger lines that arrived before the bound and whose run is gone."""
        return [r[0] for r in self.sql.all("prunable_firings", after=after, bound=bound, room=room)]

    def prune_firings(self, firing_ids: Sequence[str]) -> None:
        self.sql.each("prune_firings", [(firing,) for firing in firing_ids])

    def prunable_logs(self, *, after: str, bound: str, before: Instant, room: int) -> list[str]:
        """Runs that are gone and to which nothing happened since; their logs are still there."""
        return [r[0] for r in self.sql.all("prunable_logs", after=after, bound=bound, before=before, room=room)]

    def prune_transitions(self, run_ids: Sequence[str]) -> None:
        """Delete the logs of runs, whole."""
        self.sql.each("prune_transitions", [(run,) for run in run_ids])

    def prune_inbox(self, *, read_before: Instant, before: Instant, room: int) -> int:
        """Delete messages that were read before the one bound, or written before the other; how many."""
        read = self.sql.run("prune_read", before=read_before, room=room)
        return read + self.sql.run("prune_unread", before=before, room=room - read)

    def prune_workers(self, *, before: Instant) -> int:
        return self.sql.run("prune_workers", before=before)
