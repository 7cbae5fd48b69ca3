"""The daily heartbeat: the one thing that the desk always says, well or not, so that its absence is an alarm.

Each day has one row, and whoever writes it says it: it goes into the inbox in the same transaction, and from there to
the destinations of the settings, again and again until each has it. One that is late is said late, and says so. An
address outside, where one is set, is called as long as what is due is looked at.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from datetime import timedelta
from functools import partial

from nightporter import logs
from nightporter.clock import Clock, Instant, micros
from nightporter.config import Config
from nightporter.destinations.own import hosts, when, where
from nightporter.engine.loops import aside
from nightporter.errors import NightporterError
from nightporter.ledger.heartbeat import heartbeat
from nightporter.ledger.status import RECENTLY, evaluated_at
from nightporter.outside.http import Web
from nightporter.rules.retry import DELIVERY_TRIES, delivery_wait, draw
from nightporter.rules.schedule import count_between, previous_due
from nightporter.store import Store, Tx
from nightporter.words import DeliveryId, DestinationPort, Parcel, Receipt, RunId, Sent, derived_id
from nightporter.words.kept import read_back

log = logs.get(__name__)

SINCE = "heartbeat_since"
"""The setting that says since when there is something to say: when the first desk looked."""
TRY = timedelta(seconds=30)
_CALL = timedelta(seconds=10)


class DailyWord:
    """Says it when its time has come, carries it where it goes, and calls the address outside."""

    def __init__(
        self, config: Config, store: Store, clock: Clock, destinations: Mapping[str, DestinationPort], web: Web, *,
        host: str,
    ) -> None:
        self._config = config
        self._store = store
        self._clock = clock
        self._destinations = destinations
        self._web = web
        self._host = host
        self._slots = when(config)
        self._where = where(config)
        self._ill = logs.Seldom(log)

    async def beat(self) -> None:
        """To be called once a minute by who leads. Raises StoreError."""
        await self._call()  # first: a destination that does not answer must not make the desk look dead
        await aside(self.say)
        await self._carry()

    def say(self) -> bool:
        """Say what is due; whether it was this call that said something. Blocks."""
        if self._slots is None:
            return False
        schedule, now = self._slots, self._clock.now()
        slot = previous_due(schedule, now)
        last, began = self._store.read(_said_last)
        if began is None:
            self._store.write(lambda tx: tx.put_setting(SINCE, str(now)))
            return False
        if slot is None or slot <= max(last[0] if last else 0, began):
            return False
        since = Instant(last[1] if last else began)
        missed, _ = count_between(schedule, Instant(max(last[0] if last else 0, began)), Instant(slot - 1))
        word = self._store.read(lambda tx: heartbeat(
            tx, slot, since, now, timezone=self._config.timezone, host=self._host, days_missed=missed))
        body = json.dumps(word.body, ensure_ascii=False)

        def write(tx: Tx) -> bool:
            if not tx.say_heartbeat(slot, title=word.title, body=body, destinations=list(self._where), now=now):
                return False
            tx.write_inbox([(derived_id("inb", now, "heartbeat", str(slot)), "default", "", None, None, "heartbeat",
                             word.title, word.text)], now=now)
            tx.prune_heartbeats(before=Instant(now - micros(self._config.keep_ledger)))
            return True

        said = self._store.write(write)
        if said:
            log.info("desk.heartbeat", title=word.title)
        return said

    async def _carry(self) -> None:
        """Try what is still to be sent, each once, and none waits for another."""
        now = self._clock.now()
        rows = await aside(lambda: self._store.read(lambda tx: tx.heartbeats_pending(now)))

        async def carry(slot: Instant, destination: str, tries: int, said_at: Instant, body: str) -> None:
            sent = await self._send(slot, destination, tries, said_at, body)
            await aside(partial(self._tried, slot, destination, tries, sent))

        ends = await asyncio.gather(*(carry(*row) for row in rows), return_exceptions=True)
        for error in ends:  # of an ill store: each was tried
            if error is not None:
                raise error

    async def _send(self, slot: Instant, destination: str, tries: int, said_at: Instant, body: str) -> Sent:
        kind, config = self._where.get(destination, ("", {}))
        carrier = self._destinations.get(kind)
        if carrier is None:
            return Sent(Receipt.PERMANENT, error="the settings name it no more")
        try:
            parcel = Parcel(
                DeliveryId(f"heartbeat-{slot}"), derived_id("evt", slot, "heartbeat", destination), RunId("heartbeat"),
                "nightporter", "default", config, read_back(body), Instant(said_at), tries + 1, self._config.timezone,
            )
            async with asyncio.timeout(TRY.total_seconds()):
                return await carrier.send(parcel)
        except Exception as error:  # whatever it is says nothing about the receiver
            return Sent(Receipt.TRANSIENT, error=f"{type(error).__name__}: {error}")

    def _tried(self, slot: Instant, destination: str, tries: int, sent: Sent) -> None:
        now = self._clock.now()
        again = sent.receipt is Receipt.TRANSIENT and tries + 1 < DELIVERY_TRIES
        state = "pending" if again else {
            Receipt.DELIVERED: "delivered", Receipt.UNVERIFIED: "unverified",
        }.get(sent.receipt, "given_up")
        wait = delivery_wait(tries + 1, draw(destination, tries))
        self._store.write(lambda tx: tx.heartbeat_tried(
            slot, destination, tries, state=state, next_try_at=Instant(now + micros(wait)) if again else None,
            ended_at=None if again else now, evidence=sent.evidence, error=sent.error,
        ))
        if state in ("pending", "given_up"):
            log.warning("desk.heartbeat_not_carried", to=destination, state=state, error=sent.error)

    async def _call(self) -> None:
        """Call the address outside, if what is due was looked at: whoever is called there notices the silence."""
        if self._config.deadman is None:
            return
        looked = await aside(lambda: self._store.read(evaluated_at))
        if looked is None or self._clock.now() - looked > RECENTLY:
            log.warning("desk.deadman_not_called", why="what is due has not been looked at")
            return
        try:
            reply = await self._web.fetch("GET", self._config.deadman, headers={},
                                          allow_hosts=hosts(self._config), timeout=_CALL, limit=1000)
        except (NightporterError, TimeoutError) as error:
            self._ill.error("desk.deadman_unreachable", error=str(error))
            return
        if reply.status >= 300:
            self._ill.error("desk.deadman_refused", error=reply.line)


def _said_last(tx: Tx) -> tuple[tuple[Instant, Instant] | None, Instant | None]:
    """`((slot, said at) of the newest, since when there is something to say)`."""
    row = tx.last_heartbeat()
    return (None if row is None else (row[0], row[1])), tx.setting_instant(SINCE)

