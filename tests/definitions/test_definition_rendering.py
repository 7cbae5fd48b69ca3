"""A definition that is written to a file reads as the same definition."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from sample_definitions import CHECKS, NOW, keys, markdown

from nightporter.clock import Instant
from nightporter.definitions import read, render
from nightporter.rules import schedule
from nightporter.words import (
    Definition,
    Destination,
    Limits,
    Missed,
    MissedPolicy,
    Overlap,
    Retry,
    Target,
    TriggerSpec,
)

INBOX = (Destination("announce", "announce"),)

names = st.from_regex(r"[a-z0-9][a-z0-9-]{0,20}", fullmatch=True)
texts = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=60).filter(
    lambda text: text != "wrong"
)
words = st.sampled_from(
    ["true", "no", "null", "~", "1e3", "0x1", "on", "- a", "a: b", "# x", "*", "@daily", "{{date}}", "x\ny", " x", "=",
     "2026-11-03", "none", "\ufeff", "\u2028", "\x85", "\x7f", "\x1b[0m", "é", "😀", "'", '"', "\\", "%", "", "<<"]
) | texts
values = st.recursive(
    st.none() | st.booleans() | st.integers(-10**12, 10**12) | st.floats(allow_nan=False, allow_infinity=False) | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=6,
)
configs = st.dictionaries(names.filter(lambda key: key not in ("file", "cwd", "name", "on")), values, max_size=4)
durations = st.integers(0, 10**10).map(lambda milliseconds: timedelta(milliseconds=milliseconds))
zones = st.sampled_from(["UTC", "Europe/Lisbon", "Asia/Tokyo", "America/Argentina/Buenos_Aires"])
instants = st.integers(0, 4 * 10**15).map(Instant)
counts = st.none() | st.integers(1, 1_000_000)


@st.composite
def schedules(draw: st.DrawFn) -> Any:
    zone = draw(zones)
    match draw(st.sampled_from(["cron", "every", "at"])):
        case "cron":
            return schedule.parse("cron", draw(st.sampled_from(["0 9 * * mon-fri", "*/5 * * * * *", "@daily"])), zone)
        case "every":
            anchor = draw(st.none() | instants)
            return schedule.parse("every", draw(st.sampled_from(["15m", "1h 30m", "PT1H"])), zone, anchor=anchor)
        case _:
            return schedule.parse("at", draw(st.sampled_from(["2026-11-03T09:00", "2026-11-03 09:00:01Z"])), zone)


@st.composite
def triggers(draw: st.DrawFn) -> tuple[TriggerSpec, ...]:
    found = [
        TriggerSpec(name, "clock", draw(schedules()), draw(st.booleans()), overlap := draw(overlaps),
                    missed=draw(missed.filter(lambda m: not _contradict(m, overlap))))
        for name in draw(st.lists(names.filter(lambda name: name not in ("manual", "call")), max_size=3, unique=True))
    ]
    found += [TriggerSpec(kind, kind, None, draw(st.booleans()), draw(overlaps) if kind == "call" else None)
              for kind in draw(st.lists(st.sampled_from(["manual", "call"]), max_size=2, unique=True))]
    return tuple(found)


def _contradict(missed: Missed | None, overlap: Overlap | None) -> bool:
    return missed == Missed(MissedPolicy.RUN_ALL) and overlap in (Overlap.SKIP, Overlap.REPLACE)


overlaps = st.none() | st.sampled_from(Overlap)
missed = st.none() | st.builds(Missed, st.sampled_from(MissedPolicy)) | st.builds(
    Missed, st.sampled_from([MissedPolicy.RUN_ONCE, MissedPolicy.REVIEW]),
    st.sampled_from([timedelta(seconds=1), timedelta(hours=36)]),
)
outcomes = st.frozensets(st.sampled_from(["report", "action", "needs_you", "failed"]), min_size=1)
destinations = st.lists(
    st.builds(Destination, names, st.just("lamp"), configs, outcomes, st.booleans()),
    min_size=1, max_size=3, unique_by=lambda each: each.name,
).map(tuple) | st.sampled_from([INBOX, (Destination("none", "none"),)])
bodies = st.builds(lambda text: Target("echo", {"prompt": text}), texts.filter(lambda text: text.strip() != ""))
definitions = st.builds(
    Definition,
    name=names, target=st.builds(Target, st.just("lamp"), configs) | bodies, triggers=triggers(), timezone=zones,
    description=words, owner=words, workspace=names,
    limits=st.builds(Limits, counts, counts, counts, st.none() | durations.filter(bool), st.integers(1000, 10**8)),
    retry=st.builds(
        Retry, st.integers(1, 100), st.lists(durations, min_size=1, max_size=3).map(tuple),
        st.frozensets(st.sampled_from(["transient", "nonzero_exit", "exception"]), min_size=1),
    ),
    cooldown=durations, priority=st.integers(0, 100), idempotent=st.booleans(),
    on_crash=st.sampled_from([None, "retry", "review"]), expires=st.none() | instants, deliver=destinations,
)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(definitions)
def test_what_is_written_reads_as_the_same_definition(definition: Definition) -> None:
    text = render(definition, checks=CHECKS)
    assert read(text, format="markdown", default_timezone="Asia/Kolkata", now=NOW, checks=CHECKS) == definition


def test_defaults_are_left_out_and_the_zone_is_not() -> None:
    assert render(markdown("---\n---\nGood morning."), checks=CHECKS) == (
        "---\nname: morning-brief\ntimezone: Europe/Lisbon\n---\nGood morning.\n"
    )


def test_a_single_plain_schedule_is_written_in_its_short_form() -> None:
    for written in ('when: "30 7 * * mon-fri"', "when: every 15m", 'when: "at 2026-11-03T09:00"'):
        assert f"\n{written}\n" in render(keys(written), checks=CHECKS)


def test_everything_else_is_written_as_a_person_would() -> None:
    definition = keys(
        "description: 'What: the night brought'\noverlap: queue\nlimits: {per_hour: 5, timeout: none}\n"
        "retry: {attempts: 5, delays: [1s, 90s], on: [transient, exception]}\ncooldown: 1h30m\npriority: 10\n"
        "idempotent: true\non_crash: retry\nexpires: 2027-01-31\n"
        "triggers:\n  - every: 6h\n    timezone: Asia/Tokyo\n    name: nightly\n  - manual: {enabled: false}\n"
        'deliver: [{file: "{{date}}.md", on: failed}, announce]'
    )
    assert render(definition, checks=CHECKS) == """---
name: morning-brief
description: "What: the night brought"
timezone: Europe/Lisbon
triggers:
  - every: {expression: 6h, timezone: Asia/Tokyo, name: nightly, overlap: queue}
  - manual: {enabled: false}
  - call: {overlap: queue}
limits: {per_hour: 5, timeout: none}
retry: {attempts: 5, delays: [1s, 1m30s], on: [exception, transient]}
cooldown: 1h30m
priority: 10
idempotent: true
on_crash: retry
expires: "2027-02-01T00:00:00Z"
deliver:
  - file: {path: "{{date}}.md", on: [failed]}
  - announce
---
Good morning.
"""
