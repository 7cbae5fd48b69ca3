"""The audit's part of a transaction: looking for what must not be. No method locks or changes a row."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Literal

from nightporter.clock import Instant
from nightporter.store.sql_port import Row
from nightporter.store.tx_base import TxBase

Check = Literal[
    "audit_slot_twice", "audit_slot_run_twice", "audit_slot_version", "audit_line_and_run",
    "audit_run_without_line", "audit_ranges_meet", "audit_range_shape", "audit_cards_crowd",
    "audit_cards", "audit_caught_up_twice", "audit_overdue", "audit_armed_inert",
    "audit_armed_once_more", "audit_armed_in_the_past", "audit_answered_early", "audit_started_early",
    "audit_ran_late", "audit_versions_chain", "audit_version_in_force", "audit_pauses", "audit_ended_once",
    "audit_row_and_log", "audit_log_chain", "audit_instants", "audit_running_unheld",
    "audit_running_under_the_dead", "audit_running_since_before_boot", "audit_queue_stands",
    "audit_waits_for_nobody", "audit_held_by_no_pause", "audit_left_lost", "audit_looks", "audit_tokens_grow",
    "audit_stale_writes", "audit_stale_effects", "audit_not_alone", "audit_out_of_turn", "audit_survivors",
    "audit_effect_shape", "audit_doubtful_repeats", "audit_left_marks", "audit_attempts_bounded",
    "audit_attempts_and_log", "audit_dead_letters", "audit_backoff", "audit_unannounced", "audit_undelivered",
    "audit_delivered_twice", "audit_events_differ", "audit_last_try", "audit_tries_counted",
    "audit_delivery_shape", "audit_delivery_stands", "audit_sending_under_the_dead", "audit_delivery_blamed",
    "audit_too_warm", "audit_over_concurrency", "audit_lines_counted", "audit_conserved", "audit_origin",
    "audit_keys", "audit_key_twice", "audit_first_telling", "audit_after_removal", "audit_admitted_asleep",
    "audit_folded", "audit_runs_in_all",
    "audit_health", "audit_months", "audit_orphans", "audit_quarantine", "audit_vanished",
    "audit_errors_in_a_row", "audit_incidents", "audit_alerted_twice", "audit_paused_untold",
]
"""Queries that give violations, ten at most, and how many there are."""

Sums = Literal[
    "audit_verdict_groups", "audit_run_groups", "audit_transition_groups", "audit_delivery_word_groups",
    "audit_other_word_groups", "audit_cut_short_groups", "audit_retry_groups",
]
"""Queries that give sums over a whole table."""


class AuditTx(TxBase):
    def violations(self, query: Check, terms: Mapping[str, int | str]) -> tuple[int, list[Row]]:
        """How many there are, and the first ten; columns as in the query."""
        rows = self.sql.all(query, **terms)
        return (rows[0][-1] if rows else 0), [row[:-1] for row in rows]

    def sums(self, query: Sums) -> list[Row]:
        """The groups of a query; how many and one of them stand at the end of each."""
        return self.sql.all(query)

    def damage(self) -> list[str]:
        """What the database itself finds wrong with its pages and indexes, ten lines at most."""
        return [r[0] for r in self.sql.all("audit_integrity")]

    # -- page by page -------------------------------------------------------------------------------------------

    def running_long(self, *, started_before: Instant, after: str, room: int) -> list[Row]:
        """`(run, automation, version, start of its attempt)` by run, under workers that have not ended."""
        return self.sql.all("audit_running", started_before=started_before, after=after, room=room)

    def audited_automations(self, *, after: str, room: int) -> list[tuple[str, int]]:
        """`(id, version in force)` by id."""
        return [(r[0], r[1]) for r in self.sql.all("audit_automations", after=after, room=room)]

    def audited_definitions(self, versions: Collection[tuple[str, int]]) -> dict[tuple[str, int], str]:
        """The text of each version of an automation that is there."""
        return {(r[0], r[1]): r[2] for r in self.sql.each("audit_definitions", sorted(versions))}

    def policies(self, automation_ids: Sequence[str]) -> dict[str, str]:
        """One trigger's policy of each automation, as it is stored."""
        return {r[0]: r[1] for r in self.sql.each("audit_policies", [(a,) for a in automation_ids])}

    def over_ceiling(self, rows: Sequence[tuple[str, int, int]]) -> list[Row]:
        """For `(automation, version in force, ceiling)`: `(automation, run, admitted at, since when so many as the
        ceiling had been, ceiling)`."""
        return self.sql.each("audit_over_ceiling", rows)

    def ended_groups(self, automation_ids: Sequence[str]) -> list[Row]:
        """`(automation, version, outcome, how many)` of ended runs with something to deliver."""
        return self.sql.each("audit_ended_groups", [(a,) for a in automation_ids])

    def delivery_groups(self, automation_ids: Sequence[str]) -> list[Row]:
        """`(automation, version, outcome, destination, kind, runs, one delivery)`; no outcome is an empty text."""
        return self.sql.each("audit_delivery_groups", [(a,) for a in automation_ids])

    def clock_count(self) -> int:
        """How many triggers have, or had, a schedule."""
        row = self.sql.one("audit_clock_count")
        return 0 if row is None else row[0]

    def clock_triggers(self, *, after: str, room: int) -> list[Row]:
        """By id; columns as in the query."""
        return self.sql.all("audit_clock_triggers", after=after, room=room)

    def clock_versions(self, trigger_ids: Sequence[str]) -> list[Row]:
        """`(trigger, version, schedule, tzdata, valid from, valid to)`, each trigger's in order."""
        return self.sql.each("audit_clock_versions", [(t,) for t in trigger_ids])

    def clock_lines(self, trigger_ids: Sequence[str], *, since: int, until: int) -> list[Row]:
        """The answers to slots after `since` and until `until`; columns as in the query, in no order."""
        return self.sql.each("audit_clock_lines", [(t,) for t in trigger_ids], since=since, until=until)

    def open_pauses(self, automation_ids: Collection[str]) -> dict[str, Instant]:
        """Since when each of these automations sleeps."""
        return {r[0]: r[1] for r in self.sql.each("audit_clock_pauses", [(a,) for a in sorted(automation_ids)])}
