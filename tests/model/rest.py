"""A desk that is left alone, until nothing is left to do."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from model.aftermath import Aftermath
from nightporter.words import Receipt


def at_rest(desk: Aftermath) -> None:
    """Bring everything to its end, as a desk does that is left alone."""
    desk.restart()
    if desk.account.stopped:
        desk.lift()
    for a in list(desk.account.automations.values()):
        if a.state in ("proposed", "paused") and (a.wish.expires is None or a.wish.expires > a.changed_at(desk.now)):
            desk.enable(a)
    worker = desk.live()[-1]
    for _ in range(300):
        desk.tick()
        desk.claim(worker, 50)
        desk.end(worker, list(worker.flying), ["words"] * len(worker.flying))
        desk.take(worker, 50)
        desk.record(worker, list(worker.sending), Receipt.DELIVERED, False)
        waiting = [r for r in desk.account.in_state("queued", "held", "running") if not sleeps(r)]
        sending = desk.account.deliveries("pending", "sending")
        if not waiting and not sending:
            break
        soon = [at for at in [*(r.ready for r in waiting), *(d.due for d in sending)] if at > desk.now]
        if soon:
            desk.clock.advance(timedelta(microseconds=min(soon) - desk.now))
    else:
        raise AssertionError(f"these never end: {[(r.id, r.states) for r in waiting]}, {[d.run.id for d in sending]}")


def sleeps(run: Any) -> bool:
    """It waits for a person who lets its automation act again."""
    return run.automation.state in ("proposed", "paused") and run.state in ("queued", "held")
