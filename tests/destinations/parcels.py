"""Parcels for tests of destinations."""

from __future__ import annotations

from typing import Any

from nightporter.clock import HOUR, Instant
from nightporter.words import DeliveryId, Parcel, RunId

ENDED = Instant(1_774_602_000_000_000)
"""2026-03-27T09:00:00Z."""


def parcel(config: dict[str, Any], *, name: str = "morning-brief", text: str = "All quiet.", attempt: int = 1,
           error: str = "", timezone: str = "UTC", **data: Any) -> Parcel:
    body = {
        "type": "automation.execution.succeeded", "timestamp": "2026-03-27T09:00:00Z",
        "data": {"automation": name, "run": "run_0123", "state": "succeeded", "outcome": "report", "reason": None,
                 "text": text, "data": None, "error": error, "attempt": 1, **data},
    }
    return Parcel(delivery_id=DeliveryId("del_1"), event_id="evt_1", run_id=RunId("run_0123"), automation=name,
                  workspace="default", config=config, body=body, created_at=ENDED, attempt=attempt,
                  timezone=timezone)


LATER = Instant(ENDED + HOUR)
