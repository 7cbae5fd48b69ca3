"""Options and plug-ins: wrong keys are named, and a stranger's broken module stops nothing."""

from __future__ import annotations

from importlib.metadata import EntryPoint
from typing import Any

import pytest

from nightporter.errors import BadInput
from nightporter.outside import options, plugs


def test_an_unknown_key_is_named_with_the_nearest_one() -> None:
    with pytest.raises(BadInput) as caught:
        options.mapping({"comand": "x"}, "script", known=("command", "file"))
    assert caught.value.what == "`script` has no key `comand`"
    assert caught.value.next == "did you mean `command`?"
    with pytest.raises(BadInput) as caught:
        options.mapping({"zebra": "x"}, "script", known=("command", "file"))
    assert caught.value.next == "remove `zebra`"


def test_a_text_stands_for_the_short_key_and_nothing_for_no_keys() -> None:
    assert options.mapping("x", "echo", known=("text",), short="text") == {"text": "x"}
    assert options.mapping(None, "echo", known=("text",)) == {}
    with pytest.raises(BadInput, match="cannot be a list"):
        options.mapping([1], "echo", known=("text",))
    with pytest.raises(BadInput, match="cannot be text"):
        options.mapping("x", "noop", known=())


def test_a_value_of_the_wrong_kind_is_named() -> None:
    with pytest.raises(BadInput, match=r"`script.cpu` cannot be text"):
        options.typed({"cpu": "7"}, "script", "cpu", int, 0)
    with pytest.raises(BadInput, match=r"`script.cpu` cannot be true or false"):
        options.typed({"cpu": True}, "script", "cpu", int, 0)
    with pytest.raises(BadInput, match=r"`script.env.A` cannot be a list"):
        options.texts({"env": {"A": []}}, "script", "env")
    with pytest.raises(BadInput, match=r"`http.allow_hosts` cannot be a number"):
        options.items({"allow_hosts": 7}, "http", "allow_hosts")
    with pytest.raises(BadInput, match=r"`http` needs `url`"):
        options.need({}, "http", "url", "url: x")
    assert options.texts({"env": {"A": 7}}, "script", "env") == {"A": "7"}
    assert options.items({"allow_hosts": "a"}, "http", "allow_hosts") == ["a"]


def test_a_broken_or_taken_plug_in_is_reported_and_the_others_are_used(monkeypatch: pytest.MonkeyPatch) -> None:
    group = "nightporter.tests"
    points = [
        EntryPoint("good", "json:dumps", group), EntryPoint("broken", "no_such_module:x", group),
        EntryPoint("hollow", "json:no_such_attribute", group), EntryPoint("taken", "json:loads", group),
    ]

    def found(*, group: str) -> list[EntryPoint]:
        return points

    monkeypatch.setattr("importlib.metadata.entry_points", found)
    plugs._found.cache_clear()
    reports: list[str] = []
    answers: dict[str, Any] = plugs.plugged(group, {"taken"}, reports.append)
    plugs._found.cache_clear()
    assert list(answers) == ["good"]
    assert len(reports) == 3
    assert "no_such_module" in reports[0]
    assert "that name is taken" in reports[2]
