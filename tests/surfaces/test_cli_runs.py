"""Running things from the command line, with and without a desk, and what the exit code says."""

from __future__ import annotations

import asyncio
import json
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from shell import Shell

from nightporter.surfaces.api import Porter
from nightporter.surfaces.cli import running

pytest_plugins = ["homes"]
pytestmark = pytest.mark.usefixtures("nobodys_place")


def automation(shell: Shell, name: str, target: str, **keys: Any) -> None:
    """A definition file; no desk reads it, so `run` does."""
    more = "".join(f"{key}: {json.dumps(value)}\n" for key, value in keys.items())
    shell.write(f"{name}.yaml", f"name: {name}\ntarget: {target}\n{more}")


def test_without_a_desk_this_process_runs_and_delivers_and_says_so(shell: Shell) -> None:
    automation(shell, "tea", "{script: 'echo Tea for $(cat)'}", deliver=[{"file": "tea.txt"}])
    said = shell("run", "tea", "--payload", '{"who": "Ana"}')
    assert said.code == 0
    assert said.out == 'Tea for {"who": "Ana"}\n'
    assert "no desk is running: this process runs it" in said.err
    assert "It was delivered to file" in said.err
    assert "sha256" not in said.err
    assert (shell.home / "outputs" / "tea.txt").read_text().startswith("Tea for")
    run = shell("runs", "--json").json["items"][0]
    assert (run["state"], run["source"], run["outcome"]) == ("succeeded", "manual", "report")
    steps = shell("logs", "tea").out
    assert "claimed and started" in steps
    assert "-- said\nTea for" in steps
    assert "because" in shell("explain", "tea").out


@pytest.mark.parametrize(
    ("target", "keys", "code", "state"),
    [
        ("{script: 'true'}", {}, 0, "skipped"),
        ("{script: 'exit 3'}", {}, 1, "failed"),
        ("{script: 'sleep 60'}", {"limits": {"timeout": "200ms"}}, 124, "timed_out"),
        ("{echo: hello}", {"deliver": [{"webhook": "http://127.0.0.1:9/in", "unsigned": True,
                                        "allow_hosts": ["127.0.0.1"]}]}, 9, "succeeded"),
        ("{echo: hello}", {"deliver": [{"webhook": "http://127.0.0.1:9/in", "unsigned": True}]}, 9, "succeeded"),
    ],
)
def test_the_exit_code_says_how_the_run_went(
    shell: Shell, target: str, keys: dict[str, Any], code: int, state: str
) -> None:
    automation(shell, "tea", target, **keys)
    said = shell("run", "tea", "--json")
    assert said.json["run"]["state"] == state
    assert said.code == code
    assert (said.json["verdict"], said.json["via"]) == ("admitted", "this process")


def test_what_does_not_run_is_code_seven_with_its_reason(shell: Shell) -> None:
    automation(shell, "tea", "{echo: tea}", expires="2020-01-01")
    refused = shell("run", "tea", "--json")
    assert refused.code == running.DID_NOT_RUN
    assert (refused.json["verdict"], refused.json["reason"], refused.json["run_id"]) == ("skipped", "expired", None)
    said = shell("run", "tea")
    assert said.out.startswith("tea did not run: The automation has passed its expiry date.")
    lines = shell("firings", "--did-not-run", "--json").json["items"]
    assert [line["reason"] for line in lines] == ["expired", "expired"]
    assert "expired" in shell("firings", "tea", "--verdict", "skipped").out
    assert shell("explain", lines[0]["id"]).out.startswith("tea did not run when ")


def test_a_definition_that_cannot_be_read_does_not_run_and_says_where(shell: Shell) -> None:
    shell.write("tea.yaml", "name: tea\ntarget: {noop: }\nwhne: every 1h\n")
    said = shell("run", "tea")
    assert said.code == running.DID_NOT_RUN
    assert "tea.yaml:3:1: unknown key `whne`" in said.out
    assert shell("run", "tea", "--json").json["reason"] == "configuration"


def test_a_failed_run_is_a_dead_letter_until_it_is_replayed(shell: Shell, tmp_path: Path) -> None:
    flag = tmp_path / "mended"
    automation(shell, "tea", f"{{script: 'test -e {flag} && echo mended'}}")
    assert shell("run", "tea").code == 1
    dead = shell("dead", "--json").json["items"]
    assert [run["automation"] for run in dead] == ["tea"]
    assert dead[0]["id"] in shell("dead", "tea").out
    inbox = shell("inbox", "--kind", "dead_letter", "--mark-read", "--json").json["items"]
    assert inbox[0]["run_id"] == dead[0]["id"]
    assert shell("inbox").out == "Nothing new in the inbox.\n"
    assert "tea failed" in shell("inbox", "--all").out
    flag.touch()
    again = shell("replay", dead[0]["id"], "--json")
    assert again.code == 0
    assert (again.json["run"]["output"].strip(), again.json["run"]["replay_of"]) == ("mended", dead[0]["id"])


