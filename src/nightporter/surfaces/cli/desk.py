"""The desk itself: init, up, worker, tick, stop."""

from __future__ import annotations

import asyncio
import logging
import shlex
import signal
import socket
import sys
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from nightporter import logs, operations
from nightporter.clock import Instant
from nightporter.config import Config
from nightporter.engine import Engine
from nightporter.engine.places import definitions_of
from nightporter.errors import BadInput, Conflict
from nightporter.ledger import Home, reads
from nightporter.ledger.home import home_findings
from nightporter.ledger.status import stop_of, worker_lines
from nightporter.outside.files import make_folder_durably, write_durably
from nightporter.store import Tx
from nightporter.surfaces.cli.out import Out
from nightporter.surfaces.cli.place import USUAL, Common, DryRun, Place, opened, person

EXAMPLE = """\
---
# An automation is one file. This one says hello every 20 seconds; `nightporter explain hello` says why.
# Change it while the desk runs, or delete it: the desk follows.
name: hello
description: Says hello, so that there is something to see.
when: every 20s
limits:
  per_hour: none
deliver:
  - file: hello.txt
---
Hello. The desk is awake.
"""
SWITCH_INTERVAL = 0.0005
"""Seconds; with the interpreter's own 5 ms a busy thread would make a due run late."""


def init(
    *, example: Annotated[bool, Parameter(help="Add an automation that fires within a minute.")] = False,
    quiet: Annotated[bool, Parameter(name=["--quiet", "-q"], help="Say nothing.")] = False,
    dry_run: DryRun = False, common: Common = USUAL,
) -> None:
    """Make the folders and the store. What is there already is left as it is."""
    config = common.settings()
    folder = definitions_of(config)
    wanted = [config.state, folder, config.outputs]
    made = [path for path in wanted if not path.exists()]
    file = folder / "hello.md"
    writes = example and not file.exists()
    if not dry_run:
        for path in wanted:
            _make(path)
        with opened(common, make=True):
            pass
        if writes:
            write_durably(file, EXAMPLE.encode())
    out = common.out()
    if out.as_json:
        out.json({
            "state": str(config.state), "definitions": str(folder), "outputs": str(config.outputs),
            "store": _shown_store(config), "timezone": config.timezone, "made": [str(path) for path in made],
            "example": str(file) if example else None, "dry_run": dry_run,
        })
        return
    if quiet:
        return
    out.facts([
        ("store", _shown_store(config)), ("definitions", str(folder)), ("outputs", str(config.outputs)),
        ("zone", config.timezone), ("example", str(file) if example else ""),
    ])
    home = "" if common.home is None else f" --home {shlex.quote(common.home)}"
    out.line("Nothing was made: a dry run." if dry_run else f"Next: nightporter up{home}")


def _make(path: Path) -> None:
    try:
        make_folder_durably(path)
    except OSError as error:
        raise BadInput(f"the folder {path} cannot be made", why=error.strerror or str(error),
                       next="choose another home (--home or NIGHTPORTER_HOME)") from error


def _shown_store(config: Config) -> str:
    """The store without a password."""
    scheme, mark, rest = config.store.partition("://")
    return f"{scheme}://{rest.rpartition('@')[2]}" if mark else config.store


def up(*, common: Common = USUAL) -> None:
    """Run the whole desk in this process: one line for each thing that happens. SIGINT and SIGTERM let runs end
    first; a second one does not wait."""
    _serve(common, "desk")


def worker(*, common: Common = USUAL) -> None:
    """Run and deliver what is queued, beside a desk: on another machine with a PostgreSQL store, or on this one."""
    _serve(common, "worker")


def _serve(common: Common, role: Literal["desk", "worker"]) -> None:
    config = common.settings()
    _refuse_network(config)
    logs.configure("json" if common.as_json else "text", sys.stdout)
    out = common.out()
    if not out.as_json:
        out.line(f"nightporter: {'the desk' if role == 'desk' else 'a worker'} on {_shown_store(config)}")
        if role == "desk":
            out.line(f"definitions in {definitions_of(config)}, zone {config.timezone}; Ctrl-C stops")
    sys.stdout.flush()
    sys.setswitchinterval(SWITCH_INTERVAL)
    asyncio.run(_until_told(Engine(config, role=role), out))


