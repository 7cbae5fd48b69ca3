"""Following the folder of definition files: all of it at boot, then what becomes different."""

from __future__ import annotations

from nightporter import logs
from nightporter.clock import Clock
from nightporter.config import Config
from nightporter.definitions import Change, Watcher, scan
from nightporter.engine.places import definitions_of
from nightporter.errors import StoreError, StoreRefused
from nightporter.operations import Synced, follow, load
from nightporter.store import Store

log = logs.get(__name__)


class DefinitionFiles:
    """Keeps the store in step with the files. Both methods block: call them off the event loop."""

    def __init__(self, store: Store, config: Config, clock: Clock) -> None:
        self._store = store
        self._config = config
        self._clock = clock
        self._watcher: Watcher | None = None
        self._changes: list[Change] = []

    def load(self, *, whole: bool = True) -> None:
        """Read the whole folder; `whole`: automations whose file is not in it any more are paused. Raises BadInput when
        it cannot be listed, StoreError when the store is ill."""
        folder = definitions_of(self._config)
        owners = self._store.read(lambda tx: tx.owners_of_names())
        found = scan(folder, default_timezone=self._config.timezone, now=self._clock.now(), owners=owners)
        for line in load(self._store, folder, found, default_timezone=self._config.timezone, now=self._clock.now,
                         whole=whole):
            _tell(line)
        self._watcher = Watcher(folder, found, default_timezone=self._config.timezone)

    def tick(self) -> None:
        """Take up what changed since, once it has been quiet for a moment. Raises StoreError when the store is ill;
        what it did not take up waits for the next tick."""
        if self._watcher is None:
            return
        self._changes += self._watcher.tick(self._clock.monotonic(), self._clock.now())
        while self._changes:
            try:
                for line in follow(self._store, self._changes[0], default_timezone=self._config.timezone,
                                   now=self._clock.now):
                    _tell(line)
            except StoreError as error:
                if not isinstance(error, StoreRefused):
                    raise
                log.error("definition.not_taken", path=repr(self._changes[0].path), error=str(error))
            except Exception:  # whatever is wrong with one file costs that file
                log.exception("definition.not_taken", path=repr(self._changes[0].path))
            del self._changes[0]


def _tell(line: Synced) -> None:
    tell = log.warning if line.error else log.info
    tell(f"definition.{line.change}", automation=line.name, path=line.path, error=line.error)
