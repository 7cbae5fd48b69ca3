"""The README is short, and its examples are accepted by what reads them."""

from __future__ import annotations

from datetime import UTC, datetime

from paper import blocks, read

from nightporter.clock import instant
from nightporter.definitions import read as definition

TEXT = read("README.md")
NOW = instant(datetime(2026, 3, 27, 8, 0, tzinfo=UTC))


def test_the_readme_is_short() -> None:
    assert len(TEXT.splitlines()) < 120


def test_the_definitions_of_the_readme_can_be_read() -> None:
    (disk,) = blocks(TEXT, "markdown")
    (report,) = blocks(TEXT, "yaml")
    read_disk = definition(disk, format="markdown", path="/desk/disk.md", default_timezone="UTC", now=NOW)
    assert read_disk.name == "disk"
    assert [one.kind for one in read_disk.deliver] == ["announce", "file"]
    read_report = definition(report, format="yaml", path="/desk/report.yaml", default_timezone="UTC", now=NOW)
    assert [one.kind for one in read_report.deliver] == ["webhook"]


def test_the_readme_says_how_to_start_and_how_to_test() -> None:
    assert "$ make up" in TEXT
    assert "`make test`" in TEXT
