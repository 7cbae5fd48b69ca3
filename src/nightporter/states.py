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

   queued -- lapse --> skipped    (too old to be begun)

Rule 1.  What is not in the tables does not happen. Rules that decide what becomes of a run ask `step()`; queries
         change only what stands in the state they start from.
Rule 2.  Each transition is a named query whose header repeats "from -> to"; a test compares the headers
         with the tables, and docs/states.md is generated from them.
Rule 3.  `release` is a shutdown, or a start that failed: the attempt is given back. `retry` is a failure: it is not.
         So with deliveries: the try is given back where nothing was sent, and `defer` is a try that failed.
Rule 4.  *Dead letter* and *blocked* are columns of a run, not states.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from nightporter.errors import IllegalStep


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
    """It ended well and had something to say or to do."""
    FAILED = "failed"
    """It did not end well, and no further attempt is made."""
    TIMED_OUT = "timed_out"
    """It ran longer than its timeout and was ended; not tried again."""
    CANCELLED = "cancelled"
    """Ended on request: by a person, a newer run, or the removal of its automation."""
    SKIPPED = "skipped"
    """Had nothing to say, or was too old to be begun."""


class RunEvent(StrEnum):
    """What happens to a run."""

    CLAIM = "claim"
    """A worker takes it under a new token; its start is written before it starts."""
    SUCCEED = "succeed"
    """The attempt ended well."""
    FAIL = "fail"
    """The attempt failed and no other follows."""
    TIME_OUT = "time_out"
    """The attempt ran longer than its timeout and was ended."""
    CANCEL = "cancel"
    """Somebody, or a newer run, asked for its end."""
    SKIP = "skip"
    """The attempt ended well and had nothing to say."""
    LAPSE = "lapse"
    """It waited until it was too old to be begun."""
    RETRY = "retry"
    """The attempt failed and another is worth it: it waits for its time; the attempt is used."""
    RELEASE = "release"
    """A shutdown cut it short and it may repeat, or it could not be started: the attempt is given back."""
    HOLD = "hold"
    """What it calls asked us to come back later: the attempt is given back."""
    LOSE = "lose"
    """Its worker was found dead."""
    REQUEUE = "requeue"
    """Back in the queue: its time has come, nothing can have happened, or a person said so."""
    SET_ASIDE = "set_aside"
    """It may have acted, and repeating is not declared safe: a person is asked."""
    DISMISS = "dismiss"
    """A person chose not to run it again."""


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
    """A worker takes it under a new token."""
    DELIVER = "deliver"
    """The receiver acknowledged it."""
    HAND_OVER = "hand_over"
    """It was handed over, and nothing acknowledges it."""
    DEFER = "defer"
    """The try failed in passing, or its worker died where a repeat does no harm: later again."""
    RELEASE = "release"
    """Its worker let go of it before anything was sent: the try is given back."""
    GIVE_UP = "give_up"
    """The receiver refused it for good, or every try is used."""
    DOUBT = "doubt"
    """Its worker died while sending to what cannot tell a repeat."""
    RESEND = "resend"
    """A person sends it again, under the same event id."""


class AutomationState(StrEnum):
    """Whether an automation acts."""

    PROPOSED = "proposed"
    """Made by an agent; inert until a person accepts it."""
    ACTIVE = "active"
    """Its triggers fire."""
    PAUSED = "paused"
    """By a person, with a reason and perhaps an end."""
    AUTO_PAUSED = "auto_paused"
    """By the desk, after repeated errors."""
    CONFIG_ERROR = "config_error"
    """Its definition cannot be read; the last good one is kept and does not fire."""
    EXPIRED = "expired"
    """Its expiry date has passed."""
    COMPLETED = "completed"
    """A one-shot that has its outcome."""
    REMOVED = "removed"
    """Gone from the lists; its history stays."""


ASLEEP = frozenset({
    AutomationState.PROPOSED, AutomationState.PAUSED, AutomationState.AUTO_PAUSED, AutomationState.CONFIG_ERROR,
})
"""Its queued runs wait until it is enabled, but for those made by hand."""


class AutomationEvent(StrEnum):
    """What happens to an automation."""

    ENABLE = "enable"
    """A person lets it act, or a pause reached its end."""
    PAUSE = "pause"
    """A person stops it from acting, or its file is gone."""
    AUTO_PAUSE = "auto_pause"
    """The desk stops it from acting: its errors have reached its own number in a row."""
    BREAK = "break"
    """Its definition cannot be read any more."""
    MEND = "mend"
    """Its definition can be read again."""
    EXPIRE = "expire"
    """Its expiry date passes."""
    COMPLETE = "complete"
    """Its only moment has its outcome."""
    REMOVE = "remove"
    """A person takes it out of the lists."""


_Q, _R, _L, _V, _H = RunState.QUEUED, RunState.RUNNING, RunState.LOST, RunState.REVIEW, RunState.HELD

TRANSITIONS: Mapping[tuple[RunState, RunEvent], RunState] = {
    (_Q, RunEvent.CLAIM): _R,
    (_Q, RunEvent.CANCEL): RunState.CANCELLED,
    (_Q, RunEvent.LAPSE): RunState.SKIPPED,
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
    (_S, DeliveryEvent.RELEASE): _P,
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
    (_A, AutomationEvent.AUTO_PAUSE): _AP,
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
    try:
        return TRANSITIONS[state, event]
    except KeyError:
        possible = ", ".join(e for (s, e) in TRANSITIONS if s == state) or "nothing, it is final"
        raise IllegalStep(f"a {state} run cannot {event}", why=f"what it can: {possible}") from None