async def _until_told(engine: Engine, out: Out) -> None:
    told = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, told.set)
    await engine.start()
    try:
        if engine.role == "desk" and not engine.leading:
            leader, all_there = await engine.read(lambda tx: (tx.leader(), worker_lines(tx, socket.gethostname())))
            who = next((f"{w.pid} on {w.host}" for w in all_there if w.id == leader), "it has just left")
            _tell(out, f"standing by: another desk leads ({who}); this one runs and delivers beside it")
        await engine.outdated.or_told(told)
        waits = engine.flight.in_the_air + engine.courier.in_the_air
        _tell(out, f"stopping: {waits} run(s) and deliveries under way have {engine.config.drain.total_seconds():g} s; "
                   "Ctrl-C again does not wait" if waits else "stopping")
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)  # the second one ends the process; what it held is taken back later
        await engine.stop()


def _tell(out: Out, text: str) -> None:
    if not out.as_json:
        out.line(f"nightporter: {text}")
        sys.stdout.flush()


def _refuse_network(config: Config) -> None:
    if "://" in config.store:
        return
    for finding in home_findings(Home(config.state, store=Path(config.store))):
        if finding.code == "network_file_system":
            raise BadInput(finding.what, why=finding.why, next=finding.next)


def tick(*, common: Common = USUAL) -> None:
    """One pass: load the definition files, answer what is due, run and deliver what can be, and leave. For machines
    that have a cron already; it may run beside a desk. Call it every two minutes or more often: a slot that nobody
    answered for longer than that counts as missed; see `missed` in docs/definition.md."""
    config = common.settings()
    _refuse_network(config)
    logs.configure("json" if common.as_json else "text", sys.stderr, level=logging.WARNING)
    engine = Engine(config, role="tick")
    began = engine.clock.now()

    async def once() -> tuple[int, int, bool, bool]:
        async with engine.running():
            await engine.one_pass()
            ended, left = await engine.read(lambda tx: _since(tx, began))
            return ended, left, engine.leading, await engine.read(lambda tx: tx.stopped())

    ended, left, led, stopped = asyncio.run(once())
    out = common.out()
    if out.as_json:
        out.json({"answered_what_was_due": led, "runs_ended": ended, "runs_waiting": left})
        return
    if stopped:
        out.note("the desk is stopped: nothing starts or is delivered until nightporter stop --lift")
    if not led:
        out.note("a desk is running and answers what is due; this pass only ran and delivered")
    out.line(f"{ended} run(s) ended, {left} wait(s)")


def _since(tx: Tx, began: Instant) -> tuple[int, int]:
    """`(runs ended since, runs that wait)`."""
    recent = reads.runs(tx, limit=500).items
    waiting = sum(row[1] for row in tx.read_queue())
    return sum(run.ended_at is not None and run.ended_at >= began for run in recent), waiting


def stop(
    *, reason: Annotated[str, Parameter(help="Why, for those who ask.")] = "",
    lift: Annotated[bool, Parameter(help="End the stop.")] = False, dry_run: DryRun = False,
    common: Common = USUAL,
) -> None:
    """Stop everything at once: nothing starts, nothing is delivered, what runs is ended. It survives restarts, and
    only --lift ends it. (Ctrl-C or SIGTERM end the process of a desk; this stops its work.)"""
    if lift and reason:
        raise BadInput("--reason belongs to a stop", next="leave one of --lift and --reason out")
    with opened(common) as place:
        by = person()
        if lift:
            place.change(operations.lift, dry_run=dry_run)
            _said(place, False, 0, dry_run)
            return
        before = place.read(stop_of)
        if before is not None:
            raise Conflict("the desk is stopped already", why=f"{before.by} stopped it. {before.reason}".rstrip(". "),
                           next="nightporter stop --lift ends it")
        ended = place.change(
            lambda tx: operations.stop(tx, by=by, reason=reason, now=place.clock.now()), dry_run=dry_run
        )
        _said(place, True, ended, dry_run)


def _said(place: Place, stopped: bool, running: int, dry_run: bool) -> None:
    if place.out.as_json:
        place.out.json({"stopped": stopped, "runs_asked_to_end": running, "dry_run": dry_run})
    elif stopped:
        place.out.line(f"{'Would stop' if dry_run else 'Stopped'}: {running} running run(s) asked to end. "
                       "nightporter stop --lift ends it.")
    else:
        place.out.line("Would be lifted." if dry_run else "Lifted: the desk works again.")
