"""Claiming: a queued run becomes a running one, under a worker and a token, its start written down."""

from __future__ import annotations

from collections.abc import Sequence

from nightporter.clock import Instant
from nightporter.dispatch.at_hand import Definitions, Runners
from nightporter.dispatch.behind import release_behind
from nightporter.dispatch.claimed import Claimed, marks_its_start_here, started_key
from nightporter.dispatch.lapse import lapse
from nightporter.states import ASLEEP
from nightporter.store import Tx
from nightporter.store.tx_admission import Arrival, NewRun
from nightporter.store.tx_dispatch import Candidate
from nightporter.words import AutomationId, RunId, TriggerId, Work
from nightporter.words.kept import Unreadable, read_back

CLAIM_LIMIT = 500
"""Runs a claim takes at most: what waits behind it waits milliseconds."""


def claim(
    tx: Tx, *, worker: str, room: int, now: Instant, runners: Runners, definitions: Definitions,
    only: RunId | None = None,
) -> list[Claimed]:
    """Claim due runs that these runners can execute, best rank first and fair across workspaces, `room` at most.
    `only` names a single run; a person wants it run here, whether this process has what it needs or not.

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
    chosen: list[Candidate] = []
    counted: set[str] = set()
    room = min(room, CLAIM_LIMIT)
    page = 0
    while len(chosen) < room:
        if only:
            found = ours = tx.candidate(only)
        else:
            found = tx.candidates(max(room - len(chosen), page), definitions.able(runners, tx))
            strange = definitions.not_served(tx, found, runners)
            ours = [c for c in found if (c.automation_id, c.version) not in strange]
            page = CLAIM_LIMIT if strange else 0  # who is not served comes in crowds
        some, blocked, stale, starts = _choose(tx, ours[:room - len(chosen)], now)
        for at, together in _by_instant(some, now).items():
            tx.claim([c.run_id for c in together], worker=worker, now=at)
        chosen += some
        counted |= starts
        tx.block(blocked)
        paused = {run for run, why in blocked if why == "paused"}
        release_behind(tx, {c.automation_id for c in ours if c.run_id in paused}, now=now)
        lapse(tx, stale, definitions, now=now)
        if not blocked and not stale and len(ours) == len(found):
            break  # otherwise others may stand behind those that are out of the way now
    tx.note_starts(counted, now=now)
    payloads = tx.payloads([c.carries or c.firing_id for c in chosen if c.has_payload])
    if any(c.merged and c.carries is None for c in chosen):
        joined = tx.joined([c.run_id for c in chosen if c.merged and c.carries is None])
        payloads |= {c.firing_id: joined[c.run_id] for c in chosen if c.run_id in joined}
    definitions.fetch(tx, {(c.automation_id, c.version) for c in chosen})
    claimed = []
    for at, together in _by_instant(chosen, now).items():
        begun = [
            _claimed(tx, c, payloads.get(c.carries or c.firing_id), definitions, at,
                     token=c.token + 1, attempt=c.attempt + 1, seq=c.seq + 1)
            for c in together
        ]
        tx.write_transitions(
            [(c.work.run_id, c.seq, "queued", "running", None, worker, c.work.token, c.work.attempt, None)
             for c in begun],
            now=at,
        )
        _mark_starts(tx, begun, runners, at)
        claimed += begun
    return claimed


def _by_instant(candidates: Sequence[Candidate], now: Instant) -> dict[Instant, list[Candidate]]:
    """By when they begin: now, and where the clock was set back since, no earlier than what is written of a run."""
    if all(c.not_before <= now for c in candidates):
        return {now: list(candidates)} if candidates else {}
    found: dict[Instant, list[Candidate]] = {}
    for c in candidates:
        found.setdefault(max(now, c.not_before), []).append(c)
    return found


def take(
    tx: Tx, arrivals: Sequence[Arrival], *, worker: str, room: int, now: Instant, runners: Runners,
    definitions: Definitions,
) -> list[Claimed]:
    """Claim runs as they are admitted: what queueing and claiming them would leave, without the detour.

    `now`: when they are admitted. Those that may not begin are left to be queued. All are where there is no room for
    each, or where a run waits that they would pass: who comes first is for `claim` to say.
    """
    may, timed = tx.claim_facts(worker, now)
    if not may or timed or tx.waits(definitions.able(runners, tx)):
        return []
    awake = [a for a in arrivals if a.run.blocked is None and a.run.runner in runners and not a.cooldown
             and a.automation_state not in ASLEEP]
    strange = definitions.not_served(tx, [a.run for a in awake], runners)
    ours = [a for a in awake if (a.run.automation_id, a.run.version) not in strange]
    taken = _under_their_ceilings(tx, ours)
    if not taken or len(taken) > room:
        return []
    tx.begin_runs([a.run for a in taken], worker=worker, now=now)
    definitions.fetch(tx, {(a.run.automation_id, a.run.version) for a in taken})
    claimed = [_claimed(tx, a.run, (a.text, a.payload), definitions, now, token=1, attempt=1, seq=2) for a in taken]
    _mark_starts(tx, claimed, runners, now)
    return claimed


def _under_their_ceilings(tx: Tx, arrivals: list[Arrival]) -> list[Arrival]:
    # Admission holds the locks of their automations, so nobody else begins one meanwhile.
    running = tx.running_of({a.run.automation_id for a in arrivals if a.concurrent is not None})
    found = []
    for a in arrivals:
        automation = a.run.automation_id
        if a.concurrent is None or running.get(automation, 0) < a.concurrent:
            running[automation] = running.get(automation, 0) + 1
            found.append(a)
    return found


def resume_held(tx: Tx, now: Instant) -> None:
    """held -> queued for runs whose provider asked to be called again by now."""
    rows = tx.resume(tx.held_due(now))
    tx.write_transitions(
        [(run, seq, "held", "queued", None, None, token, attempt, None) for run, seq, token, attempt in rows],
        now=tx.not_before([row[0] for row in rows], now),
    )


def _choose(
    tx: Tx, candidates: Sequence[Candidate], now: Instant
) -> tuple[list[Candidate], list[tuple[str, str]], list[Candidate], set[str]]:
    """`(to claim, (run, why blocked), too old to be begun, automations whose starts are counted)`."""
    # Whatever a claim decides by is read under the automation's lock: a ceiling, a cooldown, that it is asleep.
    counted = {c.automation_id for c in candidates
               if c.concurrent is not None or c.cooldown or c.automation_state in ASLEEP or _is_stale(c, now)}
    locked = tx.try_lock_automations(counted) if counted else {}
    running = tx.running_of(locked) if locked else {}
    chosen: list[Candidate] = []
    blocked: list[tuple[str, str]] = []
    stale: list[Candidate] = []
    starts: set[str] = set()
    for c in candidates:
        automation = c.automation_id
        if automation in counted and automation not in locked:
            continue  # another process is counting its runs just now; the next round finds it
        if locked.get(automation, c.automation_state) in ASLEEP and c.source != "manual":
            blocked.append((c.run_id, "paused"))
        elif _is_stale(c, now):
            stale.append(c)
        elif c.concurrent is not None and running.get(automation, 0) >= c.concurrent:
            blocked.append((c.run_id, "concurrency"))
        else:
            chosen.append(c)
            running[automation] = running.get(automation, 0) + 1
            if c.cooldown and c.source != "manual":
                starts.add(automation)
    return chosen, blocked, stale, starts


def _is_stale(candidate: Candidate, now: Instant) -> bool:
    return candidate.stale_at is not None and candidate.stale_at < now


def _claimed(
    tx: Tx, c: Candidate | NewRun, carried: tuple[str, str | None] | None, definitions: Definitions, now: Instant, *,
    token: int, attempt: int, seq: int,
) -> Claimed:
    """`carried`: text and JSON of the firing."""
    name, definition, error, payload, text = "", None, "", None, ""
    try:
        name, definition = definitions.get(tx, c.automation_id, c.version)
        if c.has_payload:
            if carried is None:
                raise Unreadable("it is not in the store any more")
            text, raw = carried
            payload = None if raw is None else read_back(raw)
    except (Unreadable, ValueError) as unreadable:  # one bad row is this run's failure and nobody else's
        error = f"its definition or payload cannot be read: {unreadable}"
        definition = None
    work = Work(
        run_id=RunId(c.run_id), token=token, attempt=attempt,
        automation_id=AutomationId(c.automation_id), automation=name,
        workspace=c.workspace, trigger_id=TriggerId(c.trigger_id), source=c.source, kind=c.runner,
        config=definition.target.config if definition else {}, text=text, payload=payload,
        scheduled_for=c.scheduled_for, started_at=now, timeout=definition.limits.timeout if definition else None,
        output_limit=definition.limits.output if definition else 0,
    )
    look = definition.look_of(work.trigger_id.rpartition("/")[2]) if definition else None
    return Claimed(work, c.attempts, seq, definition, error, look)


def _mark_starts(tx: Tx, claimed: Sequence[Claimed], runners: Runners, now: Instant) -> None:
    here = {kind for kind, runner in runners.items() if marks_its_start_here(runner)}
    tx.intend(
        [(c.work.run_id, started_key(c.work.token), "started", c.work.attempt, c.work.token)
         for c in claimed if c.work.kind in here and c.look is None],  # otherwise once its look has answered
        now=now,
    )
