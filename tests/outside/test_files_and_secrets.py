"""Files written whole, paths that stay below their folder, and secrets looked up at each use."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from nightporter.errors import BadInput, NotPermitted
from nightporter.outside.files import inside, read_regular, write_durably
from nightporter.outside.secrets import SecretUnavailable, check_reference, resolve


def test_a_file_is_replaced_whole_and_nothing_else_is_left(tmp_path: Path) -> None:
    target = tmp_path / "a" / "b" / "report.md"
    write_durably(target, b"old")
    write_durably(target, b"new")
    assert target.read_bytes() == b"new"
    assert list(target.parent.iterdir()) == [target]
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o700


def test_a_write_that_fails_leaves_the_old_file_and_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "report.md"
    write_durably(target, b"old")

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write_durably(target, b"new")
    assert target.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [target]


def test_a_file_is_on_disk_before_it_takes_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[tuple[bool, bool]] = []
    target = tmp_path / "new folder" / "report.md"
    real = os.fsync

    def note(descriptor: int) -> None:
        synced.append((stat.S_ISDIR(os.fstat(descriptor).st_mode), target.exists()))
        real(descriptor)

    monkeypatch.setattr(os, "fsync", note)
    write_durably(target, b"content")
    # The parent of the new folder, the file's content before the rename, the file's folder after it.
    assert synced == [(True, False), (False, False), (True, True)]


@pytest.mark.parametrize("path", ["../x", "a/../../x", "/etc/passwd", "", ".", "a/..", "out/x", "a/../../outputs-2/x"])
def test_a_path_cannot_leave_its_folder(tmp_path: Path, path: str) -> None:
    base = tmp_path / "outputs"
    base.mkdir()
    (base / "out").symlink_to(tmp_path)
    with pytest.raises(NotPermitted) as caught:
        inside(base, path)
    assert caught.value.next


def test_a_path_below_its_folder_is_found(tmp_path: Path) -> None:
    base = Path(os.path.realpath(tmp_path))
    (base / "link").symlink_to(base / "real")
    assert inside(tmp_path, "a/./b.md") == base / "a" / "b.md"
    assert inside(tmp_path, tmp_path / "c.md") == base / "c.md"
    assert inside(tmp_path, "link/d.md") == base / "real" / "d.md"


def test_a_secret_is_what_stands_behind_its_reference_now(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN", "first")
    assert resolve("env:TOKEN") == "first"
    monkeypatch.setenv("TOKEN", "second")
    assert resolve("env:TOKEN") == "second"
    path = tmp_path / "token"
    path.write_text("from a file\n")
    assert resolve(f"file:{path}") == "from a file"
    path.write_bytes(b" spaces stay \r\n")
    assert resolve(f"file:{path}") == " spaces stay "


def test_a_missing_secret_says_which_and_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_TOKEN", raising=False)
    with pytest.raises(SecretUnavailable) as caught:
        resolve("env:NO_TOKEN")
    assert "env:NO_TOKEN" in caught.value.what
    assert "NO_TOKEN" in caught.value.next
    for content in (None, b"", b"\n", b"\xff", b"x" * 70_000):
        path = tmp_path / "token"
        if content is not None:
            path.write_bytes(content)
        with pytest.raises(SecretUnavailable) as caught:
            resolve(f"file:{path}")
        assert str(path) in caught.value.next


@pytest.mark.parametrize("given", [
    "hunter2", "env:", "env:1A", "env:A B", "file:", "file:relative", "FILE:/x", "x:y", "",
])
def test_what_is_no_reference_is_refused_without_repeating_it(given: str) -> None:
    with pytest.raises(BadInput) as caught:
        check_reference(given)
    said = str(caught.value).replace("env:NAME", "").replace("file:/absolute/path", "")
    assert not given or given not in said


def test_what_is_no_file_with_content_is_refused_and_holds_nobody_up(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path in (pipe, tmp_path, Path("/dev/zero")):
        with pytest.raises(OSError, match=r"not a file|directory"):
            read_regular(path, 100)
    with pytest.raises(SecretUnavailable, match="cannot be read"):
        resolve(f"file:{pipe}")
