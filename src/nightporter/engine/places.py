"""Where a Config says that things are: the store, opened, and the folder of definition files."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from nightporter.clock import Clock
from nightporter.config import Config
from nightporter.definitions import definition_folder
from nightporter.store import Store, open_store


def store_of(config: Config, clock: Clock) -> Store:
    """The store that a Config names, opened and migrated. Raises StoreError and its kind."""
    return open_store(
        config.store, now=clock.now(), patience=config.patience.total_seconds(), lease=config.lease.total_seconds(),
        # Well before the lease is over: a worker that is cut off shall know before others take what it holds.
        silence=max(config.lease.total_seconds() / 4, 1.0), kick_folder=config.state / "kicks",
    )


def definitions_of(config: Config, environ: Mapping[str, str] | None = None, cwd: Path | None = None) -> Path:
    """The folder of definition files. Raises BadInput when what was asked for is a file."""
    environ = dict(os.environ if environ is None else environ)
    if config.home is not None:
        environ["NIGHTPORTER_HOME"] = str(config.home)
    return definition_folder(config.definitions, environ, cwd or Path.cwd())
