"""A file is on the disk when its bytes are, and its name: what the desk confirms is synced with the folders that were
made for it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from shell import Shell

from nightporter.clock import Instant
from nightporter.destinations.file import FileDestination
from nightporter.store import open_store
from nightporter.words import DeliveryId, Parcel, Receipt, RunId

pytest_plugins = ["homes"]


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> Callable[[], set[Path]]:
    """What was synced since the test began, by its name."""
    found: set[Path] = set()
    sync = os.fsync

    def noted(descriptor: int) -> None:
        found.add(Path(f"/proc/self/fd/{descriptor}").readlink())
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", noted)
    return lambda: found


def test_a_new_store_has_its_name_on_the_disk(synced: Callable[[], set[Path]], tmp_path: Path) -> None:
    open_store(str(tmp_path / "one" / "two" / "ledger.db"), now=0).close()
    assert {tmp_path, tmp_path / "one", tmp_path / "one" / "two"} <= synced()


def test_a_new_home_and_its_example_are_on_the_disk(
    nobodys_place: Path, synced: Callable[[], set[Path]], tmp_path: Path
) -> None:
    home = tmp_path / "new" / "home"
    assert Shell(home)("init", "--example").code == 0
    assert {tmp_path, tmp_path / "new", home, home / "automations"} <= synced()
    assert (home / "automations" / "hello.md").read_text().startswith("---")


async def test_a_delivered_file_is_on_the_disk_with_the_folders_made_for_it(
    synced: Callable[[], set[Path]], tmp_path: Path
) -> None:
    parcel = Parcel(DeliveryId("dlv_1"), "evt_1", RunId("run_1"), "brief", "default", {"path": "a/b/c.md"},
                    {"data": {"text": "hello"}}, Instant(0), 1, "UTC")
    sent = await FileDestination(tmp_path / "outputs").send(parcel)
    assert sent.receipt is Receipt.DELIVERED
    outputs = tmp_path / "outputs"
    assert {tmp_path, outputs, outputs / "a", outputs / "a" / "b"} <= synced()
    assert any(path.suffix == ".part" for path in synced())
