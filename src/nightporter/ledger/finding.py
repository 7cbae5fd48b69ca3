"""Names and ids as people type them -> the one thing they mean."""

from __future__ import annotations

from difflib import get_close_matches

from nightporter.errors import NotFound
from nightporter.store import Tx

_CANDIDATES = 20
_NAMES = 5000
"""Names that are compared with a misspelt one."""


def resolve(tx: Tx, asked: str, *, workspace: str | None = None) -> str:
    """The id of the automation of that name, that id, or whose name or id begins so.

    Raises NotFound with the nearest names, or with the candidates when there are several.
    """
    asked = asked.strip()
    if asked and tx.read_automation(asked) is not None:
        return asked
    found = tx.automation_named(asked, workspace=workspace)
    if not found and asked:
        found = [id for id in tx.automations_like(asked) if _begins(tx, id, asked)]
    if len(found) == 1:
        return found[0]
    if found:
        lines = [row for id in found if (row := tx.read_automation(id)) is not None]
        named = ", ".join(f"{row[3]} ({row[0]})" for row in lines)
        raise NotFound(f"{asked!r} may mean {len(lines)} automations", why=f"these answer to it: {named}",
                       next="write one name in full, or its id")
    near = get_close_matches(asked, tx.read_automation_names(_NAMES), n=3, cutoff=0.5)
    raise NotFound(
        f"no automation is called {asked!r}" if asked else "no automation is named",
        why=f"the nearest: {', '.join(near)}" if near else "",
        next=f"did you mean {near[0]}?" if near else "`nightporter list` shows what there is",
    )


def _begins(tx: Tx, automation_id: str, asked: str) -> bool:
    # The query's `_` stands for any letter, and SQLite's LIKE for either case.
    row = tx.read_automation(automation_id)
    return row is not None and (row[3].startswith(asked) or automation_id.startswith(asked))


def resolve_run(tx: Tx, asked: str) -> str:
    """The id of the run with that id, whose id begins so, or of an automation's latest run. Raises NotFound."""
    found = _by_id(tx, "run", asked)
    if found is not None:
        return found
    automation_id = resolve(tx, asked)
    latest = tx.read_latest_run(automation_id)
    if latest is None:
        raise NotFound(f"{asked} has no runs", why="it was never admitted, or its runs are past their retention",
                       next=f"`nightporter explain {asked}` says why; `nightporter run {asked}` runs it now")
    return latest


def resolve_firing(tx: Tx, asked: str) -> str:
    """The id of a ledger line by its id or its beginning. Raises NotFound."""
    found = _by_id(tx, "fir", asked)
    if found is None:
        raise NotFound(f"no firing has an id like {asked!r}", next="ids of firings begin with fir_")
    return found


def _by_id(tx: Tx, kind: str, asked: str) -> str | None:
    """None: it does not look like an id of that kind. Raises NotFound when it does and is none."""
    asked = asked.strip()
    if not asked.startswith(f"{kind}_"):
        return None
    what = "run" if kind == "run" else "firing"
    look = tx.read_run_ids if kind == "run" else tx.read_firing_ids
    found = look(asked, _CANDIDATES)
    if asked in found or len(found) == 1:
        return asked if asked in found else found[0]
    if found:
        raise NotFound(f"{asked!r} may mean {len(found)} {what}s", why=f"these begin so: {', '.join(found)}",
                       next="write a few more of its letters")
    raise NotFound(f"no {what} has the id {asked!r}", why="it was never there, or is past its retention",
                   next=f"`nightporter {what}s` shows what there is" if kind == "run" else "")
