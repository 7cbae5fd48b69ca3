"""Claiming: a queued run becomes a running one, under a worker and a token, its start written down."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from nightporter.clock import Instant
from nightporter.store import Tx
from nightporter.words import AutomationId, Definition, QuickRunner, RunId, Runner, TriggerId, Work

CLAIM_LIMIT = 500
"""Runs a claim takes at most: what waits behind it waits milliseconds."""

Runners = Mapping[str, Runner | QuickRunner]


@dataclass(frozen=True, slots=True)
class Claimed:
    """A run under this worker's claim."""

    work: Work
    attempts: int
    seq: int
    definition: Definition | None
    """None: it cannot be read, and `error` says why."""
    error: str = ""


class Definitions:
    """The definitions that runs were admitted with, kept while they are in use. Versions never change."""

    def __init__(self, limit: int = 4096) -> None:
        self._kept: OrderedDict[tuple[str, int], tuple[str, Definition]] = OrderedDict()
        self._limit = limit

    def get(self, tx: Tx, automation_id: str, version: int) -> tuple[str, Definition]:
        """`(automation's name, definition)`. Raises Conflict, ValueError, KeyError or TypeError: unreadable."""
        key = (automation_id, version)
        found = self._kept.get(key)
        if found is None:
            name, text = tx.definition(automation_id, version)
            found = self._kept[key] = (name, Definition.from_json(text))
            if len(self._kept) > self._limit:
                self._kept.popitem(last=False)
        return found


def claim(
    tx: Tx, *, worker: str, room: int, now: Instant, runners: Runners, definitions: Definitions, scratch: Path,
    only: RunId | None = None,
) -> list[Claimed]:
    """Claim due runs, best rank first and fair across workspaces, `room` at most. `only` names a single run.

    What may not start now is moved out of the way: behind a concurrency ceiling until a run ends, behind a pause
    until the automation is enabled. A stopped desk claims nothing.
    """
    if room <= 0 or tx.stopped():
        return []
    resume_held(tx, now)
    tx.stage(now)
    candidates = tx.candidate(only) if only else tx.candidates(min(room, CLAIM_LIMIT))
    chosen, blocked, counted = _choose(tx, candidates)
    tx.block(blocked)
    if blocked and len(candidates) >= room:
        tx.kick("queued")  # others may stand behind those that were moved out of the way
    rows = tx.claim(chosen, worker=worker, now=now)
    tx.note_starts(counted, now=now)
    tx.write_transitions(
        [(row[0], row[11], "queued", "running", None, worker, row[10], row[8], None) for row in rows], now=now
    )
    payloads = tx.payloads([row[4] for row in rows if row[13]])
    claimed = [_claimed(tx, row, payloads, definitions, scratch, now) for row in rows]
    tx.intend(
        [(c.work.run_id, started_key(c.work.token), "started", c.work.attempt, c.work.token)
         for c in claimed if _marks_its_start_here(runners.get(c.work.kind))],
        now=now,
    )
    return claimed


def started_key(token: int) -> str:
    """The effect that says an attempt was started whose acts nobody can see."""
    return f"started:{token}"


def resume_held(tx: Tx, now: Instant) -> None:
    """held -> queued for runs whose provider asked to be called again by now."""
    rows = tx.resume(tx.held_due(now))
    tx.write_transitions(
        [(run, seq, "held", "queued", None, None, token, attempt, None) for run, seq, token, attempt in rows], now=now
    )


def _choose(tx: Tx, candidates: list[tuple[object, ...]]) -> tuple[list[str], list[tuple[str, str]], set[str]]:
    """`(to claim, (run, why blocked), automations whose starts are counted)`."""
    counted = {str(a) for _, a, _, concurrent, cooldown, _, _ in candidates if concurrent is not None or cooldown}
    locked = tx.try_lock_automations(counted) if counted else set()
    running = tx.running_of(locked) if locked else {}
    chosen: list[str] = []
    blocked: list[tuple[str, str]] = []
    starts: set[str] = set()
    for run, automation, source, concurrent, cooldown, state, _ in candidates:
        run, automation = str(run), str(automation)
        if state in ("proposed", "paused", "auto_paused", "config_error") and source != "manual":
            blocked.append((run, "paused"))
        elif automation in counted and automation not in locked:
            continue  # another process is counting its runs just now; the next round finds it
        elif isinstance(concurrent, int) and running.get(automation, 0) >= concurrent:
            blocked.append((run, "concurrency"))
        else:
            chosen.append(run)
            running[automation] = running.get(automation, 0) + 1
            if cooldown and source != "manual":
                starts.add(automation)
    return chosen, blocked, starts


def _claimed(
    tx: Tx, row: tuple[object, ...], payloads: Mapping[str, tuple[str, str | None]], definitions: Definitions,
    scratch: Path, now: Instant,
) -> Claimed:
    (run_id, workspace, automation_id, trigger_id, firing_id, source, version, runner, attempt, attempts, token, seq,
     scheduled_for, _, _) = row
    name, definition, error, payload = "", None, "", None
    text, raw = payloads.get(str(firing_id), ("", None))
    try:
        name, definition = definitions.get(tx, str(automation_id), int(version))  # type: ignore[call-overload]  # a row
        payload = None if raw is None else json.loads(raw)
    except Exception as unreadable:  # one bad row is this run's failure and nobody else's
        error = f"its definition or payload cannot be read: {unreadable}"
    work = Work(
        run_id=RunId(str(run_id)), token=int(token), attempt=int(attempt),  # type: ignore[call-overload]  # a row
        automation_id=AutomationId(str(automation_id)), automation=name, workspace=str(workspace),
        trigger_id=TriggerId(str(trigger_id)), source=str(source), kind=str(runner),
        config=definition.target.config if definition else {}, text=text, payload=payload,
        scheduled_for=None if scheduled_for is None else Instant(int(scheduled_for)),  # type: ignore[call-overload]
        started_at=now, timeout=definition.limits.timeout if definition else None,
        output_limit=definition.limits.output if definition else 0, scratch=scratch / str(run_id),
    )
    return Claimed(work, int(attempts), int(seq), definition, error)  # type: ignore[call-overload]  # a row


def _marks_its_start_here(runner: Runner | QuickRunner | None) -> bool:
    # A runner that launches a child marks its start with the child, before the child is let go.
    return runner is not None and runner.opaque and not getattr(runner, "launches", False)
