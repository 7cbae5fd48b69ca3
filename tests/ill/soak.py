"""The ill store for `make soak`: a hundred power losses, every hostile value in every column alone, a lock that is held
for three quarters of a minute, and commits that are cut while their server crashes and moves."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fire.accounts import findings
from fire.house import a_house, until
from fire.recorder import a_world
from fire.recovered import goes_on
from ill.cutter import a_cutter
from ill.hostile import columns
from ill.locked import hold, wrong
from ill.losses import a_ward, power_losses
from ill.servers import own_server
from ill.sweeping import a_ledger, swept
from soak.order import Order

LOSSES = 100
LOSSES_A_HOUSE = 20
LOCKED_FOR = 45.0
CUTS = 50
ARRIVALS = 0.03
PORTS = (5432, 5433)


def soak(order: Order) -> list[str]:
    """All of it. A round is one power loss; the rest is done once, on the databases asked for."""
    found: list[str] = []
    figures: dict[str, Any] = {}
    parts: list[Callable[[Order, Path, dict[str, Any]], list[str]]] = []
    if "sqlite" in order.stores:
        parts += [_power, _rows, _lock]
    if "postgres" in order.stores:
        parts += [_cuts]
    for part in parts:
        folder = order.folder / part.__name__.strip("_")
        folder.mkdir()
        begun = time.monotonic()
        wrong_here = [f"{part.__name__.strip('_')}: {one}" for one in part(order, folder, figures)]
        print(f"{part.__name__.strip('_')}: {len(wrong_here)} findings in {time.monotonic() - begun:.0f} s", flush=True)
        found += wrong_here
        if not wrong_here:
            shutil.rmtree(folder)
    order.publish(figures)
    return found


def _power(order: Order, folder: Path, figures: dict[str, Any]) -> list[str]:
    found: list[str] = []
    total = {"losses": 0, "sectors": 0, "cut": 0, "gone": 0, "answers": 0}
    for number in range(-(-(order.rounds or LOSSES) // LOSSES_A_HOUSE)):
        home = folder / str(order.seed + number)
        home.mkdir()
        with a_world(home) as world, a_ward(home, str(home / "ledger.db"), world) as house:
            came_to, here = power_losses(house, rounds=min(LOSSES_A_HOUSE, order.rounds or LOSSES),
                                         seed=order.seed + number)
        print(f"seed {order.seed + number}: {came_to}", flush=True)
        found += [f"seed {order.seed + number}: {one}" for one in here]
        total = {name: count + getattr(came_to, name) for name, count in total.items()}
    figures["power"] = {**total, "findings": len(found)}
    return found


def _rows(order: Order, folder: Path, figures: dict[str, Any]) -> list[str]:
    for name in [name for name in os.environ if name.startswith("NIGHTPORTER_")]:
        del os.environ[name]
    ledger = a_ledger(folder)
    every = list(columns(ledger))
    found = swept(ledger, folder / "home", [[column] for column in every], details=4, both=True)
    figures["rows"] = {"columns": len(every), "findings": len(found)}
    return found


def _lock(order: Order, folder: Path, figures: dict[str, Any]) -> list[str]:
    with a_world(folder) as world, a_house(folder, str(folder / "ledger.db"), world) as house:
        desk = house.open(arrivals=ARRIVALS, patience=5.0).ready()
        goes_on(house)
        held = hold(house, LOCKED_FOR)
        found = list(wrong(house, held))
        desk.tell("quiet")
        house.idle()
        desk.stop()
        figures["lock"] = {"seconds": LOCKED_FOR, "slots": house.ledger.count(
            f"firing WHERE scheduled_for BETWEEN {held.begun} AND {held.ended}")}
        return found + findings(house)


def _cuts(order: Order, folder: Path, figures: dict[str, Any]) -> list[str]:
    crashes = 0
    with own_server(folder) as server:
        server.databases.create("cuts", migrated=True)
        with (
            a_world(folder) as world, a_cutter(server.url("cuts"), seed=order.seed) as cutter,
            a_house(folder, cutter.url(), world) as house,
        ):
            desk = house.open(arrivals=ARRIVALS).ready()
            cutter.share = 0.1
            while cutter.before + cutter.after < CUTS:
                aim = cutter.before + cutter.after + CUTS // 5
                until(lambda aim=aim: cutter.before + cutter.after >= aim, "commits are cut")  # type: ignore[misc]
                server.crash()
                crashes += 1
                server.start(port=PORTS[crashes % 2])
                cutter.server = server.url("cuts")
                goes_on(house)
            cutter.share = 0.0
            cutter.away = True
            cutter.hang_up()
            time.sleep(5.0)  # longer than its lease
            cutter.away = False
            goes_on(house)
            desk.tell("quiet")
            house.idle()
            desk.stop()
            figures["cuts"] = {"before": cutter.before, "after": cutter.after, "crashes": crashes,
                               "runs": house.ledger.count("run")}
            return findings(house)
