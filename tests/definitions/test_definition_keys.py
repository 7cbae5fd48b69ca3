"""Every key of a definition acts."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sample_definitions import NOW, keys, markdown, yaml

from nightporter.clock import instant
from nightporter.words import Definition, Destination, Limits, Overlap, Retry, Schedule, Target, TriggerSpec

INBOX = (Destination("announce", "announce"),)


def test_a_text_below_the_keys_is_an_echo_with_every_default() -> None:
    assert markdown("---\n---\n\n Good morning.\n\nAll quiet?\n\n") == Definition(
        name="morning-brief", target=Target("echo", {"prompt": "Good morning.\n\nAll quiet?"}),
        timezone="Europe/Lisbon", deliver=INBOX,
    )


def test_a_yaml_file_says_the_same_as_the_keys_of_a_markdown_file() -> None:
    written = "name: tidy\nwhen: every 15m\ntarget: {script: [tidy, --all]}"
    assert yaml(written) == markdown(f"---\n{written}\n---\n")


def test_the_name_is_the_one_written_or_the_file_name() -> None:
    assert keys("name: evening-2").name == "evening-2"
    assert keys("description: x").name == "morning-brief"
    assert keys("name: " + "a" * 64).name == "a" * 64


@pytest.mark.parametrize(
    ("key", "written", "value"),
    [
        ("description", "What the night brought.", "What the night brought."),
        ("description", '"42"', "42"),
        ("description", "2026-11-03", "2026-11-03"),
        ("owner", "ana@example.com", "ana@example.com"),
        ("workspace", "home", "home"),
        ("timezone", "Asia/Tokyo", "Asia/Tokyo"),
        ("cooldown", "5m", timedelta(minutes=5)),
        ("cooldown", "none", timedelta(0)),
        ("priority", "0", 0),
        ("priority", "100", 100),
        ("idempotent", "true", True),
        ("idempotent", "false", False),
        ("on_crash", "retry", "retry"),
        ("on_crash", "review", "review"),
    ],
)
def test_a_key_sets_its_field(key: str, written: str, value: object) -> None:
    assert getattr(keys(f"{key}: {written}"), key) == value


@pytest.mark.parametrize(
    ("written", "limits"),
    [
        ("{per_hour: 5}", Limits(per_hour=5)),
        ("{queued: 1}", Limits(queued=1)),
        ("{concurrent: 9}", Limits(concurrent=9)),
        ("{timeout: 90s}", Limits(timeout=timedelta(seconds=90))),
        ("{output: 5000}", Limits(output=5000)),
        ("{output: 500KB}", Limits(output=500_000)),
        ("{output: 1.5 MB}", Limits(output=1_500_000)),
        ("{per_hour: none, queued: none, concurrent: none, timeout: none, output: none}",
         Limits(None, None, None, None, 100_000_000)),
        ("{}", Limits()),
    ],
)
def test_limits_bound_what_they_name_and_leave_the_rest(written: str, limits: Limits) -> None:
    assert keys(f"limits: {written}").limits == limits


@pytest.mark.parametrize(
    ("written", "retry"),
    [
        ("none", Retry(attempts=1)),
        ("{attempts: 5}", Retry(attempts=5)),
        ("{delays: [1s, 2m]}", Retry(delays=(timedelta(seconds=1), timedelta(minutes=2)))),
        ("{delays: 10s}", Retry(delays=(timedelta(seconds=10),))),
        ("{on: [transient, nonzero_exit]}", Retry(on=frozenset({"transient", "nonzero_exit"}))),
        ("{on: exception}", Retry(on=frozenset({"exception"}))),
    ],
)
def test_retry_says_how_often_when_and_for_what(written: str, retry: Retry) -> None:
    assert keys(f"retry: {written}").retry == retry


@pytest.mark.parametrize(
    ("written", "moment"),
    [
        ("2027-01-31", datetime(2027, 2, 1, tzinfo=UTC)),
        ("2026-07-31", datetime(2026, 7, 31, 23, tzinfo=UTC)),
        ("2027-01-31T12:00", datetime(2027, 1, 31, 12, tzinfo=UTC)),
        ("2026-07-31T12:00:30", datetime(2026, 7, 31, 11, 0, 30, tzinfo=UTC)),
        ("2027-01-31T12:00:00+02:00", datetime(2027, 1, 31, 10, tzinfo=UTC)),
        ("2027-01-31T12:00Z", datetime(2027, 1, 31, 12, tzinfo=UTC)),
        ("2020-01-01", datetime(2020, 1, 2, tzinfo=UTC)),
    ],
)
def test_expires_is_an_instant_or_the_end_of_a_day_in_the_zone(written: str, moment: datetime) -> None:
    assert keys(f"expires: {written}").expires == instant(moment)


@pytest.mark.parametrize(
    ("written", "kind", "expression"),
    [
        ('"0 9 * * mon-fri"', "cron", "0 9 * * mon-fri"),
        ('"*/5 * * * * *"', "cron", "*/5 * * * * *"),
        ("30 7 1,15 * ?", "cron", "30 7 1,15 * ?"),
        ('"@daily"', "cron", "@daily"),
        ("every 15m", "every", "15m"),
        ("every   1h 30m", "every", "1h 30m"),
        ("every PT15M", "every", "PT15M"),
        ("at 2026-11-03T09:00", "at", "2026-11-03T09:00"),
        ("2026-11-03T09:00", "at", "2026-11-03T09:00"),
        ("2026-11-03 09:00:00", "at", "2026-11-03 09:00:00"),
        ("at 2026-11-03T09:00Z", "at", "2026-11-03T09:00Z"),
    ],
)
def test_when_is_the_short_form_of_one_schedule(written: str, kind: str, expression: str) -> None:
    (trigger,) = keys(f"when: {written}").triggers
    assert trigger == TriggerSpec("clock", "clock", Schedule(kind, expression, "Europe/Lisbon"))  # type: ignore[arg-type]  # parametrised


@pytest.mark.parametrize(
    ("written", "kind", "expression"),
    [
        ('- cron: "0 9 * * mon-fri"', "cron", "0 9 * * mon-fri"),
        ("- every: 15m", "every", "15m"),
        ("- at: 2026-11-03T09:00", "at", "2026-11-03T09:00"),
        ("- at: {expression: 2026-11-03T09:00:00}", "at", "2026-11-03T09:00:00"),
    ],
)
def test_each_schedule_is_written_under_its_kind(written: str, kind: str, expression: str) -> None:
    (trigger,) = keys(f"triggers:\n  {written}").triggers
    assert trigger == TriggerSpec("clock", "clock", Schedule(kind, expression, "Europe/Lisbon"))  # type: ignore[arg-type]  # parametrised


BESIDE = """triggers:
  - every: 6h
    name: nightly
    timezone: Asia/Tokyo
    anchor: 2026-01-01T00:00
    enabled: false
    overlap: replace"""
INSIDE = """triggers:
  - every: {expression: 6h, name: nightly, timezone: Asia/Tokyo, anchor: "2026-01-01T00:00", enabled: false,
            overlap: replace}"""
BELOW = """triggers:
  - every:
      expression: 6h
      name: nightly
      timezone: Asia/Tokyo
      anchor: 2025-12-31T15:00Z
      enabled: false
      overlap: replace"""


@pytest.mark.parametrize("written", [BESIDE, INSIDE, BELOW])
def test_options_of_a_trigger_stand_beside_its_kind_or_inside(written: str) -> None:
    anchor = instant(datetime(2025, 12, 31, 15, tzinfo=UTC))
    assert keys(written).triggers == (
        TriggerSpec("nightly", "clock", Schedule("every", "6h", "Asia/Tokyo", anchor), False, Overlap.REPLACE),
    )


def test_several_schedules_have_names_of_their_own() -> None:
    definition = keys('triggers:\n  - cron: "0 9 * * *"\n  - cron: "0 18 * * *"\n    name: evening\n  - every: 1h\n'
                      '    name: hourly')
    assert [trigger.name for trigger in definition.triggers] == ["clock", "evening", "hourly"]


def test_manual_and_call_are_listed_only_to_set_their_options() -> None:
    definition = keys("when: every 1h\ntriggers:\n  - manual: {enabled: false}\n  - call:\n    enabled: false")
    assert definition.triggers[1:] == (
        TriggerSpec("manual", "manual", enabled=False), TriggerSpec("call", "call", enabled=False),
    )
    assert keys("triggers: [manual, call]").triggers == (TriggerSpec("manual", "manual"), TriggerSpec("call", "call"))


def test_overlap_of_the_automation_holds_for_triggers_that_name_none() -> None:
    definition = keys("overlap: queue\ntriggers:\n  - every: 1h\n  - every: 2h\n    name: two\n    overlap: skip\n"
                      "  - manual: {enabled: true}")
    assert {trigger.name: trigger.overlap for trigger in definition.triggers} == {
        "clock": Overlap.QUEUE, "two": Overlap.SKIP, "manual": None, "call": Overlap.QUEUE,
    }
    assert keys("overlap: parallel\nwhen: every 1h").triggers[0].overlap is Overlap.PARALLEL


@pytest.mark.parametrize(
    ("written", "target"),
    [
        ("{script: [date, -u]}", Target("script", {"command": ["date", "-u"]})),
        ("{script: date -u | tee log}", Target("script", {"command": "date -u | tee log"})),
        ("{script: {command: date, env: {A: b}, memory: 512m}}",
         Target("script", {"command": "date", "env": {"A": "b"}, "memory": "512m"})),
        ("{script: ./report.sh}", Target("script", {"file": "/desk/automations/report.sh"})),
        ("{script: ./report.sh --day 'to day'}",
         Target("script", {"file": "/desk/automations/report.sh", "args": ["--day", "to day"]})),
        ("{script: ../bin/report.sh}", Target("script", {"file": "/desk/automations/../bin/report.sh"})),
        ("{script: ~/report.sh}", Target("script", {"file": "/desk/automations/~/report.sh"})),
        ("{script: {file: report.sh, cwd: .}}",
         Target("script", {"file": "/desk/automations/report.sh", "cwd": "/desk/automations"})),
        ("{script: [./report.sh, ./data]}", Target("script", {"command": ["/desk/automations/report.sh", "./data"]})),
        ("{script: {command: ./a.sh | ./b.sh, cwd: .}}",
         Target("script", {"command": "./a.sh | ./b.sh", "cwd": "/desk/automations"})),
        ("{python: reports.daily:main}", Target("python", {"call": "reports.daily:main"})),
        ("{http: https://example.com/run}", Target("http", {"url": "https://example.com/run"})),
        ("{http: https://example.com/run, method: POST}",
         Target("http", {"url": "https://example.com/run", "method": "POST"})),
        ("{echo: All is well.}", Target("echo", {"text": "All is well."})),
        ("noop", Target("noop", {})),
        ("{noop: }", Target("noop", {})),
        ("{lamp: {colour: [red, 1, 0x10, 1.5, true, null]}}",
         Target("lamp", {"colour": ["red", 1, 16, 1.5, True, None]})),
    ],
)
def test_a_target_is_one_kind_with_its_config(written: str, target: Target) -> None:
    assert markdown(f"---\ntarget: {written}\n---\n").target == target


def test_a_relative_file_name_still_gives_whole_paths() -> None:
    target = markdown("---\ntarget: {script: ./report.sh}\n---\n", path="jobs/tidy.md").target
    assert target.config == {"file": str(Path.cwd() / "jobs" / "report.sh")}


def test_an_echo_without_a_text_takes_the_one_below() -> None:
    assert keys("target: echo").target == Target("echo", {"prompt": "Good morning."})
    assert keys("target: {echo: {}}").target == Target("echo", {"prompt": "Good morning."})


@pytest.mark.parametrize(
    ("written", "destinations"),
    [
        ("none", (Destination("none", "none"),)),
        ("silent", (Destination("silent", "silent"),)),
        ("[announce, silent]", (Destination("announce", "announce"), Destination("silent", "silent"))),
        ("[{announce: }]", INBOX),
        ("{file: out.md}", (Destination("file", "file", {"path": "out.md"}),)),
        ('[{file: "{{date}}.md", format: json}]',
         (Destination("file", "file", {"path": "{{date}}.md", "format": "json"}),)),
        ("[{file: a.md}, {file: {path: b.md, name: second}}]",
         (Destination("file", "file", {"path": "a.md"}), Destination("second", "file", {"path": "b.md"}))),
        ("[{announce: {on: [failed, needs_you]}}]",
         (Destination("announce", "announce", on=frozenset({"failed", "needs_you"})),)),
        ("[{announce: {on: failed}}]", (Destination("announce", "announce", on=frozenset({"failed"})),)),
        ("[{announce: {best_effort: true}}]", (Destination("announce", "announce", best_effort=True),)),
        ("[{webhook: https://example.com/in, secret: env:KEY, allow_hosts: [localhost], flat: true}]",
         (Destination("webhook", "webhook", {"url": "https://example.com/in", "secret": "env:KEY",
                                             "allow_hosts": ["localhost"], "flat": True}),)),
        ("[{webhook: {url: https://example.com/in, unsigned: true}, }]",
         (Destination("webhook", "webhook", {"url": "https://example.com/in", "unsigned": True}),)),
        ("[{lamp: {colour: red}}]", (Destination("lamp", "lamp", {"colour": "red"}),)),
    ],
)
def test_deliver_names_destinations(written: str, destinations: tuple[Destination, ...]) -> None:
    assert keys(f"deliver: {written}").deliver == destinations


def test_what_is_written_means_the_same_at_any_time() -> None:
    written = "---\nwhen: every 15m\nexpires: 2027-01-31\n---\nx"
    assert markdown(written, now=NOW) == markdown(written, now=instant(datetime(2031, 1, 1, tzinfo=UTC)))


@pytest.mark.parametrize("before", ["\ufeff", ""])
@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
def test_byte_order_marks_and_line_ends_of_other_systems_change_nothing(before: str, line_end: str) -> None:
    text = "---\nname: tidy\nlimits:\n  per_hour: 5\n---\nOne\n\ntwo\n"
    assert markdown(before + text.replace("\n", line_end)) == markdown(text)
