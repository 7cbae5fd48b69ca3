"""`missed:`, what becomes of times that passed while nothing was running: for the automation, and for one schedule."""

from __future__ import annotations

from datetime import timedelta

import pytest
from sample_definitions import keys, place, refusal

from nightporter.words import Missed, MissedPolicy, Overlap, policy_of


@pytest.mark.parametrize(
    ("written", "missed"),
    [
        ("run_once", Missed(MissedPolicy.RUN_ONCE)),
        ("{policy: skip}", Missed(MissedPolicy.SKIP)),
        ("{policy: review, within: 2d}", Missed(MissedPolicy.REVIEW, timedelta(days=2))),
        ("{within: 90s, policy: run_all}", Missed(MissedPolicy.RUN_ALL, timedelta(seconds=90))),
    ],
)
def test_a_policy_stands_alone_or_with_the_time_within_which_it_holds(written: str, missed: Missed) -> None:
    definition = keys(f"when: every 1h\nmissed: {written}")
    assert [each.missed for each in definition.triggers] == [missed]
    assert keys(f"triggers:\n  - every: 1h\n    missed: {written}") == definition


def test_a_schedule_has_its_own_policy_the_automations_or_none() -> None:
    definition = keys("missed: review\ntriggers:\n  - every: 1h\n  - {every: 2h, name: own, missed: skip}\n  - call")
    assert {each.name: each.missed and str(each.missed.policy) for each in definition.triggers} == {
        "clock": "review", "own": "skip", "call": None,
    }
    assert [each.missed for each in keys("when: every 1h").triggers] == [None]


def test_how_far_back_a_policy_reaches_where_nothing_is_said() -> None:
    assert {policy: Missed(policy).reach for policy in MissedPolicy} == {
        MissedPolicy.RUN_ONCE: timedelta(hours=3), MissedPolicy.RUN_ALL: timedelta(hours=3),
        MissedPolicy.SKIP: None, MissedPolicy.REVIEW: None,
    }


@pytest.mark.parametrize(("missed", "overlap"), [("run_once", Overlap.SKIP), ("run_all", Overlap.QUEUE)])
def test_runs_that_are_all_made_up_for_wait_for_one_another(missed: str, overlap: Overlap) -> None:
    definition = keys(f"when: every 1h\nmissed: {missed}")
    assert policy_of(definition, definition.triggers[0]).overlap is overlap


@pytest.mark.parametrize("overlap", ["queue", "parallel"])
def test_another_overlap_may_be_wished_for_with_them(overlap: str) -> None:
    definition = keys(f"when: every 1h\nmissed: run_all\noverlap: {overlap}")
    assert policy_of(definition, definition.triggers[0]).overlap is Overlap(overlap)


@pytest.mark.parametrize(
    ("written", "where", "says"),
    [
        ("when: every 1h\nmissed: catch_up", (3, 9), "unknown value of `missed`: `catch_up`"),
        ("when: every 1h\nmissed: run_onec", (3, 9), "did you mean `run_once`?"),
        ("when: every 1h\nmissed: [skip]", (3, 9), "`missed` wants a policy, or a map"),
        ("when: every 1h\nmissed: true", (3, 9), "`missed` wants a policy, or a map"),
        ("when: every 1h\nmissed: {within: 3h}", (3, 9), "`missed` has no policy"),
        ("when: every 1h\nmissed: {policy: skip, within: 3h}", (3, 24), "`within` says nothing for `skip`"),
        ("when: every 1h\nmissed: {policy: review, within: 3}", (3, 34), "does not say how long"),
        ("when: every 1h\nmissed: {policy: review, within: 0s}", (3, 34), "`within` wants a duration"),
        ("when: every 1h\nmissed: {policy: review, whithin: 3h}", (3, 26), "did you mean `within`?"),
        ("missed: skip", (2, 1), "`missed` says nothing here"),
        ("triggers:\n  - call\nmissed: skip", (4, 1), "`missed` says nothing here"),
        ("triggers:\n  - call: {missed: skip}", (3, 12), "`missed`"),
        ("when: every 1h\nmissed: run_all\noverlap: skip", (3, 1), "`overlap: skip` cannot stand together"),
        ("triggers:\n  - every: 1h\n    overlap: replace\n    missed: run_all", (5, 5), "cannot stand together"),
    ],
)
def test_what_contradicts_itself_or_says_nothing_is_refused(
    written: str, where: tuple[int, int], says: str
) -> None:
    error = refusal(written)
    assert says in error.what + error.next
    assert place(error) == where
