"""Reading the record back: what the ledger, the lists and the details are made of. No method locks or changes a row.

Rows come as the queries name their columns; `ledger.lines` gives them names.
"""

from __future__ import annotations

from collections.abc import Collection

from nightporter.clock import DAY, Instant
from nightporter.store.sql_port import Row
from nightporter.store.tx_base import TxBase

_UNFINISHED = frozenset({"queued", "running"})
_SET_ASIDE = frozenset({"held", "lost", "review"})


def _after_all(prefix: str) -> str:
    """A text after every id that begins so, in any collation: what follows in an id is hexadecimal."""
    return prefix + "g"


class LedgerTx(TxBase):
    # -- automations --------------------------------------------------------------------------------------------

    def read_automation(self, automation_id: str) -> Row | None:
        return self.sql.one("read_automation", id=automation_id)

    def read_automations(self, *, after: tuple[str, str], room: int) -> list[Row]:
        """By `(workspace, name)`, those after one; removed ones are left out."""
        return self.sql.all("read_automations", workspace=after[0], name=after[1], room=room)

    def read_automation_names(self, room: int) -> list[str]:
        return [r[0] for r in self.sql.all("read_automation_names", room=room)]

    def read_triggers(self, automation_ids: Collection[str]) -> list[Row]:
        return self.sql.each("read_triggers", [(a,) for a in automation_ids])

    def read_trigger(self, trigger_id: str) -> Row | None:
        return self.sql.one("read_trigger", id=trigger_id)

    def read_loads(self, automation_ids: Collection[str]) -> dict[str, tuple[int, int, int, int]]:
        """`(queued, running, held, in review)` by automation."""
        return {r[0]: (r[1], r[2], r[3], r[4]) for r in self.sql.each("read_load", [(a,) for a in automation_ids])}

    def read_definition(self, automation_id: str, version: int) -> str | None:
        row = self.sql.one("read_definition", automation_id=automation_id, version=version)
        return None if row is None else str(row[0])

    def read_definitions(self, room: int) -> list[tuple[str, str]]:
        """`(automation's name, definition)` of those in force."""
        return [(r[0], r[1]) for r in self.sql.all("read_definitions", room=room)]

    def read_months(self, automation_id: str, room: int) -> list[Row]:
        return self.sql.all("read_month", automation_id=automation_id, room=room)

    # -- runs -----------------------------------------------------------------------------------------------------

    def read_run(self, run_id: str) -> Row | None:
        return self.sql.one("read_run", id=run_id)

    def read_runs(self, *, before: str, since: Instant, state: str, room: int) -> list[Row]:
        """By id, newest first, of those due or asked for since an instant; an empty state is any."""
        floor = f"run_{max(since, 0) // 1000:011x}"
        name = (
            "read_runs_active" if state in _UNFINISHED else "read_runs_open" if state in _SET_ASIDE else "read_runs"
        )
        return self.sql.all(name, before=before or _after_all("run_"), since=floor, state=state, room=room)

    def read_runs_of(
        self, automation_id: str, *, before: tuple[int, str], since: Instant, state: str, room: int
    ) -> list[Row]:
        """Of one automation by admission, newest first; those admitted since an instant."""
        return self.sql.all("read_runs_of", automation_id=automation_id, before_at=before[0], before=before[1],
                            since=since, state=state, room=room)

    def read_runs_dead(
        self, *, before: tuple[int, str], automation_id: str, since: Instant, reason: str, room: int
    ) -> list[Row]:
        """Dead letters that nobody has decided about, the latest first."""
        return self.sql.all("read_runs_dead", before_at=before[0], before=before[1], automation_id=automation_id,
                            since=since, reason=reason, room=room)

    def read_run_ids(self, prefix: str, room: int) -> list[str]:
        rows = self.sql.all("read_run_ids", low=prefix, high=_after_all(prefix), room=room)
        return [r[0] for r in rows]

    def read_latest_run(self, automation_id: str) -> str | None:
        row = self.sql.one("read_latest_run", automation_id=automation_id)
        return None if row is None else str(row[0])

    def read_transitions(self, run_id: str) -> list[Row]:
        return self.sql.all("read_transitions", run_id=run_id)

    def read_output(self, run_id: str) -> tuple[str, str | None, str] | None:
        """`(text, data JSON, log)`."""
        row = self.sql.one("read_output", run_id=run_id)
        return None if row is None else (row[0], row[1], row[2])

    def read_effects(self, run_id: str) -> list[Row]:
        return self.sql.all("read_effects", run_id=run_id)

    def read_run_in_front(
        self, automation_id: str, run_id: str, *, queued_at: Instant, started_at: Instant
    ) -> tuple[str, Instant] | None:
        """`(run, ended at)` of the run of the automation that ended last while this one waited."""
        row = self.sql.one("read_run_in_front", automation_id=automation_id, id=run_id, queued_at=queued_at,
                           started_at=started_at, horizon=queued_at - DAY)
        return None if row is None else (row[0], row[1])

    def read_running_just_before(self, automation_id: str, at: Instant) -> int:
        row = self.sql.one("read_running_just_before", automation_id=automation_id, at=at, horizon=at - DAY)
        return 0 if row is None else int(row[0])

    # -- firings --------------------------------------------------------------------------------------------------

    def read_firing(self, firing_id: str) -> Row | None:
        return self.sql.one("read_firing", id=firing_id)

    def read_firing_ids(self, prefix: str, room: int) -> list[str]:
        rows = self.sql.all("read_firing_ids", low=prefix, high=_after_all(prefix), room=room)
        return [r[0] for r in rows]

    def read_firings(
        self, *, before: str, since: Instant, verdict: str, admitted_too: bool, room: int
    ) -> list[Row]:
        floor = f"fir_{max(since, 0) // 1000:011x}"
        return self.sql.all("read_firings", before=before or _after_all("fir_"), since=floor, verdict=verdict,
                            all_of_them=int(admitted_too), room=room)

    def read_firings_of(
        self, automation_id: str, *, before: tuple[int, str], since: Instant, verdict: str, admitted_too: bool,
        room: int,
    ) -> list[Row]:
        return self.sql.all("read_firings_of", automation_id=automation_id, before_at=before[0], before=before[1],
                            since=since, verdict=verdict, all_of_them=int(admitted_too), room=room)

    def read_slot_line(self, automation_id: str, low: Instant, high: Instant) -> str | None:
        """The line that answers a slot from `low` up to, but not including, `high`."""
        row = self.sql.one("read_slot_line", automation_id=automation_id, low=low, high=high)
        return None if row is None else str(row[0])

    def read_arrival(self, automation_id: str, low: Instant, high: Instant) -> str | None:
        row = self.sql.one("read_arrival", automation_id=automation_id, low=low, high=high)
        return None if row is None else str(row[0])

    def read_payload(self, firing_id: str) -> tuple[str, str | None, str | None] | None:
        """`(text, payload JSON, metadata JSON)`."""
        row = self.sql.one("read_payload", firing_id=firing_id)
        return None if row is None else (row[0], row[1], row[2])

    # -- deliveries and the inbox -----------------------------------------------------------------------------------

    def read_deliveries(self, *, before: str, automation_id: str, state: str, room: int) -> list[Row]:
        return self.sql.all("read_deliveries", before=before or _after_all("del_"), automation_id=automation_id,
                            state=state, room=room)

    def read_deliveries_open(self, automation_id: str, room: int) -> list[Row]:
        """Those not delivered yet, and those that failed."""
        return self.sql.all("read_deliveries_open", automation_id=automation_id, room=room)

    def read_deliveries_of_run(self, run_id: str) -> list[Row]:
        return self.sql.all("read_deliveries_of_run", run_id=run_id)

    def read_tries(self, delivery_ids: Collection[str]) -> list[Row]:
        return self.sql.each("read_tries", [(d,) for d in delivery_ids])

    def read_inbox(self, *, before: str, kind: str, room: int) -> list[Row]:
        return self.sql.all("read_inbox", before=before or _after_all("inb_"), kind=kind, room=room)

    def read_inbox_unread(self, *, before: tuple[int, str], kind: str, room: int) -> list[Row]:
        return self.sql.all("read_inbox_unread", before_at=before[0], before=before[1], kind=kind, room=room)

    # -- how the desk is ------------------------------------------------------------------------------------------

    def read_worker(self, worker: str) -> Row | None:
        """`(id, role, host, pid, started at, ended at, ended how)`."""
        return self.sql.one("read_worker", id=worker)

    def read_desk_at(self, at: Instant) -> bool:
        row = self.sql.one("read_desk_at", at=at)
        return row is not None and row[0] > 0

    def read_desk_after(self, at: Instant, until: Instant) -> Instant | None:
        """When the first desk started after an instant, and until another at the latest."""
        row = self.sql.one("read_desk_after", at=at, until=until)
        return None if row is None else row[0]

    def read_pause(self, automation_id: str, since: Instant, until: Instant) -> Row | None:
        """`(from, to, reason)` of the newest pause that touches a span."""
        return self.sql.one("read_pause", automation_id=automation_id, since=since, until=until)

    def read_automation_states(self) -> dict[str, int]:
        return dict(self.sql.all("read_automation_states"))

    def read_queue(self) -> list[Row]:
        """`(what it waits for or empty, how many, the oldest)`."""
        return self.sql.all("read_queue")

    def read_running(self) -> tuple[int, Instant | None]:
        """`(running runs, the oldest attempt's start)`."""
        row = self.sql.one("read_running") or (0, None)
        return row[0], row[1]

    def read_set_aside(self) -> dict[str, int]:
        return dict(self.sql.all("read_set_aside"))

    def read_dead_count(self) -> int:
        return int((self.sql.one("read_dead_count") or (0,))[0])

    def read_delivery_counts(self) -> Row:
        """`(pending, the earliest next try, sending, given up or unknown)`."""
        return self.sql.one("read_delivery_counts") or (0, None, 0, 0)

    def read_unread_count(self) -> int:
        return int((self.sql.one("read_unread_count") or (0,))[0])

    def read_unread_dead(self) -> tuple[int, Instant | None]:
        """`(notices of dead letters that nobody read, the oldest)`."""
        row = self.sql.one("read_unread_dead") or (0, None)
        return row[0], row[1]

    def read_armed(self) -> tuple[int, Instant | None]:
        row = self.sql.one("read_armed") or (0, None)
        return row[0], row[1]

    def read_overdue(self, before: Instant) -> tuple[int, Instant | None]:
        """`(slots armed before an instant, the earliest)`."""
        row = self.sql.one("read_overdue", before=before) or (0, None)
        return row[0], row[1]

    def read_quarantine(self, room: int) -> list[Row]:
        return self.sql.all("read_quarantine", room=room)

    def read_broken(self, room: int) -> list[Row]:
        return self.sql.all("read_broken", room=room)

    def read_queued_long(self, before: Instant, room: int) -> list[Row]:
        return self.sql.all("read_queued_long", before=before, room=room)

    def read_reviews(self, room: int) -> list[Row]:
        return self.sql.all("read_reviews", room=room)

    def read_failed_deliveries(self, room: int) -> list[Row]:
        return self.sql.all("read_failed_deliveries", room=room)

    def check_store(self) -> str:
        """`ok`, or what is wrong with the database. Reads all of it on SQLite."""
        return str((self.sql.one("store_check") or ("it answers nothing",))[0])
