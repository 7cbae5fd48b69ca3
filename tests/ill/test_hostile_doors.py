"""What comes in through a door is kept as it is, or refused by name: never an accident, and never half of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from shell import Shell

from nightporter.errors import BadInput, NotFound
from nightporter.store import open_store
from nightporter.surfaces.api import Porter

pytest_plugins = ["homes"]

HALF = "\ud83d"
"""Half of a character, as a text cut in two leaves it."""


def nested(levels: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(levels - 1):
        value = [value]
    return value


def circle() -> list[Any]:
    value: list[Any] = []
    value.append(value)
    return value


@pytest.fixture
def porter(tmp_path: Path, store_url: str) -> Porter:
    made = Porter(home=tmp_path / "home", store=store_url)
    made.define("hello", {"echo": {"text": "hi"}})
    return made


NO_JSON = {
    "nan": float("nan"), "infinity": {"n": [float("inf")]}, "minus infinity": {"n": -float("inf")}, "deep": nested(101),
    "deeper": nested(5000), "a circle": circle(), "a set": {1, 2}, "bytes": b"bytes", "a long number": 10**5000,
}


async def test_a_payload_that_is_no_json_is_refused(porter: Porter, store_url: str) -> None:
    async with porter.running():
        for payload in NO_JSON.values():
            with pytest.raises(BadInput, match="the payload is"):
                await porter.fire("hello", payload=payload)
        assert (await porter.fire("hello", payload=nested(100))).run_id


async def test_halves_of_characters_are_replaced_in_what_is_said_and_refused_in_names(
    porter: Porter, store_url: str
) -> None:
    async with porter.running():
        answer = await porter.fire("hello", payload={"a": HALF, HALF: f"{HALF}\ude00"}, text=f"x{HALF}\0")
        for name in (HALF, "a\0b"):
            with pytest.raises(BadInput, match="cannot be kept"):
                await porter.fire("hello", external_id=name)
        with pytest.raises(NotFound):
            await porter.fire(f"hello{HALF}")
    store = open_store(store_url, now=0)
    try:
        text, payload = store.read(lambda tx: tx.payloads([answer.firing_id]))[answer.firing_id]
    finally:
        store.close()
    assert text == "x\ufffd\ufffd"
    assert json.loads(payload or "") == {"a": "\ufffd", "\ufffd": "\U0001f600"}


@pytest.mark.parametrize(("payload", "says"), [
    ("[" * 100_000, "nested too deep"), ("[" * 101 + "]" * 101, "nested deeper than 100 levels"),
    ("NaN", "not a JSON value"), ('{"n": -Infinity}', "not a JSON value"), ("9" * 5000, "the payload is no JSON"),
    ('{"n": }', "the payload is no JSON"),
])
def test_a_payload_on_the_command_line_is_refused_with_a_reason(payload: str, says: str, shell: Shell) -> None:
    shell.write("hello.md", "---\nname: hello\n---\nHello.\n")
    said = shell("run", "hello", "--payload", payload)
    assert said.code == 2
    assert said.err.startswith("error[bad_input]: ")
    assert says in said.err
    assert not shell("runs", "--json").json["items"]


@pytest.mark.parametrize("words", [
    ("run", "hello", "--text", "caf\udce9"), ("run", "hell\udcff"), ("disable", "hello", "--reason", "\udc80"),
    ("explain", "\udcff", "--json"), ("add", "every 1h", "\udce9", "--name", "another"),
])
def test_words_that_are_no_utf_8_are_refused_by_name(words: tuple[str, ...], shell: Shell) -> None:
    shell.write("hello.md", "---\nname: hello\n---\nHello.\n")
    assert shell("tick").code == 0
    said = shell(*words)
    assert said.code == 2
    assert "is no text" in said.out + said.err
    assert "write it in UTF-8" in said.out + said.err


def test_half_a_character_in_a_payload_on_the_command_line_is_replaced(shell: Shell) -> None:
    shell.write("hello.md", "---\nname: hello\n---\nHello.\n")
    assert shell("run", "hello", "--payload", '"\\ud83d"', "--wait").code == 0
    [run] = shell("runs", "--json").json["items"]
    assert shell("logs", run["id"], "--json").json["payload"] == "\ufffd"
