"""`nightporter missed`: what was missed and waits, listed, run late and dismissed, with and without a desk."""

from __future__ import annotations

from datetime import timedelta

import pytest
from shell import Shell

from nightporter.clock import Instant, Kick, ManualClock, SystemClock, micros
from nightporter.sources.clock import ClockSource
from nightporter.store import open_store
from nightporter.words import Missed, MissedPolicy
from words import a_clock_trigger, an_automation

pytest_plugins = ["homes"]
pytestmark = pytest.mark.usefixtures("nobodys_place")


@pytest.fixture
def home(shell: Shell) -> Shell:
    """A store of which three hours were missed."""
    assert shell("init").code == 0
    began = ManualClock(Instant(SystemClock().now() - micros(timedelta(hours=3, minutes=30))))
    hourly = a_clock_trigger("1h", kind="every", anchor=began.now(), missed=Missed(MissedPolicy.REVIEW))
    store = open_store(str(shell.home / "nightporter.sqlite"), now=began.now(), patience=5.0)
    try:
        an_automation(store, now=began.now(), triggers=[hourly])
        began.advance(timedelta(hours=3, minutes=29))
        while ClockSource(store, began, Kick()).tick():
            pass
    finally:
        store.close()
    return shell


def waiting(home: Shell, *flags: str) -> list[dict[str, str]]:
    found: list[dict[str, str]] = home("missed", "--json", *flags).json["items"]
    return found


def test_what_waits_is_listed_the_newest_first(home: Shell) -> None:
    cards = waiting(home)
    assert [card["state"] for card in cards] == ["pending"] * 3
    assert sorted((card["slot"] for card in cards), reverse=True) == [card["slot"] for card in cards]
    said = home("missed")
    assert cards[0]["id"] in said.out
    assert "runs one late" in said.err
    assert [card["id"] for card in waiting(home, "-n", "1")] == [cards[0]["id"]]
    assert cards[2]["id"] in home("missed", "brief").out
    assert home("missed", "nobody").code != 0


def test_one_is_run_late_and_one_dismissed_and_each_is_decided_once(home: Shell) -> None:
    newest, middle, oldest = (card["id"] for card in waiting(home))
    ran = home("missed", "run", newest, "--json")
    assert ran.code == 0
    run = ran.json["items"][0]["run_id"]
    assert run.startswith("run_")
    again = home("missed", "run", newest)
    assert again.code != 0
    assert "executed already" in again.err
    assert "is dismissed" in home("missed", "dismiss", middle[:-2], "--reason", "not needed").out
    assert [card["id"] for card in waiting(home)] == [oldest]
    every = {card["id"]: card for card in waiting(home, "--all")}
    assert (every[newest]["run_id"], every[middle]["note"]) == (run, "not needed")
    assert "for its missed slot of" in home("explain", run).out


def test_a_dry_run_decides_nothing(home: Shell) -> None:
    assert "would become run_" in home("missed", "run", "brief", "--dry-run").out
    assert "would be dismissed" in home("missed", "dismiss", "--all", "--dry-run").out
    assert len(waiting(home)) == 3


def test_all_of_an_automation_or_all_there_are_are_decided_together(home: Shell) -> None:
    assert home("missed", "run", "brief").out.count("became run_") == 3
    assert home("missed", "dismiss", "--all").out == "Nothing missed waits there.\n"
    assert "Nothing missed waits for you" in home("missed").out


@pytest.mark.parametrize(
    "words",
    [("run",), ("run", "brief", "--all"), ("repeat", "brief"), ("run", "brief", "--reason", "x"), ("run", "msd_0")],
)
def test_what_cannot_be_meant_is_refused(home: Shell, words: tuple[str, ...]) -> None:
    said = home("missed", *words)
    assert said.code != 0
    assert said.err
    assert len(waiting(home)) == 3
