"""Long walks through what may become of an automation and its file, in any order: the ledger is clean all the way."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest
from builders import Night
from shelf import Shelf

from nightporter.clock import ManualClock, moment
from nightporter.errors import Conflict
from nightporter.store import Store

TIMED = {"I-31", "I-50b", "N-08"}
"""What only a desk that is looked after keeps."""
NAMES = ("brief", "tea", "lamp")


class Walk:
    """One walk; the draws decide."""

    def __init__(self, shelf: Shelf, draws: Random) -> None:
        self.shelf, self.night, self.draws = shelf, shelf.night, draws

    def step(self) -> None:
        steps: list[Callable[[], object]] = [
            *[self.save] * 3, *[self.spoil] * 2, self.delete, *[self.look] * 5, *[self.pause] * 2, self.pause_a_while,
            *[self.enable] * 2, self.remove, *[self.upkeep] * 3, *[self.tick] * 5, self.sleep, self.night.work,
            self.fire, self.review,
        ]
        try:
            self.draws.choice(steps)()
        except Conflict:
            pass  # it is so already, or cannot be: nothing was changed

    def name(self) -> str:
        return self.draws.choice(NAMES)

    def automation(self, where: str = "state <> 'removed'") -> str | None:
        found = [row[0] for row in self.night.sql(f"SELECT id FROM automation WHERE {where} ORDER BY id")]
        return self.draws.choice(found) if found else None

    def save(self) -> None:
        draw = self.draws
        schedules = ["every 7m", '"*/20 * * * *"', '"30 * * * *"', "at 2026-03-27T15:00"]
        soon = f"{moment(self.night.now):%Y-%m-%d}T{draw.randrange(24):02}:45"
        expires = f"expires: {soon}\n" if draw.random() < 0.3 else ""
        home = f"workspace: {draw.choice(['home', 'away'])}\n" if draw.random() < 0.2 else ""
        self.shelf.write(
            f"{self.name()}.yaml", f"name: {self.name()}\ntarget: {{script: 'true'}}\ntimezone: UTC\n{expires}{home}"
            f"when: {draw.choice(schedules)}\nlimits: {{per_hour: none}}\n",
        )

    def spoil(self) -> None:
        self.shelf.spoil(self.name())

    def delete(self) -> None:
        (self.shelf.folder / f"{self.name()}.yaml").unlink(missing_ok=True)

    def look(self) -> None:
        self.shelf.read()

    def pause(self) -> None:
        if automation := self.automation():
            self.night.pause(automation)

    def pause_a_while(self) -> None:
        if automation := self.automation():
            self.night.pause(automation, minutes=self.draws.choice([5, 30, 200]))

    def enable(self) -> None:
        if automation := self.automation():
            self.night.enable(automation)

    def remove(self) -> None:
        if automation := self.automation():
            self.night.remove(automation)

    def upkeep(self) -> None:
        self.night.upkeep()

    def tick(self) -> None:
        self.night.tick(minutes=self.draws.choice([1, 4, 11, 31, 95]), seconds=self.draws.choice([0, 17]))

    def sleep(self) -> None:
        self.night.pass_time(minutes=self.draws.choice([2, 70]))

    def fire(self) -> None:
        if automation := self.automation("definition_hash <> ''"):  # what never was good has no way in
            self.night.fire(automation)

    def review(self) -> None:
        for claimed in self.night.begin():
            self.night.lose(self.night.worker)
            self.night.change_shifts()
            if self.draws.random() < 0.5:
                self.night.review(claimed.work.run_id, self.draws.choice(["retry", "dismiss"]))


@pytest.mark.parametrize("seed", range(3))
def test_a_ledger_is_clean_whatever_became_of_files_and_automations(
    store: Store, clock: ManualClock, tmp_path: Path, seed: int, caplog: pytest.LogCaptureFixture
) -> None:
    night = Night(store, clock)
    walk = Walk(Shelf(night, tmp_path / "automations"), Random(seed))
    walk.save()
    walk.look()
    for n in range(160):
        walk.step()
        if n % 5 == 4:
            assert [found for found in night.audit().findings if found.id not in TIMED] == []
            assert night.sql("SELECT automation_id FROM pause WHERE paused_to IS NULL GROUP BY automation_id "
                             "HAVING count(*) > 1") == []
    assert [record.getMessage() for record in caplog.records if record.levelname == "ERROR"] == []
