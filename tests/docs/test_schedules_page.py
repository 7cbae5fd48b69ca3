"""The page of schedules in words has every form and every preset, and the counts that the sentences give."""

from __future__ import annotations

import json
import re

from paper import ROOT, read, rows, section

from nightporter.clock import instant
from nightporter.errors import BadInput
from nightporter.rules.plain import read_words
from nightporter.rules.plain.forms import FORMS
from nightporter.rules.plain.presets import PRESETS

TEXT = read("docs/schedules.md")


def test_the_page_has_every_form_with_its_meaning() -> None:
    assert [(cells[0].strip("`"), cells[1]) for cells in rows(section(TEXT, "Plain words"))] == list(FORMS)


def test_the_page_has_every_preset_with_its_expression() -> None:
    assert {cells[0].strip("`"): cells[1].strip("`") for cells in rows(section(TEXT, "Presets"))} == PRESETS


def test_the_page_says_how_many_sentences_are_understood() -> None:
    from datetime import datetime

    sentences = json.loads((ROOT / "tests" / "data" / "sentences.json").read_text(encoding="utf-8"))["sentences"]
    understood = 0
    for sentence in sentences:
        try:
            read_words(sentence["text"], sentence["timezone"], now=instant(datetime.fromisoformat(sentence["now"])))
        except BadInput:
            continue
        understood += 1
    told = [int(number) for number in re.findall(r"(\d+) (?:sentences|are understood|are refused)", TEXT)]
    assert told == [len(sentences), understood, len(sentences) - understood]


def test_the_page_has_every_trap() -> None:
    source = read("src/nightporter/rules/traps.py")
    codes = set(re.findall(r'Trap\(\s*"(\w+)"', source)) | set(re.findall(r'code = "(\w+)" if .* else "(\w+)"',
        source)[0])
    told = [cells[0].strip("`") for cells in rows(section(TEXT, "Traps"))]
    assert set(told) == codes
    assert len(told) == len(codes) > 10
