"""Telling of what was missed: once for each gap, folded into one message, and not of what is skipped anyway."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from nightporter.clock import Instant
from nightporter.rules.missed import NOT_MISSED, policy_of_missed
from nightporter.sources.cards import UNTOLD
from nightporter.store import Tx
from nightporter.store.tx_clock import schedule_from
from nightporter.store.tx_missed import MissedRow
from nightporter.words import MissedPolicy, Policy, derived_id

NAMED = 50
"""Automations that a message names; of others it says how many."""


def tell(tx: Tx, *, evaluated_at: Instant, now: Instant) -> int:
    """Write what was missed and of which nothing was told yet into the inbox, a message for each workspace; how many.

    Only once all that was due has been answered, so that one gap is one message; in one transaction with the mark that
    it is told, so that no crash makes it two or none. What is skipped by its policy is no news.
    """
    since = tx.setting_instant(UNTOLD)
    if since is None or evaluated_at < since <= now:  # a time that is still to come: the clock was set back
        return 0
    since = tx.drop_setting(UNTOLD)  # whoever is writing something missed is waited for: what it writes is read below
    if since is None:
        return 0
    by_workspace: dict[str, list[MissedRow]] = defaultdict(list)
    for row in tx.missed_lines(since=f"fir_{since // 1000:011x}", late=NOT_MISSED):
        if _is_news(row):
            by_workspace[row.workspace].append(row)
    tx.write_inbox([
        (derived_id("inb", now, workspace, "missed"), workspace, _owner(rows), None, None, "missed", _title(rows),
         _text(rows))
        for workspace, rows in sorted(by_workspace.items())
    ], now=now)
    return len(by_workspace)


def _is_news(row: MissedRow) -> bool:
    try:
        schedule, policy = schedule_from(row.schedule or ""), Policy.from_json(row.policy)
        return policy_of_missed(schedule, policy.missed).policy is not MissedPolicy.SKIP
    except Exception:  # what cannot be read is named in the quarantine
        return False


def _owner(rows: Sequence[MissedRow]) -> str:
    owners = {row.owner for row in rows}
    return owners.pop() if len(owners) == 1 else ""


def _title(rows: Sequence[MissedRow]) -> str:
    names = list(dict.fromkeys(row.automation for row in rows))
    return f"{names[0]} missed its time" if len(names) == 1 else f"{len(names)} automations missed their times"


def _text(rows: Sequence[MissedRow]) -> str:
    said = [f"{row.automation}: {_what(row)}" for row in rows[:NAMED]]
    if len(rows) > NAMED:
        said.append(f"and {len(rows) - NAMED} more")
    if any(row.waiting for row in rows):
        said.append("`nightporter missed` lists what waits for you, and runs or dismisses it.")
    return "\n".join(said)


def _what(row: MissedRow) -> str:
    parts = []
    if row.running_late:
        parts.append("runs late" if row.running_late == 1 else f"{row.running_late} runs are late")
    if row.refused:
        parts.append(f"{row.refused} could not run late; `nightporter explain {row.automation}` says why")
    left = row.not_run - row.waiting
    if row.waiting:
        parts.append(f"{row.waiting} {'waits' if row.waiting == 1 else 'wait'} for you")
    if left > 0:
        least = "" if row.exact else "at least "
        parts.append(f"{least}{left} did not run")
    return ", ".join(parts)
