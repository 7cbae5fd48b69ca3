"""Claiming: a queued run becomes a running one, under a worker and a token, its start written down."""

from __future__ import annotations

import contextlib
import json
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass

from nightporter.clock import Instant
from nightporter.store import Tx
from nightporter.store.sql_port import Row
from nightporter.words import Definition, QuickRunner, RunId, Runner, Work

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

    def fetch(self, tx: Tx, keys: set[tuple[str, int]]) -> None:
        """Read those of a batch that are not at hand, in one query. What is unreadable is left to `get`."""
        for automation_id, version, name, text in tx.definitions(keys - self._kept.keys()):
            with contextlib.suppress(ValueError, KeyError, TypeError):
                self._keep((automation_id, version), name, Definition.from_json(text))

    def _keep(self, key: tuple[str, int], name: str, definition: Definition) -> None:
        self._kept[key] = (name, definition)
        if len(self._kept) > self._limit:
            self._kept.popitem(last=False)

    def get(self, tx: Tx, automation_id: str, version: int) -> tuple[str, Definition]:
        """`(automation's name, definition)`. Raises Conflict, ValueError, KeyError or TypeError: unreadable."""
        key = (automation_id, version)
        if key not in self._kept:
            name, text = tx.definition(automation_id, version)
            self._keep(key, name, Definition.from_json(text))
        return self._kept[key]


def claim(
    tx: Tx, *, worker: str, room: int, now: Instant, runners: Runners, definitions: Definitions,
    only: RunId | None = None,
) -> list[Claimed]:
    """Claim due runs, best rank first and fair across workspaces, `room` at most. `only` names a single run.

    What may not start now is moved out of the way: behind a concurrency ceiling until a run ends, behind a pause
    until the automation is enabled. A stopped desk claims nothing, nor does a worker that was declared dead.
    """
    if room <= 0:
        return []
    may, timed = tx.claim_facts(worker, now)
    if not may:
        return []
    if timed:
        resume_held(tx, now)
        tx.stage(now)
    chosen: list[Row] = []
    counted: set[str] = set()
    room = min(room, CLAIM_LIMIT)
    while len(chosen) < room:
        candidates = tx.candidate(only) if only else tx.candidates(room - len(chosen))
        some, blocked, starts = _choose(tx, candidates)
        tx.claim([row[0] for row in some], worker=worker, now=now)
        chosen += some
        counted |= starts
        tx.block(blocked)
        if not blocked:
            break  # otherwise others may stand behind those that were moved out of the way
    tx.note_starts(counted, now=now)
    payloads = tx.payloads([row[8] for row in chosen if row[16]])
    definitions.fetch(tx, {(row[1], row[9]) for row in chosen})
    claimed = [_claimed(tx, row, payloads, definitions, now) for row in chosen]
    tx.write_transitions(
        [(c.work.run_id, c.seq, "queued", "running", None, worker, c.work.token, c.work.attempt, None)
         for c in claimed],
        now=now,
    )
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


def _choose(tx: Tx, candidates: list[Row]) -> tuple[list[Row], list[tuple[str, str]], set[str]]:
    """`(to claim, (run, why blocked), automations whose starts are counted)`."""
    # Whatever a claim decides by is read under the automation's lock: a ceiling, a cooldown, that it is asleep.
    counted = {row[1] for row in candidates if row[3] is not None or row[4] or row[5] in ASLEEP}
    locked = tx.try_lock_automations(counted) if counted else {}
    running = tx.running_of(locked) if locked else {}
    chosen: list[Row] = []
    blocked: list[tuple[str, str]] = []
    starts: set[str] = set()
    for row in candidates:
        run, automation, source, concurrent, cooldown, state = row[:6]
        if automation in counted and automation not in locked:
            continue  # another process is counting its runs just now; the next round finds it
        if locked.get(automation, state) in ASLEEP and source != "manual":
            blocked.append((run, "paused"))
        elif concurrent is not None and running.get(automation, 0) >= concurrent:
            blocked.append((run, "concurrency"))
        else:
            chosen.append(row)
            running[automation] = running.get(automation, 0) + 1
            if cooldown and source != "manual":
                starts.add(automation)
    return chosen, blocked, starts


ASLEEP = frozenset({"proposed", "paused", "auto_paused", "config_error"})
"""States of an automation whose queued runs wait until it is enabled."""


def _claimed(
    tx: Tx, row: Row, payloads: Mapping[str, tuple[str, str | None]], definitions: Definitions, now: Instant
) -> Claimed:
    (run_id, automation_id, source, _, _, _, workspace, trigger_id, firing_id, version, runner, attempt, attempts,
     token, seq, scheduled_for, has_payload) = row
    name, definition, error, payload, text = "", None, "", None, ""
    try:
        name, definition = definitions.get(tx, automation_id, version)
        if has_payload:
            text, raw = payloads[firing_id]
            payload = None if raw is None else json.loads(raw)
    except Exception as unreadable:  # one bad row is this run's failure and nobody else's
        error = f"its definition or payload cannot be read: {unreadable}"
        definition = None
    work = Work(
        run_id=run_id, token=token + 1, attempt=attempt + 1, automation_id=automation_id, automation=name,
        workspace=workspace, trigger_id=trigger_id, source=source, kind=runner,
        config=definition.target.config if definition else {}, text=text, payload=payload,
        scheduled_for=scheduled_for, started_at=now, timeout=definition.limits.timeout if definition else None,
        output_limit=definition.limits.output if definition else 0,
    )
    return Claimed(work, attempts, seq + 1, definition, error)


def _marks_its_start_here(runner: Runner | QuickRunner | None) -> bool:
    # A runner that launches a child marks its start with the child, before the child is let go.
    return runner is not None and runner.opaque and not getattr(runner, "launches", False)
