"""A transaction's part that is about missed slots: cards, gaps, and what is told of them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from nightporter.clock import Instant
from nightporter.store.tx_base import TxBase


class CardRow(NamedTuple):
    """A missed slot that a person decides about."""

    id: str
    workspace: str
    automation_id: str
    automation: str
    trigger_id: str
    firing_id: str
    slot: Instant
    state: str
    """`pending`, `executed` or `dismissed`."""
    created_at: Instant
    decided_at: Instant | None
    decided_by: str
    note: str
    run_id: str | None


class MissedRow(NamedTuple):
    """What was missed of one trigger."""

    automation_id: str
    automation: str
    workspace: str
    owner: str
    schedule: str | None
    policy: str
    not_run: int
    exact: int
    running_late: int
    refused: int
    """Were to run late and found a gate shut."""
    waiting: int
    """Cards of it that wait, those from before too."""


class GapRow(NamedTuple):
    """A span in which nobody was there, or that the clock jumped over."""

    kind: str
    gap_from: Instant
    gap_to: Instant
    worker: str


class MissedTx(TxBase):
    # -- cards ------------------------------------------------------------------------------------------------

    def write_cards(self, rows: Sequence[tuple[str, str]], *, now: Instant) -> None:
        """`(card, line)`: one for each line that says that a slot was missed."""
        self.sql.each("card_write", rows, now=now)

    def trim_cards(
        self, triggers: Collection[tuple[str, str]], *, most: int, note: str, now: Instant
    ) -> None:
        """Let the newest `most` of each `(automation, trigger)` wait, and no others."""
        self.sql.each("card_trim", sorted(triggers), most=most, note=note, now=now)

    def cards(self, *, automation_id: str = "", decided: bool = False, room: int = 10_000) -> list[CardRow]:
        """Those that wait, and with `decided` those that do not any more behind them."""
        rows = self.sql.all("cards", automation_id=automation_id, decided=int(decided), room=room)
        return [CardRow(*row) for row in rows]

    def card(self, card_id: str) -> CardRow | None:
        row = self.sql.one("card", id=card_id)
        return None if row is None else CardRow(*row)

    def cards_like(self, beginning: str) -> list[str]:
        """The ids that begin so, ten at most."""
        return [r[0] for r in self.sql.all("cards_like", beginning=beginning, beyond=beginning + "~")]

    def execute_card(self, card_id: str, *, by: str, now: Instant) -> bool:
        """False: somebody has decided already."""
        return self.sql.one("card_execute", id=card_id, by=by, now=now) is not None

    def card_became(self, card_id: str, run_id: str | None) -> None:
        self.sql.run("card_became", id=card_id, run_id=run_id)

    def dismiss_cards(self, card_ids: Sequence[str], *, by: str, note: str, now: Instant) -> list[str]:
        """Those that still waited."""
        return [r[0] for r in self.sql.each("cards_dismiss", [(c,) for c in card_ids], by=by, note=note, now=now)]

    def dismiss_cards_of(self, automation_id: str, *, by: str, note: str, now: Instant) -> None:
        self.sql.run("cards_dismiss_of", automation_id=automation_id, by=by, note=note, now=now)

    def prune_missed(self, *, before: Instant, room: int) -> int:
        """Delete cards that were decided, so many at most, and gaps that ended, before an instant; how many cards."""
        self.sql.run("gaps_prune", before=before)
        return self.sql.run("cards_prune", before=before, room=room)

    # -- what is told -----------------------------------------------------------------------------------------

    def missed_lines(self, *, since: str, late: int) -> list[MissedRow]:
        """What was answered more than `late` after its slot, by lines from that id on."""
        return [MissedRow(*row) for row in self.sql.all("missed_lines", since=since, late=late)]

    def automation_names(self, automation_ids: Collection[str]) -> dict[str, str]:
        """Their names, for whoever reads a log."""
        return {r[0]: r[1] for r in self.sql.each("automation_names", [(a,) for a in sorted(automation_ids)])}

    # -- gaps -------------------------------------------------------------------------------------------------

    def write_gap(self, kind: str, gap_from: Instant, gap_to: Instant, *, worker: str) -> bool:
        """False where it was written down already."""
        return self.sql.run("gap_write", kind=kind, gap_from=gap_from, gap_to=gap_to, worker=worker) > 0

    def move_waits(self, by: int, *, since: Instant, now: Instant) -> None:
        """Move the times that runs and tries wait for by so many microseconds, but for what was written after `since`
        and up to `now`."""
        self.sql.run("gap_moves_runs", by=by, since=since, now=now)
        self.sql.run("gap_moves_deliveries", by=by, since=since, now=now)

    def gaps(self, *, since: int = 0, room: int = 100) -> list[GapRow]:
        """Those that ended after `since`, the latest first."""
        return [GapRow(*row) for row in self.sql.all("gaps", since=since, room=room)]

    def gap_around(self, at: Instant) -> GapRow | None:
        """The latest one in which an instant lies."""
        row = self.sql.one("gap_around", at=at)
        return None if row is None else GapRow(*row)
