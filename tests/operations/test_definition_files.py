"""A folder of definition files and the store in step with it: broken, mended, moved, gone, and back."""

from __future__ import annotations

import io
import logging
import os
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from acting import after
from builders import EVERY_HOUR, Night
from shelf import Shelf
from turns import held

from nightporter import logs, operations
from nightporter.clock import Instant, ManualClock
from nightporter.config import Config
from nightporter.definitions import read
from nightporter.definitions.folder import Found, scan
from nightporter.engine.files import DefinitionFiles
from nightporter.errors import BadDefinition, BadSchedule, Conflict, StoreError, StoreLocked
from nightporter.ledger.reads import refused_files
from nightporter.operations import Synced, load
from nightporter.store import Store, Tx
from nightporter.words import Definition
from words import a_clock_trigger, a_definition, rows


@pytest.fixture
def night(store: Store, clock: ManualClock) -> Night:
    return Night(store, clock)


@pytest.fixture
def shelf(night: Night, tmp_path: Path) -> Shelf:
    return Shelf(night, tmp_path / "automations")


def refused(night: Night) -> list[tuple[str, str]]:
    return [(Path(file.path).name, file.what) for file in night.store.read(refused_files)]


def asleep(night: Night, automation: str) -> tuple[str, str, str, Instant | None]:
    row = night.row(automation)
    return row.state, row.state_by, row.state_reason, row.state_until


# -- broken and mended ------------------------------------------------------------------------------------------------


def test_what_waited_while_a_file_was_broken_is_run_once_it_is_mended(night: Night, shelf: Shelf) -> None:
    brief = shelf.made("brief")
    waiting = night.fire(brief).run_id
    shelf.spoil("brief")
    shelf.read()
    assert night.begin() == []
    shelf.put("brief")
    assert shelf.read() == [("brief", "changed")]
    assert night.work() == [waiting]
    night.next_hour()
    assert night.lines() == [("admitted", None)]
    assert night.found() == {}


def test_a_pause_is_the_same_pause_after_its_file_was_broken_and_mended(night: Night, shelf: Shelf) -> None:
    brief = shelf.made("brief")
    night.pause(brief, hours=5)
    before = asleep(night, brief)
    for _ in range(2):
        night.pass_time(hours=1)
        shelf.spoil("brief")
        shelf.read()
        assert night.row(brief).state == "config_error"
        night.pass_time(hours=1)
        shelf.put("brief")
        shelf.read()
        assert asleep(night, brief) == before
        assert night.found() == {}
    night.pass_time(hours=1, minutes=1)
    night.upkeep()
    assert night.row(brief).state == "active"
    assert night.sql("SELECT DISTINCT verdict, reason FROM firing") == [("collapsed", "paused")]
    assert night.found() == {}


def test_a_pause_that_ended_while_the_file_was_broken_is_over_when_it_is_mended(night: Night, shelf: Shelf) -> None:
    brief = shelf.made("brief")
    night.pause(brief, hours=1)
    shelf.spoil("brief")
    shelf.read()
    night.pass_time(hours=2)
    shelf.put("brief")
    shelf.read()
    assert asleep(night, brief) == ("active", "desk", "", None)
    assert night.found() == {}


def test_a_broken_one_that_is_paused_has_one_pause_and_is_enabled_when_it_is_mended(night: Night, shelf: Shelf) -> None:
    brief = shelf.made("brief")
    night.pass_time(minutes=30)
    shelf.spoil("brief")
    shelf.read()
    night.pass_time(hours=2)
    night.pause(brief)
    night.pass_time(hours=2)
    assert night.found() == {}
    with pytest.raises(Conflict, match=r"brief cannot be enabled\n.*its definition has an error"):
        night.enable(brief)
    shelf.put("brief")
    assert shelf.read() == [("brief", "changed")]
    assert night.row(brief).state == "paused", "it is for the one who paused it"
    night.enable(brief)
    assert night.lines("verdict", "reason", "slots") == [("collapsed", "configuration", 2), ("collapsed", "paused", 2)]
    assert night.found() == {}


