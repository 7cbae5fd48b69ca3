"""Where definitions are looked for, and what a folder of them holds."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from sample_definitions import CHECKS, NOW

from nightporter.definitions import Found, definition_folder, scan
from nightporter.errors import BadDefinition, BadInput, NotYet

GOOD = "---\n---\nGood morning.\n"


def found_in(folder: Path, previous: list[Found] | None = None, zone: str = "UTC") -> dict[str, Found]:
    listed = scan(folder, previous or (), default_timezone=zone, now=NOW, checks=CHECKS)
    assert [each.path for each in listed] == sorted(each.path for each in listed)
    for each in listed:
        assert (each.definition is None) != (each.error is None)
    return {each.path.name: each for each in listed}


def error_of(found: Found) -> BadDefinition:
    assert found.error is not None
    assert found.error.path == str(found.path)
    return found.error


# Look-up


def test_the_folder_is_looked_up_in_the_order_flag_variable_home_project_user(tmp_path: Path) -> None:
    project = tmp_path / ".nightporter" / "automations"
    project.mkdir(parents=True)
    environ = {
        "HOME": "/home/ana", "XDG_CONFIG_HOME": "/xdg", "NIGHTPORTER_HOME": "/fold", "NIGHTPORTER_CONFIG": "/named",
    }
    expected = []
    for _ in range(2):
        expected.append(definition_folder("/flag", environ, tmp_path))
    assert expected == [Path("/flag")] * 2
    assert definition_folder(None, environ, tmp_path) == Path("/named")
    del environ["NIGHTPORTER_CONFIG"]
    assert definition_folder(None, environ, tmp_path) == Path("/fold/automations")
    del environ["NIGHTPORTER_HOME"]
    assert definition_folder(None, environ, tmp_path) == project
    project.rmdir()
    assert definition_folder(None, environ, tmp_path) == Path("/xdg/nightporter/automations")
    del environ["XDG_CONFIG_HOME"]
    assert definition_folder(None, environ, tmp_path) == Path("/home/ana/.config/nightporter/automations")


def test_relative_and_home_paths_are_made_whole() -> None:
    environ = {"HOME": "/home/ana", "NIGHTPORTER_CONFIG": "../mine", "XDG_CONFIG_HOME": "relative"}
    cwd = Path("/work/project")
    assert definition_folder("here", environ, cwd) == Path("/work/project/here")
    assert definition_folder("~/jobs", environ, cwd) == Path("/home/ana/jobs")
    assert definition_folder(None, environ, cwd) == Path("/work/mine")
    assert definition_folder(None, {"HOME": "/home/ana", "NIGHTPORTER_HOME": "~/np"}, cwd) == Path(
        "/home/ana/np/automations"
    )
    assert definition_folder(None, {"HOME": "/home/ana", "NIGHTPORTER_HOME": "", "XDG_CONFIG_HOME": "x"}, cwd) == Path(
        "/home/ana/.config/nightporter/automations"
    )


def test_a_file_in_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text(GOOD)
    with pytest.raises(BadInput, match="is a file"):
        definition_folder("a.md", {"HOME": "/"}, tmp_path)


# Scanning


def test_every_definition_file_is_read_and_no_other(tmp_path: Path) -> None:
    for name in ("a.md", "b.yaml", "c.yml", "D.MD"):
        text = GOOD if name.lower().endswith(".md") else "target: noop\n"
        (tmp_path / name).write_text(text.replace("---\n---", "---\nname: d\n---") if name == "D.MD" else text)
    for name in (".hidden.md", "a.md~", "#a.md#", "~$a.md", "a.tmp.md", "b.part.yaml", "README.md", "notes.txt", "x"):
        (tmp_path / name).write_text("not a definition")
    (tmp_path / "scripts").mkdir()
    (tmp_path / "scripts" / "inner.yaml").write_text("not: a definition")
    found = found_in(tmp_path)
    assert set(found) == {"a.md", "b.yaml", "c.yml", "D.MD"}
    assert [each.name for each in found.values()] == ["d", "a", "b", "c"]
    assert all(each.definition for each in found.values())


def test_a_folder_that_is_not_there_is_empty_and_one_that_cannot_be_listed_is_an_error(tmp_path: Path) -> None:
    assert found_in(tmp_path / "none") == {}
    (tmp_path / "file").write_text("")
    with pytest.raises(BadInput, match="cannot be listed"):
        found_in(tmp_path / "file")


def test_one_bad_file_hides_no_other(tmp_path: Path) -> None:
    (tmp_path / "good.md").write_text(GOOD)
    (tmp_path / "latin.md").write_bytes(b"---\nname: latin\nowner: caf\xe9\n---\nx")
    (tmp_path / "wide.md").write_text(GOOD, encoding="utf-16")
    (tmp_path / "large.md").write_text(GOOD + "x" * 1_000_000)
    (tmp_path / "half.md").write_text("---\nname: half\nwhen: eve")
    (tmp_path / "empty.yaml").write_text("")
    (tmp_path / "link.md").symlink_to(tmp_path / "nowhere.md")
    (tmp_path / "folder.md").mkdir()
    (tmp_path / "later.yaml").write_text("target: noop\nname: then\nmodel: x\n")
    os.mkfifo(tmp_path / "pipe.md")
    found = found_in(tmp_path)
    assert found.pop("good.md").definition is not None
    said = {name: (error_of(each).line, error_of(each).column, error_of(each).what) for name, each in found.items()}
    assert said.pop("latin.md") == (3, 11, "the byte 0xe9 is not UTF-8")
    assert said.pop("wide.md") == (1, 1, "the file is UTF-16")
    assert said.pop("large.md") == (0, 0, "the file has 1000022 bytes")
    assert said.pop("half.md") == (3, 1, "the front matter has no end")
    assert said.pop("empty.yaml") == (1, 1, "nothing is said to run")
    assert said.pop("link.md") == (0, 0, "the file is a link to nothing")
    assert said.pop("folder.md") == (0, 0, "it is not a file with content")
    assert said.pop("pipe.md") == (0, 0, "it is not a file with content")
    assert said.pop("later.yaml") == (3, 1, "`model` is not there yet")
    assert said == {}
    assert isinstance(found["later.yaml"].error, NotYet)


def test_a_file_that_may_not_be_read_is_an_error_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.md").write_text(GOOD)
    (tmp_path / "b.md").write_text(GOOD)
    opened = os.open

    def guarded(path: str | Path, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        if str(path).endswith("a.md"):
            raise PermissionError(13, "Permission denied")
        return opened(path, flags, mode, dir_fd=dir_fd)

    monkeypatch.setattr(os, "open", guarded)
    found = found_in(tmp_path)
    assert error_of(found["a.md"]).what == "the file cannot be read"
    assert error_of(found["a.md"]).why == "Permission denied"
    assert found["b.md"].definition is not None


def test_a_broken_file_has_the_name_it_seems_to_have(tmp_path: Path) -> None:
    (tmp_path / "Morning Brief.md").write_text("no front matter")
    (tmp_path / "b.yaml").write_text("name: tidy  # nightly\nnmae: x\n")
    (tmp_path / "???.md").write_text("---\n")
    found = found_in(tmp_path)
    assert {name: each.name for name, each in found.items()} == {
        "Morning Brief.md": "morning-brief", "b.yaml": "tidy", "???.md": "",
    }


def test_a_broken_file_keeps_the_name_it_had(tmp_path: Path) -> None:
    file = tmp_path / "a.md"
    file.write_text("---\nname: tidy\nworkspace: home\n---\nx")
    good = scan(tmp_path, default_timezone="UTC", now=NOW, checks=CHECKS)
    file.write_text("---\nname: tid")
    found = found_in(tmp_path, good)["a.md"]
    assert (found.name, found.workspace, found.definition) == ("tidy", "home", None)
    again = found_in(tmp_path, [found])["a.md"]
    assert (again.name, again.workspace) == ("tidy", "home")


def test_of_two_files_with_one_name_the_second_is_an_error_naming_the_first(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("---\nname: tidy\n---\nfirst")
    (tmp_path / "b.md").write_text("---\nowner: ana\nname: tidy\n---\nsecond")
    (tmp_path / "tidy.yaml").write_text("target: noop\n")
    found = found_in(tmp_path)
    assert found["a.md"].definition is not None
    assert str(error_of(found["b.md"])).startswith(f"{tmp_path}/b.md:3:1: the name `tidy` is taken\n  why: a.md has it")
    assert (error_of(found["tidy.yaml"]).line, error_of(found["tidy.yaml"]).column) == (1, 1)
    assert [each.name for each in found.values()] == ["tidy", "", ""]


def test_one_name_may_stand_in_two_workspaces(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("---\nname: tidy\n---\nx")
    (tmp_path / "b.md").write_text("---\nname: tidy\nworkspace: home\n---\nx")
    assert [each.error for each in found_in(tmp_path).values()] == [None, None]


def test_who_had_a_name_keeps_it_against_a_newcomer_even_when_broken(tmp_path: Path) -> None:
    (tmp_path / "b.md").write_text("---\nname: tidy\n---\nx")
    before = scan(tmp_path, default_timezone="UTC", now=NOW, checks=CHECKS)
    (tmp_path / "a.md").write_text("---\nname: tidy\n---\nnew")
    found = found_in(tmp_path, before)
    assert error_of(found["a.md"]).why == "b.md has it"
    (tmp_path / "b.md").write_text("---\nname: tidy\n")
    found = found_in(tmp_path, list(found.values()))
    assert error_of(found["a.md"]).why == "b.md has it"
    assert error_of(found["b.md"]).what == "the front matter has no end"
    assert found["b.md"].name == "tidy"
    (tmp_path / "b.md").unlink()
    found = found_in(tmp_path, list(found.values()))
    assert found["a.md"].definition is not None
    assert found["a.md"].name == "tidy"


def test_a_good_file_has_a_name_before_one_that_was_never_good(tmp_path: Path) -> None:
    (tmp_path / "tidy.md").write_text("broken")
    first = list(found_in(tmp_path).values())
    assert first[0].name == "tidy"
    (tmp_path / "z.md").write_text("---\nname: tidy\n---\nx")
    found = found_in(tmp_path, first)
    assert found["z.md"].definition is not None
    assert found["tidy.md"].name == ""
    assert error_of(found["tidy.md"]).what == "the file does not begin with front matter"


def test_what_was_read_before_is_not_read_again_and_keeps_its_zone(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text(GOOD)
    before = found_in(tmp_path, zone="Europe/Lisbon")
    again = found_in(tmp_path, list(before.values()), zone="UTC")
    assert again["a.md"] is before["a.md"]
    (tmp_path / "a.md").write_text(GOOD + "And more.")
    changed = found_in(tmp_path, list(again.values()), zone="UTC")["a.md"]
    assert changed.digest != before["a.md"].digest
    assert changed.definition is not None
    assert changed.definition.timezone == "UTC"


def test_an_error_is_always_read_again(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("---\nif: x\n---\nx")
    before = found_in(tmp_path)
    again = found_in(tmp_path, list(before.values()))
    assert again["a.md"] is not before["a.md"]
    assert again["a.md"].digest == before["a.md"].digest


def test_scripts_are_looked_for_beside_the_file(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("target: {script: {file: report.sh}}\n")
    definition = found_in(tmp_path)["a.yaml"].definition
    assert definition is not None
    assert definition.target.config["file"] == str(tmp_path / "report.sh")
