"""When not to start, how many arrivals make a run, and when not to deliver: as it is written, and what is refused."""

from __future__ import annotations

from datetime import timedelta

import pytest
from sample_definitions import keys, place, refusal

from nightporter.definitions import render
from nightporter.words import Coalesce, Definition, Policy, QuietHours, Threshold, policy_of

LISBON = "timezone: Europe/Lisbon\n"


def policies(definition: Definition) -> dict[str, Policy]:
    return {spec.name: policy_of(definition, spec) for spec in definition.triggers}


@pytest.mark.parametrize(
    ("written", "hours"),
    [
        ('"22:00-07:00"', QuietHours(("22:00-07:00",), "Europe/Lisbon")),
        ('["22:00-7:00", "sat,sun 00:00-24:00"]', QuietHours(("22:00-07:00", "sat,sun 00:00-24:00"), "Europe/Lisbon")),
        ('{hours: "mon-fri 12:00-13:00", timezone: Asia/Tokyo}',
         QuietHours(("mon,tue,wed,thu,fri 12:00-13:00",), "Asia/Tokyo")),
    ],
)
def test_quiet_hours_are_a_span_or_several_in_the_zone_of_the_automation(written: str, hours: QuietHours) -> None:
    definition = keys(LISBON + f"quiet_hours: {written}\ntriggers: [{{every: 1h}}, call]")
    assert definition.quiet_hours == hours
    assert {name: policy.quiet_hours for name, policy in policies(definition).items()} == {
        "clock": hours, "call": hours}


def test_a_trigger_has_quiet_hours_of_its_own_the_automations_or_none() -> None:
    definition = keys(LISBON + 'quiet_hours: "22:00-07:00"\ntriggers:\n  - every: 1h\n  - {every: 2h, name: own, '
                      'quiet_hours: "12:00-13:00"}\n  - {every: 3h, name: loud, quiet_hours: none}\n  - call')
    found = {name: policy.quiet_hours and policy.quiet_hours.spans for name, policy in policies(definition).items()}
    assert found == {"clock": ("22:00-07:00",), "own": ("12:00-13:00",), "loud": None, "call": ("22:00-07:00",)}


def test_a_threshold_counts_and_may_begin_anew() -> None:
    definition = keys("triggers:\n  - {call: {threshold: 3}}\n  - every: 1h\n    threshold: {every: 2, within: 90m}")
    assert {name: policy.threshold for name, policy in policies(definition).items()} == {
        "call": Threshold(3), "clock": Threshold(2, timedelta(minutes=90))}


@pytest.mark.parametrize(
    ("written", "gathers"),
    [
        ("coalesce: 30s", Coalesce(timedelta(seconds=30), timedelta(minutes=5))),
        ("coalesce: {window: 30s, max_wait: 2m, key: payload.order.id}",
         Coalesce(timedelta(seconds=30), timedelta(minutes=2), "payload.order.id")),
        ("coalesce: {window: 1s, key: none}", Coalesce(timedelta(seconds=1), timedelta(seconds=10))),
        ("debounce: 5s", Coalesce(timedelta(seconds=5), timedelta(seconds=50), joins=True)),
    ],
)
def test_arrivals_are_folded_together(written: str, gathers: Coalesce) -> None:
    definition = keys(f"triggers: [{{call: {{{written}}}}}]")
    assert policies(definition)["call"].coalesce == gathers


def test_a_number_of_runs_is_a_matter_of_schedules() -> None:
    definition = keys("limits: {max_runs: 3}\ntriggers: [{every: 1h}, call, manual]")
    assert {name: policy.max_runs for name, policy in policies(definition).items()} == {
        "clock": 3, "call": None, "manual": None}
    assert policies(keys("limits: {max_runs: none}\nwhen: every 1h"))["clock"].max_runs is None


def test_an_incident_holds_where_that_is_asked_for() -> None:
    assert policies(keys("hold_on_incident: true\nwhen: every 1h"))["clock"].hold_on_incident
    assert not policies(keys("when: every 1h"))["clock"].hold_on_incident


def test_a_destination_has_quiet_hours_and_lets_failures_through_unless_told_otherwise() -> None:
    definition = keys(LISBON + 'deliver:\n  - {file: a.md, quiet_hours: "22:00-07:00"}\n  - file: b.md\n    name: b\n'
                      '    quiet_hours: {hours: "22:00-07:00", failures: true}\n  - announce')
    night = ("22:00-07:00",)
    assert [each.quiet_hours for each in definition.deliver] == [
        QuietHours(night, "Europe/Lisbon"), QuietHours(night, "Europe/Lisbon", failures=True), None]


