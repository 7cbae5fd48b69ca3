"""At hand: what a worker knows of the definitions whose runs it claims, and which of them nobody here serves."""

from __future__ import annotations

import contextlib
from collections import OrderedDict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from nightporter.store import Tx
from nightporter.store.tx_admission import NewRun
from nightporter.store.tx_dispatch import Able, Candidate, WaitingVersion, bars
from nightporter.words import Definition, QuickRunner, Runner
from nightporter.words.kept import Unreadable

STRANGERS = 1000
"""Versions of definitions that nobody here serves, and that are named to the query of each claim. Where as many wait,
those that are served are named instead."""

Runners = Mapping[str, Runner | QuickRunner]
Version = tuple[str, int]
"""An automation and the version of its definition."""
Named = tuple[str, Definition]
"""The automation's name beside it."""
Strange = tuple[str, str, Mapping[str, Any]]
"""`(runner, automation's name, config)` of one that the runner of this process did not serve when it was asked."""


@dataclass(slots=True)
class _Read:
    """What was read in a transaction."""

    tx: Tx | None = None
    undone: int = 0
    """How often something was undone in it by then."""
    definitions: dict[Version, Named] = field(default_factory=dict)
    unreadable: dict[Version, str] = field(default_factory=dict)
    strangers: dict[Version, Strange] = field(default_factory=dict)


class Definitions:
    """The definitions that runs were admitted with, kept while they are in use, and which of them nobody here serves.
    Versions never change, once they are committed: what was read in a transaction holds there, until one of its writes
    is undone, or `keep` says that it was committed. For the writer's thread."""

    def __init__(self, limit: int = 4096) -> None:
        self._kept: OrderedDict[Version, Named] = OrderedDict()
        self._limit = limit
        self._strangers: dict[Version, Strange] = {}
        self._read = _Read()

    def keep(self, tx: Tx) -> None:
        """The transaction is committed."""
        read, self._read = self._read_by(tx), _Read()
        self._strangers |= read.strangers
        self._kept |= read.definitions
        while len(self._kept) > self._limit:
            self._kept.popitem(last=False)

    def fetch(self, tx: Tx, keys: set[Version]) -> None:
        """Read those of a batch that are not at hand, in one query. What is unreadable is for `get` to say."""
        read = self._read_by(tx)
        missing = [
            key for key in keys
            if key not in self._kept and key not in read.definitions and key not in read.unreadable
        ]
        read.unreadable.update((key, f"version {key[1]} of automation {key[0]} is not in the store") for key in missing)
        for automation_id, version, name, text in tx.definitions(missing):
            key = automation_id, version
            try:
                read.definitions[key] = name, Definition.from_json(text)
                del read.unreadable[key]
            except Exception as error:  # whatever a row can be made to raise
                read.unreadable[key] = str(error)

    def get(self, tx: Tx, automation_id: str, version: int) -> Named:
        """Raises Unreadable."""
        key = (automation_id, version)
        if key in self._kept:
            self._kept.move_to_end(key)  # what is in use is dropped last
            return self._kept[key]
        self.fetch(tx, {key})
        read = self._read_by(tx)
        if key in read.unreadable:
            raise Unreadable(read.unreadable[key])
        return read.definitions[key]

    def _read_by(self, tx: Tx) -> _Read:
        if self._read.tx is not tx or self._read.undone != tx.undone:
            self._read = _Read(tx, tx.undone)
        return self._read

    # -- who is served here -----------------------------------------------------------------------------------------

    def able(self, runners: Runners, tx: Tx, *, asks: bool = True) -> Able:
        """What can be executed with these runners, as far as is known. `asks`: where many wait that nobody here serves,
        those that are not known are asked about; otherwise, on another thread, they count as served."""
        known = self._strangers | self._read_by(tx).strangers if asks else self._strangers
        # Asked anew each time: what a runner serves may have grown.
        strange = {
            version: kind for version, (kind, name, config) in list(known.items())
            if kind in runners and not _serves(runners[kind], name, config)
        }
        if len(strange) < STRANGERS:
            return Able(bars(runners), _named(strange))
        crowded = set(strange.values())
        waiting = {(one.automation_id, one.version): one for one in tx.waiting_versions(bars(crowded))}
        others = [version for version in waiting if version not in strange]
        if asks:
            more = self.not_served(tx, [waiting[version] for version in others], runners)
            others = [version for version in others if version not in more]
            self._strangers = {version: one for version, one in self._strangers.items() if version in waiting}
        return Able(bars(runners.keys() - crowded), among=_named(others[:STRANGERS]))

    def not_served(
        self, tx: Tx, runs: Iterable[Candidate | NewRun | WaitingVersion], runners: Runners
    ) -> Collection[Version]:
        """What is not served by these runners, of the definitions of these runs: known from now on. See
        `words.Runner`."""
        choosy = {kind for kind, runner in runners.items() if hasattr(runner, "serves")}
        asked = {(run.automation_id, run.version): run.runner for run in runs if run.runner in choosy}
        if not asked:
            return ()
        self.fetch(tx, set(asked))
        strangers: dict[Version, Strange] = {}
        for key, kind in asked.items():
            with contextlib.suppress(Unreadable):  # it is claimed, and fails for that
                name, definition = self.get(tx, *key)
                if not _serves(runners[kind], name, definition.target.config):
                    strangers[key] = kind, name, definition.target.config
        self._read_by(tx).strangers.update(strangers)
        return strangers


def _named(versions: Iterable[Version]) -> str:
    return bars([f"{automation_id}/{version}" for automation_id, version in versions])


def _serves(runner: Runner | QuickRunner, name: str, config: Mapping[str, Any]) -> bool:
    if not hasattr(runner, "serves"):
        return True
    try:
        return bool(runner.serves(name, config))
    except Exception:  # it cannot say: it is claimed, and what the runner makes of it is how it ends
        return True
