"""Looking: a run's free first step. Its look is asked after the claim and before the runner, and acts on nothing.

What it saw is written down before the runner is called. What it wants to keep is written with the end of a run that
ended well, so that one that failed sees the same again.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from pathlib import Path

from nightporter import logs
from nightporter.air import Key
from nightporter.clock import Clock, Instant
from nightporter.dispatch.at_hand import Runners
from nightporter.dispatch.claimed import Claimed, marks_its_start_here, started_key
from nightporter.dispatch.desk import NotWrittenDown, WorkerDesk
from nightporter.errors import LostClaim, StoreError, StoreRefused
from nightporter.rules.looks import TIMEOUT, bounded, failed
from nightporter.states import RunState
from nightporter.store import Store, Tx
from nightporter.words import ErrorClass, Kept, Look, Looker, Seen, Sight, Work

log = logs.get(__name__)

Lookers = Mapping[str, Looker]
GRACE = timedelta(seconds=5)
"""Beyond its own time, for a look that ends what it started."""


@dataclass(frozen=True, slots=True)
class Glance:
    """What the look of an attempt saw, and what was kept of it by then."""

    look: Look
    seen: Seen
    before: Kept


class Looking:
    """Asks the looks of one worker's runs."""

    def __init__(
        self, store: Store, clock: Clock, lookers: Lookers, runners: Runners, desk: WorkerDesk, *, scratch: Path
    ) -> None:
        self._store = store
        self._clock = clock
        self._lookers = lookers
        self._runners = runners
        self._desk = desk
        self._scratch = scratch
        self._glances: dict[Key, Glance] = {}

    async def ask(self, claimed: Claimed, look: Look) -> Seen:
        """What the look says; where that is something to do, it is written down, with the start of the attempt.

        Raises LostClaim; NotWrittenDown where the store is ill, and nothing was executed.
        """
        work = claimed.work
        try:
            kept, passed_over = await asyncio.to_thread(
                self._store.read, lambda tx: tx.look_facts(work.run_id, work.automation_id, look.key)
            )
        except StoreError as error:
            if isinstance(error, StoreRefused):
                raise
            raise NotWrittenDown(str(error)) from error
        seen = Seen(Sight.SKIPPED) if passed_over else bounded(await self._answer(work, look, kept))
        if not passed_over:
            self._glances[claimed.key] = Glance(look, seen, kept)
        if seen.sight in (Sight.SOMETHING, Sight.SKIPPED):
            await self._desk.written(partial(self._go_on, claimed, look, seen))
        return seen

    async def _answer(self, work: Work, look: Look, kept: Kept) -> Seen:
        looker = self._lookers.get(look.kind)
        if looker is None:
            return failed(ErrorClass.CONFIGURATION, f"no look is called {look.kind!r} here")
        folder = self._scratch / f"{work.run_id}-{work.token}-look" if looker.launches else None
        try:
            if folder is not None:
                await asyncio.to_thread(partial(folder.mkdir, parents=True, exist_ok=True, mode=0o700))
        except OSError as error:
            return failed(ErrorClass.RESOURCE, f"its folder could not be made: {error}")
        try:
            async with asyncio.timeout((TIMEOUT + GRACE).total_seconds()):
                return await looker.look(
                    look.config, replace(work, scratch=folder), kept.state, partial(self._desk.look_started, work)
                )
        except (NotWrittenDown, LostClaim):
            raise
        except TimeoutError:
            return failed(ErrorClass.TIMEOUT, f"it took longer than {TIMEOUT.total_seconds():g} s")
        except Exception as error:
            log.error("dispatch.look_raised", run=work.run_id, exc_info=error)
            return failed(ErrorClass.EXCEPTION, f"{type(error).__name__}: {error}")
        finally:
            if folder is not None:
                await asyncio.shield(asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True))

    def _go_on(self, claimed: Claimed, look: Look, seen: Seen, tx: Tx) -> None:
        work = claimed.work
        attempt, began_at = tx.fence(work.run_id, work.token)
        if seen.sight is Sight.SOMETHING:
            tx.write_looks([(work.run_id, look.kind, seen.sight, seen.text)])
        runner = self._runners.get(work.kind)
        if runner is not None and marks_its_start_here(runner):
            tx.intend([(work.run_id, started_key(work.token), "started", attempt, work.token)],
                      now=max(began_at, self._clock.now()))

    def took(self, key: Key) -> Glance | None:
        """What the look of an attempt saw, once."""
        return self._glances.pop(key, None)


def keep(tx: Tx, ended: Sequence[tuple[Work, Glance, RunState]], *, now: Instant) -> None:
    """Write what looks saw, and what they keep of those whose runs have ended well."""
    tx.write_looks([
        (work.run_id, glance.look.kind, glance.seen.sight, glance.seen.error or glance.seen.text)
        for work, glance, _ in ended
    ])
    tx.keep_looks([
        (work.automation_id, glance.look.key, glance.seen.state, glance.before.version, work.run_id)
        for work, glance, state in ended
        if state in (RunState.SUCCEEDED, RunState.SKIPPED) and glance.seen.state is not None
    ], now=now)
