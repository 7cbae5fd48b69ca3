"""Flags: what is not as it should be is said once, when it is found, and once more when it is as it should be again;
and what has waited for a person for a day is put before one once more."""

from __future__ import annotations

from nightporter import logs
from nightporter.clock import DAY, Instant
from nightporter.ledger.tasks import tasks
from nightporter.store import Store, Tx
from nightporter.words import derived_id

log = logs.get(__name__)

PATIENCE = DAY
"""What has waited for a person for longer is said once more."""
_ROOM = 500
WAITS = "waits"
"""The kind of a flag that is about a person's answer."""

Flag = tuple[str, str]


def flag(store: Store, now: Instant, *, host: str) -> None:
    """Compare what is found with what was said before, and say what changed. Writes only where something did."""
    found, cut, waiting, known = store.read(lambda tx: _look(tx, now, host))
    fresh = {flag: what for flag, what in found.items() if flag not in known}
    gone = [flag for flag in known if flag not in found and flag not in waiting and flag[0] not in cut]
    waits = {flag: row for flag, row in waiting.items() if flag not in known}
    if not (fresh or gone or waits):
        return

    def say(tx: Tx) -> set[Flag]:
        tx.drop_flags(gone)
        raised = tx.raise_flags([*fresh, *waits], now=now)
        tx.write_inbox([_notice(waits[flag], now) for flag in sorted(raised & set(waits))], now=now)
        return raised

    for kind, subject in sorted(store.write(say)):
        log.warning("account.flagged", kind=kind, subject=subject,
                    what=fresh.get((kind, subject), "it has waited for a person for a day"))
    for kind, subject in gone:
        log.info("account.well_again", kind=kind, subject=subject)


Waiting = tuple[str, str, str, str, str]
"""`(what, subject, name, workspace, automation)`."""


def _look(tx: Tx, now: Instant, host: str) -> tuple[dict[Flag, str], set[str], dict[Flag, Waiting], set[Flag]]:
    """What is found, in words; the kinds of which there is more than was read, whose flags stay; what waits for a
    person; and what was said before."""
    every = tasks(tx, now, host=host, whole=False, room=_ROOM)
    found = {(str(task.kind), task.subject): task.what for some in every for task in some.items}
    cut = {str(some.kind) for some in every if some.count > len(some.items)}
    count, rows = tx.tasks_found("waits_for_a_person", before=Instant(now - PATIENCE), room=_ROOM)
    waiting = {(WAITS, row[1]): (row[0], row[1], row[2] or row[1], row[4], row[5]) for row in rows}
    if count > len(rows):
        cut.add(WAITS)
    return found, cut, waiting, set(tx.flags())


def _notice(waits: Waiting, now: Instant) -> tuple[object, ...]:
    what, subject, name, workspace, automation = waits
    if what == "review":
        return (derived_id("inb", now, subject, WAITS), workspace, "", automation, subject, "review",
                f"{name}: a run has waited for your decision for more than a day",
                f"It may have acted, and is not repeated unasked. nightporter review {subject} retry runs it again, "
                f"nightporter review {subject} dismiss closes it.")
    if what == "missed":
        return (derived_id("inb", now, subject, WAITS), workspace, "", automation, None, "review",
                f"{name}: missed slots have waited for your decision for more than a day",
                "They passed while nobody was there, and are run or dismissed as you say: nightporter missed.")
    return (derived_id("inb", now, subject, WAITS), workspace, "", automation, None, "review",
            f"{name} has waited to be accepted for more than a day",
            f"It was proposed, and does nothing until then. nightporter enable {name} accepts it, "
            f"nightporter remove {name} does away with it.")
