"""`explain` takes a moment beside the name, with facts below; `show` says what runs; a stop is said in lists."""

from __future__ import annotations

from contextlib import closing

import pytest
from shell import Shell

from nightporter.clock import DAY, Instant, SystemClock
from nightporter.store import open_store
from words import an_automation, fire

pytest_plugins = ["homes"]


@pytest.fixture
def desk(shell: Shell) -> Shell:
    assert shell("add", "0 9 * * *", "hello there", "--name", "brief", "--timezone", "UTC").code == 0
    return shell


def test_a_moment_may_stand_beside_the_name(desk: Shell) -> None:
    beside, flag = desk("explain", "brief", "2099-01-01T09:00"), desk("explain", "brief", "--at", "2099-01-01T09:00")
    assert beside.code == flag.code == 0
    assert beside.out.startswith("brief will run at 2099-01-01 09:00 UTC, in ")
    assert desk("explain", "brief", "09:00").out.startswith("brief will run at ")
    assert desk("explain", "brief", "09:00", "--at", "10:00").code == 2
    found = desk("explain", "brief", "2099-01-01T09:00", "--json").json
    assert (found["slot"], {fact["name"] for fact in found["facts"]}) == (
        "2099-01-01T09:00:00Z", {"slot", "trigger", "will be asked"})


def test_the_facts_stand_below_the_paragraph(desk: Shell) -> None:
    lines = desk("explain", "brief").out.splitlines()
    assert lines[0].startswith("Nothing has fired it yet.")
    assert [line.split()[0] for line in lines[1:]] == ["state", "schedule", "next"]


@pytest.mark.parametrize(("target", "says"), [
    ("script: df -h /", "script df -h /"), ("script: [df, -h, 'a b']", "script df -h 'a b'"),
    ("python: reports.daily:main", "python reports.daily:main"),
    ("http: https://example.com/x", "http GET https://example.com/x"),
])
def test_show_says_what_runs(desk: Shell, target: str, says: str) -> None:
    desk.write("disk.yaml", f"name: disk\nwhen: '0 7 * * *'\ntarget:\n  {target}\n")
    desk("tick")
    assert says in [" ".join(line.split()).removeprefix("runs ") for line in desk("show", "disk").out.splitlines()]


def test_a_clock_that_is_far_behind_is_said_wherever_somebody_asks_how_things_stand(desk: Shell) -> None:
    assert desk("status", "--json").json["clock_behind"] == 0
    assert "behind" not in desk("status").out + desk("explain", "brief").out + desk("list").err
    year_ahead = SystemClock().now() + 365 * DAY
    with closing(open_store(desk.store or str(desk.home / "nightporter.sqlite"), now=year_ahead)) as store:
        store.write(lambda tx: tx.raise_setting("clock_high_water", Instant(year_ahead)))
        store.write(lambda tx: tx.put_setting("due_evaluated_at", str(year_ahead)))
        automation = an_automation(store, now=Instant(year_ahead), name="waits")
        fire(store, automation, now=Instant(year_ahead))
    said = "This machine's clock is 365 d behind what the desk has already seen"
    status = desk("status")
    assert said in status.out
    assert "1 for a worker (oldest 0 s)" in status.out
    assert desk("status", "--json").json["due_evaluated_ago"] == 0
    assert said in desk("explain", "brief").out
    assert said in desk("list").err
    for verb in ("status", "list"):
        assert desk(verb, "--json").json["clock_behind"] > 364 * 86_400


def test_lists_and_explanations_say_that_everything_is_stopped(desk: Shell) -> None:
    assert (desk("list").err, desk("list", "--json").json["stopped"]) == ("", None)
    desk("stop", "--reason", "enough")
    assert "everything is stopped by" in desk("list").err
    assert desk("list", "--json").json["stopped"]["reason"] == "enough"
    assert "is answered without a run while the stop lasts" in desk("explain", "brief").out
    desk("stop", "--lift")
    assert desk("list").err == ""
