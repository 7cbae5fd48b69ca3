"""Where a command works: its settings, its store, and the way it speaks."""

from __future__ import annotations

import contextlib
import getpass
import os
import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar, cast

from cyclopts import Parameter

from nightporter.clock import Clock, SystemClock
from nightporter.config import Config
from nightporter.errors import StoreError
from nightporter.surfaces.cli.out import Out

if TYPE_CHECKING:
    from nightporter.store import Store, Tx

T = TypeVar("T")


@Parameter(name="*")
@dataclass(frozen=True)
class Common:
    """What every verb takes."""

    home: Annotated[str | None, Parameter(help="One folder for everything: store, definitions, outputs.")] = None
    store: Annotated[str | None, Parameter(help="A path, or postgresql://user@host/database.")] = None
    config: Annotated[str | None, Parameter(help="The folder of definition files.")] = None
    as_json: Annotated[bool, Parameter(name="--json", help="Answer in JSON.")] = False
    no_color: Annotated[bool, Parameter(help="No colours; NO_COLOR does the same.")] = False

    def settings(self) -> Config:
        """The settings, flags before the environment. Raises BadInput."""
        from nightporter.surfaces.settings import checked

        found = Config.from_environment(os.environ, home=self.home, store=self.store, definitions=self.config)
        return checked(found, os.environ)

    def out(self) -> Out:
        return Out(as_json=self.as_json, no_color=self.no_color)


USUAL = Common()
"""Nothing said: everything from the environment."""

DryRun = Annotated[bool, Parameter(help="Say what it would do, and do nothing.")]


@dataclass(frozen=True)
class Place:
    """A command's settings and its open store."""

    config: Config
    clock: Clock
    store: Store
    out: Out

    def read(self, look: Callable[[Tx], T]) -> T:
        return self.store.read(look)

    def change(self, work: Callable[[Tx], T], *, dry_run: bool = False) -> T:
        """Make a change; a dry run makes it and takes it back, so that it says exactly what would happen."""
        if not dry_run:
            return self.store.write(work)

        def undone(tx: Tx) -> None:
            raise _Undone(work(tx))

        try:
            self.store.write(undone)
        except _Undone as taken_back:
            return cast("T", taken_back.result)
        raise AssertionError("a dry run must be taken back")

    def somebody_works(self) -> bool:
        """Whether a desk or a worker is there to take what is queued."""
        from nightporter.ledger.status import worker_lines

        lines = self.read(lambda tx: worker_lines(tx, socket.gethostname()))
        return any(w.role in ("desk", "worker") and w.alive is not False for w in lines)


class _Undone(Exception):
    """Carries the result of a dry run out of the transaction that it rolls back."""

    def __init__(self, result: object) -> None:
        super().__init__("a dry run")
        self.result: object = result


@contextlib.contextmanager
def opened(common: Common, *, make: bool = False) -> Iterator[Place]:
    """The store, open. Raises StoreError when there is none, unless `make` allows a new one."""
    from nightporter.store import store_of

    config = common.settings()
    if not make and "://" not in config.store and not Path(config.store).exists():
        raise StoreError(f"there is no store at {config.store}", why="no desk has been here yet",
                         next="nightporter init makes one; --home or NIGHTPORTER_HOME names another place")
    clock = SystemClock()
    store = store_of(config, clock)
    try:
        yield Place(config, store.clock(clock), store, common.out())
    finally:
        store.close()


def person() -> str:
    """Who asks: the user's name on this machine."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a user without a name, as in some containers
        return f"uid {os.getuid()}"
