"""What a person may ask of runs and deliveries: run now, cancel, replay, review, send again, stop everything."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Literal

from nightporter.admission import admit
from nightporter.clock import Instant
from nightporter.dispatch import Final, conclude, release_behind
from nightporter.errors import BadInput, Conflict, NotFound
from nightporter.states import RunState
from nightporter.store import Tx
from nightporter.store.tx_sweep import STOPPED
from nightporter.words import Answer, Definition, Firing, Reason, RunId, TriggerId


def fire(
    tx: Tx, automation_id: str, *, trigger: str, external_id: str, payload: Any = None, text: str = "",
    by: str = "", now: Instant, replay_of: RunId | None = None, carried: str | None = None,
) -> Answer:
    """One firing of the trigger of that name (`manual`, `call`), through admission like any other.

    `payload` is a JSON value; `carried` is one already written. Raises BadInput when it is not JSON.
    """
    if carried is None and payload is not None:
        carried = as_payload(payload)
    firing = Firing(
        TriggerId(f"{automation_id}/{trigger}"), external_id, text=text, payload=carried, sender=by, replay_of=replay_of
    )
    return admit(tx, [firing], now=now)[0]


def as_payload(value: Any) -> str:
    """A payload as it is stored. Raises BadInput when it is not a JSON value."""
    try:
        return json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError) as error:
        raise BadInput("the payload is not a JSON value", why=str(error), next="pass plain values only") from error


def cancel_runs(tx: Tx, run_ids: Sequence[str], *, reason: Reason, by: str, now: Instant) -> tuple[int, int]:
    """End runs: `(cancelled at once, asked to end)`. Those that have ended already are left alone."""
    tx.lock_automations(tx.automations_of_runs(run_ids))
    before = tx.run_states(run_ids)
    cancelled = tx.cancel([(r, reason, by) for r in run_ids], now=now)
    tx.write_transitions(
        [(run, seq, before[run][0], "cancelled", reason, None, token, attempt, None)
         for run, seq, _, token, attempt in cancelled],
        now=now,
    )
    conclude(
        tx,
        [
            Final(RunId(run), automation, before[run][1], before[run][2], RunState.CANCELLED, None, reason, "", False,
                  None)
            for run, _, automation, _, _ in cancelled
        ],
        now=now,
    )
    asked = tx.ask_to_cancel([(r, reason, by) for r in run_ids], now=now)
    release_behind(tx, {row[2] for row in cancelled}, now=now)
    return len(cancelled), len(asked)


def replay(tx: Tx, run_id: str, *, external_id: str, by: str, now: Instant, payload: Any = None) -> Answer:
    """Run the same work again as a new run that names the old one, with its payload or another."""
    row = tx.run_origin(run_id)
    if row is None:
        raise NotFound(f"no run has the id {run_id}", next="`nightporter runs` lists them")
    automation_id, firing_id = row
    text, carried = tx.payloads([firing_id]).get(firing_id, ("", None))
    return fire(
        tx, automation_id, trigger="manual", external_id=external_id, text=text, by=by, now=now,
        replay_of=RunId(run_id), payload=payload, carried=None if payload is not None else carried,
    )


def review(tx: Tx, run_id: str, decision: Literal["retry", "dismiss"], *, by: str, now: Instant) -> None:
    """A person's answer about a run that may have acted. Raises Conflict when it does not wait for one."""
    origin = tx.run_origin(run_id)
    if origin is None:
        raise NotFound(f"no run has the id {run_id}", next="`nightporter runs --state review` lists those that wait")
    tx.lock_automations([origin[0]])
    if decision == "retry":
        rows = [(r[0], r[1], r[2], r[3]) for r in tx.requeue([run_id], now=now)]
        tx.forget_intents(run_id)
    else:
        rows = [(r[0], r[1], r[2], r[3]) for r in tx.dismiss([run_id], now=now)]
    if not rows:
        raise Conflict(f"{run_id} does not wait for a review", next=f"nightporter explain {run_id}")
    run, seq, token, attempt = rows[0]
    state, workspace, name = tx.run_states([run])[run]
    tx.write_transitions(
        [(run, seq, "review", state, None if decision == "retry" else Reason.DISMISSED, by, token, attempt, None)],
        now=now,
    )
    if decision == "dismiss":
        conclude(
            tx,
            [Final(RunId(run), origin[0], workspace, name, RunState.FAILED, None, Reason.DISMISSED, "", False, None)],
            now=now,
        )


def resend(tx: Tx, delivery_id: str, *, now: Instant) -> None:
    """Send a result again, as the same delivery with the same event id. Raises Conflict unless trying has stopped."""
    if not tx.resend(delivery_id, now=now):
        raise Conflict(f"delivery {delivery_id} is not given up, unknown or unverified",
                       why="what is still being tried, or was delivered, is left alone")


def stop(tx: Tx, *, by: str, reason: str, now: Instant) -> int:
    """Stop the whole desk: nothing starts, nothing is delivered, what runs is asked to end; how many runs.

    It survives restarts, and only `lift` ends it.
    """
    tx.stop(json.dumps({"by": by, "reason": reason, "at": now}))
    running = tx.all_running()
    tx.ask_to_cancel([(r, Reason.STOPPED, by) for r in running], now=now)
    return len(running)


def lift(tx: Tx) -> None:
    """End a stop. Raises Conflict when there is none."""
    if not tx.stopped():
        raise Conflict("the desk is not stopped")
    tx.drop_setting(STOPPED)
    tx.kicks.update(("due", "queued", "delivery"))


def definition_of(tx: Tx, automation_id: str) -> Definition:
    """The definition in force. Raises NotFound."""
    row = tx.automation(automation_id)
    if row is None:
        raise NotFound(f"no automation has the id {automation_id}", next="`nightporter list` shows what there is")
    return Definition.from_json(tx.definition(automation_id, row.version)[1])
