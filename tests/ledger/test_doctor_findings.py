"""Each thing that keeps a desk or an automation from its work has a finding, and the one without it has none."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from acting import a_worker, after, setting

from conftest import START
from nightporter import operations
from nightporter.config import Config
from nightporter.ledger import Finding, Home, home
from nightporter.ledger.doctor import doctor
from nightporter.ledger.home import home_findings
from nightporter.ledger.machine import copy_findings, settings_findings, zone_findings
from nightporter.ledger.needs import environment_of, needs
from nightporter.rules.zones import TZDATA
from nightporter.store import Store
from nightporter.store.locks import FileLock
from nightporter.words import Definition, Destination, Limits, TriggerSpec
from words import a_clock_trigger, a_definition, an_automation

NOW = START


def needed(definition: Definition, **environment: str) -> list[str]:
    return [f.code for f in needs(definition, environment)]


def hook(**config: Any) -> Definition:
    return a_definition(deliver=[Destination("hook", "webhook", {"url": "https://one.example", **config})])


@pytest.mark.parametrize("definition", [
    hook(secret=["env:KEY"]),
    a_definition(runner="http", config={"url": "https://one.example", "secret_headers": {"auth": "Bearer env:KEY"}}),
    a_definition(runner="script", config={"command": ["true"], "secrets": {"TOKEN": "env:KEY"}}),
])
def test_a_secret_that_is_not_set_is_found_wherever_it_is_named(definition: Definition) -> None:
    assert needed(definition) == needed(definition, KEY="") == ["secret_unset"]
    assert needed(definition, KEY="s3cret") == []
    [finding] = needs(definition, {})
    assert "s3cret" not in finding.what + finding.next
    assert finding.next.startswith("export KEY=")


def test_a_secret_in_a_file_must_be_there(tmp_path: Path) -> None:
    path = tmp_path / "key"
    assert needed(hook(secret=[f"file:{path}"])) == ["secret_unset"]
    path.write_text("s3cret")
    assert needed(hook(secret=[f"file:{path}"])) == []


@pytest.mark.parametrize(("url", "found"), [
    ("http://127.0.0.1:8000/in", True), ("http://localhost/in", True), ("http://10.1.2.3/", True),
    ("http://[::1]/", True), ("https://example.com/in", False), ("https://1.1.1.1/", False),
])
def test_a_private_address_is_found_unless_it_is_allowed(url: str, found: bool) -> None:
    assert needed(hook(url=url, unsigned=True)) == ["private_address"] * found
    host = url.split("//")[1].split("/")[0].removesuffix(":8000")
    assert needed(hook(url=url, unsigned=True, allow_hosts=[host])) == []


def test_a_module_that_is_not_there_is_found(tmp_path: Path) -> None:
    def calls(call: str, path: Path = tmp_path) -> list[str]:
        return needed(a_definition(runner="python", config={"call": call, "path": [str(path)]}))

    assert calls("reports.daily:main") == ["module_missing"]
    (tmp_path / "reports.py").write_text("")
    assert calls("reports.daily:main") == calls("json:dumps") == []
    assert calls("json:dumps", tmp_path / "nowhere") == ["module_folder"]


def test_what_the_desk_was_started_with_counts_and_not_what_this_command_was(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KEY", "of this command")
    an_automation(store, hook(secret=["env:KEY"]), now=NOW)
    lock = FileLock(tmp_path / "held.lock")
    assert lock.take()
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, env={"OTHER": "x"}) as desk:
        store.write(lambda tx: tx.join("wrk_a", role="desk", host="here", pid=desk.pid, lock_path=str(lock.path),
                                       now=NOW))
        assert environment_of(desk.pid) == {"OTHER": "x"}
        assert "secret_unset" in codes(store, host="here")
        assert "secret_unset" not in codes(store, host="elsewhere")
        desk.communicate(b"\n")
    assert environment_of(desk.pid) is None
    lock.let_go()


def codes(store: Store, now: int = NOW, **rest: Any) -> list[str]:
    return [f.code for f in store.read(lambda tx: doctor(tx, after(now), mounts="", **rest)).findings]


def of(store: Store, now: int, code: str) -> Finding | None:
    found = store.read(lambda tx: doctor(tx, after(now), mounts="")).findings
    return next((f for f in found if f.code == code), None)


@pytest.mark.parametrize(("per_hour", "every", "found"), [(10, "5m", True), (12, "5m", False), (None, "5m", False)])
def test_a_ceiling_below_what_the_schedule_brings_is_found(
    store: Store, per_hour: int | None, every: str, found: bool
) -> None:
    trigger = a_clock_trigger(every, kind="every", anchor=NOW)
    an_automation(store, a_definition(limits=Limits(per_hour=per_hour), triggers=[trigger]), now=NOW)
    finding = of(store, NOW, "ceiling_below_schedule")
    assert (finding is not None) == found
    assert finding is None or finding.severity == "warning"


@pytest.mark.parametrize(("expression", "kind", "code"), [
    ("2020-01-01T09:00", "at", "at_in_the_past"), ("2026-11-03T09:00", "at", None), ("0 9 * * *", "cron", None),
])
def test_a_schedule_that_comes_no_more_is_found(store: Store, expression: str, kind: str, code: str | None) -> None:
    trigger = a_clock_trigger(expression, kind=kind)
    an_automation(store, a_definition(triggers=[trigger]), now=NOW)
    found = [c for c in codes(store) if c in ("at_in_the_past", "never_again")]
    assert found == ([code] if code else [])


def test_an_active_automation_that_is_not_armed_is_found(store: Store) -> None:
    automation = an_automation(store, a_definition(triggers=[a_clock_trigger()]), now=NOW)
    assert of(store, NOW, "not_armed") is None
    store.write(lambda tx: tx.sql._connection.execute("UPDATE trigger SET next_fire_at = NULL"))  # type: ignore[attr-defined]
    finding = of(store, NOW, "not_armed")
    assert finding is not None
    assert (finding.subject, finding.severity) == ("brief", "error")
    assert automation


def test_what_sleeps_for_a_month_or_is_switched_off_is_a_note(store: Store) -> None:
    automation = an_automation(store, a_definition(triggers=[a_clock_trigger()]), now=NOW)
    store.write(lambda tx: operations.pause(tx, automation, by="ana", reason="holiday", now=NOW))
    assert of(store, after(NOW, days=29), "asleep_for_long") is None
    finding = of(store, after(NOW, days=31), "asleep_for_long")
    assert finding is not None
    assert (finding.severity, finding.why) == ("note", "holiday")
    off = TriggerSpec("clock", "clock", a_clock_trigger().schedule, enabled=False)
    an_automation(store, a_definition("off", triggers=[off]), now=NOW)
    assert of(store, NOW, "switched_off") is not None


def test_a_frozen_a_draining_and_a_leaderless_desk_are_found(store: Store, tmp_path: Path) -> None:
    lock = FileLock(tmp_path / "held.lock")
    assert lock.take()
    store.write(lambda tx: tx.join("wrk_a", role="desk", host="here", pid=os.getpid(), lock_path=str(lock.path),
                                   now=NOW))
    late = after(NOW, minutes=10)
    assert codes(store, late, host="here") == ["frozen"]
    setting(store, "due_evaluated_at", late)
    assert codes(store, late, host="here") == ["standby_only"]
    assert store.write(lambda tx: tx.take_lead("wrk_a"))
    assert codes(store, late, host="here") == []
    store.write(lambda tx: tx.drains("wrk_a", now=late))
    assert codes(store, late, host="here") == ["draining"]
    lock.let_go()


def test_a_disk_that_is_nearly_full_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "ledger.db").write_text("")
    tmp_path.chmod(0o700)

    def look() -> list[str]:
        return [f.code for f in home_findings(Home(tmp_path, store=tmp_path / "ledger.db"), mounts="")]

    monkeypatch.setattr(home, "LITTLE_ROOM", 0)
    assert look() == []
    monkeypatch.setattr(home, "LITTLE_ROOM", 2**62)
    assert look() == ["disk_nearly_full"]


def test_an_old_copy_of_the_store_is_a_note(tmp_path: Path) -> None:
    copy = tmp_path / "ledger.db.before-0002-20260101T000000Z"
    copy.write_text("")
    seconds = NOW // 1_000_000
    os.utime(copy, (seconds, seconds))
    assert [f.code for f in copy_findings(tmp_path / "ledger.db", after(NOW, days=29))] == []
    [finding] = copy_findings(tmp_path / "ledger.db", after(NOW, days=30))
    assert (finding.code, finding.severity, finding.next) == ("old_backup", "note", f"rm {copy}")


@pytest.mark.parametrize(("line", "found"), [
    ("# version 2099a\n", True), (f"# version {TZDATA}\n", False), ("# version 2001a\n", False), ("garbage\n", False),
])
def test_zones_older_than_the_machines_are_found(tmp_path: Path, line: str, found: bool) -> None:
    path = tmp_path / "tzdata.zi"
    assert list(zone_findings(path)) == []
    path.write_text(line)
    assert [f.code for f in zone_findings(path)] == ["old_zones"] * found


def test_that_nobody_outside_would_notice_is_a_note(tmp_path: Path) -> None:
    def found(**settings: Any) -> list[str]:
        return [f.code for f in settings_findings(Config(state=tmp_path, outputs=tmp_path, store="x", **settings))]

    assert found() == ["no_deadman"]
    assert found(deadman="https://example.com/ping") == []
    assert found(deadman="https://example.com/ping", heartbeat="none") == ["no_heartbeat"]


def test_every_finding_says_what_to_do(store: Store) -> None:
    an_automation(store, hook(secret=["env:NOBODY_SET_THIS"], url="http://127.0.0.1/"), now=NOW)
    an_automation(store, a_definition("timed", triggers=[a_clock_trigger()]), now=NOW)
    a_worker(store, NOW)
    found = store.read(lambda tx: doctor(tx, after(NOW, days=2), mounts="")).findings
    assert len(found) >= 3
    assert [f for f in found if not f.next] == []
