"""states: what may happen to a run, a delivery and an automation, and nothing else.

                claim               succeed
   queued --------------> running -----------> succeeded
    ^  |                   | | | |-- fail ---> failed       (no attempt left, or not worth another)
    |  |                   | | | |-- time_out -> timed_out  (never retried)
    |  |                   | | | |-- cancel -> cancelled
    |  +-- cancel -> cancelled | |-- skip ---> skipped      (nothing to say: a success)
    |                      | | +- set_aside -> review       (a drain ended work that may not repeat)
    +---- retry -----------+ |
    +---- release ---------+ +-- hold -------> held         (provider unavailable) -- requeue --> queued
    |                      +---- lose -------> lost         (worker dead)
    +------------ requeue -- lost or review    lost -- set_aside --> review -- dismiss --> failed

Rule 1.  A run changes state only through `step()`.
Rule 2.  Each transition is a named query whose header repeats "from -> to"; a test compares the headers
         with TRANSITIONS, and docs/states.md is generated from it.
Rule 3.  `release` is a shutdown: the attempt is given back. `retry` is a failure: it is not.
Rule 4.  *Dead letter* and *blocked* are columns of a run, not states.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import TypeVar

from nightporter.errors import IllegalStep

S = TypeVar("S", bound=StrEnum)
E = TypeVar("E", bound=StrEnum)


class RunState(StrEnum):
    """Where a run is."""

    QUEUED = "queued"
    """Admitted and waiting: for its time, for a slot, or for the run before it."""
    RUNNING = "running"
    """Claimed by a worker under a token; its start is written down."""
    WAITING = "waiting"
    """Parked until a person answers; no transition leads here before approvals exist."""
    HELD = "held"
    """The provider is unavailable or asked us to come back later."""
    LOST = "lost"
    """Its worker died; on_crash says what becomes of it."""
    REVIEW = "review"
    """May have acted and may not be repeated unasked; a person decides."""
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    TIMED_OUT = "timed_out"
    CANCELLED = "cancelled"
    SKIPPED = "skipped"
    """Had nothing to say."""


class RunEvent(StrEnum):
    """What happens to a run."""

    CLAIM = "claim"
    SUCCEED = "succeed"
    FAIL = "fail"
    TIME_OUT = "time_out"
    CANCEL = "cancel"
    SKIP = "skip"
    RETRY = "retry"
    RELEASE = "release"
    HOLD = "hold"
    LOSE = "lose"
    REQUEUE = "requeue"
    SET_ASIDE = "set_aside"
    DISMISS = "dismiss"


class DeliveryState(StrEnum):
    """Where a result is on its way to one destination."""

    PENDING = "pending"
    """Waiting for its next try."""
    SENDING = "sending"
    """A worker is handing it over."""
    DELIVERED = "delivered"
    """The receiver acknowledged it; the evidence is on the row."""
    UNVERIFIED = "unverified"
    """Handed over to something that gives no acknowledgement."""
    GIVEN_UP = "given_up"
    """Refused for good, or tried often enough; a person may resend it."""
    UNKNOWN = "unknown"
    """The worker died while handing it to a destination that cannot tell a repeat."""


class DeliveryEvent(StrEnum):
    """What happens to a delivery."""

    SEND = "send"
    DELIVER = "deliver"
    HAND_OVER = "hand_over"
    DEFER = "defer"
    GIVE_UP = "give_up"
    DOUBT = "doubt"
    RESEND = "resend"


class AutomationState(StrEnum):
    """Whether an automation acts."""

    PROPOSED = "proposed"
    """Made by an agent; inert until a person accepts it."""
    ACTIVE = "active"
    PAUSED = "paused"
    """By a person, with a reason and perhaps an end."""
    AUTO_PAUSED = "auto_paused"
    """By the desk, after repeated errors; no transition leads here before the desk counts them."""
    CONFIG_ERROR = "config_error"
    """Its definition cannot be read; the last good one is kept and does not fire."""
    EXPIRED = "expired"
    COMPLETED = "completed"
    """A one-shot that has its outcome."""
    REMOVED = "removed"
    """Gone from the lists; its history stays."""


class AutomationEvent(StrEnum):
    """What happens to an automation."""

    ENABLE = "enable"
    PAUSE = "pause"
    BREAK = "break"
    MEND = "mend"
    EXPIRE = "expire"
    COMPLETE = "complete"
    REMOVE = "remove"


_Q, _R, _L, _V, _H = RunState.QUEUED, RunState.RUNNING, RunState.LOST, RunState.REVIEW, RunState.HELD

TRANSITIONS: Mapping[tuple[RunState, RunEvent], RunState] = {
    (_Q, RunEvent.CLAIM): _R,
    (_Q, RunEvent.CANCEL): RunState.CANCELLED,
    (_R, RunEvent.SUCCEED): RunState.SUCCEEDED,
    (_R, RunEvent.FAIL): RunState.FAILED,
    (_R, RunEvent.TIME_OUT): RunState.TIMED_OUT,
    (_R, RunEvent.CANCEL): RunState.CANCELLED,
    (_R, RunEvent.SKIP): RunState.SKIPPED,
    (_R, RunEvent.RETRY): _Q,
    (_R, RunEvent.RELEASE): _Q,
    (_R, RunEvent.HOLD): _H,
    (_R, RunEvent.LOSE): _L,
    (_R, RunEvent.SET_ASIDE): _V,
    (_H, RunEvent.REQUEUE): _Q,
    (_H, RunEvent.CANCEL): RunState.CANCELLED,
    (_L, RunEvent.REQUEUE): _Q,
    (_L, RunEvent.SET_ASIDE): _V,
    (_L, RunEvent.FAIL): RunState.FAILED,
    (_V, RunEvent.REQUEUE): _Q,
    (_V, RunEvent.DISMISS): RunState.FAILED,
}

ENDED = frozenset(
    {RunState.SUCCEEDED, RunState.FAILED, RunState.TIMED_OUT, RunState.CANCELLED, RunState.SKIPPED}
)
ACTIVE = frozenset({RunState.QUEUED, RunState.RUNNING, RunState.HELD, RunState.LOST})
"""What overlap counts: work that is going or will go on by itself."""

_P, _S = DeliveryState.PENDING, DeliveryState.SENDING

DELIVERY_TRANSITIONS: Mapping[tuple[DeliveryState, DeliveryEvent], DeliveryState] = {
    (_P, DeliveryEvent.SEND): _S,
    (_S, DeliveryEvent.DELIVER): DeliveryState.DELIVERED,
    (_S, DeliveryEvent.HAND_OVER): DeliveryState.UNVERIFIED,
    (_S, DeliveryEvent.DEFER): _P,
    (_S, DeliveryEvent.GIVE_UP): DeliveryState.GIVEN_UP,
    (_S, DeliveryEvent.DOUBT): DeliveryState.UNKNOWN,
    (DeliveryState.GIVEN_UP, DeliveryEvent.RESEND): _P,
    (DeliveryState.UNKNOWN, DeliveryEvent.RESEND): _P,
    (DeliveryState.UNVERIFIED, DeliveryEvent.RESEND): _P,
}

_A, _U, _AP = AutomationState.ACTIVE, AutomationState.PAUSED, AutomationState.AUTO_PAUSED
_E, _X, _C = AutomationState.CONFIG_ERROR, AutomationState.EXPIRED, AutomationState.COMPLETED
_N, _Z = AutomationState.PROPOSED, AutomationState.REMOVED

AUTOMATION_TRANSITIONS: Mapping[tuple[AutomationState, AutomationEvent], AutomationState] = {
    (_N, AutomationEvent.ENABLE): _A,
    (_U, AutomationEvent.ENABLE): _A,
    (_AP, AutomationEvent.ENABLE): _A,
    (_X, AutomationEvent.ENABLE): _A,
    (_C, AutomationEvent.ENABLE): _A,
    (_A, AutomationEvent.PAUSE): _U,
    (_AP, AutomationEvent.PAUSE): _U,
    (_A, AutomationEvent.BREAK): _E,
    (_U, AutomationEvent.BREAK): _E,
    (_AP, AutomationEvent.BREAK): _E,
    (_E, AutomationEvent.MEND): _A,
    (_E, AutomationEvent.PAUSE): _U,
    (_A, AutomationEvent.EXPIRE): _X,
    (_A, AutomationEvent.COMPLETE): _C,
    **{(state, AutomationEvent.REMOVE): _Z for state in (_N, _A, _U, _AP, _E, _X, _C)},
}


def step(state: RunState, event: RunEvent) -> RunState:
    """The state of a run after `event`. Raises IllegalStep and changes nothing."""
    return _step(TRANSITIONS, "run", state, event)


def step_delivery(state: DeliveryState, event: DeliveryEvent) -> DeliveryState:
    """The state of a delivery after `event`. Raises IllegalStep and changes nothing."""
    return _step(DELIVERY_TRANSITIONS, "delivery", state, event)


def step_automation(state: AutomationState, event: AutomationEvent) -> AutomationState:
    """The state of an automation after `event`. Raises IllegalStep and changes nothing."""
    return _step(AUTOMATION_TRANSITIONS, "automation", state, event)


def _step(table: Mapping[tuple[S, E], S], what: str, state: S, event: E) -> S:
    try:
        return table[state, event]
    except KeyError:
        possible = ", ".join(str(e) for (s, e) in table if s == state) or "nothing, it is final"
        raise IllegalStep(f"a {state} {what} cannot {event}", why=f"what it can: {possible}") from None
