"""Zones come from the pinned release, whatever the machine has, and every change of offset is known."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
import zoneinfo
from datetime import datetime
from importlib import resources
from pathlib import Path

import pytest

from nightporter.errors import BadSchedule
from nightporter.rules.zones import TZDATA, first_pass, names, stretch_at, zone

SINCE, UNTIL = 0, 2_145_916_800
"""1970 to 2037: where the release lists the changes one by one."""


def listed_changes(name: str) -> list[tuple[int, int]]:
    """The changes of offset in the compiled zone file, read on their own: (second, new offset)."""
    data = resources.files("tzdata").joinpath("zoneinfo", *name.split("/")).read_bytes()

    def counts(at: int) -> tuple[int, ...]:
        return struct.unpack(">6l", data[at + 20 : at + 44])

    is_ut, is_std, leaps, times, kinds, letters = counts(0)
    at = 44 + times * 5 + kinds * 6 + letters + leaps * 8 + is_std + is_ut
    times, kinds = counts(at)[3:5]
    at += 44
    seconds = struct.unpack(f">{times}q", data[at : at + 8 * times])
    chosen = data[at + 8 * times : at + 9 * times]
    at += 9 * times
    offsets = [struct.unpack(">l", data[at + 6 * kind : at + 6 * kind + 4])[0] for kind in range(kinds)]
    changes: list[tuple[int, int]] = []
    before = offsets[0]
    for second, kind in zip(seconds, chosen, strict=True):
        if offsets[kind] != before:
            before = offsets[kind]
            changes.append((second, before))
    return changes


def found_changes(name: str, since: int, until: int) -> list[tuple[int, int]]:
    changes: list[tuple[int, int]] = []
    stretch = stretch_at(name, since)
    while stretch.end < until:
        following = stretch_at(name, stretch.end)
        if following.offset != stretch.offset:
            changes.append((following.start, following.offset))
        stretch = following
    return changes


def some_names() -> list[str]:
    """Every eleventh name, and those whose changes are odd."""
    odd = ["Africa/Casablanca", "Africa/El_Aaiun", "Africa/Cairo", "America/Havana", "Antarctica/Casey",
           "Antarctica/Troll", "Asia/Gaza", "Asia/Pyongyang", "Australia/Lord_Howe", "Europe/Dublin", "Pacific/Apia",
           "Pacific/Kwajalein", "America/Boa_Vista"]  # fmt: skip
    return sorted({*sorted(names())[::11], *odd})


@pytest.mark.parametrize("name", some_names())
def test_every_change_that_the_release_lists_is_found(name: str) -> None:
    listed = listed_changes(name)
    last = max((second for second, _ in listed), default=SINCE)
    expected = [change for change in listed if SINCE < change[0] < UNTIL]
    assert [change for change in found_changes(name, SINCE, UNTIL) if change[0] <= last] == expected


@pytest.mark.parametrize("name", ["America/New_York", "Australia/Lord_Howe", "Africa/Casablanca", "Europe/Dublin"])
@pytest.mark.parametrize("year", [1996, 2026, 2050, 2400])
def test_stretches_agree_with_the_offsets_of_the_zone(name: str, year: int) -> None:
    start = int(datetime(year, 1, 1, tzinfo=zone("UTC")).timestamp())
    for second in range(start, start + 366 * 86_400, 5_003):
        stretch = stretch_at(name, second)
        assert stretch.start <= second < stretch.end
        shift = datetime.fromtimestamp(second, zone(name)).utcoffset()
        assert shift is not None
        assert stretch.offset == shift.total_seconds()


def test_after_a_fold_the_wall_is_fresh_only_when_the_repeated_hour_is_over() -> None:
    second_pass = int(datetime(2026, 11, 1, 6, tzinfo=zone("UTC")).timestamp())
    stretch = stretch_at("America/New_York", second_pass)
    assert (stretch.start, stretch.fresh) == (second_pass, second_pass + 3600)


@pytest.mark.parametrize(
    ("name", "wall", "utc"),
    [
        ("America/New_York", "2026-03-08T02:30", "2026-03-08T07:00"),
        ("America/New_York", "2026-11-01T01:30", "2026-11-01T05:30"),
        ("Pacific/Apia", "2011-12-30T12:00", "2011-12-30T10:00"),
        ("Asia/Kolkata", "2026-01-01T00:00", "2025-12-31T18:30"),
    ],
)
def test_a_local_time_has_a_first_pass(name: str, wall: str, utc: str) -> None:
    def second(text: str) -> int:
        return int(datetime.fromisoformat(text).replace(tzinfo=zone("UTC")).timestamp())

    assert first_pass(name, second(wall)) == second(utc)


def test_the_machines_own_zone_files_are_not_read(tmp_path: Path) -> None:
    wrong = tmp_path / "Europe"
    wrong.mkdir()
    tokyo = resources.files("tzdata").joinpath("zoneinfo", "Asia", "Tokyo").read_bytes()
    (wrong / "Berlin").write_bytes(tokyo)
    program = (
        "from datetime import datetime; from zoneinfo import ZoneInfo; from nightporter.rules.zones import zone;"
        "print(*(datetime(2026, 1, 1, tzinfo=each('Europe/Berlin')).utcoffset() for each in (ZoneInfo, zone)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONTZPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stdout.split() == ["9:00:00", "1:00:00"]


def test_an_embedding_program_keeps_its_own_search_path() -> None:
    before = zoneinfo.TZPATH
    zone("Europe/Lisbon")
    assert before == zoneinfo.TZPATH
    assert zone("Europe/Lisbon") is zone("Europe/Lisbon")
    assert zone("Europe/Lisbon") is not zoneinfo.ZoneInfo("Europe/Lisbon")


def test_the_release_is_known_by_name() -> None:
    assert len(TZDATA) == 5
    assert TZDATA[:4].isdigit()
    assert TZDATA[4].isalpha()


@pytest.mark.parametrize(
    "name",
    ["", " ", "../../etc/passwd", "/etc/localtime", "Europe/../UTC", "Europe", "UTC\0", "Factory", "x" * 5000, "+2"],
)
def test_what_is_no_zone_name_opens_no_file(name: str) -> None:
    with pytest.raises(BadSchedule) as refusal:
        zone(name)
    assert len(refusal.value.what) < 200
    assert refusal.value.next


@pytest.mark.parametrize(
    ("asked", "offered"),
    [
        ("Europe/Berlim", "Europe/Berlin"),
        ("berlin", "Europe/Berlin"),
        ("new york", "America/New_York"),
        ("america/new_york", "America/New_York"),
        ("utc", "UTC"),
        ("Europe/Kiev2", "Europe/Kyiv"),
    ],
)
def test_an_unknown_zone_is_answered_with_the_nearest_names(asked: str, offered: str) -> None:
    with pytest.raises(BadSchedule, match="did you mean") as refusal:
        zone(asked)
    assert offered in refusal.value.next


def test_a_sign_that_means_the_opposite_is_never_offered() -> None:
    with pytest.raises(BadSchedule) as refusal:
        zone("GMT+5")
    assert "5" not in refusal.value.next
