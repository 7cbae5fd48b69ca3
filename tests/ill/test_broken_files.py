"""The store's file is damaged, cut short, empty, another's, or gone: it is said clearly, and nothing is overwritten."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest
from shell import Shell

from fire.house import until
from fire.recorder import a_world
from ill.losses import a_ward

pytest_plugins = ["homes"]

PAGE = 4096


def pages_lost(whole: bytes) -> bytes:
    """Every page but the first is what the disk makes of it."""
    chance = random.Random(3)
    return whole[:PAGE] + b"".join(chance.randbytes(PAGE) for _ in range(len(whole) // PAGE - 1))


BROKEN: dict[str, Callable[[bytes], bytes]] = {
    "pages lost": pages_lost,
    "cut in half": lambda whole: whole[: len(whole) // 2 // PAGE * PAGE],
    "cut in a page": lambda whole: whole[: PAGE + 100],
    "no database": lambda whole: b"Dear diary, " * 1000,
    "nothing but zeros": lambda whole: bytes(len(whole)),
    "empty": lambda whole: b"",
}


@pytest.mark.parametrize("damage", BROKEN)
def test_a_damaged_store_is_said_to_be_and_left_alone(damage: str, shell: Shell) -> None:
    shell.write("hello.md", "---\nname: hello\nwhen: '0 9 * * *'\n---\nHello.\n")
    assert shell("tick").code == 0
    assert shell("run", "hello").code == 0
    store = shell.home / "nightporter.sqlite"
    broken = BROKEN[damage](store.read_bytes())
    store.write_bytes(broken)
    for words in (("tick",), ("up",), ("run", "hello"), ("list",), ("runs",), ("status",), ("doctor",), ("audit",)):
        said = shell(*words)
        assert said.code == 6, (words, said.out, said.err)
        assert said.err.startswith("error[store_corrupt]: "), (words, said.err)
        assert "\n  why: " in said.err
        assert "\n  next: " in said.err
        assert store.read_bytes() == broken
    told = shell("list", "--json").json["error"]
    assert told["code"] == "store_corrupt"
    assert {path.name for path in shell.home.iterdir() if "sqlite" in path.name} <= {
        store.name, f"{store.name}-wal", f"{store.name}-shm"
    }


@pytest.mark.parametrize("lost", ["", "-wal"])
def test_a_desk_notices_that_its_store_was_deleted_under_it(lost: str, tmp_path: Path) -> None:
    store = tmp_path / "ledger.db"
    with a_world(tmp_path) as world, a_ward(tmp_path, str(store), world) as house:
        desk = house.open("ward", arrivals=0.02).ready()
        until(lambda: len(house.lines("told")) > 10, "arrivals are taken")
        Path(f"{store}{lost}").unlink()
        until(lambda: "was deleted or replaced while the store was open" in desk.whole_log(), "the desk says so")
        taken = len(house.lines("told"))
        desk.tell("call")
        assert len(house.lines("told")) == taken
        assert desk.stop() == 0
        assert not Path(f"{store}{lost}").exists()  # nothing was put in its place
