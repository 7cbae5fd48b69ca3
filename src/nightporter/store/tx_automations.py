"""The definitions' part of a transaction: automations, versions, triggers, changes."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from nightporter.clock import Instant
from nightporter.store.sql_port import Row
from nightporter.store.tx_base import TxBase


@dataclass(frozen=True, slots=True)
class AutomationRow:
    """An automation as it is stored."""

    id: str
    workspace: str
    owner: str
    name: str
    state: str
    state_reason: str
    state_by: str
    state_at: Instant
    state_until: Instant | None
    state_before: str
    """Of a broken one: JSON of what it was, with reason, by whom and until when."""
    truth: str
    path: str
    error: str
    version: int
    definition_hash: str
    created_at: Instant
    updated_at: Instant
    last_run_id: str | None
    last_outcome: str | None
    last_success_at: Instant | None
    last_failure_at: Instant | None
    errors_in_a_row: int


@dataclass(frozen=True, slots=True)
class TriggerRow:
    """A trigger as it is stored."""

    id: str
    name: str
    kind: str
    enabled: bool
    policy: str
    schedule: str | None
    version: int
    next_fire_at: Instant | None
    tzdata: str
    created_at: Instant
    removed_at: Instant | None
    error: str
    last_fired_at: Instant | None
    """Its latest line: when it arrived, not the slot it answers."""
    wall: int | None
    """Seconds: what the clock of its zone shows at the slot it is armed for, or was when it fell asleep; None where its
    schedule does not go by it, and once that slot has its answer."""
    owed_since: Instant | None
    """Slots after it are owed under its schedule."""


class AutomationTx(TxBase):
    def lock_automation(self, automation_id: str) -> AutomationRow | None:
        """One automation, nobody else's until this transaction ends. Only a write may ask."""
        row = self.sql.one("automation_get", id=automation_id)
        return None if row is None else AutomationRow(*row)

    def definition_in_force(self, automation_id: str) -> str | None:
        """Its JSON; None when there is no such automation."""
        row = self.sql.one("automation_in_force", id=automation_id)
        return None if row is None else str(row[0])

    def definitions_in_force_of(self, automation_ids: Collection[str]) -> dict[str, str]:
        """The same of several, as far as they are there."""
        return dict(self.sql.each("automation_in_force_of", [(a,) for a in sorted(automation_ids)]))

    def definitions_in_force(self) -> list[Row]:
        """`(id, name, JSON)` of all that were not removed."""
        return self.sql.all("automation_in_force_all")

    def lock_names(self) -> None:
        """Before a name is looked up to be given: wait for whoever else gives one. Comes before every other lock."""
        self.sql.one("names_lock")

    def automation_named(self, name: str, *, workspace: str | None = None) -> list[str]:
        """Ids of the automations of that name; one a workspace at most."""
        if workspace is not None:
            rows = self.sql.all("automation_by_name", workspace=workspace, name=name)
        else:
            rows = self.sql.all("automation_find", name=name)
        return [r[0] for r in rows]

    def namesakes(self, name: str, *, workspace: str) -> int:
        """How many automations there were of that name, removed ones too."""
        row = self.sql.one("automation_namesakes", workspace=workspace, name=name)
        return 0 if row is None else int(row[0])

    def automations_like(self, prefix: str) -> list[str]:
        """Ids of automations whose id or name begins so, twenty at most."""
        plain = prefix.replace("%", "")  # "_" may stand for any letter: twenty rows more to choose from at worst
        return [r[0] for r in self.sql.all("automation_find_prefix", prefix=f"{plain}%")]

    def automations_at_path(self, path: str) -> list[Row]:
        """`(id, name)` of those whose definition is that file."""
        return self.sql.all("automation_at_path", path=path)

    def automations_of_files(self) -> list[Row]:
        """`(id, name, state, path, workspace)`."""
        return self.sql.all("automation_of_file")

    def owners_of_names(self) -> dict[str, tuple[str, str]]:
        """By the path of a definition file, the workspace and the name of what was made of it."""
        return {path: (workspace, name) for _, name, _, path, workspace in self.automations_of_files()}

    def automations_of_program(self, path: str) -> list[Row]:
        """`(id, workspace, name, state)` of those that this program defined."""
        return self.sql.all("automation_of_program", path=path)

    def insert_automation(self, **columns: Any) -> None:
        self.sql.run("automation_insert", **columns)

    def insert_version(self, automation_id: str, version: int, definition: str, digest: str, *, by: str,
                       now: Instant) -> None:
        self.sql.run("automation_version_insert", automation_id=automation_id, version=version, definition=definition,
                     definition_hash=digest, by=by, now=now)

    def redefine(self, **columns: Any) -> None:
        self.sql.run("automation_redefine", **columns)

    # -- state: each answers whether it was this call that made the change ----------------------------------------

    def enable(self, automation_id: str, *, by: str, now: Instant) -> bool:
        return self.sql.run("automation_enable", id=automation_id, by=by, now=now) > 0

    def pause(self, automation_id: str, *, by: str, reason: str, until: Instant | None, now: Instant) -> bool:
        return self.sql.run("automation_pause", id=automation_id, by=by, reason=reason, until=until, now=now) > 0

    def break_(
        self, automation_id: str, *, before: str, reason: str, error: str, path: str, now: Instant
    ) -> bool:
        """`before`: JSON of what it was. One that cannot break, or is broken already, only shows the error."""
        if self.sql.run(
            "automation_break", id=automation_id, before=before, reason=reason, error=error, path=path, now=now
        ):
            return True
        self.sql.run("automation_break_again", id=automation_id, reason=reason, error=error, path=path)
        return False

    def forget_error(self, automation_id: str) -> None:
        """What was wrong with a file that is gone."""
        self.sql.run("automation_forget_error", id=automation_id)

    def mend(self, automation_id: str, *, now: Instant) -> bool:
        return self.sql.run("automation_mend", id=automation_id, now=now) > 0

    def expire(self, automation_id: str, *, now: Instant) -> bool:
        return self.sql.run("automation_expire", id=automation_id, now=now) > 0

    def remove(self, automation_id: str, *, by: str, reason: str, now: Instant) -> bool:
        return self.sql.run("automation_remove", id=automation_id, by=by, reason=reason, now=now) > 0

    def unpause_runs(self, automation_id: str) -> None:
        """Let the runs that a pause held back be claimed."""
        self.sql.run("automation_unpause_runs", automation_id=automation_id)
        self.kicks.add("queued")

    def waiting_runs(self, automation_id: str) -> list[str]:
        return [r[0] for r in self.sql.all("run_queued_of", automation_id=automation_id)]

    def runs_in_review(self, automation_id: str) -> list[str]:
        return [r[0] for r in self.sql.all("run_review_of", automation_id=automation_id)]

    def run_versions(self, run_ids: Collection[str]) -> dict[str, tuple[str, int]]:
        """`(automation, version of its definition)` by run."""
        return {r[0]: (r[1], r[2]) for r in self.sql.each("run_version", [(r,) for r in run_ids])}

    def running_runs(self, automation_id: str) -> list[str]:
        return [r[0] for r in self.sql.all("run_running_of", automation_id=automation_id)]

    def expiry(self, automation_id: str) -> Instant | None:
        row = self.sql.one("automation_expiry", id=automation_id)
        return None if row is None else row[0]

    def renew(self, automation_id: str, expires: Instant, *, now: Instant) -> None:
        self.sql.run("automation_renew", id=automation_id, expires=expires, now=now)

    def ending(self, until: Instant, now: Instant) -> list[Row]:
        """`(id, expires, renewed at, what was said of it)` of those that act and end by then."""
        return self.sql.all("automation_ending", until=until, now=now)

    def expiry_facts(self, automation_id: str) -> tuple[Instant, Instant | None, int] | None:
        """`(expires, renewed at, what was said of it)`; None: it does not end."""
        row = self.sql.one("automation_expiry_facts", id=automation_id)
        return None if row is None else (row[0], row[1], row[2])

    def tell_of_expiry(self, automation_id: str, expires: Instant, word: int) -> bool:
        """Whether it was this call that says so."""
        return self.sql.run("automation_expiry_tell", id=automation_id, expires=expires, told=int(word)) > 0

    def pause_now(self, automation_id: str) -> tuple[Instant, str] | None:
        """`(since, reason)` of the pause that is open."""
        row = self.sql.one("pause_open_now", automation_id=automation_id)
        return None if row is None else (row[0], row[1])

    # -- files that are not taken -----------------------------------------------------------------------------------

    def refuse_file(self, path: str, error: str, *, now: Instant) -> None:
        """Name a definition file that no automation comes of."""
        self.accept_file(path)  # of something else, perhaps
        self.sql.run("quarantine_write", subject="file", key=path, error=error, now=now)

    def accept_file(self, path: str) -> None:
        """It is good by now, or gone."""
        self.sql.run("quarantine_release", subject="file", key=path)

    def refused_files(self) -> list[tuple[str, str]]:
        """`(path, what is wrong)`."""
        return [(r[0], r[1]) for r in self.sql.all("file_refused")]

    # -- triggers -------------------------------------------------------------------------------------------------

    def triggers(self, automation_id: str) -> list[TriggerRow]:
        """Removed ones too."""
        return [
            TriggerRow(r[0], r[1], r[2], bool(r[3]), *r[4:])
            for r in self.sql.all("triggers_of", automation_id=automation_id)
        ]

    def insert_trigger(self, **columns: Any) -> None:
        self.sql.run("trigger_insert", **columns)

    def redefine_trigger(self, **columns: Any) -> None:
        """Everything but the slot."""
        self.sql.run("trigger_redefine", **columns)

    def changes(self, automation_id: str) -> int:
        """Lines of its audit trail so far."""
        row = self.sql.one("definition_change_count", automation_id=automation_id)
        return 0 if row is None else int(row[0])

    def write_change(self, **columns: Any) -> None:
        """A line of the audit trail of definitions."""
        self.sql.run("definition_change_write", **columns)