@pytest.mark.parametrize("state", ["expired", "completed"])
def test_an_error_in_the_file_of_one_that_acts_no_more_is_shown(night: Night, shelf: Shelf, state: str) -> None:
    path = shelf.write("brief.yaml", {
        "expired": "name: brief\nwhen: every 1h\ntarget: {noop: }\nexpires: 2026-03-27T09:00\n",
        "completed": "name: brief\nwhen: at 2026-03-27T09:00\ntarget: {noop: }\n",
    }[state])
    shelf.read()
    brief = shelf.automation("brief")
    night.next_hour()
    night.work()
    night.upkeep()
    good = path.read_text(encoding="utf-8")
    shelf.spoil("brief")
    shelf.read()
    row = night.row(brief)
    assert (row.state, "ever" in row.error) == (state, True)
    path.write_text(good, encoding="utf-8")
    shelf.read()
    assert (night.row(brief).state, night.row(brief).error) == (state, "")


# -- gone and back ----------------------------------------------------------------------------------------------------


def test_a_file_that_is_gone_pauses_its_automation_until_it_is_back(night: Night, shelf: Shelf) -> None:
    brief = shelf.made("brief")
    waiting = night.fire(brief).run_id
    (shelf.folder / "brief.yaml").unlink()
    assert shelf.read() == [("brief", "vanished")]
    assert shelf.read() == []
    assert night.begin() == []
    night.pass_time(hours=2)
    shelf.put("brief")
    assert shelf.read() == [("brief", "changed")]
    assert night.work() == [waiting]
    assert night.lines() == [("collapsed", "paused")]
    assert night.found() == {}


def test_a_file_that_comes_back_half_written_is_awake_once_it_is_whole(night: Night, shelf: Shelf) -> None:
    brief = shelf.made("brief")
    (shelf.folder / "brief.yaml").unlink()
    shelf.read()
    night.pass_time(hours=1)
    shelf.spoil("brief")
    assert shelf.read() == [("brief", "broken")]
    night.pass_time(hours=1)
    shelf.put("brief")
    shelf.read()
    assert night.row(brief).state == "active"
    assert night.found() == {}


def test_a_reason_in_the_same_words_is_still_a_persons_pause(night: Night, shelf: Shelf) -> None:
    brief = shelf.made("brief")
    night.store.write(lambda tx: operations.pause(
        tx, brief, by="ann", reason="its definition file is gone", now=night.now))
    shelf.put("brief", "priority: 3\n")
    shelf.read()
    assert night.row(brief).state == "paused"


@pytest.mark.parametrize("broken_first", [False, True])
def test_a_persons_pause_outlives_the_file(night: Night, shelf: Shelf, broken_first: bool) -> None:
    brief = shelf.made("brief")
    night.pause(brief, hours=9)
    before = asleep(night, brief)
    if broken_first:
        shelf.spoil("brief")
        shelf.read()
    (shelf.folder / "brief.yaml").unlink()
    shelf.read()
    assert asleep(night, brief) == before
    shelf.put("brief")
    shelf.read()
    assert asleep(night, brief) == before
    assert night.found() == {}


def test_a_broken_file_that_is_gone_leaves_the_last_good_version_asleep(night: Night, shelf: Shelf) -> None:
    brief = shelf.made("brief")
    shelf.spoil("brief")
    shelf.read()
    (shelf.folder / "brief.yaml").unlink()
    assert shelf.read() == [("brief", "vanished")]
    assert asleep(night, brief)[:3] == ("paused", "desk", "its definition file is gone")
    assert night.row(brief).error == ""
    assert night.found() == {}


def test_a_file_that_never_was_good_leaves_nothing(night: Night, shelf: Shelf) -> None:
    shelf.spoil("brief")
    assert shelf.read() == [("brief", "broken")]
    (shelf.folder / "brief.yaml").unlink()
    shelf.read()
    assert night.sql("SELECT state FROM automation") == [("removed",)]
    night.pass_time(seconds=1)
    shelf.made("brief")
    assert night.found() == {}


def test_a_look_at_another_folder_says_nothing_of_the_files_of_the_first(night: Night, shelf: Shelf) -> None:
    brief = shelf.made("brief")
    other = Shelf(night, shelf.folder.parent / "other")
    assert other.read() == []
    assert other.made("tea") != brief
    assert night.sql("SELECT name, state FROM automation ORDER BY name") == [("brief", "active"), ("tea", "active")]


def test_a_folder_that_is_missing_is_told_and_pauses_nothing(night: Night, shelf: Shelf) -> None:
    brief = shelf.made("brief")
    shelf.folder.rename(shelf.folder.parent / "away")
    [line] = shelf.told()
    assert (line.name, line.change, line.path) == ("1 automation(s)", "unknown", str(shelf.folder))
    assert "missing" in line.error
    assert night.row(brief).state == "active"
    shelf.folder.mkdir()
    assert shelf.read() == [("brief", "vanished")], "an empty folder says that they are gone"


