"""Worlds: the automations of a desk under fire, each with books outside that tell what it did."""

from __future__ import annotations

import json
import os
import signal
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from nightporter.surfaces.api import Porter, Run, cron, every

FREE = {"per_hour": "none", "queued": "none", "concurrent": "none"}
BACK_IN_NO_TIME = {"attempts": 100, "delays": ["50ms", "200ms"], "on": ["nonzero_exit"]}


class Hit(Porter):
    """A desk that is to die: what it was ordered, and what marks that a named point was passed."""

    order: dict[str, Any]
    passed: Callable[[str], None]

    def _define(self, name: str, target: Any, triggers: Any, policy: dict[str, Any]) -> None:
        # Work that dies with its desk fails again and again, and is to go on all the same.
        super()._define(name, target, triggers, {"failures": {"pause_after": "none"}, **policy})


class World(Protocol):
    def __call__(self, desk: Hit) -> None: ...


def script(text: str, order: dict[str, Any]) -> dict[str, Any]:
    """A shell script that writes down that it started, and says with `$ACTED` that it is still there."""
    report = 'echo "$NIGHTPORTER_RUN_ID $NIGHTPORTER_ATTEMPT" >> "$STARTS"'
    acted = 'acted() { echo "$NIGHTPORTER_RUN_ID $NIGHTPORTER_ATTEMPT acted" >> "$STARTS"; }'
    return {"script": {"command": f"{acted}; {report}; {text}",
                       "env": {"STARTS": order["starts"], "BEATS": order["beats"]}}}


def signed(order: dict[str, Any], path: str = "/hook") -> dict[str, Any]:
    return {"webhook": order["recorder"] + path, "secret": "env:FIRE_SECRET", "allow_hosts": ["127.0.0.1"],
            "name": path.strip("/").replace("/", "-")}


def post(order: dict[str, Any], path: str, **body: object) -> None:
    urllib.request.urlopen(order["recorder"] + path, data=json.dumps(body).encode(), timeout=10).close()


def heir(seconds: int) -> str:
    """Acts once a second attempt has begun, which mostly is itself; or after so many seconds."""
    alone = '[ "$(grep -c "^$NIGHTPORTER_RUN_ID [0-9]*$" "$STARTS")" -lt 2 ]'
    return f"n=0; while [ $n -lt {seconds * 10} ] && {alone}; do sleep 0.1; n=$((n+1)); done; acted; echo done"


def act(desk: Hit, run: Run, *names: str) -> str:
    """Acts on the world, each behind its own key, each once."""
    for name in names:
        with run.effect(name, key=name) as effect:
            if not effect.done:
                post(desk.order, "/effect", key=f"{run.id}:{name}", run=run.id, attempt=run.attempt)
                desk.passed("effect-called")
    return f"did {', '.join(names)}"


def house(desk: Hit) -> None:
    """Automations of every kind, each due once a second."""
    order = desk.order
    second = cron("* * * * * *")
    file = {"file": "{{name}}/{{run}}.txt"}
    desk.define("tick", {"echo": {"text": "tock"}}, second, every("1s", name="grid", overlap="parallel"),
                 deliver=[file, signed(order)], limits=FREE)
    desk.define("once", script("sleep 0.3; acted; echo done", order), second, deliver=[signed(order)], limits=FREE)
    desk.define("again", script("sleep 0.3; acted; echo done", order), second, deliver=[file], limits=FREE,
                idempotent=True, overlap="queue", retry={"attempts": 100})
    desk.define("flaky", script('[ "$NIGHTPORTER_ATTEMPT" -gt 1 ] && echo done', order), second, deliver=[file],
                limits=FREE, overlap="parallel", retry={"attempts": 3, "delays": ["100ms"], "on": ["nonzero_exit"]})
    desk.define("arrive", {"echo": {"text": "welcome"}}, deliver=[signed(order)], limits=FREE)

    @desk.automation(second, name="acts", overlap="parallel", idempotent=True, limits={**FREE, "concurrent": 3},
                     retry={"attempts": 100}, deliver=[signed(order)])
    def acts(run: Run) -> str:
        return act(desk, run, "first", "second")


