"""ending: what an ended attempt means. Values in, values out."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import assert_never

from nightporter.clock import Instant, micros
from nightporter.rules.retry import base_delay, draw, jittered, spread, worth_another
from nightporter.states import ENDED, RunEvent, RunState, step
from nightporter.words import AlertRoute, Definition, Destination, Ended, Ending, ErrorClass, Outcome, Reason

HOLD_DEFAULT = timedelta(minutes=5)
"""How long a held run waits where the provider named no time."""
HOLD_LONGEST = timedelta(hours=24)
"""However late a time somebody else names: a run is looked at again within a day."""
GIVEN_BACK_FIRST = timedelta(seconds=1)
GIVEN_BACK_CAP = timedelta(minutes=30)
"""The least wait before an attempt that was given back is made again: it doubles, from the first to the cap."""
GIVEN_BACK_MOST = 50
"""Attempts of a run that are given back at most; at the least waits that is about a day."""


@dataclass(frozen=True, slots=True)
class Next:
    """What becomes of a run whose attempt has ended."""

    event: RunEvent
    state: RunState
    reason: Reason | None = None
    outcome: Outcome | None = None
    error_class: ErrorClass | None = None
    error: str = ""
    run_after: Instant | None = None
    dead: bool = False
    """A dead letter: announced, listed, replayable."""


def after_attempt(
    ended: Ended, *, run_id: str, attempt: int, attempts: int, definition: Definition, interactive: bool,
    effects_done: int, now: Instant, given_back: int = 0,
) -> Next:
    """The run's next state. `effects_done`: acts on the world that its effect log shows; `given_back`: attempts before
    this one that did not count."""
    match ended.ending:
        case Ending.OK:
            if ended.outcome is Outcome.FAILED:
                return _failed(ErrorClass.EXCEPTION, ended)
            quiet = ended.outcome is Outcome.NOOP or not (ended.text or ended.data is not None or ended.outcome)
            if quiet and not effects_done:
                return _next(RunEvent.SKIP, ended.reason or Reason.NO_OP, Outcome.NOOP)
            return _next(
                RunEvent.SUCCEED, None, ended.outcome or (Outcome.ACTION if effects_done else Outcome.REPORT)
            )
        case Ending.ERROR:
            error_class = ended.error_class or ErrorClass.EXCEPTION
            if attempt < attempts and worth_another(error_class, definition.retry):
                delay = jittered(
                    base_delay(attempt, definition.retry, interactive=interactive), draw(run_id, attempt)
                )
                asked = spread(min(ended.retry_after or timedelta(0), HOLD_LONGEST), draw(run_id, attempt))
                wait = min(max(delay, asked), HOLD_LONGEST)
                return Next(
                    RunEvent.RETRY, step(RunState.RUNNING, RunEvent.RETRY), ended.reason or reason_of(error_class),
                    None, error_class, ended.error, Instant(now + max(micros(wait), 1)),
                )
            return _failed(error_class, ended)
        case Ending.TIMEOUT:
            return Next(
                RunEvent.TIME_OUT, step(RunState.RUNNING, RunEvent.TIME_OUT), Reason.TIMEOUT, Outcome.FAILED,
                ErrorClass.TIMEOUT, ended.error, dead=True,
            )
        case Ending.CANCELLED:
            return Next(
                RunEvent.CANCEL, step(RunState.RUNNING, RunEvent.CANCEL), ended.reason or Reason.CANCELLED_BY,
                error=ended.error,
            )
        case Ending.HOLD:
            if given_back >= GIVEN_BACK_MOST:
                return _failed(ErrorClass.TRANSIENT, replace(ended, reason=Reason.PROVIDER_UNAVAILABLE, error=(
                    f"{ended.error}; it was held {given_back} times, and no further".lstrip("; "))))
            asked = max(ended.retry_after or HOLD_DEFAULT, least_wait(given_back))
            wait = min(spread(min(asked, HOLD_LONGEST), draw(run_id, attempt, given_back)), HOLD_LONGEST)
            return Next(
                RunEvent.HOLD, step(RunState.RUNNING, RunEvent.HOLD), Reason.PROVIDER_UNAVAILABLE, None,
                ErrorClass.TRANSIENT, ended.error, Instant(now + max(micros(wait), 1)),
            )
        case _:
            assert_never(ended.ending)


def least_wait(given_back: int) -> timedelta:
    """How soon an attempt may follow one that was given back, `given_back` of them being so already."""
    doublings: int = 2 ** min(given_back, 20)
    return min(GIVEN_BACK_FIRST * doublings, GIVEN_BACK_CAP)


def after_no_start(error: str, *, given_back: int, now: Instant) -> Next:
    """The next state of a run that was claimed and not started: nothing of it was executed, so it may begin again."""
    if given_back >= GIVEN_BACK_MOST:
        return _failed(ErrorClass.RESOURCE, Ended(Ending.ERROR, reason=Reason.NOT_STARTED, error=(
            f"{error}; it was not started {given_back} times, and is not tried again")))
    return Next(
        RunEvent.RELEASE, step(RunState.RUNNING, RunEvent.RELEASE), Reason.NOT_STARTED, error=error,
        run_after=Instant(now + micros(least_wait(given_back))),
    )


def for_a_person(error: str) -> Next:
    """The next state of a run that would have to repeat what may have happened already."""
    return Next(
        RunEvent.SET_ASIDE, step(RunState.RUNNING, RunEvent.SET_ASIDE), Reason.MAY_HAVE_ACTED, error=error,
    )


def asked_to_end(became: Next, reason: Reason) -> Next:
    """What becomes of a run that somebody asked to cancel: whatever its attempt left, it does not start again."""
    if became.state in ENDED:
        return became
    return Next(
        RunEvent.CANCEL, step(RunState.RUNNING, RunEvent.CANCEL), reason, error_class=became.error_class,
        error=became.error,
    )


def reason_of(error_class: ErrorClass) -> Reason:
    """The reason a person reads for a class of error."""
    match error_class:
        case ErrorClass.TRANSIENT:
            return Reason.UNREACHABLE
        case ErrorClass.NONZERO_EXIT | ErrorClass.RESOURCE:
            return Reason.NONZERO_EXIT
        case ErrorClass.EXCEPTION:
            return Reason.EXCEPTION
        case ErrorClass.TIMEOUT:
            return Reason.TIMEOUT
        case ErrorClass.CONFIGURATION:
            return Reason.CONFIGURATION
        case ErrorClass.PERMISSION:
            return Reason.PERMISSION_DENIED
        case ErrorClass.WORKER_LOST:
            return Reason.WORKER_LOST
        case _:
            assert_never(error_class)


def destinations_for(definition: Definition, outcome: Outcome | None) -> list[Destination]:
    """Where a run with this outcome is carried. `none` is nowhere; nothing to say is carried nowhere."""
    if outcome is None or outcome is Outcome.NOOP:
        return []
    chosen = [d for d in definition.deliver if d.kind != "none" and outcome in d.on]
    if outcome is Outcome.FAILED:
        # A dead letter is announced in the inbox in any case; saying it there twice would be noise.
        return [d for d in chosen if d.kind != "announce"]
    return chosen


def lane_of(destination: Destination | AlertRoute) -> str:
    """What shares one receiver: its kind and, where it names one, the host."""
    url = destination.config.get("url")
    if isinstance(url, str) and "://" in url:
        return f"{destination.kind}:{url.split('://', 1)[1].split('/', 1)[0].lower()}"
    return destination.kind


@dataclass(frozen=True, slots=True)
class Traces:
    """What the effect log shows of an attempt."""

    acted: bool = False
    """It was started, and the desk cannot see what it did."""
    effects_done: int = 0
    effects_open: int = 0
    """Intents without a done: they may have happened."""


def may_repeat(definition: Definition, traces: Traces) -> bool:
    """Whether a run whose attempt was cut short may go on by itself.

    An effect with an intent and no done may have happened, and nobody can know: that is for a person, whatever
    was declared.
    """
    if traces.effects_open:
        return False
    if definition.on_crash == "review":
        return not traces.acted and not traces.effects_done
    if definition.idempotent or definition.on_crash == "retry":
        return True
    return not traces.acted and not traces.effects_done


def after_shutdown(definition: Definition, traces: Traces) -> Next:
    """The next state of a run that a drain cut short: given back where it may repeat, else a person's to decide."""
    if may_repeat(definition, traces):
        return _next(RunEvent.RELEASE, Reason.SHUTDOWN, None)
    return Next(
        RunEvent.SET_ASIDE, step(RunState.RUNNING, RunEvent.SET_ASIDE), Reason.SHUTDOWN,
        error="the desk was shut down while it ran; what it did may have happened",
    )


def _next(event: RunEvent, reason: Reason | None, outcome: Outcome | None) -> Next:
    return Next(event, step(RunState.RUNNING, event), reason, outcome)


def _failed(error_class: ErrorClass, ended: Ended) -> Next:
    return Next(
        RunEvent.FAIL, step(RunState.RUNNING, RunEvent.FAIL), ended.reason or reason_of(error_class), Outcome.FAILED,
        error_class, ended.error, dead=True,
    )