def test_a_look_that_is_not_the_desks_takes_up_what_is_new_and_pauses_nothing(night: Night, shelf: Shelf) -> None:
    shelf.made("brief")
    (shelf.folder / "brief.yaml").unlink()
    shelf.put("tea")
    assert shelf.read(whole=False) == [("tea", "created")]
    assert night.sql("SELECT DISTINCT state FROM automation") == [("active",)]


# -- names, and files that are not taken ------------------------------------------------------------------------------


def test_a_broken_file_touches_no_automation_that_is_not_made_by_files(night: Night, shelf: Shelf) -> None:
    backup = night.define("backup", EVERY_HOUR)
    shelf.spoil("backup")
    assert shelf.read() == [("backup", "refused")]
    assert night.row(backup).state == "active"
    [(file, what)] = refused(night)
    assert (file, "ever" in what) == ("backup.yaml", True)
    shelf.put("backup")
    shelf.read()
    assert refused(night) == [("backup.yaml", "automation backup cannot be changed from here")]
    shelf.write("backup.yaml", "name: another\ntarget: {noop: }\n")
    assert shelf.read() == [("another", "created")]
    assert refused(night) == []


def test_a_name_that_another_file_has_is_named_until_it_is_free(night: Night, shelf: Shelf) -> None:
    shelf.put("tea", file="a.yaml")
    second = shelf.put("tea", file="b.yaml")
    assert shelf.read() == [("tea", "created"), (str(second), "refused")]
    assert refused(night) == [("b.yaml", "the name `tea` is taken")]
    second.unlink()
    shelf.read()
    assert refused(night) == []


def test_a_file_that_now_says_anothers_name_breaks_what_it_made(night: Night, shelf: Shelf) -> None:
    shelf.made("tea")
    shelf.put("brief", file="z.yaml")
    shelf.read()
    brief = shelf.automation("brief")
    shelf.put("tea", file="z.yaml")
    shelf.read()
    assert night.row(brief).state == "config_error", "its definition is nowhere any more"
    assert "the name `tea` is taken" in night.row(brief).error
    shelf.put("brief", file="z.yaml")
    shelf.read()
    assert night.row(brief).state == "active"
    assert night.found() == {}


def test_a_file_that_was_moved_and_broken_is_still_its_automations(night: Night, shelf: Shelf) -> None:
    brief = shelf.made("brief")
    (shelf.folder / "brief.yaml").unlink()
    moved = shelf.write("moved.yaml", "name: brief\nwhen: ever\n")
    assert shelf.read() == [("brief", "broken")]
    assert (night.row(brief).state, night.row(brief).path) == ("config_error", str(moved))
    shelf.put("brief", file="moved.yaml")
    assert shelf.read() == [("brief", "changed")]
    assert night.row(brief).state == "active"


def test_an_automation_moves_to_the_workspace_that_its_file_says(night: Night, shelf: Shelf) -> None:
    brief = shelf.made("brief")
    shelf.put("brief", "workspace: home\n")
    assert shelf.read() == [("brief", "changed")]
    assert night.sql("SELECT id, workspace FROM automation") == [(brief, "home")]
    answer = night.fire(brief)
    assert night.sql("SELECT workspace FROM run WHERE id = ?", answer.run_id) == [("home",)]
    night.work()
    assert night.found() == {}


def test_who_made_an_automation_keeps_its_name_though_the_newcomer_is_read_first(night: Night, shelf: Shelf) -> None:
    shelf.put("tea", file="b.yaml")
    shelf.read()
    tea = shelf.automation("tea")
    shelf.put("tea", "description: another", file="a.yaml")
    for _ in range(2):  # a desk that starts reads all of it anew
        shelf.read()
        assert (night.row(tea).path, night.row(tea).state) == (str(shelf.folder / "b.yaml"), "active")
        assert refused(night) == [("a.yaml", "the name `tea` is taken")]
    (shelf.folder / "b.yaml").unlink()
    shelf.read()
    assert night.row(tea).path == str(shelf.folder / "a.yaml"), "it is taken by whoever has it now"


