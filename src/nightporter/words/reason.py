"""Why: the closed list of reasons, each with its sentence.

A reason is stored as its code. Adding one means adding its sentence here, its line in docs/reasons.md and its
test; a test fails when a code path writes a reason that is not listed or the docs leave one out.
"""

from __future__ import annotations

from enum import StrEnum


class Verdict(StrEnum):
    """What admission made of a firing."""

    ADMITTED = "admitted"
    """It became a run."""
    REPEATED = "repeated"
    """The sender said this before; the first telling stands."""
    MERGED = "merged"
    """Folded into a run that was waiting for others like it."""
    SKIPPED = "skipped"
    """Rightly nothing to do."""
    REFUSED = "refused"
    """Not acceptable as it came."""
    MISSED = "missed"
    """Its moment passed while nothing was running, and its policy says not to run it late."""
    COLLAPSED = "collapsed"
    """Several slots answered by one line."""


class Reason(StrEnum):
    """Why something did not run, ended badly, or was not delivered."""

    # not admitted
    DISABLED = "disabled"
    PAUSED = "paused"
    STOPPED = "stopped"
    EXPIRED = "expired"
    EXCLUDED = "excluded"
    DELETED = "deleted"
    QUEUE_FULL = "queue_full"
    OVERLAP = "overlap"
    COOLDOWN = "cooldown"
    HOURLY_CEILING = "hourly_ceiling"
    CONCURRENCY_CEILING = "concurrency_ceiling"
    QUIET_HOURS = "quiet_hours"
    THRESHOLD = "threshold"
    MAX_RUNS = "max_runs"
    INCIDENT_HOLD = "incident_hold"
    MISSED_POLICY = "missed_policy"
    STALE = "stale"
    SUPPRESSED_DUPLICATE = "suppressed_duplicate"
    PAYLOAD_TOO_LARGE = "payload_too_large"
    UNREADABLE = "unreadable"
    # ended
    NO_OP = "no_op"
    PRECONDITION_UNMET = "precondition_unmet"
    CHECK_FAILED = "check_failed"
    NONZERO_EXIT = "nonzero_exit"
    EXCEPTION = "exception"
    TIMEOUT = "timeout"
    CONFIGURATION = "configuration"
    PERMISSION_DENIED = "permission_denied"
    PROVIDER_UNAVAILABLE = "provider_unavailable"
    WORKER_LOST = "worker_lost"
    CANCELLED_BY = "cancelled_by"
    SUPERSEDED = "superseded"
    DISMISSED = "dismissed"
    SHUTDOWN = "shutdown"
    NOT_STARTED = "not_started"
    MAY_HAVE_ACTED = "may_have_acted"
    # not delivered
    REJECTED_BY_RECEIVER = "rejected_by_receiver"
    UNREACHABLE = "unreachable"
    GAVE_UP = "gave_up"
    UNVERIFIED = "unverified"
    HELD_QUIET = "held_quiet"

    @property
    def sentence(self) -> str:
        """One sentence a person can read."""
        return SENTENCES[self]


SENTENCES: dict[Reason, str] = {
    Reason.DISABLED: "The trigger is switched off in its definition.",
    Reason.PAUSED: "The automation is paused.",
    Reason.STOPPED: "The whole desk is stopped; lift it with `nightporter stop --lift`.",
    Reason.EXPIRED: "The automation has passed its expiry date.",
    Reason.EXCLUDED: "Its schedule leaves that day or hour out.",
    Reason.DELETED: "The automation was removed.",
    Reason.QUEUE_FULL: "As many runs as the automation may have waiting were already waiting.",
    Reason.OVERLAP: "The run before it had not ended, and the overlap policy is to skip.",
    Reason.COOLDOWN: "The last attempt started less than the cooldown ago.",
    Reason.HOURLY_CEILING: "As many runs as an hour allows had already been admitted in the hour before.",
    Reason.CONCURRENCY_CEILING: "As many runs of this automation as may run at once were running.",
    Reason.QUIET_HOURS: "These are hours in which it does not start by itself.",
    Reason.THRESHOLD: "Fewer arrivals than make a run had come.",
    Reason.MAX_RUNS: "Its schedules have started as many runs as they may.",
    Reason.INCIDENT_HOLD: "It has an open incident, and starts nothing by itself until that is closed.",
    Reason.MISSED_POLICY: "Its moment passed while nothing could run it, and `missed` did not have it run late.",
    Reason.STALE: "It waited to begin for longer than its `missed: within` allows.",
    Reason.SUPPRESSED_DUPLICATE: "The same external id arrived before; the first telling stands.",
    Reason.PAYLOAD_TOO_LARGE: "The payload is larger than the desk accepts.",
    Reason.UNREADABLE: "What is stored about it cannot be read.",
    Reason.NO_OP: "It ran and had nothing to say.",
    Reason.PRECONDITION_UNMET: "Its look found nothing to do.",
    Reason.CHECK_FAILED: "Its look could not say whether there was anything to do.",
    Reason.NONZERO_EXIT: "The program ended with an exit code other than zero.",
    Reason.EXCEPTION: "The code raised an exception.",
    Reason.TIMEOUT: "It ran longer than its timeout and was ended.",
    Reason.CONFIGURATION: "It cannot run as it is configured.",
    Reason.PERMISSION_DENIED: "What it tried to reach or run is not permitted.",
    Reason.PROVIDER_UNAVAILABLE: "What it calls was unavailable or asked to be called later.",
    Reason.WORKER_LOST: "The worker that ran it died.",
    Reason.CANCELLED_BY: "Somebody cancelled it.",
    Reason.SUPERSEDED: "A newer run took its place.",
    Reason.DISMISSED: "A person looked at it and chose not to run it again.",
    Reason.SHUTDOWN: "The desk was shut down before it could end.",
    Reason.NOT_STARTED: "It was claimed and could not be started; nothing of it was executed.",
    Reason.MAY_HAVE_ACTED: "An earlier attempt may have acted already, and nobody can say whether it did.",
    Reason.REJECTED_BY_RECEIVER: "The receiver refused it for good.",
    Reason.UNREACHABLE: "It could not be reached, or answered with a passing error.",
    Reason.GAVE_UP: "Every allowed try was used up.",
    Reason.UNVERIFIED: "It was handed over, but nothing acknowledged it.",
    Reason.HELD_QUIET: "It waits for the end of its destination's quiet hours.",
}
