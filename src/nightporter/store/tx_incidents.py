"""Incidents, alerts, the desk's own pauses and what was decided about dead letters: their part of a transaction."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

from nightporter.clock import Instant
from nightporter.store.sql_port import Row
from nightporter.store.tx_base import TxBase


class Standing(NamedTuple):
    """An incident once a fault was counted; columns of `incident_write`."""

    id: str
    kind: str
    route: str
    signature: str
    state: str
    times: int
    first_at: Instant
    notified_at: Instant | None


class Over(NamedTuple):
    """An incident that has just come to its end; columns of `incident_over_of`."""

    id: str
    workspace: str
    automation_id: str
    kind: str
    route: str
    signature: str
    times: int
    first_at: Instant
    last_at: Instant
    subject: str
    error: str
    notified_at: Instant | None
    told_at: Instant | None


class AlertRow(NamedTuple):
    """What an alert's delivery carries; columns of `alerts_of`."""

    delivery_id: str
    automation: str
    timezone: str
    config: str
    body: str
    cooldown: int
    next_routes: str
    alert: str
    created_at: Instant
    incident_id: str
    automation_id: str
    workspace: str


class IncidentTx(TxBase):
    def reopen_incidents(self, rows: Sequence[Row], *, now: Instant) -> list[Standing]:
        """`(kind, route, signature, automation, subject, error, count, over since)`: those that were over for less, and
        go on."""
        return [Standing._make(row) for row in self.sql.each("incident_reopen", rows, now=now)]

    def write_incidents(self, rows: Sequence[Row], *, now: Instant) -> list[Standing]:
        """`(id, workspace, automation, kind, route, signature, count, subject, error)`: a new one, or one more of the
        one that stands."""
        return [Standing._make(row) for row in self.sql.each("incident_write", rows, now=now)]

    def notified(self, ids: Collection[str], *, now: Instant) -> None:
        """Somebody is told about these."""
        self.sql.each("incident_notified", [(i,) for i in ids], now=now)

    def incidents_over(self, rows: Sequence[tuple[str, str, str]], *, now: Instant) -> list[Over]:
        """End what stands of `(automation, kind, by)`."""
        return [Over._make(row) for row in self.sql.each("incident_over_of", rows, now=now)]

    def routes_over(self, rows: Sequence[tuple[str, str, str]], *, now: Instant) -> list[Over]:
        """End what stands of `(kind, route, by)`."""
        return [Over._make(row) for row in self.sql.each("incident_over_at", rows, now=now)]

    def last_fault_at(self, kind: str, route: str) -> Instant | None:
        """Of what stands of a route."""
        row = self.sql.one("incident_last_at", kind=kind, route=route)
        return None if row is None else row[0]

    def told_over(self, ids: Collection[str], *, now: Instant) -> None:
        self.sql.each("incident_told_over", [(i,) for i in ids], now=now)

    def any_lane_at_fault(self) -> bool:
        return self.sql.one("incident_any_lane") is not None

    def lanes_at_fault(self) -> set[str]:
        return {row[0] for row in self.sql.all("incident_lanes")}

    def acknowledge(self, incident_id: str, *, by: str, note: str, now: Instant) -> bool:
        return self.sql.run("incident_acknowledge", id=incident_id, by=by, note=note, now=now) > 0

    def resolve_incident(self, incident_id: str, *, by: str, note: str, now: Instant) -> bool:
        return self.sql.run("incident_resolve", id=incident_id, by=by, note=note, now=now) > 0

    def incident_rows(
        self, *, automation_id: str = "", state: str = "", ended: bool = False, before: str = "~", room: int
    ) -> list[Row]:
        """Columns as in the query, newest first. `ended`: those that are over too."""
        return self.sql.all("read_incidents", automation_id=automation_id, state=state, all=int(ended or bool(state)),
                            before=before, room=room)

    def incident_row(self, incident_id: str) -> Row | None:
        return self.sql.one("read_incident", id=incident_id)

    def incidents_like(self, prefix: str) -> list[str]:
        plain = prefix.replace("%", "")
        return [row[0] for row in self.sql.all("read_incident_ids", prefix=f"{plain}%")]

    # -- alerts ------------------------------------------------------------------------------------------------

    def alerts_lately(self, lane: str, *, since: Instant, now: Instant) -> tuple[int, bool]:
        """To a receiver since then: `(how many, whether one said that others are kept back)`."""
        row = self.sql.one("alerts_lately", lane=lane, since=since, now=now)
        assert row is not None
        return row[0], bool(row[1])

    def create_alert(
        self, *, id: str, event_id: str, incident_id: str, automation_id: str, workspace: str, destination: str,
        kind: str, lane: str, alert: str, automation: str, timezone: str, config: str, body: str, cooldown: int,
        next_routes: str, now: Instant,
    ) -> None:
        """A delivery about an incident, with what it carries."""
        self.sql.run("alert_deliver", id=id, event_id=event_id, incident_id=incident_id, automation_id=automation_id,
                     workspace=workspace, destination=destination, kind=kind, lane=lane, alert=alert, now=now)
        self.sql.run("alert_write", id=id, automation=automation, timezone=timezone, config=config, body=body,
                     cooldown=cooldown, next_routes=next_routes)
        self.kicks.add("delivery")

    def alerts(self, delivery_ids: Collection[str]) -> dict[str, AlertRow]:
        """What these deliveries carry, as far as they are alerts."""
        return {row[0]: AlertRow._make(row) for row in self.sql.each("alerts_of", [(d,) for d in delivery_ids])}

    # -- pauses by the desk ------------------------------------------------------------------------------------

    def auto_pause(self, automation_id: str, *, reason: str, now: Instant) -> bool:
        return self.sql.run("automation_auto_pause", id=automation_id, reason=reason, now=now) > 0

    def count_schedule_error(self, automation_id: str) -> int:
        """One more in a row; how many. 0: the automation does not act."""
        row = self.sql.one("schedule_error", id=automation_id)
        return 0 if row is None else int(row[0])

    def schedules_readable(self, automation_id: str) -> None:
        """End the row, unless another schedule of it cannot be made sense of."""
        self.sql.run("schedule_readable", id=automation_id)

    def stopped_failing(self, automation_ids: Collection[str]) -> None:
        self.sql.each("automation_stopped_failing", [(a,) for a in sorted(automation_ids)])

    # -- what was decided about what failed --------------------------------------------------------------------

    def dead_undecided(self, run_ids: Collection[str]) -> list[str]:
        """Those that are dead letters still, the oldest first. The caller has the locks of their automations: nobody
        decides meanwhile."""
        return sorted(row[0] for row in self.sql.each("dead_undecided", [(run,) for run in sorted(run_ids)]))

    def decide_dead(self, rows: Sequence[tuple[str, str, str | None]], *, by: str, now: Instant) -> set[str]:
        """`(run, replayed | dismissed, the run that does its work again)`; those that nobody had decided about. What
        the inbox says of them counts as read."""
        decided = {row[0] for row in self.sql.each("dead_decide", rows, by=by, now=now)}
        self.sql.each("inbox_read_of_runs", [(run,) for run in sorted(decided)], now=now)
        return decided

    def delay_runs(self, rows: Sequence[tuple[str, Instant]]) -> None:
        """`(run, not before)` of runs that wait for their turn."""
        self.sql.each("run_delay", rows)

    def close_deliveries(self, delivery_ids: Collection[str], *, by: str, now: Instant) -> list[Any]:
        """`(delivery, run)` of those that were not delivered, and that nobody will send again."""
        return self.sql.each("delivery_close", [(d,) for d in sorted(delivery_ids)], by=by, now=now)

    # -- retention ---------------------------------------------------------------------------------------------

    def prune_alerts(self, *, before: Instant, room: int) -> int:
        rows = [(row[0],) for row in self.sql.all("prune_alerts", before=before, room=room)]
        self.sql.each("prune_alert_bodies", rows)
        self.sql.each("prune_alert_tries", rows)
        return len(rows)

    def prune_incidents(self, *, before: Instant, room: int) -> int:
        return self.sql.run("prune_incidents", before=before, room=room)
