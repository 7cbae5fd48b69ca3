"""Rows that hold what no stage ever writes, looked for. No method changes one."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from nightporter.clock import FIRST, LAST
from nightporter.store.sql_port import Row
from nightporter.store.tx_base import TxBase

STRANGE: dict[str, tuple[str, ...]] = {
    "automation": ("state_at", "state_until", "expires", "created_at", "updated_at", "last_started_at",
        "last_success_at", "last_failure_at", "state"),
    "automation_version": ("created_at",),
    "trigger": ("next_fire_at", "created_at", "removed_at", "last_fired_at", "kind"),
    "trigger_version": ("valid_from", "valid_to"),
    "pause": ("paused_from", "paused_to", "reason"),
    "firing": ("scheduled_for", "arrived_at", "slot_from", "slot_to", "verdict"),
    "run": ("run_after", "scheduled_for", "queued_at", "started_at", "attempt_at", "ended_at", "cancel_at",
        "dead_at", "state"),
    "transition": ("at", "to_state"),
    "effect": ("intended_at", "done_at", "state"),
    "delivery": ("next_try_at", "created_at", "ended_at", "state"),
    "delivery_try": ("at", "result"),
    "inbox": ("created_at", "read_at"),
    "worker": ("started_at", "ended_at"),
    "definition_change": ("at",),
}
"""By table, the instants of a row that is looked at, and its word, where it has one, at the end."""
_QUERIES = {
    "automation": "strange_automation",
    "automation_version": "strange_automation_version",
    "trigger": "strange_trigger",
    "trigger_version": "strange_trigger_version",
    "pause": "strange_pause",
    "firing": "strange_firing",
    "run": "strange_run",
    "transition": "strange_transition",
    "effect": "strange_effect",
    "delivery": "strange_delivery",
    "delivery_try": "strange_delivery_try",
    "inbox": "strange_inbox",
    "worker": "strange_worker",
    "definition_change": "strange_definition_change",
}
WORDS = {
    "automation": "state", "trigger": "kind", "pause": "reason", "firing": "verdict", "run": "state",
    "transition": "to_state", "effect": "state", "delivery": "state", "delivery_try": "result",
}
"""The column of each table that holds one of a few words."""


class StrangeTx(TxBase):
    def strange_rows(self, table: str, known: Collection[str], room: int) -> Iterator[tuple[str, str, object]]:
        """`(row's key, column, what stands there)` of rows with an instant that is no date, or a word that is not among
        those `known`."""
        words = {"known": f"|{'|'.join(sorted(known))}|"} if table in WORDS else {}
        for key, *values in self.sql.all(_QUERIES[table], first=FIRST, last=LAST, room=room, **words):
            for column, value in zip(STRANGE[table], values, strict=True):
                odd = value not in known if column == WORDS.get(table) else (
                    value is not None and not FIRST <= value <= LAST
                )
                if odd:
                    yield key, column, value
                    break

    def payloads_to_come(self, room: int) -> list[tuple[str, str]]:
        """`(run, JSON)` of unfinished runs."""
        return [(r[0], r[1]) for r in self.sql.all("payloads_to_come", room=room)]

    def triggers_in_the_loop(self, room: int) -> list[Row]:
        """`(trigger, policy, schedule)`."""
        return self.sql.all("triggers_in_the_loop", room=room)
