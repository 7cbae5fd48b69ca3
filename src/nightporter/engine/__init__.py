"""engine: the composition root. A Config goes in; everything wired comes out, and starts and stops in order.

Boot, before anything new is admitted: open and migrate the store; join as a worker; take back what dead workers
held; answer every slot up to now; load the definitions; let go what waited; then start the sources. An unclean stop
leaves one notice in the inbox that says what was released, lost and missed.

The engine lives on the event loop of the program that hosts it and owns neither loop nor signals.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import threading
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar
from uuid import uuid4

from nightporter import destinations as destination_kinds
from nightporter import logs
from nightporter import runners as runner_kinds
from nightporter.clock import Clock, Kick, SystemClock
from nightporter.config import Config
from nightporter.delivery import Courier, Destinations
from nightporter.dispatch import Definitions, Flight, Runners
from nightporter.engine.door import Door
from nightporter.engine.files import DefinitionFiles
from nightporter.engine.places import definitions_of, store_of
from nightporter.errors import NightporterError, StoreError
from nightporter.operations import upkeep
from nightporter.outside.guard import Guard
from nightporter.outside.http import Web
from nightporter.sources.clock import ClockSource
from nightporter.store import Store, Tx
from nightporter.store.durable import durable
from nightporter.store.locks import FileLock
from nightporter.sweep import Leases, Recovered, prune, take_from_dead, tidy
from nightporter.words import Answer, Firing, RunId, derived_id

T = TypeVar("T")
log = logs.get(__name__)

Role = Literal["desk", "worker", "command", "tick"]

POLL_SECONDS = 1.0
WATCH_SECONDS = 0.25
DELIVERY_DRAIN = 5.0


@dataclass
class Engine:
    """One process's share of the desk.

    `role`: a desk runs the sources when it leads and dispatches and delivers in any case; a worker only dispatches
    and delivers; a command executes the one run that `only` names; a tick answers what is due once, by `one_pass`.
    """

    config: Config
    clock: Clock = field(default_factory=SystemClock)
    role: Role = "desk"
    functions: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
    only: RunId | None = None
    watch_files: bool = True

    # -- start ------------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Boot, in the order of the module's docstring. Raises StoreError, BadInput; then nothing is left running."""
        self._loop = asyncio.get_running_loop()
        self._host = socket.gethostname()
        self._stop_listening: list[Callable[[], None]] = []
        self._tasks: list[asyncio.Task[None]] = []
        self._thread: threading.Thread | None = None
        self._leading = False
        self.store: Store = await asyncio.to_thread(store_of, self.config, self.clock)
        self._files = DefinitionFiles(self.store, self.config, self.clock)
        self._guard = Guard()
        self._web = Web()
        try:
            await self._boot()
        except BaseException:
            await self.stop(drain=False)
            raise

    async def _boot(self) -> None:
        self.config.outputs.mkdir(parents=True, exist_ok=True, mode=0o700)
        await asyncio.to_thread(self._guard.start)
        self.runners: Runners = runner_kinds.registry(
            guard=self._guard, web=self._web, now=self.clock.now, functions=self.functions, report=_report
        )
        self.destinations: Destinations = destination_kinds.registry(
            outputs=self.config.outputs, web=self._web, now=self.clock.now, report=_report
        )
        self._known = Definitions()
        self._leases = Leases(self.clock, host=self._host, lease=self.config.lease)
        self._kick = Kick()
        self._clock_source = ClockSource(self.store, self.clock, self._kick)
        await self._join()
        recovered = await asyncio.to_thread(self._recover)
        if self.role in ("desk", "tick"):
            await asyncio.to_thread(self._lead)
        await asyncio.to_thread(self._upkeep)
        if recovered.workers and self.role == "desk":
            await durable(self.store, lambda tx: self._restart_notice(tx, recovered))
        self._door = Door(self.store, self.clock)
        self._start_work()
        self._stop_listening.append(self.store.kicks.listen(self._rung))
        self._stop_listening.append(self.store.kicks.listen(self._rung_from_elsewhere, foreign=True))
        self._look()
        if self._leading and self.role == "desk":
            self._start_sources()
        self._tasks = [self._loop.create_task(self._poll()), self._loop.create_task(self._keep())]
        if self.watch_files and self.role == "desk":
            self._tasks.append(self._loop.create_task(self._watch()))
        log.info("desk.started", role=self.role, worker=self.worker, leading=self._leading, store=self.store.dialect)

    async def _join(self) -> None:
        self.worker = f"wrk_{uuid4().hex[:16]}"
        self._lock = FileLock(self.config.state / "locks" / f"{self.worker}.lock")
        self._lock.take()
        await durable(self.store, lambda tx: tx.join(
            self.worker, role=self.role, host=self._host, pid=os.getpid(), lock_path=str(self._lock.path),
            now=self.clock.now(),
        ))

    def _start_work(self) -> None:
        self.flight = Flight(
            self.store, self.clock, self.runners, worker=self.worker, slots=self.config.slots,
            scratch=self.config.state / "scratch", only=self.only,
        )
        self.courier = Courier(
            self.store, self.clock, self.destinations, worker=self.worker, slots=self.config.delivery_slots
        )

    def _look(self) -> None:
        self.flight.look()
        self.courier.look()

    def _lead(self) -> None:
        """Become the one whose sources run, if nobody is; answer what is due and load the definitions."""
        self._leading = self.store.lead()
        if not self._leading:
            return
        if moved := self._clock_source.rezone():
            log.warning("clock.zones_changed", slots=moved)
        while self._clock_source.tick():
            pass
        if self.watch_files:
            self._files.load()
        self.store.write(self._note_evaluated)

    def _start_sources(self) -> None:
        self._thread = threading.Thread(target=self._clock_source.run, name="nightporter-clock", daemon=True)
        self._thread.start()

    # -- stop -------------------------------------------------------------------------------------------------

    async def stop(self, *, drain: bool = True) -> None:
        """Stop in order: sources, then runs (which get `config.drain` to end), then deliveries, then the store."""
        for unlisten in self._stop_listening:
            unlisten()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._thread is not None:
            self._clock_source.close()
            await asyncio.to_thread(self._thread.join)
        if hasattr(self, "flight"):
            beating = self._loop.create_task(self._beat_on())
            await self.flight.drain(self.config.drain.total_seconds() if drain else 0)
            await self.courier.drain(DELIVERY_DRAIN if drain else 0)
            beating.cancel()
        if hasattr(self, "worker"):
            with contextlib.suppress(StoreError):  # an ill store learns of our end from the free lock
                await durable(self.store, lambda tx: tx.end_worker(self.worker, "stopped", now=self.clock.now()))
            self._lock.let_go(remove=True)
        await asyncio.to_thread(self._guard.close)
        await self._web.close()
        await asyncio.to_thread(self.store.close)
        log.info("desk.stopped")

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[Engine]:
        """Started on entry, stopped in order on exit."""
        await self.start()
        try:
            yield self
        finally:
            await self.stop()

    async def one_pass(self) -> None:
        """Answer what is due, run and deliver it, and return when nothing is left to do just now."""
        if self._leading:
            while await asyncio.to_thread(self._clock_source.tick):
                pass
        while True:
            self.flight.look()
            self.courier.look()
            await self.write(lambda _: None)  # the looks before it are done
            await asyncio.sleep(0)
            await self.flight.idle()
            await self.courier.idle()
            if self.only is None and await self.read(lambda tx: not tx.stopped() and tx.work_waiting(self.clock.now())):
                continue
            if not self.flight.in_the_air and not self.courier.in_the_air:
                return

    # -- what others ask ----------------------------------------------------------------------------------------

    async def fire(self, firing: Firing) -> Answer:
        """Admit one firing; firings that arrive together are admitted together. Durable when it returns."""
        return await self._door.fire(firing)

    async def write(self, work: Callable[[Tx], T]) -> T:
        """Run a write function; durable when it returns."""
        return await durable(self.store, work)

    async def read(self, look: Callable[[Tx], T]) -> T:
        """Run a reading function on one snapshot, off the loop."""
        return await asyncio.to_thread(self.store.read, look)

    @property
    def leading(self) -> bool:
        """Whether this process runs the sources."""
        return self._leading

    # -- loops --------------------------------------------------------------------------------------------------

    def _rung(self, topics: frozenset[str]) -> None:
        if "due" in topics:
            self._kick.ring()
        if "cancel" in topics:
            self._loop.call_soon_threadsafe(self._look_for_cancels)

    def _rung_from_elsewhere(self, topics: frozenset[str]) -> None:
        if "queued" in topics:
            self._loop.call_soon_threadsafe(self.flight.look)
        if "delivery" in topics:
            self._loop.call_soon_threadsafe(self.courier.look)

    def _look_for_cancels(self) -> None:
        self._loop.run_in_executor(None, _told, self.flight.cancel_asked)

    async def _poll(self) -> None:
        """Each second, look whether a kick was lost: what other processes wrote, and what has come due."""
        while True:
            await asyncio.sleep(POLL_SECONDS)
            try:
                changed, due, sending, lead = await asyncio.to_thread(self._whats_due)
            except StoreError as error:
                log.error("desk.store_failed", error=str(error))
                continue
            if changed or due:
                self.flight.look()
            if changed or sending:
                self.courier.look()
            if changed:
                self._kick.ring()
                self._look_for_cancels()
            if lead:
                await self._take_over()

    async def _take_over(self) -> None:
        log.warning("desk.leads_now", worker=self.worker)
        try:
            await asyncio.to_thread(self._lead)
        except NightporterError as error:  # tried again within a second: the lead is kept, nothing is started
            self._leading = False
            log.error("desk.take_over_failed", error=str(error))
        if self._leading:
            self._start_sources()

    def _whats_due(self) -> tuple[bool, bool, bool, bool]:
        now = self.clock.now()
        run, delivery = self.store.read(lambda tx: (tx.next_timed(), tx.next_try()))
        return (
            self.store.changed_elsewhere(), run is not None and run <= now, delivery is not None and delivery <= now,
            self.role == "desk" and not self._leading and self.store.lead(),
        )

    async def _watch(self) -> None:
        """Follow the definition files."""
        while True:
            await asyncio.sleep(WATCH_SECONDS)
            if not self._leading:
                continue
            try:
                await asyncio.to_thread(self._files.tick)
            except NightporterError as error:
                log.error("desk.files_failed", error=str(error))

    async def _keep(self) -> None:
        """Renew the lease, and now and then sweep."""
        beat, sweep = self.config.beat.total_seconds(), self.config.sweep.total_seconds()
        since = 0.0
        while True:
            await asyncio.sleep(min(beat, sweep))
            since += min(beat, sweep)
            try:
                if not await durable(self.store, self._beat):
                    await self._rejoin()
                if since >= sweep:
                    since = 0.0
                    await asyncio.to_thread(self._sweep)
            except StoreError as error:
                log.error("desk.store_failed", error=str(error))
            except Exception:  # whatever one row does to the sweep, it must not cost the worker its lease
                log.exception("desk.sweep_failed")

    async def _beat_on(self) -> None:
        """Renew the lease for as long as a drain takes, so that nobody takes the runs it waits for."""
        with contextlib.suppress(StoreError):  # an ill store: nobody else can read there that we stand still
            while await durable(self.store, self._beat):
                await asyncio.sleep(self.config.beat.total_seconds())

    def _beat(self, tx: Tx) -> bool:
        self._note_evaluated(tx)
        return tx.beat(self.worker)

    def _note_evaluated(self, tx: Tx) -> None:
        now = self.clock.now()
        if self._leading and self._clock_source.evaluated_at is not None:
            tx.put_setting("due_evaluated_at", str(self._clock_source.evaluated_at))
            if now > (tx.setting_instant("clock_high_water") or 0):
                tx.put_setting("clock_high_water", str(now))

    async def _rejoin(self) -> None:
        """Somebody declared this worker dead, after it stood still for too long: nothing it holds is its own."""
        log.error("desk.was_declared_dead", worker=self.worker)
        await self.flight.abort()
        await self.courier.drain(0)
        self._lock.let_go(remove=True)
        await self._join()
        self._start_work()
        self._look()

    def _sweep(self) -> None:
        # Its own lease first: a sweeper that cannot renew has no business declaring others dead.
        if not self.store.write(self._beat):
            return
        take_from_dead(
            self.store, self._leases, self.runners, self.destinations, self._known, me=self.worker, host=self._host,
            clock=self.clock,
        )
        self._upkeep()
        tidy(self.store, self.config.state)
        if self.role == "desk":
            prune(self.store, keep_runs=self.config.keep_runs, keep_ledger=self.config.keep_ledger,
                  now=self.clock.now())

    def _recover(self) -> Recovered:
        """What dead workers of this machine held; their locks are free, so nobody has to wait for a lease."""
        return take_from_dead(
            self.store, self._leases, self.runners, self.destinations, self._known, me=self.worker, host=self._host,
            clock=self.clock,
        )

    def _upkeep(self) -> None:
        upkeep(self.store, now=self.clock.now)

    def _restart_notice(self, tx: Tx, recovered: Recovered) -> None:
        now = self.clock.now()
        parts = [
            f"{recovered.requeued} run(s) were queued again", f"{recovered.review} wait for your review",
            f"{recovered.failed} failed", f"{recovered.deliveries} deliveries are tried again",
            f"{self._clock_source.not_run} slot(s) passed unrun",
        ]
        tx.write_inbox(
            [(derived_id("inb", now, self.worker, "restart"), "default", "", None, None, "restart",
              "The desk started again after it had stopped without warning", "; ".join(parts) + ".")],
            now=now,
        )


def _told(work: Callable[[], None]) -> None:
    try:
        work()
    except StoreError as error:
        log.error("desk.store_failed", error=str(error))


def _report(line: str) -> None:
    log.warning("desk.plugin_left_out", detail=line)


__all__ = ["Engine", "Role", "definitions_of", "store_of"]

