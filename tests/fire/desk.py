"""The desk under fire: `python desk.py ORDER`, where ORDER is JSON; see `house.Order`.

Speaks in lines of JSON on standard output (`ready`, `quiet`, ...), listens to words on standard input (`quiet`, or
`call` and names of automations), and logs to standard error. SIGTERM drains it.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
import threading
import urllib.request
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

from nightporter import logs
from nightporter.errors import StoreError
from nightporter.surfaces.api import Porter, Run, cron, every

SETTINGS = ("beat", "lease", "sweep", "drain")
FREE = {"per_hour": "none", "queued": "none", "concurrent": "none"}


def say(event: str, **facts: Any) -> None:
    print(json.dumps({"event": event, **facts}), flush=True)


class FireDesk(Porter):
    """A Porter that says when it is ready and does what it is told."""

    def __init__(self, order: dict[str, Any]) -> None:
        settings: dict[str, Any] = {
            name: timedelta(seconds=value) if name in SETTINGS else value for name, value in order["settings"].items()
        }
        super().__init__(home=order["home"], store=order["store"], **settings)
        self.order = order
        self.passed: Callable[[str], None] = lambda _: None
        self._arrivals: asyncio.Task[None] | None = None

    @contextlib.asynccontextmanager
    async def running(self, *, watch_files: bool = False) -> AsyncIterator[Porter]:
        async with super().running(watch_files=watch_files):
            engine = self.engine
            say("ready", worker=engine.worker, leading=engine.leading, guard=engine._guard.pid)
            loop = asyncio.get_running_loop()
            threading.Thread(target=self._listen, args=(loop,), daemon=True).start()
            self._arrivals = loop.create_task(self._arrive()) if self.order["arrivals"] else None
            try:
                yield self
            finally:
                await self._no_more_arrivals()

    def _listen(self, loop: asyncio.AbstractEventLoop) -> None:
        for line in sys.stdin:
            word, *names = line.split()
            done = self._quieten() if word == "quiet" else self._call(names)
            asyncio.run_coroutine_threadsafe(done, loop).result()
            say(word)

    async def _quieten(self) -> None:
        """No clock trigger and no arrival any more: what was started ends, and nothing new begins."""
        await self._no_more_arrivals()
        self._definitions = [without_clock(definition) for definition in self._definitions]
        await self.engine.write(self._put_definitions)

    async def _no_more_arrivals(self) -> None:
        if self._arrivals is not None:
            self._arrivals.cancel()
            # A firing that was put is admitted all the same: a write behind it is done once it is.
            with contextlib.suppress(asyncio.CancelledError):
                await self._arrivals
            self._arrivals = None

    async def _call(self, names: list[str]) -> None:
        for name in names:
            await self.fire(name)

    async def _arrive(self) -> None:
        """Tell the desk of one arrival after another; write down each that it took, once it says so."""
        book = os.open(self.order["told"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        while True:
            await asyncio.sleep(self.order["arrivals"])
            number = len(open(self.order["told"]).readlines())  # noqa: PTH123, SIM115
            external_id = f"arrival-{number}"
            try:
                answer = await self.fire("arrive", payload={"n": number}, external_id=external_id)
            except StoreError:
                continue  # it may have been taken all the same: the same one is told again
            os.write(book, json.dumps({"id": external_id, "run": answer.run_id}).encode() + b"\n")
            os.fsync(book)


def everyone_leads() -> None:
    """Leadership spares work; what it must not be needed for is that each slot has one answer."""
    from nightporter.engine.sources import Sources
    from nightporter.sources.clock import ClockSource

    def take_over(self: Sources, load: Callable[[], None]) -> None:
        self.answer()
        load()
        self.leading = True

    setattr(Sources, "take_over", take_over)  # noqa: B010  mypy forbids the assignment
    setattr(Sources, "step_down", lambda *_: None)  # noqa: B010
    setattr(ClockSource, "_leading", lambda _, tx, work: work(tx))  # noqa: B010


def without_clock(definition: Any) -> Any:
    return replace(definition, triggers=tuple(t for t in definition.triggers if t.kind != "clock"))


# -- what the house does ----------------------------------------------------------------------------------------------


def script(text: str, order: dict[str, Any]) -> dict[str, Any]:
    """A shell script that first writes down that it started."""
    report = 'echo "$NIGHTPORTER_RUN_ID $NIGHTPORTER_ATTEMPT" >> "$STARTS"'
    return {"script": {"command": f"{report}; {text}", "env": {"STARTS": order["starts"], "BEATS": order["beats"]}}}


def signed(order: dict[str, Any], path: str = "/hook") -> dict[str, Any]:
    return {"webhook": order["recorder"] + path, "secret": "env:FIRE_SECRET", "allow_hosts": ["127.0.0.1"],
            "name": path.strip("/").replace("/", "-")}


def act(desk: FireDesk, run: Run, *names: str) -> str:
    """Acts on the world, each behind its own key, each once."""
    for name in names:
        with run.effect(name, key=name) as effect:
            if not effect.done:
                body = json.dumps({"key": f"{run.id}:{name}", "run": run.id, "attempt": run.attempt}).encode()
                urllib.request.urlopen(desk.order["recorder"] + "/effect", data=body, timeout=10).close()
                desk.passed("effect-called")
    return f"did {', '.join(names)}"


def house(desk: FireDesk) -> None:
    """Automations of every kind, each due once a second."""
    order = desk.order
    second = cron("* * * * * *")
    file = {"file": "{{name}}/{{run}}.txt"}
    desk.define("tick", {"echo": {"text": "tock"}}, second, every("1s", name="grid", overlap="parallel"),
                 deliver=[file, signed(order)], limits=FREE)
    desk.define("once", script("sleep 0.3; echo done", order), second, deliver=[signed(order)], limits=FREE)
    desk.define("again", script("sleep 0.3; echo done", order), second, deliver=[file], limits=FREE, idempotent=True,
                overlap="queue", retry={"attempts": 100})
    desk.define("flaky", script('[ "$NIGHTPORTER_ATTEMPT" -gt 1 ] && echo done', order), second, deliver=[file],
                limits=FREE, overlap="parallel", retry={"attempts": 3, "delays": ["100ms"], "on": ["nonzero_exit"]})
    desk.define("arrive", {"echo": {"text": "welcome"}}, deliver=[signed(order)], limits=FREE)

    @desk.automation(second, name="acts", overlap="parallel", idempotent=True, limits={**FREE, "concurrent": 3},
                     retry={"attempts": 100}, deliver=[signed(order)])
    def acts(run: Run) -> str:
        return act(desk, run, "first", "second")


def storm(desk: FireDesk) -> None:
    """The house, receivers that are slow or refuse at first, and work that is replaced before it ends."""
    house(desk)
    desk.define("newest", script("sleep 1.5; echo done", desk.order), every("1s"), deliver=[{"file": "n/{{run}}.txt"}],
                limits=FREE, overlap="replace", idempotent=True, retry={"attempts": 100})
    for name in ("slow", "moody"):
        desk.define(name, {"echo": {"text": name}}, every("1s"), deliver=[signed(desk.order, f"/hook/{name}")],
                    limits=FREE)


def crowd(desk: FireDesk) -> None:
    """Fifty clocks that strike together, and nothing that takes long."""
    deliver: dict[int, list[Any]] = {0: [signed(desk.order)], 1: [{"file": "{{name}}/{{run}}.txt"}]}
    for n in range(50):
        desk.define(f"clock-{n}", {"echo": {"text": str(n)}}, cron("* * * * * *"), overlap="parallel",
                    deliver=deliver.get(n, ["silent"]), limits=FREE)


def errands(desk: FireDesk) -> None:
    """Work that takes long, of every kind that tells what may be repeated; started by hand only."""
    order = desk.order
    beating = 'while :; do echo "$NIGHTPORTER_RUN_ID $NIGHTPORTER_ATTEMPT" >> "$BEATS"; sleep 0.02; done'
    file = {"file": "{{name}}/{{run}}.txt"}
    desk.define("short", script("sleep 1; echo done", order), deliver=[signed(order)], limits=FREE)
    desk.define("unhurried", script("sleep 3.5; echo done", order), limits=FREE)
    desk.define("long", script(beating, order), deliver=[file], limits=FREE)
    desk.define("long-again", script(beating, order), deliver=[file], limits=FREE, idempotent=True,
                retry={"attempts": 5})
    desk.define("one-by-one", script("sleep 60", order), limits={**FREE, "concurrent": 1})


def empty(desk: FireDesk) -> None:
    """Whatever is in the store already."""


WORLDS: dict[str, Callable[[FireDesk], None]] = {
    "house": house, "storm": storm, "crowd": crowd, "errands": errands, "empty": empty,
}


def main() -> None:
    order = json.loads(sys.argv[1])
    logs.configure("json", sys.stderr)
    desk = FireDesk(order)
    if order["fault"]:
        from fire.points import arm

        desk.passed = arm(order["fault"])
    if order["all_lead"]:
        everyone_leads()
    WORLDS[order["world"]](desk)
    if order["quiet"]:
        desk._definitions = [without_clock(definition) for definition in desk._definitions]
    desk.serve()


if __name__ == "__main__":
    main()
