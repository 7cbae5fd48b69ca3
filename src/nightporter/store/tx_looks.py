"""The looks' part of a transaction: what they saw, and what is kept of them from run to run."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence

from nightporter.clock import Instant
from nightporter.store.sql_port import Row
from nightporter.store.tx_base import TxBase
from nightporter.words.kept import read_back
from nightporter.words.looks import Kept, Sight


class LooksTx(TxBase):
    def look_facts(self, run_id: str, automation_id: str, look: str) -> tuple[Kept, bool]:
        """`(what is kept of a look, a person wants this run without it)`."""
        row = self.sql.one("look_facts", run_id=run_id, automation_id=automation_id, look=look)
        assert row is not None
        state, version, answer = row
        try:
            kept = Kept(None if state is None else read_back(state), version or 0)
        except ValueError:  # unreadable: the look begins anew, and what it leaves takes the place of that
            kept = Kept(None, version)
        return kept, answer == Sight.SKIPPED

    def write_looks(self, rows: Sequence[tuple[str, str, str, str]]) -> None:
        """`(run, kind, answer, what it saw or why it failed)`."""
        self.sql.each("look_saw", rows)

    def keep_looks(self, rows: Sequence[tuple[str, str, object, int, str]], *, now: Instant) -> None:
        """`(automation, look, state, version that was seen, run)`, unless another run was first."""
        for one in rows:  # one by one: two runs of a batch may have seen the same
            self.sql.each("look_keep", [(*one[:2], json.dumps(one[2], ensure_ascii=False), *one[3:])], now=now)

    def forget_looks(self, automation_id: str, keep: Collection[str]) -> None:
        """What is kept of looks that the automation has no more."""
        gone = [(automation_id, r[0]) for r in self.sql.all("looks_kept", automation_id=automation_id)
                if r[0] not in keep]
        self.sql.each("look_forget", gone)

    def read_look(self, run_id: str) -> Row | None:
        """`(kind, answer, text)` of what the run's look saw."""
        return self.sql.one("read_look", run_id=run_id)
