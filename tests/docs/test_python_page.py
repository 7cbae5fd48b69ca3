"""docs/python.md leaves out nothing of the API, and its programs run as they stand."""

from __future__ import annotations

import inspect
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from paper import blocks, read, rows, section

import nightporter
from nightporter import Porter, Run
from nightporter.surfaces import api

TEXT = read("docs/python.md")
SERVES, EMBEDS = blocks(TEXT, "python")
NAMES = {name for row in rows(TEXT) for name in re.findall(r"`((?:Porter|Run)\.\w+|\w+)", row[0])}


def program(folder: Path, text: str) -> subprocess.Popen[str]:
    """A program of the page, started in a folder of its own."""
    (folder / "program.py").write_text(text, encoding="utf-8")
    environ = {key: value for key, value in os.environ.items() if not key.startswith("NIGHTPORTER_")}
    return subprocess.Popen([sys.executable, "program.py"], cwd=folder, env=environ, text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def test_the_program_that_has_a_loop_already_prints_what_the_page_says(tmp_path: Path) -> None:
    said, complaint = program(tmp_path, EMBEDS).communicate(timeout=60)
    assert (said, complaint) == ("admitted repeated True\n", "")
    assert f"`{said.strip()}`" in TEXT


def test_the_whole_program_serves_until_it_is_told_to_stop(tmp_path: Path) -> None:
    desk = program(tmp_path, SERVES)
    beat = tmp_path / "desk" / "outputs" / "beat.txt"
    while not beat.exists() and desk.poll() is None:
        os.sched_yield()
    desk.send_signal(signal.SIGTERM)
    _, told = desk.communicate(timeout=60)
    assert desk.returncode == 0
    assert [event for event in ("desk.started", "run.ended", "desk.stopped") if event not in told] == []
    assert "Traceback" not in told
    assert beat.read_text(encoding="utf-8").strip() == "still here"


@pytest.mark.parametrize("name", [*sorted(set(nightporter.__all__) - {"Run"}), "Run.effect"])
def test_every_name_that_the_package_offers_is_on_the_page(name: str) -> None:
    assert name in NAMES


@pytest.mark.parametrize("kind", [Porter, Run], ids=lambda kind: kind.__name__)
def test_every_public_part_of_a_class_is_on_the_page(kind: type) -> None:
    inner = {"Run.acted", "Run.goes_on", "Run.end"}  # how the desk and its function runner speak of a run
    there = {f"{kind.__name__}.{name}" for name in vars(kind) if not name.startswith("_")}
    if kind is Porter:
        there |= {"Porter.config", "Porter.clock", "Porter.functions"}
    assert there - inner == {name for name in NAMES if name.startswith(f"{kind.__name__}.")}


def test_a_signature_on_the_page_is_the_one_that_is_called() -> None:
    for shown, names in re.findall(r"^\| `([\w.]+)\(([^`]*)\)`", section(TEXT, "What there is"), re.MULTILINE):
        called = getattr(Porter, shown.partition(".")[2], None) if "." in shown else getattr(api, shown)
        assert called is not None
        words = [word.strip().partition("=")[0].lstrip("*") for word in names.split(",") if word]
        known = [*inspect.signature(called).parameters, "..."]
        assert [word for word in words if word not in known] == []
