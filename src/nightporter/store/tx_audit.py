"""The audit's part of a transaction: looking for what must not be. No method locks or changes a row."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from nightporter.clock import Instant
from nightporter.store.sql_port import Row
from nightporter.store.tx_base import TxBase


class AuditTx(TxBase):
    def violations(self, check: str, terms: Mapping[str, int | str]) -> tuple[int, list[Row]]:
        """How many there are, and the first ten; the columns are those of the query `audit_<check>`."""
        rows = self.sql.all(f"audit_{check}", **terms)
        return (rows[0][-1] if rows else 0), [row[:-1] for row in rows]

    def sums(self, groups: str) -> list[Row]:
        """The groups of the query `audit_<groups>_groups`; how many and one of them stand at the end of each."""
        return self.sql.all(f"audit_{groups}_groups")

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
