"""What a person may ask of runs and deliveries: run now, cancel, replay, review, send again, stop everything."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Sequence
from hashlib import blake2b
from typing import Any, Literal

from nightporter.admission import admit
from nightporter.clock import Instant
from nightporter.delivery import still_there
from nightporter.dispatch import Definitions, Final, cancel, conclude, release_behind
from nightporter.errors import BadInput, Conflict, NotFound
from nightporter.rules.ending import lane_of
from nightporter.rules.legible import legible
from nightporter.states import AutomationState, RunState
from nightporter.store import Tx
from nightporter.store.tx_sweep import STOPPED
from nightporter.words import Answer, Definition, Firing, Reason, RunId, Sight, TriggerId, Verdict


def fire(
    tx: Tx, automation_id: str, *, trigger: str, external_id: str, payload: Any = None, text: str = "",
    by: str = "", now: Instant, replay_of: RunId | None = None, carried: str | None = None,
    skip_look: bool = False,
) -> Answer:
    """One firing of the trigger of that name (`manual`, `call`), through admission like any other.

    `payload` is a JSON value; `carried` is one already written; `skip_look`: the run goes on whatever its look would
    say. Raises BadInput when it is not JSON.
    """
    if carried is None and payload is not None:
        carried = as_payload(payload)
    firing = Firing(
        TriggerId(f"{automation_id}/{trigger}"), external_id, text=legible(text), payload=carried, sender=by,
        replay_of=replay_of,
    )
    answer = admit(tx, [firing], now=now)[0]
    if skip_look and answer.verdict is Verdict.ADMITTED and answer.run_id is not None:
        look = definition_of(tx, automation_id).look_of(trigger)
        if look is not None:
            tx.write_looks([(answer.run_id, look.kind, Sight.SKIPPED, by)])
    return answer


DEEPEST = 100
"""Levels of a payload: whatever reads it again has its own stack to spare."""


def as_payload(value: Any) -> str:
    """A payload as it is stored. Raises BadInput when it is not a JSON value, or one that not every reader can read."""
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise BadInput("the payload is not a JSON value", why=str(error), next="pass plain values only") from error
    except RecursionError:
        raise _too_deep() from None
    if text.count("[") + text.count("{") > DEEPEST and not _reaches_the_bottom(value):
        raise _too_deep()
    return legible(text)


def _reaches_the_bottom(value: Any) -> bool:
    """Whether it is nested no deeper than what is taken."""
    level = [value]
    for _ in range(DEEPEST + 1):
        inside = [each.values() if isinstance(each, dict) else each for each in level
                  if isinstance(each, (dict, list, tuple))]
        if not inside:
            return True
        level = [one for each in inside for one in each]
    return False


def _too_deep() -> BadInput:
    return BadInput(f"the payload is nested deeper than {DEEPEST} levels", why="not every reader could read it again",
                    next="pass it flatter, or as a text")


def cancel_runs(tx: Tx, run_ids: Sequence[str], *, reason: Reason, by: str, now: Instant) -> tuple[int, int]:
    """End runs: `(cancelled at once, asked to end)`. Those that have ended already are left alone."""
    tx.lock_automations(tx.automations_of_runs(run_ids))
    cancelled = cancel(tx, [(r, reason, by) for r in run_ids], Definitions(), now=now)
    asked = tx.ask_to_cancel([(r, reason, by) for r in run_ids], now=now)
    release_behind(tx, cancelled, now=now)
    return len(cancelled), len(asked)


def _definitions(tx: Tx, run_ids: Sequence[str]) -> dict[str, Definition]:
    """What each run was admitted with, as far as it can be read."""
    versions = tx.run_versions(run_ids)
    texts = {(automation, version): text for automation, version, _, text in tx.definitions(set(versions.values()))}
    found = {}
    for run, key in versions.items():
        with contextlib.suppress(ValueError, KeyError):  # it ends without what only its definition could say
            found[run] = Definition.from_json(texts[key])
    return found


def replay(
    tx: Tx, run_id: str, *, external_id: str, by: str, now: Instant, payload: Any = None, skip_look: bool = False,
) -> Answer:
    """Run the same work again as a new run that names the old one, with its payload or another.

    The external id that the ledger keeps begins with the old run's: by that a dead letter is known to be replayed.
    """
    row = tx.run_origin(run_id)
    if row is None:
        raise NotFound(f"no run has the id {run_id}", next="`nightporter runs` lists them")
    automation_id, firing_id, joined = row
    carries = tx.joined([run_id]) if joined else tx.payloads([firing_id])
    text, carried = carries.get(run_id if joined else firing_id, ("", None))
    answer = fire(
        tx, automation_id, trigger="manual", text=text, by=by, now=now, replay_of=RunId(run_id), payload=payload,
        external_id=run_id + blake2b(external_id.encode(), digest_size=16).hexdigest(),
        carried=None if payload is not None else carried, skip_look=skip_look,
    )
    if answer.run_id is not None:
        tx.decide_dead([(run_id, "replayed", answer.run_id)], by=by, now=now)
    return answer


def review(tx: Tx, run_id: str, decision: Literal["retry", "dismiss"], *, by: str, now: Instant) -> None:
    """A person's answer about a run that may have acted. Raises Conflict when it does not wait for one, or cannot be
    run again because its automation was removed."""
    origin = tx.run_origin(run_id)
    if origin is None:
        raise NotFound(f"no run has the id {run_id}", next="`nightporter runs --state review` lists those that wait")
    automation = tx.lock_automation(origin[0])
    if decision == "dismiss":
        if dismiss_runs(tx, [run_id], reason=Reason.DISMISSED, by=by, now=now):
            return
        raise _waits_for_nobody(run_id)
    if automation is not None and automation.state == AutomationState.REMOVED:
        raise Conflict(f"{run_id} cannot run again", why=f"{automation.name} was removed",
                       next=f"nightporter review {run_id} dismiss")
    at = tx.not_before([run_id], now)
    rows = tx.requeue([run_id], now=at)
    if not rows:
        raise _waits_for_nobody(run_id)
    tx.forget_intents(run_id)
    tx.write_transitions(
        [(run, seq, "review", "queued", None, by, token, attempt, None) for run, seq, token, attempt, _ in rows],
        now=at,
    )


def _waits_for_nobody(run_id: str) -> Conflict:
    return Conflict(f"{run_id} does not wait for a review", next=f"nightporter explain {run_id}")


def dismiss_runs(tx: Tx, run_ids: Sequence[str], *, reason: Reason, by: str, now: Instant) -> int:
    """Close runs that wait for a review; how many. Their automations are locked already."""
    at = tx.not_before(run_ids, now)
    rows = tx.dismiss(run_ids, reason=reason, now=at)
    tx.write_transitions(
        [(run, seq, "review", "failed", reason, by, token, attempt, None) for run, seq, token, attempt in rows], now=at
    )
    runs = [row[0] for row in rows]
    about, definitions, versions = tx.run_states(runs), _definitions(tx, runs), tx.run_versions(runs)
    conclude(
        tx,
        [Final(RunId(run), versions[run][0], about[run][1], about[run][2], RunState.FAILED, None, reason, "", False,
               definitions.get(run)) for run in runs],
        now=now, ended_at=at,
    )
    return len(rows)


def resend(tx: Tx, delivery_id: str, *, now: Instant) -> None:
    """Send a result again, as the same delivery with the same event id, where the definition says by now. Raises
    Conflict unless trying has stopped, or waits for another try."""
    if not tx.resend(delivery_id, lane=_lane_by_now(tx, delivery_id), now=now):
        raise Conflict(f"delivery {delivery_id} cannot be sent again",
                       why="what was delivered, is just being sent, or was not tried yet is left alone")


def _lane_by_now(tx: Tx, delivery_id: str) -> str | None:
    """Of the receiver that the definition in force names; None: it is the one that it was."""
    found = tx.destination_of(delivery_id)
    definition = tx.definition_in_force(found[0]) if found else None
    destination = still_there(definition, *found[1:]) if found and definition else None
    return lane_of(destination) if destination else None


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
    text = tx.definition_in_force(automation_id)
    if text is None:
        raise NotFound(f"no automation has the id {automation_id}", next="`nightporter list` shows what there is")
    return Definition.from_json(text)
