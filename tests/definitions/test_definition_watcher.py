"""Hot reload: a change is told once its file has been quiet for 300 ms."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from sample_definitions import CHECKS, NOW

from nightporter.definitions import Change, Watcher, scan
from nightporter.definitions.folder import look

GOOD = "---\n---\nGood morning.\n"


class Night:
    """A watched folder, and a clock that the test moves."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.time = 1_000_000
        self.watcher = Watcher(
            folder, scan(folder, default_timezone="UTC", now=NOW, checks=CHECKS), default_timezone="UTC", checks=CHECKS
        )
        assert self.after(0) == []

    def after(self, milliseconds: int) -> list[Change]:
        """What a look says after some time."""
        self.time += milliseconds * 1000
        return self.watcher.tick(self.time, NOW)

    def quietly(self) -> list[tuple[str, str, str]]:
        """What is told once everything has been quiet long enough."""
        assert self.after(0) == []
        return [(change.kind, change.path.name, change.name) for change in self.after(300)]

    def write(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text)


@pytest.fixture
def night(tmp_path: Path) -> Night:
    return Night(tmp_path)


def named(name: str, text: str = "x") -> str:
    return f"---\nname: {name}\n---\n{text}\n"


def test_a_new_file_is_told_when_it_has_been_quiet_and_not_before(night: Night) -> None:
    night.write("a.md", GOOD)
    assert night.after(10) == []
    assert night.after(299) == []
    (change,) = night.after(1)
    assert (change.kind, change.name, change.workspace, change.path) == (
        "changed", "a", "default", night.folder / "a.md",
    )
    assert change.definition is not None
    assert change.definition.target.config == {"prompt": "Good morning."}
    assert change.digest
    assert night.after(10_000) == []


def test_a_file_that_goes_on_being_written_is_not_read(night: Night) -> None:
    text = "---\nname: tidy\nwhen: every 15m\n---\nGood morning."
    for length in range(1, len(text), 7):
        night.write("a.md", text[:length])
        assert night.after(200) == []
    night.write("a.md", text)
    assert night.quietly() == [("changed", "a.md", "tidy")]


def test_a_file_written_while_it_is_read_is_read_again(night: Night, monkeypatch: pytest.MonkeyPatch) -> None:
    night.write("a.md", named("one"))
    def written_under(path: Path, *args: object, **options: object) -> object:
        found = look(path, *args, **options)  # type: ignore[arg-type]  # passed on as it came
        path.write_text(named("two", "the whole of it"))
        return found

    assert night.after(0) == []
    monkeypatch.setattr("nightporter.definitions.watcher.look", written_under)
    assert night.after(300) == []
    monkeypatch.undo()
    assert night.after(299) == []
    assert [change.name for change in night.after(1)] == ["two"]


def test_an_edit_is_told_and_a_touch_is_not(night: Night) -> None:
    night.write("a.md", GOOD)
    night.quietly()
    os.utime(night.folder / "a.md", ns=(1, 1))
    assert night.quietly() == []
    night.write("a.md", GOOD + "More.")
    assert night.quietly() == [("changed", "a.md", "a")]


def test_an_edit_that_means_the_same_is_not_told(night: Night) -> None:
    night.write("a.md", "---\npriority: 50\n---\nx")
    night.quietly()
    night.write("a.md", "---\n# a remark\npriority: 50\n---\nx")
    assert night.quietly() == []


def test_a_broken_edit_is_an_error_of_the_automation_that_was_there(night: Night) -> None:
    night.write("a.md", named("tidy"))
    night.quietly()
    night.write("a.md", "---\nname: tidy\nnmae: x\n---\nx")
    assert night.after(0) == []
    (change,) = night.after(300)
    assert (change.kind, change.name, change.definition) == ("error", "tidy", None)
    assert change.error is not None
    assert (change.error.line, change.error.column) == (3, 1)
    assert night.after(1000) == []
    night.write("a.md", named("tidy"))
    assert night.quietly() == [("changed", "a.md", "tidy")]


def test_another_error_in_the_same_file_is_told_too(night: Night) -> None:
    night.write("a.md", "---\nnmae: x\n---\nx")
    assert night.quietly() == [("error", "a.md", "a")]
    night.write("a.md", "---\n\nnmae: x\n---\nx")
    assert night.quietly() == [("error", "a.md", "a")]