def test_a_result_is_sent_again_without_the_work(shell: Shell, tmp_path: Path) -> None:
    count = tmp_path / "count"
    automation(shell, "tea", f"{{script: 'echo x >> {count}; echo done'}}",
               deliver=[{"webhook": "http://127.0.0.1:9/in", "unsigned": True}])
    assert shell("run", "tea").code == 9
    given_up = shell("deliveries", "--state", "given_up", "--json").json["items"]
    assert [d["destination"] for d in given_up] == ["webhook"]
    assert "webhook" in shell("deliveries").out
    again = shell("deliver", "tea")
    assert again.code == 9
    assert "no desk is running: this process sent it" in again.err
    assert count.read_text() == "x\n"
    assert shell("deliver", "tea", "--destination", "fax").code == 4


def test_only_what_is_sent_no_more_can_be_dismissed(shell: Shell, tmp_path: Path) -> None:
    away = {"webhook": "http://127.0.0.1:9/in", "unsigned": True, "allow_hosts": ["127.0.0.1"], "name": "away"}
    refused = {"webhook": "http://127.0.0.1:9/in", "unsigned": True, "name": "refused"}
    automation(shell, "tea", "{echo: hello}", deliver=[away, refused])
    assert shell("run", "tea").code == 9
    waits = shell("deliver", "tea", "--destination", "away", "--dismiss")
    assert (waits.code, waits.out) == (4, "")
    assert "it is tried again by itself: away" in waits.err
    some = shell("deliver", "tea", "--dismiss")
    assert (some.code, some.out) == (0, "1 dismissed\n")
    assert "not dismissed, since it is tried again by itself: away" in some.err
    again = shell("deliver", "tea", "--destination", "refused", "--dismiss")
    assert (again.code, "it was dismissed already" in again.err) == (4, True)


