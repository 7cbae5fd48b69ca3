"""What a look would say just now, asked by a dry run: it acts on nothing, and nothing of it is kept."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

from nightporter import looks, operations
from nightporter.outside.http import Web
from nightporter.rules.looks import bounded, failed
from nightporter.surfaces.cli.place import Place
from nightporter.words import AutomationId, ErrorClass, Kept, Look, RunId, Seen, Sight, TriggerId, Work


@dataclass(frozen=True, slots=True)
class Glance:
    """What a look would say, and of which kind it is."""

    kind: str
    seen: Seen

    def as_json(self) -> dict[str, Any]:
        return {"kind": self.kind, "answer": str(self.seen.sight), "text": self.seen.error or self.seen.text}

    @property
    def words(self) -> str:
        match self.seen.sight:
            case Sight.NOTHING:
                return "its look finds nothing to do just now"
            case Sight.FAILED:
                return f"its look cannot say: {self.seen.error}"
            case _:
                return f"its look finds: {self.seen.text.strip() or 'something'}"


def glance(place: Place, automation_id: str, *, payload: Any, text: str) -> Glance | None:
    """Ask the look of a run by hand; None where it has none. Raises NotFound."""
    definition = place.read(lambda tx: operations.definition_of(tx, automation_id))
    look = definition.look_of("manual")
    if look is None:
        return None
    kept, _ = place.read(lambda tx: tx.look_facts("", automation_id, look.key))
    work = Work(
        run_id=RunId("dry-run"), token=0, attempt=1, automation_id=AutomationId(automation_id),
        automation=definition.name, workspace=definition.workspace, trigger_id=TriggerId(f"{automation_id}/manual"),
        source="manual", kind=definition.target.kind, config={}, text=text, payload=payload,
    )
    return Glance(look.kind, bounded(asyncio.run(_asked(place, look, kept, work))))


async def _asked(place: Place, look: Look, kept: Kept, work: Work) -> Seen:
    web = Web()
    try:
        looker = looks.registry(guard=None, web=web, now=place.clock.now).get(look.kind)
        if looker is None:
            return failed(ErrorClass.CONFIGURATION, f"no look is called {look.kind!r} here")
        return await looker.look(look.config, work, kept.state, _known_to_nobody)
    finally:
        await web.close()


async def _known_to_nobody(group: int, birth: int) -> None:
    """Nobody has to know of its child: it ends with this command."""
