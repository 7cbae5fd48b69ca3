"""Settings that cannot be used are refused before anything is done, with their name; zones are IANA names."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from shell import Shell

from nightporter import Porter
from nightporter.errors import BadInput

pytest_plugins = ["homes"]


@pytest.mark.parametrize(("variable", "value", "said"), [
    ("NIGHTPORTER_TIMEZONE", "Berlin", "NIGHTPORTER_TIMEZONE is 'Berlin': no time zone is named 'Berlin'"),
    ("TZ", "CET-1CEST", "TZ is 'CET-1CEST': no time zone is named 'CET-1CEST'"),
    ("NIGHTPORTER_SWEEP", "0s", "NIGHTPORTER_SWEEP is '0 s'"),
    ("NIGHTPORTER_BEAT", "25s", "set NIGHTPORTER_LEASE to 3 times NIGHTPORTER_BEAT or more"),
    ("NIGHTPORTER_DRAIN", "-5s", "NIGHTPORTER_DRAIN is '-5 s'"),
    ("NIGHTPORTER_SLOTS", "many", "NIGHTPORTER_SLOTS is 'many'"),
])
def test_a_variable_that_cannot_be_used_is_named_by_every_verb(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, variable: str, value: str, said: str
) -> None:
    monkeypatch.setenv(variable, value)
    for words in (("list",), ("next", "--every", "15m"), ("add", "every 5m", "x", "--name", "a"), ("init",)):
        assert (shell(*words).code, said in shell(*words).err) == (2, True), words
    monkeypatch.delenv(variable)
    assert shell("list", "--json").json["items"] == []


@pytest.mark.parametrize(("value", "zone"), [
    ("Japan", "Japan"), ("EST5EDT", "EST5EDT"), (":Europe/Lisbon", "Europe/Lisbon"),
    ("/usr/share/zoneinfo/Asia/Tokyo", "Asia/Tokyo"),
])
def test_the_zone_of_the_machine_is_taken_by_any_of_its_names(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, value: str, zone: str
) -> None:
    monkeypatch.setenv("TZ", value)
    assert shell("init", "--json").json["timezone"] == zone


@pytest.mark.parametrize(("settings", "said"), [
    ({"slots": "many"}, "slots is 'many'"), ({"slots": True}, "slots is True"), ({"delivery_slots": 0}, "above 0"),
    ({"drain": 5}, "drain is 5"), ({"sweep": timedelta(0)}, "sweep is '0 s'"), ({"timezone": "Berlin"}, "'Berlin'"),
    ({"lease": timedelta(seconds=59)}, "a lease of 59 s is too short for one that is renewed every 20 s"),
    ({"outputs": 7}, "outputs is 7"), ({"definitions": 7}, "definitions is 7"), ({"timezone": 7}, "timezone is 7"),
])
def test_a_program_is_told_which_setting_cannot_be_used(tmp_path: Path, settings: dict[str, Any], said: str) -> None:
    with pytest.raises(BadInput) as caught:
        Porter(home=tmp_path, **settings)
    assert said in str(caught.value)


def test_a_program_may_give_its_paths_as_texts(tmp_path: Path) -> None:
    assert Porter(home=tmp_path, outputs=str(tmp_path / "out")).config.outputs == tmp_path / "out"
