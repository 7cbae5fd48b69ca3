"""The registry of runners, and the two that answer in place."""

from __future__ import annotations

from importlib.metadata import EntryPoint

import pytest
from desks import work_for

from nightporter import runners
from nightporter.clock import Instant
from nightporter.errors import BadInput
from nightporter.outside import plugs
from nightporter.outside.http import Web
from nightporter.runners import echo, noop
from nightporter.words import Ended, QuickRunner, Runner, Work


def registry(reports: list[str]) -> dict[str, Runner | QuickRunner]:
    return runners.registry(guard=None, web=Web(), now=lambda: Instant(0), functions={}, report=reports.append)


class Foreign:
    kind = "foreign"
    opaque = True

    def run_now(self, work: Work) -> Ended:
        return Ended.ok("from afar")


class Mute:
    opaque = True


class Failing:
    def __init__(self) -> None:
        raise RuntimeError("not today")


@pytest.fixture
def plugged(monkeypatch: pytest.MonkeyPatch) -> None:
    here = __name__
    points = [EntryPoint(name, f"{here}:{attribute}", runners.ENTRY_POINTS)
              for name, attribute in (("foreign", "Foreign"), ("mute", "Mute"), ("failing", "Failing"),
                                      ("echo", "Foreign"), ("absent", "Absent"))]

    def found(*, group: str) -> list[EntryPoint]:
        return points

    plugs._found.cache_clear()
    monkeypatch.setattr("importlib.metadata.entry_points", found)


@pytest.fixture(autouse=True)
def forgotten() -> None:
    plugs._found.cache_clear()


def test_every_kind_has_a_runner_and_a_check() -> None:
    reports: list[str] = []
    found = registry(reports)
    assert reports == []
    assert set(found) == set(runners.checks()) == {"script", "python", "function", "http", "echo", "noop"}
    for kind, runner in found.items():
        assert runner.kind == kind
        assert hasattr(runner, "run") != hasattr(runner, "run_now")
    assert {kind for kind, runner in found.items() if not runner.opaque} == {"echo", "noop"}


@pytest.mark.usefixtures("plugged")
def test_a_plug_in_is_used_and_broken_ones_are_reported_and_stop_nothing() -> None:
    reports: list[str] = []
    found = registry(reports)
    plugs._found.cache_clear()
    assert set(found) == {"script", "python", "function", "http", "echo", "noop", "foreign"}
    foreign = found["foreign"]
    assert isinstance(foreign, Foreign)
    assert foreign.run_now(work_for("foreign", {})).text == "from afar"
    assert isinstance(found["echo"], echo.Echo)
    assert sorted(report.split("'")[1] for report in reports) == ["absent", "echo", "failing", "mute"]


@pytest.mark.usefixtures("plugged")
def test_the_config_of_a_plug_in_is_taken_as_it_is() -> None:
    check = runners.checks()["foreign"]
    plugs._found.cache_clear()
    assert check({"anything": [1]}) == {"anything": [1]}
    with pytest.raises(BadInput):
        check([1])


@pytest.mark.parametrize(("config", "text", "payload", "said"), [
    ({"text": "hi"}, "", None, "hi"), ({"prompt": "hi"}, "there", None, "hi\n\nthere"), ({}, "there", None, "there"),
    ({}, "", {"né": 1}, '{"né": 1}'), ({}, "", 0, "0"), ({}, "", None, ""),
])
def test_echo_says_what_it_was_given(config: dict[str, str], text: str, payload: object, said: str) -> None:
    work = work_for("echo", echo.check(config), text=text, payload=payload)
    assert echo.Echo().run_now(work) == Ended.ok(said)


def test_noop_says_its_name() -> None:
    assert noop.Noop().run_now(work_for("noop", noop.check(None))) == Ended.ok("noop")
    with pytest.raises(BadInput, match="has no key"):
        noop.check({"a": 1})
    with pytest.raises(BadInput, match=r"`echo.text` cannot be a list"):
        echo.check({"text": []})
