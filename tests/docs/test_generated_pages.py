"""What is made from the code is current, and leaves out no state, no step, no verdict and no reason."""

from __future__ import annotations

import importlib.util
import re
from enum import StrEnum
from pathlib import Path
from types import ModuleType

import pytest
from paper import ROOT, read, rows, section

from nightporter.states import (
    AUTOMATION_TRANSITIONS,
    DELIVERY_TRANSITIONS,
    TRANSITIONS,
    AutomationEvent,
    AutomationState,
    DeliveryEvent,
    DeliveryState,
    RunEvent,
    RunState,
)
from nightporter.words import SENTENCES, Outcome, Reason, Verdict


def generator() -> ModuleType:
    """docs/generate.py, which `make docs` runs."""
    spec = importlib.util.spec_from_file_location("generate", ROOT / "docs" / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


GENERATE = generator()


@pytest.mark.parametrize("path", list(GENERATE.PAGES), ids=lambda path: path.name)
def test_a_page_made_from_the_code_is_current(path: Path) -> None:
    assert path.read_text(encoding="utf-8") == GENERATE.PAGES[path](), "run `make docs`"


@pytest.mark.parametrize(
    "enum",
    [RunState, RunEvent, DeliveryState, DeliveryEvent, AutomationState, AutomationEvent, Verdict, Outcome],
    ids=lambda enum: enum.__name__,
)
def test_every_state_event_verdict_and_outcome_says_what_it_is(enum: type[StrEnum]) -> None:
    told = GENERATE.docstrings(enum)
    assert list(told) == [str(member) for member in enum]
    assert [member for member, text in told.items() if not text.endswith(".")] == []


@pytest.mark.parametrize(
    ("machine", "states", "table"),
    [
        ("Run", RunState, TRANSITIONS),
        ("Delivery", DeliveryState, DELIVERY_TRANSITIONS),
        ("Automation", AutomationState, AUTOMATION_TRANSITIONS),
    ],
)
def test_every_state_and_step_of_a_machine_is_on_the_page(
    machine: str, states: type[StrEnum], table: dict[tuple[StrEnum, StrEnum], StrEnum]
) -> None:
    page = section(read("docs/states.md"), machine)
    assert {row[0].strip("`") for row in rows(page)} >= set(states)
    drawn = set(re.findall(r"^    (\w+) --> (\w+): (\w+)$", page, re.MULTILINE))
    assert drawn == {(state, to, event) for (state, event), to in table.items()}
    assert all(f"`{query}`" in page for query in GENERATE.queries("sqlite") if _changes(query, machine))


def _changes(query: str, machine: str) -> bool:
    return bool(GENERATE.queries("sqlite")[query].change) and query.startswith(f"{machine.lower()}_")


def test_every_reason_is_on_the_page_once_with_its_sentence() -> None:
    text = read("docs/reasons.md")
    found = {row[0].strip("`"): row[1] for heading in GENERATE.groups(Reason)
             for row in rows(section(text, f"Reasons: {heading}"))}
    assert found == {str(reason): sentence for reason, sentence in SENTENCES.items()}
    assert set(SENTENCES) == set(Reason)


def test_every_reason_is_written_by_some_code() -> None:
    source = [path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py")
              if path.name not in ("reason.py", "why.py")]
    assert [reason.name for reason in Reason if not any(f"Reason.{reason.name}" in text for text in source)] == []


def test_a_page_that_is_not_current_is_written_again_and_a_current_one_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stale, current = tmp_path / "stale.md", tmp_path / "current.md"
    stale.write_text("old", encoding="utf-8")
    current.write_text("same", encoding="utf-8")
    monkeypatch.setattr(GENERATE, "PAGES", {stale: lambda: "new", current: lambda: "same"})
    assert GENERATE.write() == [stale]
    assert stale.read_text(encoding="utf-8") == "new"
