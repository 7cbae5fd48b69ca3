"""Runs that a person starts: run, replay, and a result sent again. A desk does the work where one is there; where
none is, this process does it, and says so."""

from __future__ import annotations

import asyncio
import dataclasses
import logging
import sys
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Annotated, Any
from uuid import uuid4

from cyclopts import Parameter

from nightporter import logs, operations
from nightporter.clock import Instant
from nightporter.engine import Engine
from nightporter.engine.files import DefinitionFiles
from nightporter.errors import BadInput, Conflict, location
from nightporter.ledger import RunDetail, explain, reads, resolve, resolve_run, run_detail
from nightporter.ledger.lines import DeliveryLine, delivery_line, reason_sentence
from nightporter.rules.durations import parse_duration
from nightporter.states import ENDED, DeliveryState, RunState
from nightporter.store import Tx
from nightporter.surfaces.cli.failing import Chosen, Fault, Since, Why, replay_dead
from nightporter.surfaces.cli.given import given_text
from nightporter.surfaces.cli.looking import Glance, glance
from nightporter.surfaces.cli.place import USUAL, Common, DryRun, Place, opened, person
from nightporter.words import Answer, RunId, Verdict
from nightporter.words.kept import read_back

DID_NOT_RUN, WAITS_FOR_A_PERSON, NOT_DELIVERED, TIMED_OUT = 7, 8, 9, 124
LOOK_EVERY = 0.05
TRIED_WITHIN = 20.0
"""Seconds that a desk has for a result to be sent again; one try takes 15 at most."""
_HERE, _THERE = "this process", "desk"
_FAILED = (DeliveryState.GIVEN_UP, DeliveryState.UNKNOWN)

Payload = Annotated[str | None, Parameter(help="A JSON value for it, or @FILE; @- is standard input.")]
Wait = Annotated[bool, Parameter(help="Wait for its end and its deliveries; the exit code says how it went.")]
SkipLook = Annotated[bool, Parameter(help="Do not ask its look: there is something to do.")]
Patience = Annotated[str | None, Parameter(help="How long to wait: 90s, 5m. By default as long as it takes.")]


def run(
    name: Annotated[str, Parameter(help="The automation's name or id, or the beginning of one.")], *,
    payload: Payload = None, text: Annotated[str, Parameter(help="Words for it.")] = "",
    wait: Wait = False, timeout: Patience = None, skip_look: SkipLook = False, dry_run: DryRun = False,
    common: Common = USUAL,
) -> int:
    """Run an automation now. A run by hand passes a pause, the cooldown, overlap and ceilings, and uses up none of
    them; a slot that must not overlap with the run before it finds this one there. Its look, where it has one, is
    asked all the same; a dry run says what it answers. Exit code 7 when it does not run, and with --wait that of the
    run."""
    value, patience = _payload(payload), _patience(timeout, wait)
    with opened(common) as place:
        works = place.somebody_works()
        if not works and not dry_run:
            logs.configure("text", sys.stderr, level=logging.ERROR)
            # Nobody else reads the files, so that what was just written would not be known. From here it may be
            # another folder than the desk's: what is not in it is not gone.
            DefinitionFiles(place.store, place.config, place.clock).load(whole=False)
        automation_id = place.read(lambda tx: resolve(tx, name))
        if (broken := place.read(lambda tx: _never_read(tx, automation_id))) is not None:
            place.out.answer(
                {"verdict": "refused", "reason": "configuration", "detail": broken, "firing_id": None, "run_id": None,
                 "reason_sentence": reason_sentence("configuration"), "via": None, "dry_run": dry_run, "run": None},
                f"{name} did not run: its definition has an error. {broken}",
            )
            return DID_NOT_RUN

        def ask(tx: Tx) -> Answer:
            return operations.fire(
                tx, automation_id, trigger="manual", external_id=uuid4().hex, payload=value, text=text, by=person(),
                now=place.clock.now(), skip_look=skip_look,
            )

        def look() -> Glance | None:
            return None if skip_look else glance(place, automation_id, payload=value, text=text)

        return _started(place, ask, name, works, wait, patience, dry_run, look)


