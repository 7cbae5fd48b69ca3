"""The desk that is recorded: `python night.py HOME WORLD` works on everything at once, until it is killed.

It reads lines `NAME EXTERNAL-ID` from standard input, fires that automation and answers with a line of JSON. It is run
by the released program, and uses nothing but what that release offers.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
import threading
from collections.abc import AsyncIterator
from typing import Any

from nightporter.surfaces.api import Porter, Run, at, cron, every

RUNNING = 10
"""Runs that go on for as long as the file `hold` is in the home: all slots are taken, and what else is due waits."""
LONG = '[ -e "$HOLD" ] && sleep 600; echo done'


class Night(Porter):
    """A Porter that fires what it is told to."""

    @contextlib.asynccontextmanager
    async def running(self, *, watch_files: bool = False) -> AsyncIterator[Porter]:
        async with super().running(watch_files=watch_files):
            loop = asyncio.get_running_loop()
            threading.Thread(target=self._listen, args=(loop,), daemon=True).start()
            print(json.dumps({"worker": self.engine.worker}), flush=True)
            yield self

    def _listen(self, loop: asyncio.AbstractEventLoop) -> None:
        for line in sys.stdin:
            name, external_id = line.split()
            firing = self.fire(name, external_id=external_id, payload={"id": external_id}, text="it's for you")
            answer = asyncio.run_coroutine_threadsafe(firing, loop).result()
            print(json.dumps({"run": answer.run_id, "verdict": answer.verdict}), flush=True)


def night(home: str, world: str) -> Porter:
    """Automations of which each is there for one thing that can happen to it."""
    desk = Night(home=home, slots=RUNNING)

    def hook(path: str) -> dict[str, Any]:
        return {"webhook": f"{world}{path}", "unsigned": True, "allow_hosts": ["127.0.0.1"], "name": path.strip("/")}

    def script(name: str, command: str, *when: Any, **rest: Any) -> None:
        desk.define(name, {"script": {"command": command, "env": {"HOLD": f"{home}/hold"}}}, *when, **rest)

    def echo(name: str, *when: Any, **rest: Any) -> None:
        desk.define(name, {"echo": {"text": f"a word from {name}"}}, *when, **rest)

    echo("hourly", cron("0 * * * *", timezone="Europe/Berlin"), deliver=["announce"])
    echo("often", every("1s"), limits={"per_hour": "none"})
    echo("once", at("2100-01-01T00:00Z"))
    echo("spoilt", every("1s", name="spoilt"), limits={"per_hour": "none"})
    echo("letter", deliver=[hook("/ok"), {"file": "{{name}}/{{run}}.txt"}, "announce", "silent"])
    echo("refused", deliver=[hook("/gone")])
    echo("later", deliver=[hook("/busy")])
    echo("hanging", deliver=[hook("/hang")])
    echo("cool", cooldown="1h")
    echo("few", limits={"per_hour": 1})
    script("quiet", "true")
    script("broken", "echo no paper >&2; exit 3")
    script("slow", "sleep 600", limits={"timeout": "300ms"})
    script("flaky", '[ "$NIGHTPORTER_ATTEMPT" -gt 1 ] && echo done',
           retry={"attempts": 3, "delays": ["60s"], "on": ["nonzero_exit"]})
    script("dismissed", LONG)
    script("cut", LONG)
    script("again", LONG, idempotent=True, retry={"attempts": 5})
    script("line", LONG, idempotent=True, overlap="queue", retry={"attempts": 5})
    script("single", LONG, idempotent=True, overlap="skip", retry={"attempts": 5})
    script("newest", LONG, idempotent=True, overlap="replace", retry={"attempts": 5})
    script("narrow", LONG, idempotent=True, limits={"concurrent": 1}, retry={"attempts": 5})
    script("asleep", LONG, idempotent=True, limits={"concurrent": 1}, retry={"attempts": 5})
    script("unwanted", LONG)
    script("gone", "echo soon", every("1h"))
    desk.define("provider", {"http": {"url": f"{world}/busy", "allow_hosts": ["127.0.0.1"]}})

    @desk.automation(name="acts", idempotent=True, retry={"attempts": 5})
    async def acts(run: Run) -> str:
        async with run.effect("first", key="first") as effect:
            effect.permalink = "https://example.org/1"
        return "acted"

    @desk.automation(name="acting", idempotent=True, retry={"attempts": 5})
    async def acting(run: Run) -> str:
        async with run.effect("first", key="first"):
            pass
        async with run.effect("second", key="second"):
            await asyncio.Event().wait()
        return "never"

    return desk


if __name__ == "__main__":
    night(*sys.argv[1:]).serve()