def test_a_run_that_may_have_acted_waits_for_a_person(shell: Shell, tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    automation(shell, "tea", f"{{script: 'touch {begun}; sleep 60'}}")
    shell("tick")
    desk = shell.process("up")
    try:
        until(lambda: shell("status").code == 0)
        run = str(shell("run", "tea", "--json").json["run_id"])
        until(begun.exists)
        desk.kill()
        desk.wait()
        assert shell("explain", run).err == NOBODY
        shell("tick")
        waits = shell("runs", "--state", "review", "--json").json["items"]
        assert [r["id"] for r in waits] == [run]
        detail = shell("logs", run, "--json").json
        assert detail["timeline"][-1]["what"] == "review"
        found = shell("doctor", "--json").json["items"]
        assert [f["code"] for f in found if f["severity"] != "note"] == ["review"]
        assert shell("review", run, "dismiss").out == f"{run} is closed\n"
        assert shell("review", run, "dismiss").code == 4
    finally:
        desk.kill()
        desk.communicate()


def test_who_waits_for_a_run_is_told_that_the_desk_is_gone_and_waits_for_the_next(
    shell: Shell, tmp_path: Path
) -> None:
    begun = tmp_path / "begun"
    automation(shell, "twice", f"{{script: 'test -e {begun} || {{ touch {begun}; sleep 60; }}; echo done'}}",
               idempotent=True)
    desks = [shell.process("up")]
    try:
        until(lambda: shell("status").code == 0 and shell("list", "--json").json["items"])
        waiting = shell.process("run", "twice", "--wait")
        until(begun.exists)
        desks[0].kill()
        assert waiting.stderr is not None
        assert waiting.stderr.readline().startswith("nobody is there to run it: it waits for a desk")
        desks.append(shell.process("up"))
        out, _ = waiting.communicate(timeout=60)
        assert (waiting.returncode, out) == (0, "done\n")
    finally:
        for desk in desks:
            desk.kill()
            desk.communicate()


def test_a_function_waits_for_its_program_and_is_not_failed_by_a_command(shell: Shell) -> None:
    define(shell, "brief")
    said = shell("run", "brief")
    assert (said.code, "queued; it waits for the program that has its function" in said.out) == (0, True)
    waited = shell("run", "brief", "--wait", "--timeout", "1s")
    assert waited.code == 124
    assert waited.err.startswith("nobody is there to run it")
    assert [run["state"] for run in shell("runs", "brief", "--json").json["items"]] == ["queued", "queued"]


def define(shell: Shell, name: str) -> None:
    """A program was here that has a function of that name."""
    porter = Porter(home=shell.home)
    porter.automation(name=name)(print)

    async def be_there() -> None:
        async with porter.running():
            pass

    asyncio.run(be_there())


def until(fact: Any) -> None:
    """Return as soon as it is true; the test's own timeout is the limit."""
    while not fact():
        time.sleep(0.02)


@pytest.fixture
def desk(shell: Shell) -> Iterator[Shell]:
    """A home whose desk is up, in a process of its own."""
    automation(shell, "quick", "{echo: hello}", deliver=[{"file": "quick.txt"}])
    automation(shell, "slow", "{script: 'sleep 60'}", idempotent=True)
    automation(shell, "often", "{noop: }", when="every 1s", limits={"per_hour": "none"})
    process = shell.process("up")
    try:
        until(lambda: shell("status").code == 0 and len(shell("list", "--json").json["items"]) == 3)
        yield shell
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0
        out, err = process.communicate()
        assert err == ""
        assert out.splitlines()[0] == f"nightporter: the desk on {shell.home / 'nightporter.sqlite'}"
        told = [line.split()[1] for line in out.splitlines()[2:]]
        assert {"definition.created", "desk.started", "run.started", "run.ended", "desk.stopped"} <= set(told)
    finally:
        process.kill()
        process.communicate()


def test_a_result_that_a_desk_sends_again_is_waited_for(desk: Shell) -> None:
    automation(desk, "brief", "{echo: hello}", deliver=[{"file": "brief.txt"}])
    in_the_way = desk.home / "outputs" / "brief.txt"
    in_the_way.mkdir(parents=True)
    until(lambda: len(desk("list", "--json").json["items"]) == 4)
    assert desk("run", "brief", "--wait").code == 9
    again = desk("deliver", "brief", "--json")
    assert (again.code, again.json["via"], again.json["deliveries"][0]["state"]) == (9, "desk", "given_up")
    in_the_way.rmdir()
    at_last = desk("deliver", "brief")
    assert (at_last.code, at_last.out, at_last.err) == (0, "file: delivered\n", "the desk sent it\n")
    assert in_the_way.read_text() == "hello\n"


def test_a_desk_runs_what_is_asked_and_can_be_waited_for(desk: Shell) -> None:
    status = desk("status", "--json").json
    assert (status["healthy"], [w["role"] for w in status["workers"]]) == (True, ["desk"])
    queued = desk("run", "quick")
    assert "queued; the desk runs it" in queued.out
    assert desk("explain", "quick").err == ""
    waited = desk("run", "quick", "--wait", "--json")
    assert (waited.code, waited.json["via"], waited.json["run"]["output"]) == (0, "desk", "hello")
    assert [d["state"] for d in waited.json["run"]["deliveries"]] == ["delivered"]
    assert desk("logs", "quick", "--follow").code == 0
    impatient = desk("run", "slow", "--wait", "--timeout", "100ms")
    assert impatient.code == running.TIMED_OUT
    until(lambda: bool(desk("runs", "slow", "--state", "running", "--json").json["items"]))
    assert desk("cancel", "slow").out.endswith("asked to end\n")
    assert desk("cancel", "slow").code == 4
    until(lambda: desk("runs", "slow", "--state", "cancelled", "--json").json["items"])
    until(lambda: desk("runs", "often", "--json").json["items"])
    assert desk("audit").code == 0
    assert desk("tick", "--json").json["answered_what_was_due"] is False


def test_a_stop_ends_what_runs_and_lasts_until_it_is_lifted(desk: Shell) -> None:
    desk("run", "slow")
    until(lambda: bool(desk("runs", "slow", "--state", "running", "--json").json["items"]))
    stopped = desk("stop", "--reason", "too much", "--json").json
    assert (stopped["stopped"], stopped["runs_asked_to_end"]) == (True, 1)
    until(lambda: desk("runs", "slow", "--state", "cancelled", "--json").json["items"])
    assert desk("stop").code == 4
    assert desk("run", "quick").code == running.DID_NOT_RUN
    status = desk("status")
    assert status.code == 1
    assert status.out.splitlines()[0].endswith(" too much")
    assert desk("stop", "--lift").code == 0
    assert desk("stop", "--lift").code == 4
    assert desk("run", "quick", "--wait").code == 0
    until(lambda: desk("runs", "often", "--json").json["items"])


def test_a_tick_answers_what_is_due_and_leaves(shell: Shell) -> None:
    automation(shell, "often", "{echo: hello}", when="every 1s", deliver=[{"file": "often.txt"}])
    assert shell("tick", "--json").json["answered_what_was_due"] is True
    first = shell("next", "often", "-n", "1", "--json").json["items"][0]["at"]
    until(lambda: shell("next", "--every", "1s", "--after", first, "-n", "1", "--json").code == 0 and _past(first))
    ticked = shell("tick", "--json").json
    assert ticked["runs_ended"] >= 1
    assert (shell.home / "outputs" / "often.txt").exists()


def _past(instant: str) -> bool:
    from nightporter.clock import SystemClock
    from nightporter.ledger.moments import asked_moment

    now = SystemClock().now()
    return asked_moment(instant, "UTC", now) < now


def test_an_interrupted_command_is_code_130(shell: Shell, tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    automation(shell, "slow", f"{{script: 'touch {begun}; sleep 60'}}")
    process = shell.process("run", "slow", "--wait")
    until(begun.exists)
    process.send_signal(signal.SIGINT)
    assert process.wait(20) == 130
    process.communicate()
    assert shell("runs", "--json").json["items"][0]["state"] == "review"


NOBODY = "no desk is running, so nothing comes of it: nightporter up starts one\n"


def test_an_explanation_says_when_nobody_is_there_to_fire(shell: Shell) -> None:
    shell("add", "every 1h", "tea", "--name", "tea")
    assert shell("explain", "tea").err == NOBODY
