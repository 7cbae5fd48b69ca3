"""Nightporter, the night desk for AI agents: it starts work when nobody is typing.

A trigger's source notices an arrival and hands a *firing* to admission, which leaves a queued *run* or a
written reason why not; dispatch claims the run and hands it to a runner; its ending leaves a *delivery* for
each destination. Every step is a row in the ledger before anything outside the process sees it.

Read in this order: `states`, `words`, `admission`, `air`, `dispatch`, `delivery`, then `sources.clock` and `engine`.
"""

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from nightporter.surfaces.api import Porter, Run, at, cron, every, rrule

__all__ = ["Porter", "Run", "at", "cron", "every", "rrule"]


def __getattr__(name: str) -> Any:
    # Lazy, so that `nightporter --help` pays for no store and no event loop.
    if name in __all__:
        from nightporter.surfaces import api

        return getattr(api, name)
    raise AttributeError(f"module 'nightporter' has no attribute {name!r}")
