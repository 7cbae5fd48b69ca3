"""The gates: each reason not to start work, the order they are asked in, and what a person's own hand is spared."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from itertools import groupby
from typing import Any

import pytest

from nightporter.clock import DAY, HOUR, MINUTE, SECOND, Instant
from nightporter.rules.gates import (
    ASKS_AGAIN,
    GATES,
    PAYLOAD_LIMIT,
    SPARED_BY_HAND,
    Asking,
    Load,
    TriggerFacts,
    accepted,
    caps,
    goes_alone,
    judge,
)
from nightporter.words import Overlap, Policy, QuietHours, Reason, Threshold, Verdict

NOW = Instant(1_774_598_400_000_000)
POLICY = Policy(
    overlap=Overlap.PARALLEL, per_hour=120, queued=100, cooldown=0, expires=None, priority=50, attempts=3,
    runner="echo",
)
TRIGGER = TriggerFacts(
    trigger_id="aut_1/call", automation_id="aut_1", kind="call", enabled=True, removed=False, policy=POLICY, version=1,
    workspace="default", owner="", state="active", state_reason="", definition_version=1, last_started_at=None,
    firings=0, concurrent=None,
)


def asking(
    *, load: Load | None = None, size: int = 0, stopped: bool = False, policy: dict[str, Any] | None = None,
    **trigger: Any,
) -> Asking:
    facts = replace(TRIGGER, policy=replace(POLICY, **(policy or {})), **trigger)
    return Asking(facts, load or Load(), size, stopped)


def reason(of: Asking, now: Instant = NOW) -> Reason | None:
    objection = judge(of, now)
    return None if objection is None else objection.reason


def test_nothing_speaks_against_an_ordinary_firing() -> None:
    assert judge(asking(), NOW) is None


OBJECTIONS: dict[Reason, dict[str, Any]] = {
    Reason.DELETED: {"removed": True},
    Reason.DISABLED: {"enabled": False},
    Reason.EXPIRED: {"policy": {"expires": NOW}},
    Reason.CONFIGURATION: {"state": "config_error"},
    Reason.PAUSED: {"state": "paused"},
    Reason.STOPPED: {"stopped": True},
    Reason.INCIDENT_HOLD: {"open_incident": "inc_1", "policy": {"hold_on_incident": True}},
    Reason.PAYLOAD_TOO_LARGE: {"size": PAYLOAD_LIMIT + 1},
    Reason.COOLDOWN: {"last_started_at": NOW, "policy": {"cooldown": MINUTE}},
    Reason.HOURLY_CEILING: {"load": Load(admitted_in_hour=120)},
    Reason.QUEUE_FULL: {"load": Load(queued=100)},
    Reason.OVERLAP: {"load": Load(going=1), "policy": {"overlap": Overlap.SKIP}},
    Reason.QUIET_HOURS: {"policy": {"quiet_hours": QuietHours(("07:00-09:00",), "UTC")}},
    Reason.THRESHOLD: {"policy": {"threshold": Threshold(3)}},
    Reason.MAX_RUNS: {"counted_runs": 3, "policy": {"max_runs": 3}},
}
"""What alone makes the gate of a reason object; in the order in which the gates are asked."""


@pytest.mark.parametrize("expected", OBJECTIONS)
def test_each_gate_has_its_reason(expected: Reason) -> None:
    assert reason(asking(**OBJECTIONS[expected])) is expected


def test_every_gate_is_among_them_and_in_this_order() -> None:
    objecting: list[Reason] = []
    for gate in GATES:
        facts = {"state": "proposed"} if gate is accepted else None
        found = [r for r, alone in OBJECTIONS.items() if (o := gate(asking(**(facts or alone)), NOW)) and o.reason is r]
        assert len(found) == 1
        objecting += found
    assert [r for r, _ in groupby(objecting)] == list(OBJECTIONS)  # a proposal and a pause are told alike


@pytest.mark.parametrize(("first", "second"), list(zip(OBJECTIONS, list(OBJECTIONS)[1:], strict=False)))
def test_the_first_objection_is_the_one_that_is_told(first: Reason, second: Reason) -> None:
    one, other = OBJECTIONS[first], OBJECTIONS[second]
    both = {**other, **one, "policy": {**other.get("policy", {}), **one.get("policy", {})}}
    if "load" in one and "load" in other:
        both["load"] = Load(going=1, queued=100, admitted_in_hour=120 if first is Reason.HOURLY_CEILING else 0)
    assert reason(asking(**both)) is first


# -- each gate at its edge ----------------------------------------------------------------------------------------


def test_a_removed_automation_is_gone_for_all_its_triggers() -> None:
    assert reason(asking(state="removed")) is Reason.DELETED


def test_a_trigger_expires_at_its_instant_and_not_before() -> None:
    assert judge(asking(policy={"expires": NOW + 1}), NOW) is None
    objection = judge(asking(policy={"expires": NOW}), NOW)
    assert objection is not None
    assert "2026-03-27T08:00:00Z" in objection.detail


@pytest.mark.parametrize("state", ["proposed", "paused", "auto_paused"])
def test_an_automation_that_is_not_active_does_not_act_and_says_why(state: str) -> None:
    objection = judge(asking(state=state, state_reason="holiday"), NOW)
    assert objection is not None
    assert (objection.reason, objection.detail) == (Reason.PAUSED, "holiday")


def test_a_payload_may_be_as_large_as_the_limit_and_is_refused_beyond() -> None:
    assert judge(asking(size=PAYLOAD_LIMIT), NOW) is None
    objection = judge(asking(size=PAYLOAD_LIMIT + 1), NOW)
    assert objection is not None
    assert objection.verdict is Verdict.REFUSED
    assert objection.detail == "262145 bytes; the limit is 262144"


def test_the_cooldown_counts_from_the_last_start_and_says_when_it_ends() -> None:
    facts: dict[str, Any] = {"policy": {"cooldown": 10 * SECOND}, "last_started_at": Instant(NOW - 10 * SECOND + 1)}
    objection = judge(asking(**facts), NOW)
    assert objection is not None
    assert objection.detail.startswith("the cooldown is 10 s;")
    assert objection.detail.endswith("free again at 2026-03-27T08:00:00.000001Z")
    assert judge(asking(**facts), Instant(NOW + 1)) is None


def test_a_run_that_is_about_to_start_counts_against_the_cooldown() -> None:
    waiting = asking(policy={"cooldown": MINUTE}, load=Load(queued=1, standing="run_1"))
    objection = judge(waiting, NOW)
    assert objection is not None
    assert (objection.reason, objection.detail) == (Reason.COOLDOWN, "run_1 is about to start")


def test_the_hourly_ceiling_says_when_the_oldest_run_leaves_the_hour() -> None:
    load = Load(admitted_in_hour=2, oldest_in_hour=Instant(NOW - 10 * MINUTE))
    objection = judge(asking(policy={"per_hour": 2}, load=load), NOW)
    assert objection is not None
    assert objection.detail == "the ceiling is 2 an hour; free again at 2026-03-27T08:50:00Z"
    assert judge(asking(policy={"per_hour": 3}, load=load), NOW) is None


def test_where_no_limit_is_set_none_is_kept() -> None:
    none = {"per_hour": None, "queued": None, "cooldown": 0, "overlap": Overlap.PARALLEL}
    assert judge(asking(policy=none, load=Load(10**6, 10**6, 10**6)), NOW) is None


@pytest.mark.parametrize("overlap", [Overlap.QUEUE, Overlap.PARALLEL, Overlap.REPLACE])
def test_only_the_policy_skip_is_a_reason_not_to_start(overlap: Overlap) -> None:
    assert judge(asking(policy={"overlap": overlap}, load=Load(going=1)), NOW) is None


# -- each option, with it and without -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("facts", "off"),
    [
        ({"open_incident": "inc_1", "policy": {"hold_on_incident": True}}, {"hold_on_incident": False}),
        ({"policy": {"quiet_hours": QuietHours(("07:00-09:00",), "UTC")}}, {"quiet_hours": None}),
        ({"policy": {"threshold": Threshold(2)}}, {"threshold": None}),
        ({"counted_runs": 3, "policy": {"max_runs": 3}}, {"max_runs": None}),
    ],
    ids=["hold_on_incident", "quiet_hours", "threshold", "max_runs"],
)
def test_a_guard_objects_where_it_is_set_and_nowhere_else(facts: dict[str, Any], off: dict[str, Any]) -> None:
    assert judge(asking(**facts), NOW) is not None
    assert judge(asking(**{**facts, "policy": off}), NOW) is None


def test_an_incident_that_holds_is_named() -> None:
    objection = judge(asking(open_incident="inc_1", policy={"hold_on_incident": True}), NOW)
    assert objection is not None
    assert objection.detail == "inc_1"
    assert judge(asking(policy={"hold_on_incident": True}), NOW) is None


def test_quiet_hours_say_when_they_end() -> None:
    quiet = {"quiet_hours": QuietHours(("22:00-08:00",), "UTC")}
    objection = judge(asking(policy=quiet), Instant(NOW - 1))
    assert objection is not None
    assert objection.detail == "until 2026-03-27T08:00:00Z"
    assert judge(asking(policy=quiet), NOW) is None


def test_a_threshold_lets_the_last_of_so_many_through() -> None:
    details = []
    for before in range(3):
        came = asking(counted=before, counted_at=Instant(NOW - DAY), policy={"threshold": Threshold(3)})
        objection = judge(came, NOW)
        details.append(None if objection is None else objection.detail)
    assert details == ["1 of 3", "2 of 3", None]


def test_what_came_too_long_ago_does_not_count_towards_a_threshold() -> None:
    hourly = {"threshold": Threshold(2, timedelta(hours=1))}
    first: dict[str, Any] = {"counted": 1, "counted_at": Instant(NOW - HOUR)}
    assert judge(asking(policy=hourly, **first), NOW) is None
    objection = judge(asking(policy=hourly, **first), Instant(NOW + 1))
    assert objection is not None
    assert objection.detail == "1 of 2; they count until 2026-03-27T09:00:00.000001Z"


def test_a_schedule_has_its_runs_and_none_beyond() -> None:
    assert judge(asking(counted_runs=2, policy={"max_runs": 3}), NOW) is None
    objection = judge(asking(counted_runs=3, policy={"max_runs": 3}), NOW)
    assert objection is not None
    assert objection.detail == "the limit is 3"


# -- a person's own hand ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("expected", OBJECTIONS)
def test_a_manual_firing_passes_pause_and_budgets_and_nothing_else(expected: Reason) -> None:
    spared = {
        Reason.PAUSED, Reason.COOLDOWN, Reason.HOURLY_CEILING, Reason.QUEUE_FULL, Reason.OVERLAP, Reason.QUIET_HOURS,
        Reason.THRESHOLD, Reason.MAX_RUNS, Reason.INCIDENT_HOLD,
    }
    by_hand = asking(kind="manual", **OBJECTIONS[expected])
    assert reason(by_hand) is (None if expected in spared else expected)
    assert len(SPARED_BY_HAND) == len(spared)


def test_a_proposal_that_nobody_accepted_is_not_run_by_hand_either() -> None:
    assert reason(asking(kind="manual", state="proposed")) is Reason.PAUSED


def test_a_run_made_by_hand_uses_no_budget() -> None:
    load = Load(queued=1, going=1, admitted_in_hour=1, standing="run_1", oldest_in_hour=Instant(NOW - HOUR))
    after = load.with_one_more("run_2", manual=True, now=NOW)
    assert (after.queued, after.admitted_in_hour, after.oldest_in_hour) == (1, 1, NOW - HOUR)
    assert after.going == 2


def test_a_run_that_was_admitted_counts_from_then_on() -> None:
    after = Load().with_one_more("run_1", manual=False, now=NOW)
    assert after == Load(queued=1, going=1, admitted_in_hour=1, standing="run_1", oldest_in_hour=NOW)


# -- what follows from the policy ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("overlap", "going", "alone"),
    [(Overlap.QUEUE, 1, True), (Overlap.REPLACE, 1, True), (Overlap.QUEUE, 0, False), (Overlap.PARALLEL, 1, False)],
)
def test_a_run_goes_alone_where_it_may_not_overlap_and_another_is_going(
    overlap: Overlap, going: int, alone: bool
) -> None:
    assert goes_alone(asking(policy={"overlap": overlap}, load=Load(going=going))) is alone


def test_a_manual_run_waits_for_nobody() -> None:
    assert not goes_alone(asking(kind="manual", policy={"overlap": Overlap.QUEUE}, load=Load(going=1)))


def test_the_sender_may_ask_again_only_where_waiting_helps() -> None:
    assert {Reason.HOURLY_CEILING, Reason.QUEUE_FULL, Reason.QUIET_HOURS} == ASKS_AGAIN


def test_nothing_is_counted_that_no_gate_asks_for() -> None:
    free = replace(POLICY, per_hour=None, queued=None)
    assert caps([free]) == (0, 0, 0)
    assert caps([]) == (0, 0, 0)


def test_counts_go_as_far_as_the_highest_limit_of_the_batch() -> None:
    policies = [replace(POLICY, per_hour=5, queued=7), replace(POLICY, per_hour=9, queued=None)]
    assert caps(policies) == (7, 0, 9)
    assert caps([*policies, replace(POLICY, overlap=Overlap.QUEUE)]) == (100, 1, 120)
    assert caps([replace(POLICY, per_hour=None, queued=None, cooldown=1)]) == (1, 1, 0)