WHOLE = LISBON + '''quiet_hours: ["22:00-07:00", "sat,sun 00:00-24:00"]
hold_on_incident: true
limits: {max_runs: 3}
triggers:
  - {every: 1h, threshold: 2, quiet_hours: none, stagger: 5m}
  - cron: "0 9 * * *"
    name: nine
    threshold: {every: 3, within: 1h}
    exact: true
    quiet_hours: {hours: "12:00-13:00", timezone: UTC}
  - manual: {debounce: 5s}
  - call: {coalesce: {window: 30s, max_wait: 2m, key: payload.id}}
deliver: [{file: a.md, quiet_hours: {hours: "22:00-07:00", failures: true}}]'''


def test_all_of_it_is_written_back_as_it_was_read_and_kept_as_it_was_written() -> None:
    definition = keys(WHOLE)
    assert keys(render(definition).removeprefix("---\n").rpartition("---\n")[0]) == definition
    assert Definition.from_json(definition.as_json()) == definition
    for policy in policies(definition).values():
        assert Policy.from_json(policy.as_json()) == policy


def test_what_says_none_of_it_is_stored_as_before_there_was_any() -> None:
    text = keys("when: every 1h").as_json()
    for key in ("quiet_hours", "threshold", "coalesce", "max_runs", "hold_on_incident"):
        assert key not in text


@pytest.mark.parametrize(
    ("written", "where", "says"),
    [
        ("quiet_hours: 22-7", (2, 14), "is no span of hours"),
        ('quiet_hours: "00:00-24:00"', (2, 14), "these hours never end"),
        ("quiet_hours: 22:00", (2, 14), "is no span of hours"),
        ("quiet_hours: {days: mon}", (2, 15), "unknown key `days`"),
        ('quiet_hours: {hours: "22:00-07:00", failures: true}', (2, 37), "`failures` does not stand in `quiet_hours`"),
        ("quiet_hours: []", (2, 14), "`quiet_hours` wants hours"),
        ("threshold: 3", (2, 1), "`threshold` stands under `triggers`"),
        ("triggers: [{call: {threshold: 1}}]", (2, 31), "`threshold` wants a whole number from 2"),
        ("triggers: [{call: {threshold: {within: 1h}}}]", (2, 31), "`threshold` has no `every`"),
        ("triggers: [{call: {coalesce: {max_wait: 1m}}}]", (2, 30), "`coalesce` has no `window`"),
        ("triggers: [{call: {coalesce: {window: 1m, max_wait: 1s}}}]", (2, 53), "`max_wait` is shorter than `window`"),
        ("triggers: [{call: {coalesce: {window: 1m, key: order}}}]", (2, 48), "'order' is no field of the payload"),
        ("triggers: [{call: {coalesce: 1m, debounce: 5s}}]", (2, 34), "`coalesce` and `debounce` cannot stand"),
        ("triggers: [{call: {coalesce: 1m, threshold: 2}}]", (2, 20), "`threshold` and `coalesce` cannot stand"),
        ("triggers: [{every: 1h, debounce: 5s}]", (2, 24), "`debounce` says nothing for a schedule"),
        ("triggers: [{every: 1h, coalesce: 5s}]", (2, 24), "`coalesce` says nothing for a schedule"),
        ("triggers: [{manual: {coalesce: 5s}}]", (2, 22), "`coalesce` says nothing for `manual`"),
        ('triggers: [{manual: {quiet_hours: "22:00-07:00"}}]', (2, 22), "`quiet_hours` says nothing for `manual`"),
        ("triggers: [{manual: {threshold: 2}}]", (2, 22), "`threshold` says nothing for `manual`"),
        ("triggers: [{every: 1h, stagger: 6m}]", (2, 33), "`stagger` goes up to 5m"),
        ("triggers: [{every: 1h, stagger: 5m, exact: true}]", (2, 37), "`exact` and `stagger` cannot stand together"),
        ("triggers: [{at: 2026-11-03T09:00, stagger: 5m}]", (2, 35), "`stagger` says nothing for `at`"),
        ("limits: {max_runs: 0}", (2, 20), "`max_runs` wants a whole number from 1"),
        ('deliver: [{silent: {quiet_hours: "22:00-07:00"}}]', (2, 21), "`quiet_hours` says nothing for `silent`"),
    ],
)
def test_what_makes_no_sense_is_refused_at_its_place(written: str, where: tuple[int, int], says: str) -> None:
    error = refusal(written)
    assert says in error.what
    assert place(error) == where


def test_a_schedule_is_told_why_it_is_not_debounced() -> None:
    error = refusal("triggers: [{every: 1h, debounce: 5s}]")
    assert "do not come in bursts" in error.why
