"""The registry of destinations."""

from __future__ import annotations

from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from nightporter import destinations
from nightporter.clock import Instant
from nightporter.errors import BadInput
from nightporter.outside import plugs
from nightporter.outside.http import Web
from nightporter.words import DestinationPort, Parcel, Receipt, Sent


class Foreign:
    kind = "foreign"
    repeatable = False

    async def send(self, parcel: Parcel) -> Sent:
        return Sent(Receipt.UNVERIFIED)


class Mute:
    repeatable = False


def registry(folder: Path, reports: list[str]) -> dict[str, DestinationPort]:
    return destinations.registry(outputs=folder, web=Web(), now=lambda: Instant(0), report=reports.append)


def test_every_kind_has_a_check_and_all_that_leave_the_desk_a_destination(tmp_path: Path) -> None:
    reports: list[str] = []
    found = registry(tmp_path, reports)
    assert reports == []
    assert {kind: destination.kind for kind, destination in found.items()} == {"file": "file", "webhook": "webhook"}
    assert set(destinations.checks()) == {"file", "webhook", "announce", "silent", "none"}


@pytest.mark.parametrize("kind", ["announce", "silent", "none"])
def test_what_stays_with_the_desk_has_no_keys(kind: str) -> None:
    check = destinations.checks()[kind]
    assert check(None) == check({}) == {}
    with pytest.raises(BadInput, match="has no key `to`"):
        check({"to": "me"})


def test_a_plug_in_is_used_and_broken_ones_are_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    points = [EntryPoint(name, f"{__name__}:{attribute}", destinations.ENTRY_POINTS)
              for name, attribute in (("foreign", "Foreign"), ("mute", "Mute"), ("none", "Foreign"), ("gone", "Gone"))]

    def entry_points(*, group: str) -> list[EntryPoint]:
        return points

    monkeypatch.setattr("importlib.metadata.entry_points", entry_points)
    plugs._found.cache_clear()
    reports: list[str] = []
    found = registry(tmp_path, reports)
    checks = destinations.checks()
    plugs._found.cache_clear()
    assert set(found) == {"file", "webhook", "foreign"}
    assert sorted(report.split("'")[1] for report in reports) == ["gone", "mute", "none"]
    assert checks["foreign"]({"any": 1}) == {"any": 1}
