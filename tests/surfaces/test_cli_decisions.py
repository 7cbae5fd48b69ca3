"""What a person decides on the command line: incidents, dead letters together, an end put off, a look left out."""

from __future__ import annotations

from contextlib import closing

import pytest
from shell import Shell

from nightporter.clock import SystemClock
from nightporter.store import open_store
from words import fire

pytest_plugins = ["homes"]


@pytest.fixture
def failing(shell: Shell) -> Shell:
    """An automation that lasts thirty days, and whose run failed for good when a program called it."""
    shell.write("bad.yaml", "name: bad\nwhen: '0 9 * * *'\nexpires: 30d\nretry: {attempts: 1}\n"
                            "target: {script: 'echo no route; exit 3'}\n")
    assert shell("tick").code == 0
    with closing(open_store(shell.store or str(shell.home / "nightporter.sqlite"), now=0)) as store:
        fire(store, shell("show", "bad", "--json").json["id"], now=SystemClock().now())
    assert shell("tick").code == 0
    return shell


def test_an_incident_is_known_and_then_over_when_somebody_says_so(failing: Shell) -> None:
    [incident] = failing("incidents", "--json").json["items"]
    assert (incident["automation"], incident["state"], incident["count"]) == ("bad", "open", 1)
    assert failing("incidents", "ack", "bad", "--dry-run").code == 0
    assert failing("incidents", "--json").json["items"][0]["state"] == "open", "nothing was done"
    assert failing("incidents", "ack", incident["id"][:20], "--note", "the cable").code == 0
    [known] = failing("incidents", "--json").json["items"]
    assert (known["state"], known["note"]) == ("acknowledged", "the cable")
    assert failing("incidents", "resolve", "bad").code == 0
    assert failing("incidents", "--json").json["items"] == []
    assert [one["state"] for one in failing("incidents", "--all", "--json").json["items"]] == ["resolved"]
    assert failing("incidents", "resolve", "bad").code == 3
    assert failing("incidents", "ack", "nobody").code == 3


def test_dead_letters_are_run_again_together_once(failing: Shell) -> None:
    assert "1 run would be queued" in failing("replay", "--dead", "--dry-run").err
    assert len(failing("dead", "--json").json["items"]) == 1, "nothing was done"
    said = failing("replay", "--dead", "--automation", "bad")
    assert (said.code, "1 run queued" in said.err) == (0, True)
    assert failing("dead", "--json").json["items"] == []
    assert failing("replay", "--dead").code == 0
    assert len(failing("runs", "bad", "--json").json["items"]) == 2


def test_an_end_is_put_off_for_a_span_or_for_what_the_definition_says(failing: Shell) -> None:
    def until() -> str:
        return str(failing("show", "bad", "--json").json["expires"])

    first = until()
    assert failing("renew", "bad", "--for", "2h", "--dry-run").code == 0
    assert until() == first
    assert "is active, and acts until" in failing("renew", "bad", "--for", "2h").out
    assert until() < first
    assert failing("renew", "bad").code == 0
    assert until() > first
    assert [failing("renew", "bad", "--for", span).code for span in ("59m", "9999d", "banana")] == [2, 2, 2]


def test_a_look_is_asked_alone_heeded_or_left_out(shell: Shell) -> None:
    shell.write("mail.yaml", f"name: mail\nwhen: '0 9 * * *'\nif: {{file: {shell.home}/in/*.txt}}\n"
                             "target: {script: 'echo sorted'}\n")
    (shell.home / "in").mkdir()
    assert shell("tick").code == 0
    assert "nothing" in shell("run", "mail", "--dry-run").out
    assert shell("runs", "mail", "--json").json["items"] == [], "it was asked alone"
    shell("run", "mail", "--wait")
    shell("run", "mail", "--wait", "--skip-look")
    found = [(run["state"], run["reason"]) for run in shell("runs", "mail", "--json").json["items"]]
    assert found == [("succeeded", None), ("skipped", "precondition_unmet")]
    (shell.home / "in" / "one.txt").write_text("letter")
    assert "its look finds: new: " in shell("run", "mail", "--dry-run").out