def test_a_file_that_takes_the_name_of_one_that_is_gone_leaves_none_behind_that_fires(
    night: Night, shelf: Shelf
) -> None:
    shelf.put("alpha", file="a.yaml")
    shelf.put("beta", file="b.yaml")
    shelf.read()
    alpha, beta = shelf.automation("alpha"), shelf.automation("beta")
    (shelf.folder / "b.yaml").unlink()
    shelf.put("beta", file="a.yaml")
    shelf.read()
    assert (night.row(alpha).state, night.row(alpha).state_by) == ("paused", "desk")
    assert (night.row(beta).state, night.row(beta).path) == ("active", str(shelf.folder / "a.yaml"))
    shelf.put("alpha", file="c.yaml")
    shelf.read()
    assert (shelf.automation("alpha"), night.row(alpha).state) == (alpha, "active")
    assert night.found() == {}


@pytest.mark.parametrize("names", [("beta", "gamma", "alpha"), ("gamma", "alpha", "beta"), ("beta", "gamma", "delta")])
def test_files_that_swap_their_names_keep_the_automations_of_these_names(
    night: Night, shelf: Shelf, names: tuple[str, ...]
) -> None:
    for file, name in zip("abc", ("alpha", "beta", "gamma"), strict=True):
        shelf.put(name, file=f"{file}.yaml")
    shelf.read()
    ids = {name: shelf.automation(name) for name in ("alpha", "beta", "gamma")}
    for file, name in zip("abc", names, strict=True):
        shelf.put(name, file=f"{file}.yaml")
    shelf.read()
    for file, name in zip("abc", names, strict=True):
        automation = shelf.automation(name)
        assert automation == ids.get(name, automation)
        assert (night.row(automation).state, night.row(automation).path) == (
            "active", str(shelf.folder / f"{file}.yaml"))
    assert {night.row(ids[name]).state for name in ids if name not in names} <= {"paused"}
    assert night.found() == {}


def test_an_automation_does_not_move_where_its_name_is_taken(night: Night, shelf: Shelf) -> None:
    brief = shelf.made("brief")
    night.define("brief", EVERY_HOUR, workspace="home")
    shelf.put("brief", "workspace: home\n")
    assert shelf.read() == [("brief", "refused")]
    row = night.row(brief)
    assert (row.state, row.workspace) == ("config_error", "default")
    assert "its source of truth is `code`" in row.error


def test_what_a_file_makes_is_removed_by_removing_the_file(night: Night, shelf: Shelf) -> None:
    brief = shelf.made("brief")
    with pytest.raises(Conflict, match=r"brief is made by a file\n.*brief.yaml would bring it back"):
        night.remove(brief)
    assert (shelf.folder / "brief.yaml").exists()
    (shelf.folder / "brief.yaml").unlink()
    night.remove(brief)
    assert night.row(brief).state == "removed"


# -- one file, and the others -----------------------------------------------------------------------------------------


def test_a_number_that_nothing_can_keep_is_an_error_of_its_file(night: Night, shelf: Shelf) -> None:
    shelf.write("a.yaml", f'name: a\ntarget: {{python: {{call: "m:f", args: {{n: 0x{"f" * 5000}}}}}}}\n')
    shelf.put("b")
    assert shelf.read() == [("a", "broken"), ("b", "created")]
    [(error,)] = night.sql("SELECT error FROM automation WHERE name = 'a'")
    assert '"line": 2' in error
    assert "is too large" in error


def test_what_nobody_thought_of_is_the_trouble_of_one_file(night: Night, tmp_path: Path) -> None:
    odd = Found(tmp_path / "a.yaml", "1", "a", definition=a_definition("a", config={"n": object()}))
    fine = Found(tmp_path / "b.yaml", "2", "b", definition=a_definition("b"))

    def read() -> list[Synced]:
        return load(night.store, tmp_path, [odd, fine], default_timezone="UTC", now=night.clock.now)

    assert [(line.name, line.change) for line in read()] == [("a", "refused"), ("b", "created")]
    assert refused(night) == [("a.yaml", "the file cannot be taken up")]


