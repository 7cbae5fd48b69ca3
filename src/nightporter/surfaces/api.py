"""The Python API: the desk inside a program of one's own, which keeps its event loop and its signals.

    porter = Porter(home="~/night")

    @porter.automation(cron("0 9 * * mon-fri", timezone="Europe/Berlin"), deliver=["announce"])
    def briefing(payload=None):
        return "Good morning"

    porter.serve()                      # the whole desk, until it is told to stop

or, in a program that has a loop already:

    async with porter.running():
        answer = await porter.fire("briefing", payload={"n": 1}, external_id="order-17")

The words are those of definition files: `timezone`, `overlap`, `limits`, `retry`, `deliver` ...
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import itertools
import json
import logging
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any, TypedDict, TypeVar, Unpack
from uuid import uuid4

from nightporter import logs, operations
from nightporter.clock import Clock, SystemClock
from nightporter.config import Config
from nightporter.definitions import Checks, read
from nightporter.engine import Engine
from nightporter.errors import BadDefinition, BadInput, Conflict, NotFound
from nightporter.rules.durations import format_duration
from nightporter.rules.legible import legible
from nightporter.runners.context import Run
from nightporter.store import Tx
from nightporter.surfaces.settings import checked
from nightporter.words import Answer, Definition, Firing, Reason, Target, TriggerId
from nightporter.words.automation import ScheduleKind

__all__ = ["Porter", "Run", "When", "at", "cron", "every", "rrule"]

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class When:
    """A clock trigger as code writes it: made by `cron`, `every`, `rrule` and `at`."""

    kind: ScheduleKind
    expression: str
    options: Mapping[str, Any] = field(default_factory=dict)
    """What a definition file says beside it, by the same keys; None is not said."""


class Options(TypedDict, total=False):
    """What may be said of one schedule: the keys that a definition file has for it, with the same words."""

    timezone: str | None
    name: str | None
    enabled: bool
    overlap: str | None
    missed: str | Mapping[str, Any] | None
    if_: Mapping[str, Any] | None
    """`if`, which Python keeps for itself."""
    anchor: str | None
    start: str | None
    end: str | None
    season: Any
    exclude: Any
    quiet_hours: Any
    threshold: Any
    stagger: Any
    exact: bool


def cron(expression: str, **options: Unpack[Options]) -> When:
    """`cron("0 9 * * mon-fri", timezone="Europe/Berlin", missed="run_once")`."""
    return When("cron", expression, dict(options))


def every(interval: str, **options: Unpack[Options]) -> When:
    """`every("15m")`: on a grid counted from when it was first defined, or from an `anchor`."""
    return When("every", interval, dict(options))


def rrule(rule: str, **options: Unpack[Options]) -> When:
    """`rrule("FREQ=WEEKLY;BYDAY=MO", anchor="2026-11-02T09:00")`."""
    return When("rrule", rule, dict(options))


def at(moment: str, **options: Unpack[Options]) -> When:
    """`at("2026-11-03T09:00")`: once."""
    return When("at", moment, dict(options))


class Porter:
    """A desk. `home` folds state, outputs and definition files into one folder; `store` is a path or a
    postgresql:// address. Without either, both are where the command line has them."""

    def __init__(
        self, *, home: str | os.PathLike[str] | None = None, store: str | None = None, clock: Clock | None = None,
        **settings: Any,
    ) -> None:
        """`settings` are fields of `config.Config`: `slots`, `drain`, ... Raises BadInput for an unknown one, and for a
        value that cannot be used."""
        config = Config.from_environment(
            os.environ, home=None if home is None else os.fspath(home), store=store
        )
        if unknown := settings.keys() - set(Config.__slots__):
            raise BadInput(f"no setting is called {min(unknown)!r}", next=f"there are: {', '.join(Config.__slots__)}")
        self.config = checked(replace(config, **settings), os.environ)
        self.clock = clock or SystemClock()
        self.functions: dict[str, Callable[..., Any]] = {}
        self._definitions: list[Definition] = []
        self._triggers: dict[tuple[str, str], TriggerId] = {}
        self._engine: Engine | None = None
        # The file that makes the desk is the program: what was started may be a server that runs many of them.
        made_in = sys._getframe(1).f_code.co_filename
        self._program = str(Path(sys.argv[0] if made_in.startswith("<") else made_in).absolute())
        # A name for each firing that has none: one draw a process, because a draw each cost a third of the way in.
        self._process, self._drawn = uuid4().hex, itertools.count(1)

    # -- defining -----------------------------------------------------------------------------------------------

    def automation(self, *triggers: When, name: str | None = None, **policy: Any) -> Callable[[F], F]:
        """Make a function an automation, started by these triggers and by `fire`.

        The function may take `payload`, and `run` for a Run with its effects; sync or async; it runs in this
        process. `policy` are the keys of a definition file. Raises BadDefinition, NotYet.
        """

        def define(function: F) -> F:
            chosen = name or function.__name__.replace("_", "-")
            description = (inspect.getdoc(function) or "").partition("\n")[0]
            self._define(chosen, Target("function", {"name": chosen}), triggers, {"description": description, **policy})
            self.functions[chosen] = function
            return function

        return define

    def define(self, name: str, target: Mapping[str, Any], *triggers: When, **policy: Any) -> None:
        """An automation whose target is one of the kinds of definition files: `{"script": ...}`, `{"echo": ...}`."""
        self._define(name, None, triggers, {"target": target, **policy})

    def _define(self, name: str, target: Target | None, triggers: tuple[When, ...], policy: dict[str, Any]) -> None:
        if any(d.name == name for d in self._definitions):
            raise Conflict(f"two automations are called {name}", next="give one of them a `name=`")
        entries = {"name": name, **({"target": {"noop": {}}} if target else {}), **_said(policy)}
        if triggers:
            entries["triggers"] = [*(_written(when, n) for n, when in enumerate(triggers)),
                                   *policy.get("triggers", ())]
        # JSON is YAML: what code says passes through the one grammar, with its errors.
        try:
            definition = read(
                json.dumps(entries, default=_word), format="yaml", default_timezone=self.config.timezone,
                now=self.clock.now(), checks=Checks.shipped(),
            )
        except BadDefinition as error:
            error.path, error.line, error.column = name, 0, 0  # of JSON that nobody wrote
            raise
        self._definitions.append(definition if target is None else replace(definition, target=target))

    # -- running ------------------------------------------------------------------------------------------------

    @contextlib.asynccontextmanager
    async def running(self, *, watch_files: bool = False) -> AsyncIterator[Porter]:
        """The desk, inside the loop of the program that has one. Definition files are left alone unless asked for."""
        engine = Engine(self.config, self.clock, functions=self.functions, watch_files=watch_files)
        async with engine.running():
            self._engine = engine
            self._triggers.clear()  # of an earlier time: what had a name then may be another by now
            try:
                await engine.write(self._put_definitions)
                yield self
            finally:
                self._engine = None

    def serve(self) -> None:
        """The whole desk, definition files included, until SIGINT or SIGTERM; then it drains. What happens is said on
        standard error, unless the program has set up logging. Raises StoreNewer when a newer program has brought the
        store forward meanwhile."""
        if not logging.getLogger("nightporter").hasHandlers():
            logs.configure("text", sys.stderr)
        sys.setswitchinterval(0.0005)
        asyncio.run(self._serve())

    async def _serve(self) -> None:
        ended = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, ended.set)
        async with self.running(watch_files=True):
            await self.engine.outdated.or_told(ended)

    def _put_definitions(self, tx: Tx) -> None:
        operations.follow_program(tx, self._definitions, path=self._program, now=self.engine.clock.now())

    @property
    def engine(self) -> Engine:
        """The engine inside, while it runs. Raises Conflict otherwise."""
        if self._engine is None:
            raise Conflict("the desk is not running", next="use `async with porter.running():`")
        return self._engine

    # -- asking -------------------------------------------------------------------------------------------------

    async def fire(
        self, name: str, *, payload: Any = None, text: str = "", external_id: str | None = None, trigger: str = "call"
    ) -> Answer:
        """One arrival for an automation, gated like any other: its run, or why there is none. Durable when it returns.

        `external_id` is the sender's own name for it: the same one again is the same firing. Raises NotFound,
        BadInput.
        """
        drawn = f"{self._process}{next(self._drawn):x}"
        if external_id is not None and legible(external_id) != external_id:
            raise BadInput(f"{external_id!r} cannot be kept", why="a store takes no NUL and no half a character",
                           next="name it in letters that any encoding has")
        answer = await self.engine.fire(Firing(
            await self._trigger_id(name, trigger), external_id or drawn, text=legible(text), drawn=external_id is None,
            payload=None if payload is None else operations.as_payload(payload), sender="code",
        ))
        if answer.reason is Reason.DELETED:
            self._triggers.pop((name, trigger), None)  # another may have that name from now on
        return answer

    async def run(self, name: str, *, payload: Any = None) -> Answer:
        """Run now, as a person would: passes pause, overlap, cooldown and ceilings, and uses none of them."""
        return await self.fire(name, payload=payload, trigger="manual")

    async def _trigger_id(self, name: str, trigger: str) -> TriggerId:
        known = self._triggers.get((name, trigger))
        if known is None:
            found = await self.engine.read(lambda tx: tx.automation_named(legible(name)))
            if len(found) != 1:
                raise NotFound(f"{len(found) or 'no'} automations are called {legible(name)}",
                               next="`nightporter list` shows what there is")
            known = self._triggers[name, trigger] = TriggerId(f"{found[0]}/{trigger}")
        return known


def _written(when: When, n: int) -> dict[str, Any]:
    """As an entry of a file's `triggers`; several without a name are numbered."""
    said = {key: value for key, value in _said(when.options).items() if value is not None}
    return {when.kind: when.expression, "name": "clock" if n == 0 else f"clock-{n + 1}", **said}


def _said(options: Mapping[str, Any]) -> dict[str, Any]:
    """By the keys of files: `if_` is `if`."""
    return {key.rstrip("_"): value for key, value in options.items()}


def _word(value: object) -> object:
    if isinstance(value, timedelta):
        return format_duration(value)
    if isinstance(value, (set, frozenset, tuple)):
        return sorted(value) if isinstance(value, (set, frozenset)) else list(value)
    raise BadInput(f"a definition cannot hold {value!r}", why="it takes texts, numbers, flags, lists and maps")
