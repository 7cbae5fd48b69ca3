"""Renewing: automations that end by themselves go on."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from nightporter import operations
from nightporter.errors import BadInput
from nightporter.ledger import AutomationDetail, automation_detail, resolve
from nightporter.ledger.moments import spoken
from nightporter.rules.durations import parse_duration
from nightporter.store import Tx
from nightporter.surfaces.cli.place import USUAL, Common, DryRun, opened, person


def renew(
    *names: Annotated[str, Parameter(help="Names or ids, or the beginnings of some.")],
    lasting: Annotated[str | None, Parameter(name="--for", help="For how long, this once: 30d, 12h.")] = None,
    dry_run: DryRun = False, common: Common = USUAL,
) -> None:
    """Let automations act for as long as their definitions say, counted from now. One that has expired acts again. Of
    several, all are renewed or none. An end that is a date is renewed in the definition."""
    if not names:
        raise BadInput("nothing is said to be renewed", next="name one or more: nightporter list shows them")
    span = None if lasting is None else parse_duration(lasting)
    with opened(common) as place:
        def work(tx: Tx) -> list[AutomationDetail]:
            now = place.clock.now()
            wanted = list(dict.fromkeys(resolve(tx, name) for name in names))
            tx.lock_automations(wanted)  # in the one order, whatever the order of the names
            for automation_id in wanted:
                operations.renew(tx, automation_id, by=person(), lasting=span, now=now)
            return [automation_detail(tx, automation_id, now=now) for automation_id in wanted]

        found = place.change(work, dry_run=dry_run)
        if place.out.as_json:
            place.out.json({"items": [one.line.as_json() for one in found], "dry_run": dry_run})
            return
        for one in found:
            line = one.line
            until = "" if line.expires is None else spoken(line.expires, line.timezone)
            place.out.line(f"{line.name} {'would be' if dry_run else 'is'} {line.state}, and acts until {until}")
