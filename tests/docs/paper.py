"""The documentation as the tests read it: its pages, their tables, code blocks and headings."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
_CODE = re.compile(r"^```(?P<language>\w*)[^\n]*\n(?P<text>.*?)^```", re.MULTILINE | re.DOTALL)


def read(name: str) -> str:
    """A page by its path below the root."""
    return (ROOT / name).read_text(encoding="utf-8")


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def blocks(text: str, language: str) -> list[str]:
    """The code blocks of one language."""
    return [found["text"] for found in _CODE.finditer(text) if found["language"] == language]


def prose(text: str) -> str:
    """The text without its code blocks."""
    return _CODE.sub("", text)


def section(text: str, heading: str) -> str:
    """What stands between a heading and the next of its rank or above."""
    found = re.search(rf"^(?P<rank>##+) {re.escape(heading)}\n", text, re.MULTILINE)
    assert found, f"no heading {heading!r}"
    rest = text[found.end() :]
    following = re.search(rf"^#{{2,{len(found['rank'])}}} ", rest, re.MULTILINE)
    return rest[: following.start()] if following else rest


def rows(text: str) -> Iterator[list[str]]:
    """The cells of every row of every table, heads left out."""
    lines = text.splitlines()
    for number, line in enumerate(lines):
        if not line.startswith("|") or re.fullmatch(r"[|\s:-]+", line):
            continue
        if number + 1 < len(lines) and re.fullmatch(r"\|[|\s:-]+", lines[number + 1]):
            continue
        yield [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip().strip("|"))]


def anchors(text: str) -> set[str]:
    """The names by which the headings of a page are linked to."""
    return {
        re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-")
        for heading in re.findall(r"^#+ (.+)$", prose(text), re.MULTILINE)
    }