def replay(
    run: Annotated[str | None, Parameter(help="The run's id, its beginning, or an automation: its latest run.")] = None,
    *, payload: Payload = None, wait: Wait = False, timeout: Patience = None, skip_look: SkipLook = False,
    dead: Annotated[bool, Parameter(help="Dead letters instead, two seconds apart; the options below choose which.")]
    = False,
    automation: Annotated[str | None, Parameter(help="With --dead: of this automation only.")] = None,
    since: Since = None, reason: Why = "", error: Fault = "",
    limit: Annotated[int, Parameter(name=["--limit", "-n"], help="With --dead: how many, the latest first.")] = 20,
    dry_run: DryRun = False, common: Common = USUAL,
) -> int:
    """Run the same work again as a new run, with the same payload or another; or, with --dead, the work of dead letters
    that the filters choose. Its look is asked anew. Exit codes as with `run`; with --dead, 7 when none would run."""
    value, patience = _payload(payload), _patience(timeout, wait)
    if dead != (run is None) or (dead and (value is not None or wait)):
        raise BadInput("replay needs a run, or --dead",
                       why="one or the other, and --payload and --wait belong to a run",
                       next="nightporter dead lists what has failed for good")
    if not dead and (automation or since or reason or error):
        raise BadInput("these filters belong to --dead", next="nightporter replay --dead --automation NAME")
    with opened(common) as place:
        if run is None:
            return replay_dead(place, Chosen(automation, since, reason, error, limit), dry_run=dry_run)
        run_id = place.read(lambda tx: resolve_run(tx, run))

        def ask(tx: Tx) -> Answer:
            return operations.replay(
                tx, run_id, external_id=uuid4().hex, by=person(), now=place.clock.now(), payload=value,
                skip_look=skip_look,
            )

        return _started(place, ask, run, place.somebody_works(), wait, patience, dry_run)


def deliver(
    run: Annotated[str, Parameter(help="The run's id, its beginning, or an automation: its latest run.")], *,
    destination: Annotated[str | None, Parameter(help="Only to this one.")] = None,
    dismiss: Annotated[bool, Parameter(help="Do not send it: it was given up or unknown, and that is that.")] = False,
    dry_run: DryRun = False, common: Common = USUAL,
) -> int:
    """Send a run's result again where it was given up, waits for another try, may not have arrived, or was not
    acknowledged: at once, and as the definition says by now. The work is not repeated, and the receiver can tell a
    repeat by the event's id. It waits until that was tried, 20 seconds at most. Exit code 9 when it is not delivered,
    or not yet."""
    with opened(common) as place:
        run_id = place.read(lambda tx: resolve_run(tx, run))
        chosen = [
            d for d in place.read(lambda tx: _deliveries(tx, run_id))
            if (d.state in ("given_up", "unknown", "unverified") or (d.state == "pending" and d.tries))
            and destination in (None, d.destination)
        ]
        if not chosen:
            raise Conflict(f"nothing of {run_id} can be sent again",
                           why="only what was tried and is not delivered can be",
                           next=f"nightporter explain {run_id}")
        if dismiss:
            return _close(place, run_id, chosen, dry_run)
        place.change(lambda tx: _resend(tx, chosen, place.clock.now()), dry_run=dry_run)
        works = place.somebody_works()
        if not dry_run and works:
            _wait_for_tries(place, run_id, chosen)
        elif not dry_run:
            asyncio.run(_work_here(place, RunId(run_id)))
        after = [d for d in place.read(lambda tx: _deliveries(tx, run_id)) if d.id in {c.id for c in chosen}]
        if place.out.as_json:
            place.out.json({"run_id": run_id, "via": _THERE if works else _HERE, "dry_run": dry_run,
                            "deliveries": [d.as_json() for d in after]})
        else:
            for d in after:
                said = f" ({d.error})" if d.error else ""
                place.out.line(f"{d.destination}: {'would be sent again' if dry_run else d.state + said}")
            if not dry_run:
                open_ = any(d.state in ("pending", "sending") for d in after)
                there = "the desk goes on trying: nightporter deliveries" if open_ else "the desk sent it"
                place.out.note(there if works else "no desk is running: this process sent it")
        return NOT_DELIVERED if not dry_run and any(d.state != "delivered" for d in after) else 0


