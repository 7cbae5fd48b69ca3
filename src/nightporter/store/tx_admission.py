"""Admission's part of a transaction."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from nightporter.clock import HOUR, Instant
from nightporter.rules.coalescing import Gathering
from nightporter.rules.gates import Load, TriggerFacts
from nightporter.store.sql_port import Row
from nightporter.store.tx_base import TxBase
from nightporter.words import Overlap, Policy

_NO_POLICY = Policy(Overlap.SKIP, None, None, 0, None, 50, 1, "")


class NewRun(NamedTuple):
    """A run that is about to be queued; the columns of `run_queue` and `run_begin`."""

    run_id: str
    workspace: str
    automation_id: str
    trigger_id: str
    firing_id: str
    source: str
    version: int
    runner: str
    blocked: str | None
    rank: int
    priority: int
    attempts: int
    scheduled_for: Instant | None
    root: str | None
    depth: int
    replay_of: str | None
    has_payload: int
    run_after: int
    catchup: int
    stale_at: Instant | None


class Arrival(NamedTuple):
    """A run that is about to be queued, and what a claim has to know beside it."""

    run: NewRun
    concurrent: int | None
    cooldown: int
    automation_state: str
    text: str
    payload: str | None
    """JSON."""


class Gather(NamedTuple):
    """A run that waits for others like it; the columns of `run_gather`."""

    run_id: str
    run_after: Instant
    merge_key: str
    merged: int
    carries: str | None
    """The firing whose payload it carries; None: as before."""
    has_payload: int | None


class AdmissionTx(TxBase):
    def trigger_facts(self, trigger_ids: Collection[str]) -> dict[str, TriggerFacts]:
        """Facts by trigger id, their automations locked; unknown ids are left out."""
        rows = self.sql.each("trigger_facts", [(t,) for t in sorted(trigger_ids)])
        found = {}
        for r in rows:
            try:
                policy, unreadable = Policy.from_json(r[5]), ""
            except ValueError as error:  # its own firings are skipped for it, and nobody else's
                policy, unreadable = _NO_POLICY, " ".join(str(error).split())[:200]
            found[r[0]] = TriggerFacts(
                r[0], r[1], r[2], bool(r[3]), r[4] is not None, policy, r[6], r[7], r[8], r[9], r[10], r[11], r[12],
                r[13], r[14], r[15], r[16], r[17], unreadable,
            )
        return found

    def recall(self, tellings: Iterable[tuple[str, str]]) -> dict[tuple[str, str], str | None]:
        """The run of each (trigger, external id) that was told before; None where it became none."""
        return {(r[0], r[1]): r[2] for r in self.sql.each("firing_recall", list(tellings))}

    def loads(
        self, automation_ids: Collection[str], *, queued_cap: int, going_cap: int, hour_cap: int, now: Instant
    ) -> dict[str, Load]:
        """The load of each automation; a cap of 0 counts nothing and costs nothing."""
        rows = self.sql.each(
            "automation_load", [(a,) for a in automation_ids],
            queued_cap=queued_cap, going_cap=going_cap, hour_cap=hour_cap, hour_from=now - HOUR,
        )
        return {r[0]: Load(*r[1:]) for r in rows}

    def going(self, automation_id: str) -> list[tuple[str, str, int, int, int]]:
        """`(run, state, token, seq, attempt)` of the unfinished runs of an automation."""
        rows = self.sql.all("run_going", automation_id=automation_id)
        return [(r[0], r[1], r[2], r[3], r[4]) for r in rows]

    def queue_runs(self, runs: Sequence[NewRun], *, now: Instant) -> None:
        """Insert queued runs, each with its first transition."""
        self.sql.each("run_queue", runs, now=now)
        self.sql.each("transition_queue", [(run.run_id,) for run in runs], now=now)

    def write_transitions(self, rows: Sequence[Row], *, now: Instant) -> None:
        """`(run, seq, from, to, reason, worker, token, attempt, error class)`."""
        self.sql.each("transition_write", rows, now=now)

    def write_firings(self, rows: Sequence[Row], payloads: Sequence[Row], *, now: Instant) -> None:
        """Ledger lines; columns as in the query. Payloads are `(firing, text, payload, metadata)`."""
        self.sql.each("firing_write", rows, now=now)
        self.sql.each("firing_payload_write", payloads)

    def count_triggers(self, rows: Sequence[Row], *, now: Instant) -> None:
        """`(trigger, firings, runs, last verdict, last reason)`, one row a trigger."""
        self.sql.each("trigger_count", rows, now=now)

    # -- what a policy counts and gathers; asked for where one does ------------------------------------------------

    def open_incidents(self, automation_ids: Collection[str]) -> dict[str, str]:
        """One open incident of each automation that has any."""
        return {r[0]: r[1] for r in self.sql.each("incident_open", [(a,) for a in sorted(automation_ids)])}

    def gathering(self, automation_id: str, trigger_id: str, merge_key: str) -> Gathering | None:
        """The run that waits for others like it, locked; the youngest, where there is more than one."""
        rows = self.sql.all("run_gathering", automation_id=automation_id, trigger_id=trigger_id, merge_key=merge_key)
        return Gathering(*rows[-1]) if rows else None

    def gather(self, rows: Sequence[Gather]) -> None:
        """Let runs wait for others like them, with what was folded into them."""
        self.sql.each("run_gather", rows)

    def count_arrivals(self, rows: Sequence[Row]) -> None:
        """`(trigger, arrivals since its threshold last let one through, when the first of them came)`."""
        self.sql.each("trigger_counted", rows)

    def count_scheduled(self, rows: Sequence[tuple[str, int]], *, now: Instant) -> None:
        """`(automation, runs that its schedules have started now)`."""
        self.sql.each("automation_counted", rows, now=now)

    def has_due(self, automation_id: str, now: Instant) -> bool:
        """Whether one of its slots has come and is not answered."""
        row = self.sql.one("automation_has_due", id=automation_id, now=now)
        return row is not None and bool(row[0])

    def disarm_all(self, automation_id: str) -> None:
        self.sql.run("trigger_disarm_all", automation_id=automation_id)

    def counted_runs(self, automation_id: str) -> int:
        """Runs that its schedules have started, where their number is limited."""
        row = self.sql.one("automation_counted_runs", id=automation_id)
        return 0 if row is None else int(row[0])

    def count_anew(self, automation_id: str) -> None:
        """Forget how many runs its schedules have started."""
        self.sql.run("automation_count_anew", id=automation_id)
