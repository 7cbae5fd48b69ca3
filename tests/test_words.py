"""The words: what is stored reads back as it was, ids are derived, and every reason has its sentence."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nightporter.clock import Instant
from nightporter.words import (
    SENTENCES,
    AutomationId,
    Definition,
    Destination,
    Ended,
    Ending,
    ErrorClass,
    Limits,
    Missed,
    MissedPolicy,
    Overlap,
    Policy,
    Reason,
    Retry,
    RunId,
    Target,
    TriggerId,
    TriggerSpec,
    Work,
    derived_id,
    firing_id_for,
    policy_of,
    run_id_for,
)
from nightporter.words.sparse import left_out, sparse, sparse_of
from words import a_clock_trigger, a_definition

COUNTS = st.none() | st.integers(0, 10_000)
SPANS = st.timedeltas(timedelta(0), timedelta(days=400))
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=4), inner, max_size=2), max_leaves=4,
)
DEFINITIONS = st.builds(
    Definition,
    name=st.text(min_size=1, max_size=12),
    target=st.builds(
        Target, st.sampled_from(["script", "echo"]), st.dictionaries(st.text(max_size=5), JSON, max_size=3)
    ),
    triggers=st.lists(
        st.sampled_from([
            a_clock_trigger("0 9 * * mon-fri", timezone="Europe/Berlin", overlap=Overlap.QUEUE),
            a_clock_trigger("15m", kind="every", anchor=Instant(17), name="often"),
            a_clock_trigger("2026-11-03T09:00", kind="at", name="once", enabled=False),
            a_clock_trigger("@hourly", name="asked", missed=Missed(MissedPolicy.REVIEW)),
            a_clock_trigger("@daily", name="made-up-for", missed=Missed(MissedPolicy.RUN_ALL, timedelta(hours=36))),
            TriggerSpec("hook", "call"),
        ]),
        max_size=3, unique_by=lambda t: t.name,
    ).map(tuple),
    timezone=st.sampled_from(["UTC", "Asia/Kathmandu"]),
    description=st.text(max_size=10),
    owner=st.text(max_size=5),
    limits=st.builds(Limits, COUNTS, COUNTS, COUNTS, st.none() | SPANS, st.integers(0, 10**9)),
    retry=st.builds(
        Retry, st.integers(1, 9), st.lists(SPANS, max_size=3).map(tuple),
        st.frozensets(st.sampled_from(["transient", "nonzero_exit", "exception"])),
    ),
    cooldown=SPANS,
    priority=st.integers(0, 99),
    idempotent=st.booleans(),
    on_crash=st.sampled_from(["retry", "review", None]),
    expires=st.none() | st.integers(0, 2**52).map(Instant),
    deliver=st.lists(
        st.builds(
            Destination, st.text(min_size=1, max_size=5), st.sampled_from(["webhook", "file"]),
            st.dictionaries(st.text(max_size=5), JSON, max_size=2),
            st.frozensets(st.sampled_from(["report", "failed"])), st.booleans(),
        ),
        max_size=2,
    ).map(tuple),
)


@given(DEFINITIONS)
def test_a_definition_reads_back_as_it_was_written(definition: Definition) -> None:
    assert Definition.from_json(definition.as_json()) == definition


@given(DEFINITIONS)
def test_the_same_definition_is_always_written_the_same(definition: Definition) -> None:
    again = Definition.from_json(definition.as_json())
    assert again.as_json() == definition.as_json()


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"name": "brief"}', "null"])
def test_what_is_no_definition_is_refused_by_an_error_that_callers_expect(text: str) -> None:
    with pytest.raises((ValueError, KeyError, TypeError)):
        Definition.from_json(text)


@given(DEFINITIONS)
def test_a_policy_reads_back_as_it_was_written(definition: Definition) -> None:
    for trigger in (*definition.triggers, TriggerSpec("manual", "manual")):
        policy = policy_of(definition, trigger)
        assert Policy.from_json(policy.as_json()) == policy


def test_what_repeats_by_itself_skips_and_what_cannot_come_again_runs_beside() -> None:
    definition = a_definition(triggers=[a_clock_trigger()])
    assert policy_of(definition, definition.triggers[0]).overlap is Overlap.SKIP
    assert policy_of(definition, TriggerSpec("call", "call")).overlap is Overlap.PARALLEL
    assert policy_of(definition, TriggerSpec("hook", "call", overlap=Overlap.REPLACE)).overlap is Overlap.REPLACE


# -- ids ----------------------------------------------------------------------------------------------------------

AT = Instant(1_774_598_400_000_000)


def test_the_same_telling_always_names_the_same_run() -> None:
    assert run_id_for(TriggerId("a/call"), "e-1", AT) == run_id_for(TriggerId("a/call"), "e-1", AT)


TELLINGS = st.tuples(st.text(st.characters(exclude_characters="\0"), max_size=6), st.text(max_size=6))


@given(TELLINGS, TELLINGS)
def test_other_tellings_name_other_runs(one: tuple[str, str], other: tuple[str, str]) -> None:
    ids = {run_id_for(TriggerId(trigger), external, AT) for trigger, external in (one, other)}
    assert len(ids) == len({one, other})


def test_repeats_have_lines_of_their_own() -> None:
    trigger = TriggerId("a/call")
    lines = {firing_id_for(trigger, "e-1", at, nth) for at in (AT, Instant(AT + 1)) for nth in (0, 1)}
    assert len(lines) == 4


@given(st.lists(st.integers(0, 2**52), min_size=2, max_size=2, unique_by=lambda at: at // 1000))
def test_ids_sort_by_time(instants: list[int]) -> None:
    early, late = sorted(instants)
    assert derived_id("x", Instant(early), "zzz") < derived_id("x", Instant(late), "aaa")


# -- reasons and runs ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("reason", Reason)
def test_every_reason_has_a_sentence_a_person_can_read(reason: Reason) -> None:
    assert reason.sentence[0].isupper()
    assert reason.sentence.endswith(".")


def test_no_sentence_is_left_without_a_reason_and_no_two_reasons_share_one() -> None:
    assert set(SENTENCES) == set(Reason)
    assert len(set(SENTENCES.values())) == len(Reason)


def test_a_child_is_told_what_it_runs_for() -> None:
    work = Work(
        RunId("run_1"), 3, 2, AutomationId("aut_1"), "brief", "default", TriggerId("aut_1/clock"), "clock", "script",
        {}, scheduled_for=AT,
    )
    assert work.environment == {
        "NIGHTPORTER_AUTOMATION": "brief", "NIGHTPORTER_RUN_ID": "run_1", "NIGHTPORTER_TRIGGER": "clock",
        "NIGHTPORTER_ATTEMPT": "2", "NIGHTPORTER_SCHEDULED_FOR": "2026-03-27T08:00:00Z",
    }


def test_what_merely_arrived_has_no_slot_to_tell_of() -> None:
    work = Work(RunId("r"), 1, 1, AutomationId("a"), "brief", "default", TriggerId("a/call"), "call", "script", {})
    assert "NIGHTPORTER_SCHEDULED_FOR" not in work.environment


def test_a_runner_says_how_it_ended_in_one_word() -> None:
    assert Ended.ok("done").ending is Ending.OK
    assert Ended.failed(ErrorClass.TRANSIENT, "no route").error_class is ErrorClass.TRANSIENT
    assert Ended.timed_out("too long").error_class is ErrorClass.TIMEOUT
    assert Ended.cancelled().ending is Ending.CANCELLED


@dataclass(frozen=True)
class _Grown:
    """What had one field when it was first stored, and has two by now."""

    first: int
    later: tuple[int, ...] = field(default=(), metadata=sparse(tuple))


def test_a_sparse_field_is_written_only_where_it_says_something_and_read_where_it_stands() -> None:
    [first, later] = fields(_Grown)
    assert [left_out(first, 0), left_out(later, ()), left_out(later, (1,))] == [False, True, False]
    assert sparse_of(_Grown, {"first": 1}) == {}
    assert sparse_of(_Grown, {"first": 1, "later": [2, 3]}) == {"later": (2, 3)}