def _close(place: Place, run_id: str, chosen: list[DeliveryLine], dry_run: bool) -> int:
    """A person knows that it did not arrive, and it need not."""
    by = person()
    count = place.change(lambda tx: operations.close_deliveries(
        tx, [d.id for d in chosen], by=by, now=place.clock.now()), dry_run=dry_run)
    tried_on = ", ".join(d.destination for d in chosen if d.state == "pending")
    if not count:
        raise Conflict(f"nothing of {run_id} can be dismissed",
                       why=f"it is tried again by itself: {tried_on}" if tried_on else "it was dismissed already",
                       next=f"nightporter deliver {run_id} tries it at once; what is given up then can be dismissed"
                       if tried_on else f"nightporter explain {run_id}")
    if tried_on:
        place.out.note(f"not dismissed, since it is tried again by itself: {tried_on}")
    place.out.answer({"run_id": run_id, "dismissed": count, "dry_run": dry_run},
                     f"{count} {'would be ' if dry_run else ''}dismissed")
    return 0


def _never_read(tx: Tx, automation_id: str) -> str | None:
    """What is wrong with a definition that could never be read: it has no triggers, and so leaves no line."""
    line = reads.automation(tx, automation_id)
    if line is None or line.triggers or line.error is None:
        return None
    error = line.error
    return f"{location(error['path'], error['line'], error['column'])}: {error['what']}"


def _resend(tx: Tx, chosen: list[DeliveryLine], now: Instant) -> None:
    for one in chosen:
        operations.resend(tx, one.id, now=now)


def _deliveries(tx: Tx, run_id: str) -> list[DeliveryLine]:
    return [delivery_line(row) for row in tx.read_deliveries_of_run(run_id)]


def _started(
    place: Place, ask: Callable[[Tx], Answer], name: str, works: bool, wait: bool, patience: float | None,
    dry_run: bool, look: Callable[[], Glance | None] = lambda: None,
) -> int:
    """Ask for a run; then let the desk do it, or do it here; say what became of it."""
    answer = place.change(ask, dry_run=dry_run)
    told: dict[str, Any] = {
        "verdict": str(answer.verdict), "reason": None if answer.reason is None else str(answer.reason),
        "reason_sentence": reason_sentence(answer.reason), "detail": answer.detail, "firing_id": answer.firing_id,
        "run_id": answer.run_id, "via": _THERE if works else _HERE, "dry_run": dry_run, "run": None,
    }
    if answer.verdict not in (Verdict.ADMITTED, Verdict.MERGED) or answer.run_id is None:
        why = f"{told['reason_sentence']} {answer.detail}".rstrip()
        place.out.answer(told, f"{name} {'would not run' if dry_run else 'did not run'}: {why}")
        return DID_NOT_RUN
    if dry_run:
        seen = look()
        place.out.answer({**told, "run_id": None, "look": None if seen is None else seen.as_json()},
                         f"{name} would run" + ("" if works else " in this process: no desk is running")
                         + ("" if seen is None else f"; {seen.words}"))
        return 0
    run_id = answer.run_id
    ours = not works and not place.read(lambda tx: _is_a_programs(tx, run_id))
    if not ours and not wait:
        if place.out.as_json:
            place.out.json({**told, "run": place.read(lambda tx: run_detail(tx, run_id)).as_json()})
        else:
            who = "the desk runs it" if works else "it waits for the program that has its function"
            place.out.line(f"{run_id}  queued; {who}: nightporter logs -f {run_id}")
        return 0
    if ours:
        place.out.note("no desk is running: this process runs it")
        asyncio.run(_work_here(place, run_id, again=wait, patience=patience))
    else:
        _wait_for(place, run_id, patience)
    detail = place.read(lambda tx: run_detail(tx, run_id))
    if place.out.as_json:
        place.out.json({**told, "run": detail.as_json()})
    else:
        if detail.output:
            place.out.line(detail.output.rstrip("\n"))
        place.out.note(place.read(lambda tx: explain(tx, run_id, place.clock.now())).text)
    return exit_code(detail, waited=wait)