def test_a_file_that_becomes_readable_is_read_again(night: Night, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = os.open

    def refusing(path: str | Path, *args: int, **options: int) -> int:
        if str(path).endswith("a.md"):
            raise PermissionError(13, "Permission denied")
        return opened(path, *args, **options)

    night.write("a.md", GOOD)
    monkeypatch.setattr(os, "open", refusing)
    assert night.quietly() == [("error", "a.md", "a")]
    monkeypatch.undo()
    (night.folder / "a.md").chmod(0o600)  # A mode is no content, but it is what was wrong.
    assert night.quietly() == [("changed", "a.md", "a")]


def test_a_file_that_is_gone_is_told_after_its_absence_has_been_quiet(night: Night) -> None:
    night.write("a.md", named("tidy"))
    night.quietly()
    (night.folder / "a.md").unlink()
    assert night.after(0) == []
    assert night.after(299) == []
    assert [(change.kind, change.name) for change in night.after(1)] == [("vanished", "tidy")]
    assert night.after(1000) == []
    night.write("a.md", named("tidy"))
    assert night.quietly() == [("changed", "a.md", "tidy")]


def test_a_file_replaced_by_an_editor_never_vanishes(night: Night) -> None:
    night.write("a.md", named("tidy"))
    night.quietly()
    (night.folder / "a.md").unlink()
    assert night.after(100) == []
    night.write("a.md", named("tidy", "again"))
    assert night.quietly() == [("changed", "a.md", "tidy")]


def test_a_file_that_came_and_went_in_between_is_no_news(night: Night) -> None:
    night.write("a.md", GOOD)
    assert night.after(100) == []
    (night.folder / "a.md").unlink()
    assert night.quietly() == []
    assert night.after(1000) == []


def test_a_renamed_file_keeps_its_automation(night: Night) -> None:
    night.write("a.md", named("tidy"))
    night.quietly()
    (night.folder / "a.md").rename(night.folder / "b.md")
    assert night.quietly() == [("changed", "b.md", "tidy")]


def test_a_renamed_automation_vanishes_and_comes_under_its_new_name(night: Night) -> None:
    night.write("a.md", named("tidy"))
    night.quietly()
    night.write("a.md", named("clean"))
    assert night.quietly() == [("vanished", "a.md", "tidy"), ("changed", "a.md", "clean")]


def test_a_second_file_of_one_name_takes_over_when_the_first_is_gone(night: Night) -> None:
    night.write("b.md", named("tidy"))
    night.quietly()
    night.write("a.md", named("tidy", "another"))
    assert night.quietly() == [("error", "a.md", "")]
    night.write("b.md", "broken")
    assert night.quietly() == [("error", "b.md", "tidy")]
    (night.folder / "b.md").unlink()
    assert night.quietly() == [("changed", "a.md", "tidy")]


def test_two_files_that_exchange_their_names_both_change(night: Night) -> None:
    night.write("a.md", named("one"))
    night.write("b.md", named("two"))
    night.quietly()
    night.write("a.md", named("two", "from a"))
    night.write("b.md", named("one", "from b"))
    assert night.quietly() == [("changed", "a.md", "two"), ("changed", "b.md", "one")]


def test_what_was_scanned_before_is_no_news_and_what_changed_since_is(tmp_path: Path) -> None:
    for name in ("a", "b", "c", "d"):
        (tmp_path / f"{name}.md").write_text(GOOD if name != "d" else named("a", "a second one"))
    known = scan(tmp_path, default_timezone="UTC", now=NOW, checks=CHECKS)
    (tmp_path / "b.md").write_text(GOOD + "More.")
    (tmp_path / "c.md").unlink()
    watching = Watcher(tmp_path, known, default_timezone="UTC", checks=CHECKS)
    assert watching.tick(0, NOW) == []
    assert [(change.kind, change.path.name) for change in watching.tick(300_000, NOW)] == [
        ("vanished", "c.md"), ("changed", "b.md"),
    ]


def test_a_folder_that_cannot_be_listed_is_one_error_and_nothing_vanishes(tmp_path: Path) -> None:
    folder = tmp_path / "automations"
    folder.mkdir()
    night = Night(folder)
    night.write("a.md", GOOD)
    night.quietly()
    folder.rename(tmp_path / "away")
    folder.write_text("a file where the folder was")
    (change,) = night.after(100)
    assert (change.kind, change.path, change.name) == ("error", folder, "")
    assert night.after(1000) == []
    folder.unlink()
    (tmp_path / "away").rename(folder)
    (change,) = night.after(100)
    assert (change.kind, change.path) == ("vanished", folder)
    assert night.after(1000) == []


def test_a_folder_that_is_gone_is_one_error_and_its_files_are_looked_for_when_it_is_back(tmp_path: Path) -> None:
    folder = tmp_path / "automations"
    folder.mkdir()
    night = Night(folder)
    night.write("a.md", GOOD)
    night.quietly()
    folder.rename(tmp_path / "away")
    [change] = night.after(100)
    assert (change.kind, change.path, change.error is not None and change.error.why) == (
        "error", folder, "its automations go on as they were"
    )
    assert night.after(1000) == []
    (tmp_path / "away" / "a.md").unlink()
    (tmp_path / "away").rename(folder)
    [change] = night.after(100)
    assert (change.kind, change.path) == ("vanished", folder)
    assert night.quietly() == [("vanished", "a.md", "a")]


def test_a_definition_is_read_again_when_its_calendar_changes(night: Night) -> None:
    def holiday(day: int, name: str = "days.ics") -> None:
        night.write(name, f"BEGIN:VCALENDAR\nBEGIN:VEVENT\nDTSTART;VALUE=DATE:202612{day}\nSUMMARY:Feast\nEND:VEVENT\n"
                    "END:VCALENDAR\n")

    night.write("a.md", "---\nwhen: every 1h\nexclude: {calendar: days.ics}\n---\nx\n")
    assert night.quietly() == [("error", "a.md", "a")]
    holiday(24)
    assert night.quietly() == [("changed", "a.md", "a")]
    assert night.after(300) == night.after(300) == []
    holiday(25)
    night.after(0)
    (change,) = night.after(300)
    assert change.definition is not None
    schedule = change.definition.triggers[0].schedule
    assert schedule is not None
    assert schedule.bounds is not None
    assert [each.first for each in schedule.bounds.days] == ["2026-12-25"]
    night.write("days.ics", "BEGIN:VCALENDAR")
    assert night.quietly() == [("error", "a.md", "a")]
