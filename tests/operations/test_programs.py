"""Automations that a program defines in code: what it drops sleeps until it is back."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest
from builders import EVERY_HOUR, Night

from nightporter import Porter, every, operations
from nightporter.clock import Instant, ManualClock
from nightporter.errors import Conflict
from nightporter.store import Store
from nightporter.words import Definition, Reason, Verdict
from words import a_definition, rows


@pytest.fixture
def night(store: Store, clock: ManualClock) -> Night:
    return Night(store, clock)


def program(night: Night, *definitions: Definition, path: str = "/srv/night.py") -> None:
    """A release of the program starts."""
    night.store.write(lambda tx: operations.follow_program(tx, definitions, path=path, now=night.now))


def job(name: str = "job", **rest: object) -> Definition:
    return Night.written(name, EVERY_HOUR, **rest)


def named(night: Night, name: str) -> str:
    [automation] = night.store.read(lambda tx: tx.automation_named(name))
    return automation


def test_what_a_program_no_longer_defines_is_paused_until_it_does_again(night: Night) -> None:
    program(night, job(), job("other"))
    automation = named(night, "job")
    waiting = night.fire(automation).run_id
    program(night, job("other"))
    row = night.row(automation)
    assert (row.state, row.state_by, row.state_reason) == ("paused", "desk", "no longer in the program")
    assert night.row(named(night, "other")).state == "active"
    assert night.begin() == []
    night.pass_time(hours=2)
    program(night, job("other"))
    program(night, job(), job("other"))
    assert night.row(automation).state == "active"
    night.tick()
    assert waiting in night.work()
    assert ("collapsed", "paused") in night.lines()
    assert night.found() == {}


def test_other_programs_and_a_persons_pause_are_left_alone(night: Night) -> None:
    program(night, job("theirs"), path="/srv/other.py")
    program(night, job())
    automation = named(night, "job")
    night.pause(automation)
    program(night)
    program(night, job())
    row = night.row(automation)
    assert (row.state, row.state_by) == ("paused", "ann")
    assert night.row(named(night, "theirs")).state == "active"


def test_a_program_that_moved_keeps_its_automations(night: Night) -> None:
    program(night, job(), path="/srv/1/night.py")
    automation = named(night, "job")
    program(night, job(), path="/srv/2/night.py")
    program(night, path="/srv/1/night.py")
    assert (night.row(automation).state, night.row(automation).path) == ("active", "/srv/2/night.py")


def test_an_automation_that_a_program_puts_into_another_workspace_is_the_same_one(night: Night) -> None:
    program(night, job())
    automation = named(night, "job")
    program(night, job(workspace="home"))
    assert night.sql("SELECT id, workspace, state FROM automation") == [(automation, "home", "active")]
    night.define("job", workspace="away")
    with pytest.raises(Conflict, match="another automation is called job") as refused:
        night.store.write(lambda tx: operations.define(
            tx, a_definition("job", workspace="away"), truth="code", by="code", automation_id=automation,
            now=Instant(night.now)))
    assert refused.value.next == "choose another name"


# -- through the Python API -------------------------------------------------------------------------------------------


async def test_a_function_that_the_next_release_has_not_is_paused(store: Store, store_url: str, tmp_path: Path) -> None:
    first = Porter(home=tmp_path / "desk", store=store_url)

    @first.automation(every("1h"))
    def job() -> str:
        return "done"

    async with first.running():
        pass
    async with Porter(home=tmp_path / "desk", store=store_url).running():
        pass
    assert rows(store, "SELECT state, state_reason FROM automation") == [("paused", "no longer in the program")]
    async with first.running():
        pass
    assert rows(store, "SELECT state FROM automation") == [("active",)]


async def test_programs_that_one_server_runs_are_told_apart_by_the_files_that_make_their_desks(
    store: Store, store_url: str, tmp_path: Path
) -> None:
    made = {}
    for name in ("one", "two"):
        file = tmp_path / f"{name}.py"
        file.write_text("from nightporter import Porter\n\n\ndef make(**where):\n    return Porter(**where)\n")
        made[name] = runpy.run_path(str(file))["make"](home=tmp_path / "desk", store=store_url)
        made[name].define(name, {"noop": {}})
    for porter in made.values():
        async with porter.running():
            pass
    assert rows(store, "SELECT name, state, path FROM automation ORDER BY name") == [
        (name, "active", str(tmp_path / f"{name}.py")) for name in made
    ]


async def test_a_name_finds_its_new_automation_once_the_old_one_is_removed(store_url: str, tmp_path: Path) -> None:
    porter = Porter(home=tmp_path / "desk", store=store_url)

    @porter.automation()
    def job() -> str:
        return "done"

    async def remove() -> None:
        [automation] = await porter.engine.read(lambda tx: tx.automation_named("job"))
        await porter.engine.write(lambda tx: operations.remove(tx, automation, by="ann", now=porter.clock.now()))

    async with porter.running():
        assert (await porter.fire("job")).verdict is Verdict.ADMITTED
        await remove()
        assert (await porter.fire("job")).reason is Reason.DELETED
        definition = a_definition("job", runner="noop")
        await porter.engine.write(lambda tx: operations.define(
            tx, definition, truth="store", by="ann", now=porter.clock.now()))
        assert (await porter.fire("job")).verdict is Verdict.ADMITTED
        await remove()
    async with porter.running():
        assert (await porter.fire("job")).verdict is Verdict.ADMITTED