def storm(desk: Hit) -> None:
    """The house; receivers that are slow, refuse at first, or answer when nobody listens any more; work that is
    replaced before it ends, has children of its own, is done by others on request, acts where nobody sees it, or acts
    and does not say so."""
    house(desk)
    order = desk.order
    file, two = {"file": "{{name}}/{{run}}.txt"}, every("2s")
    desk.define("newest", script("sleep 1.5; acted; echo done", order), every("1s"), deliver=[file], limits=FREE,
                overlap="replace", idempotent=True, retry={"attempts": 100})
    family = "(sleep 0.7; acted) & setsid sh -c 'sleep 0.9' & sleep 1.1; acted; echo done"
    desk.define("family", script(family, order), two, deliver=[file], limits={**FREE, "concurrent": 2},
                overlap="parallel", idempotent=True, retry={"attempts": 100})
    desk.define("heir", script(heir(3), order), two, deliver=[file], limits=FREE, idempotent=True,
                retry={"attempts": 100})
    fails = '[ "$NIGHTPORTER_ATTEMPT" -gt 3 ] && echo done'
    desk.define("stubborn", script(fails, order), two, deliver=[file], limits=FREE, overlap="parallel",
                idempotent=True, retry=BACK_IN_NO_TIME)
    for name in ("slow", "moody", "late"):
        desk.define(name, {"echo": {"text": name}}, two if name == "late" else every("1s"),
                    deliver=[signed(order, f"/hook/{name}")], limits=FREE)
    http = {"method": "POST", "allow_hosts": ["127.0.0.1"], "body": "please"}
    desk.define("asks", {"http": {**http, "url": order["recorder"] + "/work"}}, every("1s"), deliver=[file],
                limits=FREE)
    desk.define("asks-again", {"http": {**http, "url": order["recorder"] + "/work/slow"}}, every("1s"), deliver=[file],
                limits=FREE, overlap="queue", idempotent=True, retry={"attempts": 100})
    child = {"python": {"call": "fire.deed:done", "path": [str(Path(__file__).parents[1])],
                        "args": {"starts": order["starts"]}}}
    desk.define("child", child, two, deliver=[file], limits=FREE)

    @desk.automation(two, name="regrets", limits=FREE, deliver=[file], overlap="parallel",
                     retry={"attempts": 3, "delays": ["50ms"], "on": ["exception"]})
    def regrets(run: Run) -> str:
        with run.effect("regretted", key="regretted"):
            post(order, "/effect", key=f"{run.id}:regretted", run=run.id, attempt=run.attempt)
            raise ValueError("it is done, and it does not say so")

    @desk.automation(every("1s"), name="bare", limits=FREE, deliver=[file])
    def bare(run: Run) -> str:
        post(order, "/effect", key=f"{run.id}:bare", run=run.id, attempt=run.attempt)
        return "did what nobody wrote down"


def crowd(desk: Hit) -> None:
    """Fifty clocks that strike together, and nothing that takes long."""
    deliver: dict[int, list[Any]] = {0: [signed(desk.order)], 1: [{"file": "{{name}}/{{run}}.txt"}]}
    for n in range(50):
        desk.define(f"clock-{n}", {"echo": {"text": str(n)}}, cron("* * * * * *"), overlap="parallel",
                    deliver=deliver.get(n, ["silent"]), limits=FREE)


def many(desk: Hit) -> None:
    """The house, and clocks beside it: two hundred triggers in all."""
    house(desk)
    for n in range(194):
        desk.define(f"clock-{n}", {"echo": {"text": str(n)}}, every("2s"), overlap="parallel", deliver=["silent"],
                    limits=FREE)


def errands(desk: Hit) -> None:
    """Work that takes long, of every kind that tells what may be repeated; started by hand only."""
    order = desk.order
    beating = 'while :; do echo "$NIGHTPORTER_RUN_ID $NIGHTPORTER_ATTEMPT" >> "$BEATS"; sleep 0.02; done'
    file = {"file": "{{name}}/{{run}}.txt"}
    desk.define("short", script("sleep 1; echo done", order), deliver=[signed(order)], limits=FREE)
    desk.define("unhurried", script("sleep 3.5; echo done", order), limits=FREE)
    desk.define("long", script(beating, order), deliver=[file], limits=FREE)
    desk.define("long-again", script(beating, order), deliver=[file], limits=FREE, idempotent=True,
                retry={"attempts": 5})
    desk.define("heir", script(heir(10), order), deliver=[file], limits=FREE, idempotent=True, retry={"attempts": 5})
    desk.define("one-by-one", script("sleep 60", order), limits={**FREE, "concurrent": 1})


def letters(desk: Hit) -> None:
    """Three acts one after the other, started by hand only."""

    @desk.automation(name="letters", limits=FREE, idempotent=True, retry={"attempts": 5})
    def write(run: Run) -> str:
        return act(desk, run, "note", "mail", "file")


def poisoned(desk: Hit) -> None:
    """Work that kills the process it runs in; started by hand only."""

    def kills() -> str:
        os.killpg(0, signal.SIGKILL)
        return "never said"

    desk.automation(name="poison", limits=FREE)(kills)
    desk.automation(name="poison-again", limits=FREE, idempotent=True)(kills)
    desk.define("meek", {"echo": {"text": "after you"}}, limits=FREE)


def watched(desk: Hit) -> None:
    """A folder in which something new lies twice a second, and a run that looks at it each second."""
    order = desk.order
    post_box = Path(order["starts"]).parent / "post"
    post_box.mkdir(exist_ok=True)
    desk.define("writes", script(f'touch "{post_box}/$NIGHTPORTER_RUN_ID"; acted; echo done', order),
                every("1s"), deliver=["silent"], limits=FREE, overlap="parallel")
    desk.define("reads", script("acted; echo done", order), cron("* * * * * *"), limits=FREE, overlap="queue",
                idempotent=True, retry={"attempts": 100}, deliver=[signed(order)],
                if_={"file": {"path": f"{post_box}/*", "first": "wake"}})
    counts = (
        "n=$((${NIGHTPORTER_STATE:-0} + 1)); [ $((n % 2)) = 0 ] && wake=true || wake=false; "
        r'printf "{\"wake\": %s, \"text\": \"%s\", \"state\": %s}" $wake $n $n'
    )
    desk.define("doubts", script("acted; echo done", order), every("1s"), limits=FREE, overlap="queue", idempotent=True,
                retry={"attempts": 100}, deliver=["silent"],
                if_={"script": {"command": counts}})


def empty(desk: Hit) -> None:
    """Whatever is in the store already."""


WORLDS: dict[str, World] = {
    "house": house, "storm": storm, "crowd": crowd, "many": many, "errands": errands, "letters": letters,
    "poisoned": poisoned, "watched": watched, "empty": empty,
}
