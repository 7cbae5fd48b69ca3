"""engine: the composition root. A Config goes in; everything wired comes out, and starts and stops in order.

Boot, before anything new is admitted: open and migrate the store; join as a worker; take back what dead workers
held; answer every slot up to now; load the definitions; let go what waited; then start the sources. An unclean stop
leaves one notice in the inbox that says what was released, lost and missed.

The engine lives on the event loop of the program that hosts it and owns neither loop nor signals.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

from nightporter import destinations as destination_kinds
from nightporter import incidents, logs
from nightporter import looks as look_kinds
from nightporter import runners as runner_kinds
from nightporter.clock import Clock, Kick, SystemClock, micros
from nightporter.config import Config
from nightporter.delivery import Courier, Destinations
from nightporter.destinations import own
from nightporter.dispatch import Flight, Runners
from nightporter.engine.door import Door
from nightporter.engine.files import DefinitionFiles
from nightporter.engine.heartbeat import DailyWord
from nightporter.engine.loops import aside, every, told, within
from nightporter.engine.membership import Membership
from nightporter.engine.outdated import Outdated, look_around
from nightporter.engine.places import definitions_of
from nightporter.engine.sources import Sources
from nightporter.engine.sweeper import Sweeper
from nightporter.errors import StoreNewer, StoreUnwritable
from nightporter.outside.files import make_folder_durably
from nightporter.outside.guard import Guard
from nightporter.outside.http import Web
from nightporter.store import Store, Tx, store_of
from nightporter.store.durable import durable
from nightporter.sweep import Leases, Recovered
from nightporter.words import Answer, Firing, RunId

T = TypeVar("T")
log = logs.get(__name__)

Role = Literal["desk", "worker", "command", "tick"]

POLL_SECONDS = 1.0
WATCH_SECONDS = 0.25
CLOCK_SECONDS = 1.0
DELIVERY_DRAIN = 5.0
"""Seconds that deliveries get to end when the desk stops, after its runs have."""
GRACE = 5.0
"""Seconds for ending what a drain cut short, and for writing how it ended."""
LAST_WORDS = 1.0
"""Seconds for each of the small things at the end of a stop."""


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
        self._stop_listening: list[Callable[[], None]] = []
        self._tasks: list[asyncio.Task[None]] = []
        self._asides: set[asyncio.Task[None]] = set()
        self._writing_gaps: asyncio.Task[None] | None = None
        self._changed = False
        """Somebody has committed since the loops were last told to look."""
        self._stopped = False
        self.outdated = Outdated()
        self.store: Store = await aside(lambda: store_of(self.config, self.clock))
        try:
            self.clock = await aside(lambda: self.store.clock(self.clock))
        except BaseException:
            await aside(self.store.close)
            raise
        self._files = DefinitionFiles(self.store, self.config, self.clock)
        self._kick = Kick()
        self._sources = Sources(
            self.store, self.clock, self._kick, me=lambda: self.worker, mark=self.config.state / "kept.json"
        )
        host = socket.gethostname()
        self._leases = Leases(self.clock, host=host, lease=self.config.lease)
        self._membership = Membership(
            self.config, self.store, self.clock, self._leases, role=self.role, host=host, note=self._sources.note
        )
        self._guard = Guard()
        self._web = Web()
        try:
            if self.store.read_only is not None:
                raise self.store.read_only
            await self._boot()
        except BaseException as error:
            await self.stop(drain=False)
            if isinstance(error, OSError) and error.filename:
                raise StoreUnwritable(
                    f"{error.filename} cannot be used", why=error.strerror or str(error),
                    next="choose a home that this user may write (NIGHTPORTER_HOME or --home)",
                ) from error
            raise

    async def _boot(self) -> None:
        make_folder_durably(self.config.outputs)
        await aside(self._guard.start)
        self.runners: Runners = runner_kinds.registry(
            guard=self._guard, web=self._web, now=self.clock.now, functions=self.functions, report=_report
        )
        self.destinations: Destinations = destination_kinds.registry(
            outputs=self.config.outputs, web=self._web, now=self.clock.now, report=_report
        )
        self._word = DailyWord(
            self.config, self.store, self.clock, self.destinations, self._web, host=socket.gethostname()
        )
        self.lookers = look_kinds.registry(guard=self._guard, web=self._web, now=self.clock.now)
        self._sweeper = Sweeper(
            self.config, self.store, self.clock, self.runners, self.destinations, self._leases
        )
        await self._membership.join()
        recovered = await aside(self._recover)
        if self.role in ("desk", "tick"):
            push = micros(self.config.boot_push) if self.role == "desk" else 0
            await aside(lambda: self._lead(push))
            await durable(self.store, lambda tx: incidents.route_by_default(tx, own.alert_routes(self.config)))
        await aside(self._sweeper.upkeep)
        if recovered.workers and self.role == "desk":
            await durable(self.store, lambda tx: self._sweeper.restart_notice(
                tx, self.worker, recovered, self._sources.not_run))
        self._door = Door(self.store, self.clock)
        self._start_work()
        self._stop_listening.append(self.store.kicks.listen(self._rung))
        self._stop_listening.append(self.store.kicks.listen(self._rung_from_elsewhere, foreign=True))
        self._look()
        if self.leading and self.role == "desk":
            self._sources.start()
        loops: list[tuple[float, Callable[[], Awaitable[None]], str]] = [
            (POLL_SECONDS, self._poll, "poll"),
            (self.config.beat.total_seconds(), self._renew, "beat"),
            (self.config.sweep.total_seconds(), lambda: aside(self._sweep), "sweep"),
        ]
        if self.role == "desk":
            loops.append((self.config.sweep.total_seconds(), self._prune, "prune"))
            loops.append((self.config.sweep.total_seconds(), self._say, "heartbeat"))
            loops.append((CLOCK_SECONDS, self._watch_clock, "clock"))
            if self.watch_files:
                loops.append((WATCH_SECONDS, self._watch, "files"))
        self._tasks = [self._loop.create_task(every(*loop)) for loop in loops]
        log.info("desk.started", role=self.role, worker=self.worker, leading=self.leading, store=self.store.dialect)

    def _start_work(self) -> None:
        self.flight = Flight(
            self.store, self.clock, self.runners, worker=self.worker, slots=self.config.slots,
            scratch=self.config.state / "scratch", only=self.only, lookers=self.lookers,
        )
        self.courier = Courier(
            self.store, self.clock, self.destinations, worker=self.worker, slots=self.config.delivery_slots
        )

    def _look(self) -> None:
        self.flight.look()
        self.courier.look()

    def _lead(self, push: int = 0) -> None:
        self._sources.take_over(self._files.load if self.watch_files else lambda: None, push=push)

    # -- stop -------------------------------------------------------------------------------------------------

    async def stop(self, *, drain: bool = True) -> None:
        """Stop in order: sources, whose lead is handed over at once, then runs (which get `config.drain` to end), then
        deliveries, then the store.

        It is done `config.drain` and a quarter of a minute later at the latest. What a store that is ill did not take
        by then is left to the next boot, which finds this worker's lock free. Once is enough.
        """
        if self._stopped:
            return
        self._stopped = True
        for unlisten in self._stop_listening:
            unlisten()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await aside(lambda: self._sources.close(LAST_WORDS))
        if self.worker:
            await within(LAST_WORDS, self._hand_over(), "hand over the lead")
        if hasattr(self, "flight"):
            beating = self._loop.create_task(self._membership.beat_on())
            await self.flight.drain(self.config.drain.total_seconds() if drain else 0, grace=GRACE)
            await self.courier.drain(DELIVERY_DRAIN if drain else 0, grace=LAST_WORDS)
            beating.cancel()
        await self._membership.leave(LAST_WORDS)
        await aside(self._guard.close)
        await self._web.close()
        await within(LAST_WORDS, aside(self.store.close), "close the store")
        log.info("desk.stopped")

    async def _hand_over(self) -> None:
        def write(tx: Tx) -> None:
            tx.leave_lead(self.worker)
            tx.drains(self.worker, now=self.clock.now())

        await durable(self.store, write)

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
        if self.leading:
            await aside(self._sources.answer)
            await self._say()
        while True:
            self.flight.look()
            self.courier.look()
            await self.write(lambda _: None)  # the looks before it are done
            await asyncio.sleep(0)
            await self.flight.idle()
            await self.courier.idle()
            if self.only is None and await self.read(lambda tx: not tx.stopped() and self.flight.work_waiting(tx)):
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
    def worker(self) -> str:
        """The name under which this process has joined; another one after it was declared dead."""
        return self._membership.worker

    @property
    def leading(self) -> bool:
        """Whether this process runs the sources."""
        return self._sources.leading

    # -- kicks and loops ----------------------------------------------------------------------------------------

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
        task = self._loop.create_task(told(lambda: aside(self.flight.cancel_asked), "cancel"))
        self._asides.add(task)
        task.add_done_callback(self._asides.discard)

    async def _poll(self) -> None:
        """Each second, in case a kick was lost: what others wrote, what has come due, who died and who leads."""
        self._membership.say_how_the_store_is()
        try:
            changed, due, sending, leader = await aside(self._whats_due)
        except StoreNewer as error:
            await self._let_go(error)
            return
        await self._watch_clock()
        if self._writing_gaps is not None:  # where the clock was set, what waits is moved before it is looked for
            await asyncio.wait({self._writing_gaps}, timeout=1)
        if changed or due or self.flight.failed_to_look:
            self.flight.look()
        if changed or sending or self.courier.failed_to_look:
            self.courier.look()
        if changed:
            self._kick.ring()
        self._changed = False
        if self.leading and leader != self.worker:
            await aside(lambda: self._sources.step_down(LAST_WORDS))
        elif self.leading:
            self._sources.look()
        elif self.role == "desk" and leader in (None, self.worker):
            await aside(self._lead)
            if self.leading:
                log.warning("desk.leads_now", worker=self.worker)
                self._sources.start()

    def _whats_due(self) -> tuple[bool, bool, bool, str | None]:
        self.store.set_clock()
        now = self.clock.now()
        self._changed = self.store.changed() or self._changed
        if self._changed:
            self.flight.cancel_asked()
        run, delivery, leader, workers = self.store.read(look_around)
        self._sweeper.heed(leading=self.leading)
        # Every second and not with each sweep: what a dead worker held, and its lead, wait for nothing else.
        if self._sweeper.somebody_died(self.worker, workers) and self._membership.beat():
            self._recover()
            leader = self.store.read(lambda tx: tx.leader())
        return self._changed, run is not None and run <= now, delivery is not None and delivery <= now, leader

    async def _let_go(self, why: StoreNewer) -> None:
        """A newer program has brought the store forward: this one was taken for dead, and holds nothing any more."""
        log.error("desk.store_is_newer", worker=self.worker, error=str(why))
        await aside(lambda: self._sources.step_down(LAST_WORDS))
        await self.flight.drain(0, grace=LAST_WORDS)
        await self.courier.drain(0, grace=LAST_WORDS)
        self.outdated.say(why)

    async def _watch(self) -> None:
        """Follow the definition files."""
        if self.leading:
            await aside(self._files.tick)

    async def _watch_clock(self) -> None:
        """Write down that the machine slept, or that its clock was set. The writing keeps no look waiting: a store that
        is ill for minutes is no sleep."""
        if self._sources.watch() and (self._writing_gaps is None or self._writing_gaps.done()):
            self._writing_gaps = self._loop.create_task(told(lambda: aside(self._sources.write_down), "gaps"))

    async def _renew(self) -> None:
        if not await aside(self._membership.beat):
            await self._rejoin()

    async def _rejoin(self) -> None:
        """Somebody declared this worker dead, after it stood still for too long: nothing it holds is its own."""
        log.error("desk.was_declared_dead", worker=self.worker)
        await aside(lambda: self._sources.step_down(LAST_WORDS))
        await self.flight.drain(0, grace=LAST_WORDS)
        await self.courier.drain(0, grace=LAST_WORDS)
        await self._membership.join()
        self._start_work()
        self._look()

    def _sweep(self) -> None:
        if self._membership.beat():
            self._sweeper.sweep(self.worker, self.flight, self.courier)

    async def _prune(self) -> None:
        """Beside the sweep: there may be much to delete, and who died is not to wait for it. One desk is enough for it:
        what two look for at once they find twice."""
        while self.leading and await aside(self._sweeper.prune):
            pass

    async def _say(self) -> None:
        """The daily word, and the call to the outside: whoever leads speaks for all."""
        if self.leading:
            await self._word.beat()

    def _recover(self) -> Recovered:
        return self._sweeper.recover(self.worker)


def _report(line: str) -> None:
    log.warning("desk.plugin_left_out", detail=line)


__all__ = ["Engine", "Role", "definitions_of"]

