"""The log beside an SQLite file: folded back beside whoever writes, cut off at rest, complained of when it grows."""

from __future__ import annotations

import contextlib

import apsw

from nightporter import logs
from nightporter.store.sqlite_file import LARGE_LOG, THERE, translate

log = logs.get(__name__)


class Log:
    """That of one file, looked after by one thread."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._before = 0
        """Pages that it had at the last look."""

    def tend(self, large: int = LARGE_LOG) -> None:
        """Copy what is in it into the file; and where nothing was written since the last time, give its room back. Who
        reads what is old keeps it from being folded back: that is said, once it has `large` bytes. Raises StoreError.
        """
        try:
            with contextlib.closing(apsw.Connection(self._path, flags=THERE)) as connection:
                connection.set_busy_timeout(0)
                (_, pages, folded), *_ = connection.execute("PRAGMA wal_checkpoint(PASSIVE)")
                if pages == folded == self._before:
                    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
                size = pages * connection.pragma("page_size")
        except apsw.Error as error:
            raise translate(error) from error
        self._before = pages
        if folded < pages and size > large:
            log.warning("store.log_grows", megabytes=size // 1_000_000,
                        why="somebody has been reading for long: a backup, an open SQL shell")
