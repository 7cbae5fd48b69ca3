"""Dispatch's part of a transaction: claims, endings, effects, children."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple
from zlib import crc32

from nightporter.clock import Instant
from nightporter.errors import LostClaim
from nightporter.store.sql_port import Row
from nightporter.store.tx_admission import NewRun
from nightporter.store.tx_base import TxBase


class Candidate(NamedTuple):
    """A run that may be claimed, and what a claim has to know of it; the columns of `run_candidates`."""

    run_id: str
    automation_id: str
    source: str
    concurrent: int | None
    cooldown: int
    automation_state: str
    workspace: str
    trigger_id: str
    firing_id: str
    version: int
    runner: str
    attempt: int
    attempts: int
    token: int
    seq: int
    scheduled_for: Instant | None
    has_payload: int
    not_before: Instant
    """Of its latest step: what is written of it next is no earlier."""
    merged: int
    """Arrivals that were folded into it."""
    carries: str | None
    """The firing whose payload it carries; None: its own, with the words of those that were folded into it."""
    stale_at: Instant | None
    """When it is too old to be begun, where it has not been."""


class Able(NamedTuple):
    """What a process can execute, as queries take it: names between bars."""

    kinds: str
    """Of runners it has."""
    beside: str = ""
    """`automation/version` of what it cannot run although it has the runner."""
    among: str = ""
    """`automation/version` of what it can run besides."""


class WaitingVersion(NamedTuple):
    """A version of a definition that runs wait for; the columns of `run_versions_waiting`."""

    automation_id: str
    version: int
    runner: str


class Fence(NamedTuple):
    """What an end has to know of a claim that is current; columns of `run_fences`."""

    seq: int
    cancel_reason: str | None
    worker: str
    began_at: Instant


class Health(NamedTuple):
    """An automation once the ends of some of its runs were counted; columns of `automation_health`."""

    automation_id: str
    errors_in_a_row: int
    failing: int
    """1: an incident of its runs may stand."""
    state: str


class Waiting(NamedTuple):
    """A run that waits, before it is cancelled."""

    run_id: str
    state: str
    automation_id: str
    version: int
    workspace: str
    automation: str


def bars(names: Collection[str]) -> str:
    """Names as one parameter: a query asks whether `|name|` is in it. None is none."""
    return f"|{'|'.join(sorted(names))}|" if names else ""


class DispatchTx(TxBase):
    # -- before a claim ---------------------------------------------------------------------------------------

    def stage(self, now: Instant) -> int:
        """Let runs whose time has come be claimed; how many."""
        return self.sql.run("run_stage", now=now)

    def next_timed(self) -> Instant | None:
        """When the next retry or held run comes due."""
        row = self.sql.one("run_timed_next")
        return None if row is None else row[0]

    def work_waiting(self, now: Instant, able: Able) -> bool:
        """Whether anything could be claimed by a process that is `able`, or delivered, just now."""
        row = self.sql.one("work_waiting", now=now, **able._asdict())
        return row is not None and bool(row[0])

    def claim_facts(self, worker: str, now: Instant) -> tuple[bool, bool]:
        """`(this worker may take work, the time of a retry or a held run has come)`.

        It may not while the desk is stopped or about to be, nor once somebody declared it dead.
        """
        row = self.sql.one("claim_facts", worker=worker, now=now)
        assert row is not None
        return not (row[0] or row[1]), bool(row[2])

    def held_due(self, now: Instant) -> list[str]:
        return [r[0] for r in self.sql.all("run_held_due", now=now)]

    def resume(self, run_ids: Collection[str]) -> list[Row]:
        """held -> queued: `(run, seq, token, attempt)` of those that were held."""
        return self.sql.each("run_resume", [(r,) for r in run_ids])

    def queued_by_kind(self) -> list[Row]:
        """`(runner, runs, oldest admitted at)` of what could be claimed: what nobody has the runner for stays there."""
        return self.sql.all("run_queued_by_kind")

    def candidates(self, room: int, able: Able) -> list[Candidate]:
        """Claimable runs that a process can execute that is `able`, best rank first within a workspace, every
        workspace served in turn; locked.

        Who is served first is drawn, but from the runs themselves: with room for one, the first by name would be
        served alone, and by rank one with a long line before all that came later. A claim changes what is drawn from.
        """
        queues: list[list[Candidate]] = []
        for (workspace,) in self.sql.all("run_workspaces"):
            found = self.sql.all("run_candidates", workspace=workspace, room=room, **able._asdict())
            if found:
                queues.append([Candidate._make(row) for row in found])
        if len(queues) <= 1:
            return queues[0] if queues else []
        first = crc32(" ".join(queue[0].run_id for queue in queues).encode()) % len(queues)
        queues = queues[first:] + queues[:first]
        return [row for turn in range(room) for queue in queues for row in queue[turn : turn + 1]][:room]

    def candidate(self, run_id: str) -> list[Candidate]:
        """The same for one named run, whatever its runner."""
        return [Candidate._make(row) for row in self.sql.all("run_candidate", id=run_id)]

    def try_lock_automations(self, ids: Collection[str]) -> dict[str, str]:
        """The state, as it is under the lock, of those that nobody else holds."""
        return {r[0]: r[1] for r in self.sql.each("automation_try_lock", [(a,) for a in sorted(ids)])}

    def lock_automations(self, ids: Collection[str]) -> None:
        """In the order of ids, so that two processes never wait for one another."""
        if self.dialect != "sqlite":  # there whoever writes has the whole store, and the statement would only cost
            self.sql.each("automation_lock", [(a,) for a in sorted(ids)])

    def running_of(self, ids: Collection[str]) -> dict[str, int]:
        return dict(self.sql.each("automation_running", [(a,) for a in ids]))

    def block(self, rows: Sequence[tuple[str, str]]) -> None:
        """`(run, why)`: out of the claim's way."""
        self.sql.each("run_block", rows)

    def claim(self, run_ids: Sequence[str], *, worker: str, now: Instant) -> None:
        """queued -> running, for candidates of this transaction."""
        self.sql.each("run_claim", [(r,) for r in run_ids], worker=worker, now=now)

    def waits(self, able: Able) -> bool:
        """Whether a run could be claimed by a process that is `able`."""
        row = self.sql.one("run_waits", **able._asdict())
        return row is not None and bool(row[0])

    def waiting_versions(self, kinds: str) -> list[WaitingVersion]:
        """Of the definitions whose runs could be claimed by runners of these kinds, best rank first."""
        return [WaitingVersion._make(row) for row in self.sql.all("run_versions_waiting", kinds=kinds)]

    def begin_runs(self, runs: Sequence[NewRun], *, worker: str, now: Instant) -> None:
        """Insert running runs under their first claim, each with the two transitions to there."""
        self.sql.each("run_begin", runs, worker=worker, now=now)
        ids = [(run.run_id,) for run in runs]
        self.sql.each("transition_queue", ids, now=now)
        self.sql.each("transition_begin", ids, worker=worker, now=now)

    def note_starts(self, automation_ids: Collection[str], *, now: Instant) -> None:
        self.sql.each("automation_started", [(a,) for a in sorted(automation_ids)], now=now)

    def payloads(self, firing_ids: Sequence[str]) -> dict[str, tuple[str, str | None]]:
        """`(text, payload JSON)` by firing."""
        return {r[0]: (r[1], r[2]) for r in self.sql.each("firing_payload", [(f,) for f in firing_ids])}

    def joined(self, run_ids: Sequence[str]) -> dict[str, tuple[str, str | None]]:
        """`(text, payload JSON)` by run, of all its firings together: their words in their order, the last payload."""
        found: dict[str, tuple[str, str | None]] = {}
        for run, text, payload in self.sql.each("run_words", [(r,) for r in run_ids]):
            before, earlier = found.get(run, ("", None))
            found[run] = "\n".join(each for each in (before, text) if each), earlier if payload is None else payload
        return found

    def definitions(self, keys: Collection[tuple[str, int]]) -> list[Row]:
        """`(automation, version, automation's name, definition JSON)` of `(automation, version)`."""
        return self.sql.each("definitions_of", list(keys))

    # -- the ways out of running, each fenced ---------------------------------------------------------------------

    def fences(self, claims: Sequence[tuple[str, int]]) -> dict[tuple[str, int], Fence]:
        """Of the claims `(run, token)`, those that are current, locked."""
        return {(r[0], r[1]): Fence._make(r[2:]) for r in self.sql.each("run_fences", claims)}

    def not_before(self, run_ids: Collection[str], now: Instant) -> Instant:
        """Now, or the latest instant that is written down of any of these runs, if a clock was set back since."""
        return max([now, *self.latest(run_ids).values()])

    def latest(self, run_ids: Collection[str]) -> dict[str, Instant]:
        """The latest instant that is written down of each run."""
        rows = self.sql.each("run_latest", [(r,) for r in run_ids])
        return {run: Instant(max(at for at in instants if at is not None)) for run, *instants in rows}

    def end(self, rows: Sequence[Row], *, now: Instant) -> None:
        """`(run, token, state, reason, outcome, error class, error, exit code, dead since)`."""
        self.sql.each("run_end", rows, now=now)

    def retry(self, rows: Sequence[Row]) -> None:
        """`(run, token, run after, reason, error class, error, exit code)`."""
        self.sql.each("run_retry", rows)

    def hold(self, rows: Sequence[Row]) -> None:
        """`(run, token, run after, reason, error)`."""
        self.sql.each("run_hold", rows)

    def release(self, rows: Sequence[Row], *, now: Instant) -> None:
        """`(run, token, run after, reason, error)`."""
        self.sql.each("run_release", rows, now=now)

    def set_aside(self, rows: Sequence[Row]) -> None:
        """`(run, token, reason, error)`."""
        self.sql.each("run_set_aside", rows)

    def quarantine_run(self, run_id: str, error: str, *, now: Instant) -> None:
        """Name a run whose end could not be written as it was."""
        self.sql.run("quarantine_write", subject="run", key=run_id, error=error, now=now)

    def forget_quarantined_runs(self) -> int:
        """Those that are not in the store any more; how many."""
        return self.sql.run("quarantine_forget_runs")

    # -- cancelling -------------------------------------------------------------------------------------------

    def cancel(self, rows: Sequence[tuple[str, str, str]], *, now: Instant) -> list[Row]:
        """`(run, reason, by)` for runs that wait: returns `(run, seq, automation, token, attempt)` of the cancelled."""
        return self.sql.each("run_cancel", rows, now=now)

    def lapse(self, run_ids: Sequence[str], *, reason: str, now: Instant) -> list[Row]:
        """End runs that waited until nobody wants them: returns `(run, seq, token, attempt)`."""
        return self.sql.each("run_lapse", [(r,) for r in run_ids], reason=reason, now=now)

    def waiting(self, run_ids: Collection[str]) -> list[Waiting]:
        """Of these runs, those that wait, queued or held."""
        return [Waiting._make(row) for row in self.sql.each("run_waiting", [(r,) for r in run_ids])]

    def ask_to_cancel(self, rows: Sequence[tuple[str, str, str]], *, now: Instant) -> list[str]:
        """The same for running ones: their worker will end them."""
        self.kicks.add("cancel")
        return [r[0] for r in self.sql.each("run_cancel_ask", rows, now=now)]

    def cancel_asked(self, worker: str) -> list[Row]:
        """`(run, token, reason, by)` of this worker's runs that somebody wants ended."""
        return self.sql.all("run_cancel_asked", worker=worker)

    # -- what an ending changes beside the run -----------------------------------------------------------------

    def behind(self, automation_ids: Collection[str]) -> list[Row]:
        """`(automation, run, blocked, concurrent, source, its automation's state)` of runs that wait for another, by
        automation and rank."""
        return self.sql.each("run_behind", [(a,) for a in sorted(automation_ids)])

    def going_counts(self, automation_ids: Collection[str]) -> dict[str, tuple[int, int]]:
        """`(running, in the way of a run that must go alone)` by automation."""
        rows = self.sql.each("automation_going", [(a,) for a in sorted(automation_ids)])
        return {r[0]: (r[1], r[2]) for r in rows}

    def unblock(self, run_ids: Sequence[str], *, now: Instant) -> None:
        self.sql.each("run_unblock", [(r,) for r in run_ids], now=now)
        if run_ids:
            self.kicks.add("queued")

    def write_outputs(self, rows: Sequence[Row]) -> None:
        """`(run, text, data JSON, log)`."""
        self.sql.each("run_output_write", rows)

    def note_health(self, rows: Sequence[Row]) -> list[Health]:
        """`(automation, run, outcome, success at, failure at, reset, errors, 1 for an incident)`, one row an
        automation."""
        return [Health._make(row) for row in self.sql.each("automation_health", rows)]

    def complete(
        self, automation_ids: Collection[str], *, now: Instant, reason: str = "its only moment has its outcome"
    ) -> None:
        """One-shots with nothing armed any more."""
        self.sql.each("automation_complete", [(a,) for a in sorted(automation_ids)], now=now, reason=reason)

    def add_to_month(self, rows: Sequence[Row]) -> None:
        """`(automation, month, runs, succeeded, quiet, failed, cancelled)`, one row an automation and month."""
        self.sql.each("rollup_add", rows)

    # -- what a runner writes while it works --------------------------------------------------------------------

    def fence(self, run_id: str, token: int) -> tuple[int, Instant]:
        """The attempt under the claim, and when it began. Raises LostClaim when the claim is not the current one."""
        row = self.sql.one("run_fence", id=run_id, token=token)
        if row is None:
            raise LostClaim(f"claim {token} on {run_id} is no longer current",
                            why="the run went on without this worker",
                            next="stop the work: its result will not be written")
        return row[0], row[1]

    def write_child(
        self, run_id: str, token: int, *, worker: str, host: str, group: int, started: int, look: bool = False
    ) -> None:
        """`look`: it is a look's, and its line makes room for that of the work's own child."""
        self.sql.run("child_write", run_id=run_id, token=token, worker=worker, host=host, process_group=group,
                     started=started, look=int(look))

    def forget_children(self, claims: Sequence[tuple[str, int]]) -> None:
        self.sql.each("child_forget", claims)

    def effect(self, run_id: str, key: str) -> tuple[str, str, int, int] | None:
        """`(state, permalink, attempt, token)`."""
        row = self.sql.one("effect_find", run_id=run_id, key=key)
        return None if row is None else (row[0], row[1], row[2], row[3])

    def intend(self, rows: Sequence[tuple[str, str, str, int, int]], *, now: Instant) -> None:
        """`(run, key, name, attempt, token)`."""
        self.sql.each("effect_intend", rows, now=now)

    def effect_done(self, run_id: str, key: str, permalink: str, *, now: Instant) -> None:
        self.sql.run("effect_do", run_id=run_id, key=key, permalink=permalink, now=now)

    def started_done(self, rows: Sequence[tuple[str, str]], *, now: Instant) -> None:
        """`(run, key)` of start marks whose attempt has ended."""
        self.sql.each("effect_started_done", rows, now=now)

    def effect_counts(self, run_ids: Collection[str]) -> dict[str, tuple[int, int, int]]:
        """`(done, open questions, starts without an end)` by run."""
        return {r[0]: (r[1], r[2], r[3]) for r in self.sql.each("effect_counts", [(r,) for r in run_ids])}

    def forget_intents(self, run_id: str) -> None:
        """A person decided that what may have happened may happen again."""
        self.sql.run("effect_forget_intents", run_id=run_id)

    # -- runs as operations ask for them ------------------------------------------------------------------------

    def run_states(self, run_ids: Collection[str]) -> dict[str, tuple[str, str, str]]:
        """`(state, workspace, automation's name)` by run."""
        return {r[0]: (r[1], r[2], r[3]) for r in self.sql.each("run_states", [(r,) for r in run_ids])}

    def run_origin(self, run_id: str) -> tuple[str, str, bool] | None:
        """`(automation, the firing whose payload it carries, whether those of others beside it)`."""
        row = self.sql.one("run_origin", id=run_id)
        return None if row is None else (row[0], row[1], bool(row[2]))

    def automations_of_runs(self, run_ids: Collection[str]) -> set[str]:
        return {r[0] for r in self.sql.each("run_automations", [(r,) for r in run_ids])}

    def all_running(self) -> list[str]:
        return [r[0] for r in self.sql.all("run_all_running")]
