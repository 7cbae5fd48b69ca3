"""Files that are there, or that have changed."""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from asking import ask

from nightporter.errors import BadInput
from nightporter.looks import file as files
from nightporter.looks.file import File, check
from nightporter.words import ErrorClass, Seen, Sight


async def look(folder: Path, path: str, before: Any = None, **keys: Any) -> Seen:
    return await ask(File(), check({"path": path, **keys}, folder), before)


async def test_a_file_that_is_there_is_something_as_long_as_it_is(tmp_path: Path) -> None:
    assert (await look(tmp_path, "stop.txt", wake_on="exists")).sight is Sight.NOTHING
    (tmp_path / "stop.txt").touch()
    for _ in range(2):
        seen = await look(tmp_path, "stop.txt", wake_on="exists")
        assert (seen.sight, seen.text, seen.state) == (Sight.SOMETHING, str(tmp_path / "stop.txt"), None)


async def test_what_is_new_changed_or_gone_is_told(tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        (tmp_path / f"{name}.csv").write_text(name)
    first = await look(tmp_path, "*.csv")
    assert first.sight is Sight.NOTHING
    assert (await look(tmp_path, "*.csv", first.state)).sight is Sight.NOTHING
    (tmp_path / "a.csv").write_text("A")
    (tmp_path / "b.csv").unlink()
    (tmp_path / "d.csv").write_text("d")
    (tmp_path / "other.txt").write_text("of no interest")
    seen = await look(tmp_path, "*.csv", first.state)
    assert seen.sight is Sight.SOMETHING
    assert seen.text.splitlines() == [
        f"new: {tmp_path / 'd.csv'}", f"changed: {tmp_path / 'a.csv'}", f"gone: {tmp_path / 'b.csv'}"]


async def test_the_first_look_wakes_where_that_is_asked(tmp_path: Path) -> None:
    (tmp_path / "a.csv").touch()
    assert (await look(tmp_path, "*.csv", first="wake")).text == str(tmp_path / "a.csv")


async def test_a_touched_file_has_changed_by_time_and_not_by_content(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("a")
    os.utime(path, ns=(0, 0))
    by_content, by_time = [await look(tmp_path, "a.csv", by=by) for by in ("content", "time")]
    os.utime(path, ns=(0, 1))
    assert (await look(tmp_path, "a.csv", by_content.state)).sight is Sight.NOTHING
    assert (await look(tmp_path, "a.csv", by_time.state, by="time")).text == f"changed: {path}"


async def test_a_folder_that_is_not_there_is_a_look_that_failed(tmp_path: Path) -> None:
    for path in ("gone/a.csv", "gone/*.csv", "gone/*/deep/*.csv"):
        for wake_on in ("exists", "changed"):
            seen = await look(tmp_path, path, wake_on=wake_on)
            assert (seen.sight, seen.error_class) == (Sight.FAILED, ErrorClass.CONFIGURATION)
            assert seen.error == f"the folder {str(tmp_path / 'gone')!r} is not there"


async def test_what_would_hold_up_whoever_reads_it_does_not(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "nowhere").symlink_to(tmp_path / "gone")
    first = await look(tmp_path, "*")
    assert first.sight is Sight.NOTHING
    assert (await look(tmp_path, "*", first.state)).sight is Sight.NOTHING


async def test_many_files_are_known_apart_no_more_and_too_many_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "FILES", 300)
    for n in range(300):
        (tmp_path / f"{n:03}").touch()
    first = await look(tmp_path, "*")
    assert "files" not in first.state
    (tmp_path / "000").write_text("changed")
    assert (await look(tmp_path, "*", first.state)).sight is Sight.SOMETHING
    (tmp_path / "one-more").touch()
    assert (await look(tmp_path, "*", first.state)).error == "more than 300 files are there; name fewer"


async def test_a_look_that_takes_too_long_is_given_up(tmp_path: Path) -> None:
    with (tmp_path / "big").open("wb") as big:
        big.truncate(20_000_000_000)
    seen = await ask(File(timedelta(milliseconds=100)), check({"path": str(tmp_path / "big")}))
    assert (seen.sight, seen.error_class) == (Sight.FAILED, ErrorClass.TIMEOUT)


@pytest.mark.parametrize(
    "wrong", [{"wake_on": "gone"}, {"by": "size"}, {"first": "no"}, {"path": ["a"]}, {"glob": "*"}]
)
def test_what_cannot_be_looked_at_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(BadInput):
        check({"path": "a", **wrong})
