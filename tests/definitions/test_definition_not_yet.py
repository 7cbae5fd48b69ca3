"""What a later release brings is refused by name, never ignored."""

from __future__ import annotations

import pytest
from sample_definitions import place, refusal

from nightporter.definitions import grammar
from nightporter.errors import NotYet

PROMISED = (
    "if", "permissions", "claims", "coalesce", "quiet_hours", "threshold", "max_runs", "exclude", "start",
    "end", "rrule", "session", "expect", "yields", "monthly_cost", "cost_per_run", "tool_calls", "tokens", "model",
    "memory",
)
PROMISED_TRIGGERS = (
    "webhook", "email", "file", "event", "chain", "recency", "idle", "view", "heartbeat", "monitor", "feed", "ping",
    "rrule",
)


def test_what_the_design_promises_for_later_is_known_by_name() -> None:
    assert set(PROMISED) <= set(grammar.NOT_YET)
    assert set(PROMISED_TRIGGERS) == set(grammar.NOT_YET_TRIGGERS)
    assert set(grammar.NOT_YET_TARGETS) == {"agent", "cli_agent", "workflow"}


@pytest.mark.parametrize("key", grammar.NOT_YET)
def test_a_key_of_a_later_release_is_not_yet(key: str) -> None:
    error = refusal(f"name: x\n{key}: {{a: 1}}")
    assert isinstance(error, NotYet)
    assert f"`{key}` is not there yet" in error.what
    assert grammar.NOT_YET[key] in error.why
    assert place(error) == (3, 1)


@pytest.mark.parametrize("kind", grammar.NOT_YET_TRIGGERS)
@pytest.mark.parametrize("written", ["{%s: x}", "{%s: {a: 1}}", "{%s: x, name: y}", "%s"])
def test_a_trigger_of_a_later_release_is_not_yet(kind: str, written: str) -> None:
    error = refusal("triggers:\n  - every: 1h\n  - " + written % kind)
    assert isinstance(error, NotYet)
    assert grammar.NOT_YET_TRIGGERS[kind] in error.why
    assert place(error) == (4, 6 if "{" in written else 5)


@pytest.mark.parametrize("key", grammar.NOT_YET_TRIGGER_KEYS)
def test_an_option_of_a_trigger_of_a_later_release_is_not_yet(key: str) -> None:
    error = refusal(f"triggers:\n  - every: 1h\n    {key}: x")
    assert isinstance(error, NotYet)
    assert place(error) == (4, 5)


@pytest.mark.parametrize("key", grammar.NOT_YET_LIMITS)
def test_a_limit_of_a_later_release_is_not_yet(key: str) -> None:
    error = refusal(f"limits: {{{key}: 1}}")
    assert isinstance(error, NotYet)
    assert place(error) == (2, 10)


@pytest.mark.parametrize("kind", grammar.NOT_YET_TARGETS)
def test_a_target_of_a_later_release_is_not_yet(kind: str) -> None:
    error = refusal(f"target: {{{kind}: x}}")
    assert isinstance(error, NotYet)
    assert place(error) == (2, 10)


@pytest.mark.parametrize("kind", grammar.NOT_YET_DESTINATIONS)
def test_a_destination_of_a_later_release_is_not_yet(kind: str) -> None:
    assert isinstance(refusal(f"deliver: {kind}"), NotYet)
    error = refusal(f"deliver: [{{{kind}: x}}]")
    assert isinstance(error, NotYet)
    assert place(error) == (2, 12)


@pytest.mark.parametrize("key", grammar.NOT_YET_DELIVER_KEYS)
def test_an_option_of_a_destination_of_a_later_release_is_not_yet(key: str) -> None:
    error = refusal(f"deliver: [{{file: x, {key}: true}}]")
    assert isinstance(error, NotYet)
    assert place(error) == (2, 21)


@pytest.mark.parametrize(
    ("words", "cron"),
    [
        ("weekdays at 07:30", "30 7 * * mon-fri"),
        ("daily at 7", "0 7 * * *"),
        ("every day at 7pm", "0 19 * * *"),
        ("Mon,Wed at 9:30am", "30 9 * * mon,wed"),
        ("mon and fri at 12am", "0 0 * * mon,fri"),
        ("sundays at 12pm", "0 12 * * sun"),
        ("every tuesday at 6", "0 6 * * tue"),
        ("weekends at 10:05", "5 10 * * sat,sun"),
    ],
)
def test_plain_words_are_not_yet_and_their_cron_form_is_offered(words: str, cron: str) -> None:
    error = refusal(f"when: {words}")
    assert isinstance(error, NotYet)
    assert error.next == f'write `when: "{cron}"`'
    assert place(error) == (2, 7)


@pytest.mark.parametrize(
    "words",
    ["first monday at 10", "tomorrow at 9", "every monday", "every 2h from 08:00 to 20:00", "daily at 25", "noon",
     "daily at 13pm", "mon-fri 09:00", "every", "in a while", "the 1 of every month"],
)
def test_other_plain_words_are_not_yet_and_a_cron_expression_is_named(words: str) -> None:
    error = refusal(f"when: {words}")
    assert isinstance(error, NotYet)
    assert "cron expression" in error.next