def _is_a_programs(tx: Tx, run_id: RunId) -> bool:
    """Whether only a program that has its function can do it."""
    return operations.definition_of(tx, run_detail(tx, run_id).line.automation_id).target.kind == "function"


async def _work_here(
    place: Place, run_id: RunId, *, again: bool = False, patience: float | None = None
) -> None:
    """Do the work of one run in this process. `again`: stay for its later attempts, as long as there is patience."""
    # What it asks for is in the store; the engine opens it for itself.
    drain = timedelta(seconds=2)
    engine = Engine(dataclasses.replace(place.config, drain=drain), role="command", only=run_id)
    until = None if patience is None else time.monotonic() + patience
    async with engine.running():
        try:
            async with asyncio.timeout(patience):
                await engine.one_pass()
                while again and not await engine.read(lambda tx: _settled(tx, run_id)):
                    await asyncio.sleep(LOOK_EVERY)
                    await engine.one_pass()
        except TimeoutError:
            if until is None:
                raise


def _wait_for(place: Place, run_id: RunId, patience: float | None) -> None:
    """Until it has ended, or the patience is over. It says when nobody is there who could do it: somebody may come, and
    what was begun is for whoever has the functions and the secrets of the one that went."""
    until = None if patience is None else time.monotonic() + patience
    turns, alone = 0, False
    while not place.read(lambda tx: _settled(tx, run_id)):
        if until is not None and time.monotonic() > until:
            return
        if turns % 20 == 0:
            was_alone, alone = alone, not place.somebody_works()
            if alone and not was_alone:
                place.out.note("nobody is there to run it: it waits for a desk, or for its function's program")
        turns += 1
        time.sleep(LOOK_EVERY)


def _wait_for_tries(place: Place, run_id: str, chosen: list[DeliveryLine]) -> None:
    """Until the desk has tried each of them once more, or the time for that is over."""
    tries = {d.id: d.tries for d in chosen}
    until = time.monotonic() + TRIED_WITHIN
    while time.monotonic() < until:
        found = [d for d in place.read(lambda tx: _deliveries(tx, run_id)) if d.id in tries]
        if all(d.state != "sending" and (d.state != "pending" or d.tries > tries[d.id]) for d in found):
            return
        time.sleep(LOOK_EVERY)


def _settled(tx: Tx, run_id: str) -> bool:
    """Whether nothing more happens to a run by itself: it has ended and its deliveries have, or a person is asked."""
    row = tx.read_run(run_id)
    if row is None:
        return True
    state = RunState(row[9])
    if state is RunState.REVIEW:
        return True
    return state in ENDED and all(d.state not in ("pending", "sending") for d in _deliveries(tx, run_id))


def exit_code(detail: RunDetail, *, waited: bool) -> int:
    """What a run's end says to a shell. `waited`: a run that has not ended is one we lost patience with."""
    state = RunState(detail.line.state)
    if state is RunState.TIMED_OUT:
        return TIMED_OUT
    if state in (RunState.FAILED, RunState.CANCELLED):
        return 1
    if state in (RunState.REVIEW, RunState.WAITING):
        return WAITS_FOR_A_PERSON
    if state in ENDED:
        tried = [d for d in detail.deliveries if d.state in _FAILED or (d.state == "pending" and d.tries)]
        return NOT_DELIVERED if tried else 0
    return TIMED_OUT if waited else 1


def _payload(text: str | None) -> Any:
    """The JSON value of --payload. Raises BadInput."""
    if text is None:
        return None
    if text.startswith("@"):
        text = given_text(text[1:], "the payload")
    try:
        return read_back(text)
    except ValueError as error:
        raise BadInput("the payload is no JSON", why=str(error), next='write for example {"city": "Lisbon"}') from error


def _patience(text: str | None, wait: bool) -> float | None:
    """Seconds. Raises BadInput."""
    if text is None:
        return None
    if not wait:
        raise BadInput("--timeout belongs to --wait", next="add --wait, or leave it out")
    return parse_duration(text).total_seconds()

