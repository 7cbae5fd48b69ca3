"""What a later release brings is refused by name, never ignored."""

from __future__ import annotations

import pytest
from sample_definitions import place, refusal

from nightporter.definitions import grammar
from nightporter.errors import NotYet

PROMISED = (
    "permissions", "claims", "session", "expect", "yields", "monthly_cost", "cost_per_run", "tool_calls",
    "tokens", "model", "memory",
)
PROMISED_TRIGGERS = (
    "webhook", "email", "file", "event", "chain", "recency", "idle", "view", "heartbeat", "monitor", "feed", "ping",
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
