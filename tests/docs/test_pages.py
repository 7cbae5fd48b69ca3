"""Links lead somewhere, decisions are complete, and what the pages call for exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from paper import PAGES, ROOT, anchors, blocks, name_of, prose, read

DECISIONS = sorted((ROOT / "docs" / "decisions").glob("[0-9]*.md"))


def links(text: str) -> list[str]:
    """The targets of the links of a page that stay in the project."""
    found = re.findall(r"(?<!!)\[[^\]]+\]\(([^)\s]+)\)", re.sub(r"`[^`\n]*`", "", prose(text)))
    return [target for target in found if not target.startswith(("https://", "http://", "mailto:"))]


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_link_of_a_page_leads_somewhere(page: Path) -> None:
    for target in links(page.read_text(encoding="utf-8")):
        path, _, anchor = target.partition("#")
        there = (page.parent / path).resolve() if path else page
        assert there.exists(), target
        if anchor:
            assert anchor in anchors(there.read_text(encoding="utf-8")), target


def test_every_page_can_be_found_from_the_readme() -> None:
    found = {ROOT / "README.md"}
    to_read = list(found)
    while to_read:
        page = to_read.pop()
        for target in links(page.read_text(encoding="utf-8")):
            there = (page.parent / target.partition("#")[0]).resolve()
            if there.suffix == ".md" and there not in found:
                found.add(there)
                to_read.append(there)
    assert [name_of(page) for page in PAGES if page not in found] == []


def test_every_page_that_the_code_sends_a_reader_to_is_there() -> None:
    sources = [path for folder in ("src", "tests", "benchmarks") for path in (ROOT / folder).rglob("*.py")]
    named = {name for path in [ROOT / "Makefile", *sources]
             for name in re.findall(r"docs/[\w-]+\.md", path.read_text(encoding="utf-8"))}
    assert len(named) > 5
    assert [name for name in sorted(named) if not (ROOT / name).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_the_python_of_a_page_compiles(page: Path) -> None:
    for block in blocks(page.read_text(encoding="utf-8"), "python"):
        compile(block, name_of(page), "exec")


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_a_page_has_one_title_and_lines_that_fit_a_screen(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert len(re.findall(r"^# ", prose(text), re.MULTILINE)) == 1
    assert [line for line in text.splitlines() if len(line) > 130 and not line.startswith(("|", "<!--"))] == []
    assert [line for line in text.splitlines() if line != line.rstrip()] == []
    assert text.endswith("\n")


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_make_target_that_a_page_names_exists(page: Path) -> None:
    targets = set(re.findall(r"^([a-z]+):", read("Makefile"), re.MULTILINE))
    text = page.read_text(encoding="utf-8")
    shown = re.findall(r"^(?:\$ )?make ([a-z]+)", "\n".join(blocks(text, "console") + blocks(text, "sh")), re.MULTILINE)
    assert {*shown, *re.findall(r"`make ([a-z]+)`", text)} <= targets


@pytest.mark.parametrize("decision", DECISIONS, ids=lambda path: path.name[:4])
def test_a_decision_says_the_question_the_answer_and_the_price_on_a_page(decision: Path) -> None:
    text = decision.read_text(encoding="utf-8")
    assert text.startswith(f"# {decision.name[:4]} ")
    for part in ("Question", "Decision", "Costs"):
        assert len(re.findall(rf"^\*\*{part}\.\*\* ", text, re.MULTILINE)) == 1
    assert len(text.splitlines()) <= 60


def test_decisions_are_numbered_without_a_gap_and_listed_by_their_titles() -> None:
    assert [int(path.name[:4]) for path in DECISIONS] == list(range(1, len(DECISIONS) + 1))
    listed = re.findall(r"^- \[(.+)\]\((.+)\)$", read("docs/decisions/README.md"), re.MULTILINE)
    assert listed == [
        (path.read_text(encoding="utf-8").splitlines()[0].removeprefix("# "), path.name) for path in DECISIONS
    ]


def test_the_changelog_begins_with_this_version_and_what_comes_after_it() -> None:
    from nightporter import __version__

    versions = re.findall(r"^## (\S+)", read("CHANGELOG.md"), re.MULTILINE)
    assert versions[versions[0] == "Unreleased"] == __version__