def test_a_reader_that_fails_on_a_file_hides_no_other(
    night: Night, shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    shelf.put("a")
    shelf.put("b")

    def fails(text: str, *, path: str, **rest: Any) -> Definition:
        if path.endswith("a.yaml"):
            raise RecursionError("deeper than deep")
        return read(text, path=path, **rest)

    monkeypatch.setattr("nightporter.definitions.folder.read", fails)
    assert shelf.read() == [("a", "broken"), ("b", "created")]


def test_an_ill_store_is_no_files_trouble(night: Night, shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    shelf.put("brief")

    def locked(work: object) -> None:
        raise StoreLocked("another process holds it")

    with monkeypatch.context() as patch:
        patch.setattr(night.store, "write", locked)
        with pytest.raises(StoreError):
            shelf.read()
    assert shelf.read() == [("brief", "created")]


def test_a_change_that_the_store_could_not_take_is_taken_at_the_next_look(
    night: Night, shelf: Shelf, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("NIGHTPORTER_HOME", raising=False)
    config = Config(state=tmp_path, outputs=tmp_path, store="", definitions=str(shelf.folder), timezone="UTC")
    files = DefinitionFiles(night.store, config, night.clock)
    files.load()
    shelf.put("brief")
    files.tick()
    night.pass_time(seconds=1)

    def locked(work: object) -> None:
        raise StoreLocked("another process holds it")

    with monkeypatch.context() as patch:
        patch.setattr(night.store, "write", locked)
        with pytest.raises(StoreError):
            files.tick()
    files.tick()
    assert night.row(shelf.automation("brief")).state == "active"


def test_a_file_is_taken_up_at_the_instant_when_it_has_its_turn(night: Night, shelf: Shelf) -> None:
    shelf.put("brief")
    with held(night.store.writer):
        reader = Thread(target=shelf.read)
        reader.start()
        night.pass_time(minutes=5)
    reader.join(30)
    assert night.row(shelf.automation("brief")).created_at == night.now


def test_an_error_of_a_file_says_where_it_was_found_again(night: Night, shelf: Shelf) -> None:
    error = BadDefinition("nothing in it", path="", line=3, column=1)

    def broken(tx: Tx) -> str:
        return operations.break_file(
            tx, error, path="x.yaml", name="x", workspace="default", default_timezone="UTC", now=night.now)

    first = night.store.write(broken)
    night.pass_time(hours=1)
    assert night.store.write(broken) == first
    assert night.row(first).state_at == after(night.now, hours=-1)


@pytest.mark.parametrize(("rule", "stored"), [
    ("FREQ=YEARLY;INTERVAL=4;BYMONTH=2;BYMONTHDAY=29", False), ("FREQ=YEARLY;INTERVAL=2;BYMONTH=2;BYMONTHDAY=29", True),
])
def test_a_rule_that_never_matches_from_where_it_would_begin_is_refused_as_one_that_never_does(
    store: Store, clock: ManualClock, rule: str, stored: bool
) -> None:
    """Counted from 2026 every second year has a 29 February one day, and every fourth year has none."""
    definition = a_definition(triggers=[a_clock_trigger(rule, kind="rrule")])

    def define() -> object:
        return store.write(lambda tx: operations.define(tx, definition, truth="code", by="ann", now=clock.now()))

    if stored:
        assert define()
    else:
        with pytest.raises(BadSchedule, match="never matches"):
            define()
        assert rows(store, "SELECT 1 FROM automation") == []


def test_a_file_whose_name_is_not_utf_8_is_named_once_and_keeps_no_other_from_its_turn(
    store: Store, clock: ManualClock, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    text = "name: {}\nwhen: every 1h\ntarget: {{script: 'true'}}\n"
    odd = Path(os.fsdecode(os.fsencode(tmp_path) + b"/bad\xff.yaml"))
    odd.write_text(text.format("odd"))
    (tmp_path / "good.yaml").write_text(text.format("good"))
    found = scan(tmp_path, default_timezone="UTC", now=clock.now())
    done = load(store, tmp_path, found, default_timezone="UTC", now=clock.now)
    assert [(one.name.rpartition("/")[2], one.change) for one in done] == [
        ("bad\\udcff.yaml", "refused"), ("good", "created")]
    assert done[0].error == "its path is not UTF-8; rename it"
    assert "Traceback" not in caplog.text


def test_a_line_in_a_file_name_is_no_line_of_the_log(tmp_path: Path) -> None:
    said = io.StringIO()
    before = (handlers := logging.getLogger("nightporter")).handlers[:], handlers.level, handlers.propagate
    try:
        logs.configure("text", said)
        logs.get("nightporter.test").warning(
            "definition.broken", path="/a\n10:00:00  desk.started", error="x\n  why: y")
    finally:
        handlers.handlers[:], handlers.level, handlers.propagate = before
    first, *rest = said.getvalue().splitlines()
    assert "definition.broken" in first
    assert rest == ["  10:00:00  desk.started  error=x", "  why: y"]
