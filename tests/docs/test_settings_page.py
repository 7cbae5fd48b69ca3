"""docs/settings.md and config.Config say the same, and every setting is read."""

from __future__ import annotations

import re
from dataclasses import fields
from datetime import timedelta
from pathlib import Path

import pytest
from paper import ROOT, read, rows, section

from nightporter.config import VARIABLES, Config
from nightporter.rules.durations import parse_duration

TEXT = read("docs/settings.md")
TABLE = {row[0].strip("`"): row for row in rows(TEXT.partition("\n## ")[0])}
HOME = {"HOME": "/home/ana"}
BARE = Config.from_environment({**HOME, "TZ": "Europe/Lisbon"})
OTHER = {"int": "7", "timedelta": "45s"}


def test_every_setting_is_documented_and_nothing_else_is() -> None:
    assert list(TABLE) == [field.name for field in fields(Config)]


@pytest.mark.parametrize("name", TABLE)
def test_a_setting_has_the_variable_of_the_page(name: str) -> None:
    assert TABLE[name][1].strip("`") == VARIABLES.get(name, "none")


@pytest.mark.parametrize("name", TABLE)
def test_a_setting_has_the_default_of_the_page(name: str) -> None:
    told, is_ = TABLE[name][2].strip("`"), getattr(BARE, name)
    match is_:
        case int():
            assert int(told) == is_
        case timedelta():
            assert parse_duration(told) == is_
        case None:
            assert told == "none"
        case Path():
            where = told.replace("$XDG_STATE_HOME", "/home/ana/.local/state")
            assert Path(where.replace("$XDG_DATA_HOME", "/home/ana/.local/share")) == is_
        case _ if name in ("store", "timezone"):
            pass  # made of others; see below
        case _:
            assert told == is_


def test_the_store_is_a_file_in_the_state_folder_and_the_zone_is_the_machines() -> None:
    assert TABLE["store"][2] == "`nightporter.sqlite` in `state`"
    assert BARE.store == str(BARE.state / "nightporter.sqlite")
    assert TABLE["timezone"][2] == "`TZ`, else the machine's zone, else `UTC`"
    assert BARE.timezone == "Europe/Lisbon"


@pytest.mark.parametrize("name", [name for name in TABLE if name in VARIABLES])
def test_setting_a_variable_changes_its_setting(name: str) -> None:
    kind = next(str(field.type) for field in fields(Config) if field.name == name)
    environ = {**HOME, VARIABLES[name]: OTHER.get(kind, "/elsewhere")}
    assert getattr(Config.from_environment(environ), name) != getattr(BARE, name)


def test_a_home_folds_everything_into_one_folder_as_drawn() -> None:
    folded = Config.from_environment({**HOME, "NIGHTPORTER_HOME": "/srv/desk"})
    drawn = re.findall(r"/srv/desk/\S+", section(TEXT, "Where things are"))
    assert folded.store in drawn
    assert f"{folded.outputs}/" in drawn
    assert folded.home == folded.state == Path("/srv/desk")


@pytest.mark.parametrize("name", TABLE)
def test_a_setting_is_read_by_the_part_that_the_page_names(name: str) -> None:
    part = ROOT / "src" / "nightporter" / TABLE[name][4].strip("`")
    source = [path.read_text(encoding="utf-8") for path in [*part.rglob("*.py"), part.with_suffix(".py")]
              if path.exists()]
    assert any(re.search(rf"config\.{name}\b", text) for text in source)


def test_every_variable_that_the_program_knows_is_on_the_page_and_no_other() -> None:
    source = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py"))
    variable = re.compile(r"\b(?:NO_COLOR|(?:NIGHTPORTER|XDG)_[A-Z_]+[A-Z])\b")
    assert set(variable.findall(TEXT)) == set(variable.findall(source)) | set(VARIABLES.values())
